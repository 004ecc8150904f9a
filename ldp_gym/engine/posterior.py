"""The public posterior: what the transcript of contexts and messages implies about the truth.

Anyone can compute it, so Nature's adversary and the adaptive channels may act on it.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, relative_weights, sums_in_order

_LEAST_EVIDENCE = -1e6
"""What a message tells about a hypothesis that rules it out; below ``log`` of any float above 0."""


def evidence(log_likelihood: FloatArray) -> FloatArray:
    """Log-likelihoods that can be summed up: finite, also of a hypothesis that rules the message out.

    A truth outside the class can send, without privacy, what every hypothesis has ruled out at some time.
    Then the one that was wrong least often is left.
    """
    return np.maximum(log_likelihood, _LEAST_EVIDENCE)


def weights_of(log_weights: FloatArray) -> FloatArray:
    """The posterior ``(..., K)`` of log weights: the same to the last bit, alone and in a batch."""
    weights = relative_weights(log_weights)
    weights /= sums_in_order(weights)
    return weights


class PublicPosterior:
    """The posterior of a batch of games under a uniform prior, advanced message by message.

    Args:
        num_hypotheses: K.
        batch_shape: the games.
        rate: the rate at which it learns, the likelihoods' exponent.
        share: the share of the weight that is spread over all hypotheses after every message.

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
        return weights_of(self._log_weights)

    def advance(self, log_likelihood: FloatArray) -> None:
        """Bayes' rule, for messages of the given log-likelihood ``(..., K)``, tempered and shared."""
        self._log_weights = self._log_weights_after(self._log_weights, self._relative(log_likelihood))

    def along(self, log_likelihoods: FloatArray) -> FloatArray:
        """The weights before each of n rounds ``(B, n, K)``; advances past them."""
        path = self.path(log_likelihoods)
        self.move_to(path[:, -1])
        return weights_of(path[:, :-1])

    def path(self, log_likelihoods: FloatArray) -> FloatArray:
        """The log weights before each of n rounds and after the last, ``(B, n + 1, K)``, up to constants."""
        games, rounds, num_hypotheses = log_likelihoods.shape
        path = np.empty((num_hypotheses, games, rounds + 1)).transpose(1, 2, 0)
        path[:, 0] = self._log_weights
        path[:, 1:] = self._relative(log_likelihoods)
        if not self._share and rounds > games:
            return np.add.accumulate(path, axis=1, out=path)
        for t in range(1, path.shape[1]):
            path[:, t] = self._log_weights_after(path[:, t - 1], path[:, t])
        return path

    def move_to(self, log_weights: FloatArray) -> None:
        """Go on from a point of a :meth:`path`, ``(..., K)``."""
        np.copyto(self._log_weights, log_weights)

    def _relative(self, log_likelihood: FloatArray) -> FloatArray:
        """What a message adds to the log weights: 0 for the likeliest, so that sums stay small."""
        told = self._rate * evidence(log_likelihood)
        told -= np.maximum.reduce(told, axis=-1, keepdims=True)
        return told

    def _log_weights_after(self, log_weights: FloatArray, told: FloatArray) -> FloatArray:
        after = log_weights + told
        if self._share:
            shared = (1.0 - self._share) * weights_of(after) + self._share / after.shape[-1]
            np.log(shared, out=after)
        return after

    def restart(self, games: BoolArray | IntArray) -> None:
        """Go back to the prior in those games."""
        self._log_weights[games] = 0.0

    def keep(self, games: BoolArray | IntArray) -> None:
        """Go on with those games alone."""
        self._log_weights = self._log_weights[games]
