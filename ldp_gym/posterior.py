"""The public posterior: what the transcript of contexts and messages implies about the truth.

Anyone can compute it, so Nature's adversary and the interactive channels may act on it.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.arrays import FloatArray


def prior(batch_shape: tuple[int, ...], num_hypotheses: int) -> FloatArray:
    """Log weights ``(..., K)`` before the first message: all hypotheses alike."""
    return np.full((*batch_shape, num_hypotheses), -np.log(num_hypotheses))


def advance(log_weights: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    """Bayes' rule: the log weights after a message of the given log-likelihood ``(..., K)``."""
    return normalised(log_weights + log_likelihood)


def normalised(log_weights: FloatArray) -> FloatArray:
    """Log weights shifted so that the weights sum to one."""
    shifted = log_weights - log_weights.max(axis=-1, keepdims=True)
    log_total: FloatArray = np.log(np.add.reduce(np.exp(shifted), axis=-1, keepdims=True))
    return shifted - log_total


def weights(log_weights: FloatArray, axis: int = -1, out: FloatArray | None = None) -> FloatArray:
    """The weights ``(..., K)``, summing to one, of log weights up to a constant."""
    relative = np.subtract(log_weights, np.maximum.reduce(log_weights, axis=axis, keepdims=True), out=out)
    np.exp(relative, out=relative)
    relative /= np.add.reduce(relative, axis=axis, keepdims=True)
    return relative
