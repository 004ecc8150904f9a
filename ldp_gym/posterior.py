"""The public posterior: what the transcript of contexts and messages implies about the truth.

Anyone can compute it, so Nature's adversary and the adaptive channels may act on it.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.numerics.arrays import BoolArray, FloatArray, IntArray, softmax


class PublicPosterior:
    """The posterior of a batch of games under a uniform prior, advanced message by message.

    Args:
        num_hypotheses: K.
        batch_shape: the games.

    Example:
        >>> posterior = PublicPosterior(2)
        >>> posterior.advance(np.log([0.2, 0.6]))
        >>> posterior.weights.round(2).tolist()
        [0.25, 0.75]
    """

    def __init__(self, num_hypotheses: int, batch_shape: tuple[int, ...] = ()) -> None:
        # Games are side by side in memory: what is made of the weights runs along them.
        self._log_weights = np.moveaxis(np.zeros((num_hypotheses, *batch_shape)), 0, -1)

    @property
    def weights(self) -> FloatArray:
        """The weights ``(..., K)``, summing to one."""
        return softmax(self._log_weights)

    def advance(self, log_likelihood: FloatArray) -> None:
        """Bayes' rule, for messages of the given log-likelihood ``(..., K)``."""
        log_weights = self._log_weights + log_likelihood
        log_weights -= np.maximum.reduce(log_weights, axis=-1, keepdims=True)
        self._log_weights = log_weights

    def along(self, log_likelihoods: FloatArray) -> FloatArray:
        """The weights before each of n rounds ``(B, n, K)``; advances past them."""
        before = np.empty(log_likelihoods.shape)
        before[:, 0] = self._log_weights
        before[:, 1:] = log_likelihoods[:, :-1]
        np.cumsum(before, axis=1, out=before)
        self._log_weights = before[:, -1]
        self.advance(log_likelihoods[:, -1])
        return softmax(before, out=before)

    def restart(self, games: BoolArray | IntArray) -> None:
        """Go back to the prior in those games."""
        self._log_weights[games] = 0.0

    def keep(self, games: BoolArray | IntArray) -> None:
        """Go on with those games alone."""
        self._log_weights = self._log_weights[games]
