"""The public posterior: what the transcript of contexts and messages implies about the truth.

Anyone can compute it, so Nature's adversary and the adaptive channels may act on it.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.numerics.arrays import BoolArray, FloatArray, IntArray, softmax

_LEAST_EVIDENCE = -1e6
"""What a message tells about a hypothesis that rules it out; below ``log`` of any float above 0."""


def evidence(log_likelihood: FloatArray) -> FloatArray:
    """Log-likelihoods that can be summed up: finite, also of a hypothesis that rules the message out.

    A truth outside the class can send, without privacy, what every hypothesis has ruled out at some time.
    Then the one that was wrong least often is left.
    """
    return np.maximum(log_likelihood, _LEAST_EVIDENCE)


class PublicPosterior:
    """The posterior of a batch of games under a uniform prior, advanced message by message.

    Args:
        num_hypotheses: K.
        batch_shape: the games.
        rate: at which it learns: the likelihoods' exponent.
        share: of the weight that is spread over all hypotheses after every message.

    Example:
        >>> posterior = PublicPosterior(2)
        >>> posterior.advance(np.log([0.2, 0.6]))
        >>> posterior.weights.round(2).tolist()
        [0.25, 0.75]
    """

    def __init__(
        self,
        num_hypotheses: int,
        batch_shape: tuple[int, ...] = (),
        *,
        rate: float = 1.0,
        share: float = 0.0,
    ) -> None:
        self._rate, self._share = rate, share
        # Games are side by side in memory: what is made of the weights runs along them.
        self._log_weights = np.moveaxis(np.zeros((num_hypotheses, *batch_shape)), 0, -1)

    @property
    def weights(self) -> FloatArray:
        """The weights ``(..., K)``, summing to one."""
        return softmax(self._log_weights)

    def advance(self, log_likelihood: FloatArray) -> None:
        """Bayes' rule, for messages of the given log-likelihood ``(..., K)``, tempered and shared."""
        log_weights = self._log_weights + self._rate * evidence(log_likelihood)
        log_weights -= np.maximum.reduce(log_weights, axis=-1, keepdims=True)
        if self._share:
            shared = (1.0 - self._share) * softmax(log_weights) + self._share / log_weights.shape[-1]
            np.log(shared, out=log_weights)
        self._log_weights = log_weights

    def along(self, log_likelihoods: FloatArray) -> FloatArray:
        """The weights before each of n rounds ``(B, n, K)``; advances past them."""
        before = np.empty(log_likelihoods.shape)
        for t in range(log_likelihoods.shape[1]):
            before[:, t] = self._log_weights
            self.advance(log_likelihoods[:, t])
        return softmax(before, out=before)

    def restart(self, games: BoolArray | IntArray) -> None:
        """Go back to the prior in those games."""
        self._log_weights[games] = 0.0

    def keep(self, games: BoolArray | IntArray) -> None:
        """Go on with those games alone."""
        self._log_weights = self._log_weights[games]
