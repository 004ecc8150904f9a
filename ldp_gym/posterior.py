"""The public posterior: what the transcript of contexts and messages implies about the truth.

Anyone can compute it, so Nature's adversary and the adaptive channels may act on it.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.numerics.arrays import FloatArray

_VANISHES = -745.2
"""Below it, exp is 0 in floats: and takes three times as long to say so as at minus infinity."""


def prior(batch_shape: tuple[int, ...], num_hypotheses: int) -> FloatArray:
    """Log weights ``(..., K)``, up to a constant, before the first message: all hypotheses alike.

    Games are side by side in memory, not the few hypotheses: what is made of the weights runs along games.
    """
    return np.moveaxis(np.zeros((num_hypotheses, *batch_shape)), 0, -1)


def advance(log_weights: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    """Bayes' rule: log weights, the largest 0, after a message of the given log-likelihood ``(..., K)``."""
    log_weights = log_weights + log_likelihood
    log_weights -= np.maximum.reduce(log_weights, axis=-1, keepdims=True)
    return log_weights


def weights(log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None) -> FloatArray:
    """The weights ``(..., K)``, summing to one, of log weights up to a constant."""
    relative = np.subtract(log_weights, np.maximum.reduce(log_weights, axis=axis, keepdims=True), out=out)
    np.copyto(relative, -np.inf, where=relative < _VANISHES)
    np.exp(relative, out=relative)
    relative /= np.add.reduce(relative, axis=axis, keepdims=True)
    return relative
