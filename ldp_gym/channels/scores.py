"""Proper scores: losses of which the truth has the least, whatever a message says.

Given the public coins, most channels have messages that fit a label or do not (:mod:`.two_level`). With
``c_k(z)`` the chance that z fits a label of hypothesis k, the likelihood of k is
``P_k(z) = L(z) (e^-eps + (1 - e^-eps) c_k(z))``.

Under the law P the quadratic score ``sum_z' P_k(z')^2 / L(z') - 2 P_k(z) / L(z)`` has the expectation
``sum_z (P_k(z) - P(z))^2 / L(z)``, up to what does not depend on k: the least at ``P_k = P``. For every label
probabilities sum to one, so ``sum_z L(z) c_k(z)`` is the same for all k. Up to a factor and a constant it is

    ``(1 - e^-eps) sum_z' L(z') c_k(z')^2 - 2 c_k(z)``.

It is bounded, as exponential weights need it; the log-likelihood is proper too, and is not.
"""

from __future__ import annotations

import math

import numpy as np

from ldp_gym.core.arrays import FloatArray


def quadratic_losses(chances: FloatArray, squares: FloatArray, epsilon: float) -> FloatArray:
    """The quadratic score of each hypothesis, ``(..., K)``.

    Args:
        chances: ``c_k(z)``, that the message fits a label of k.
        squares: ``sum_z' L(z') c_k(z')^2``, up to a constant that all hypotheses share.
        epsilon: the privacy level.
    """
    return -math.expm1(-epsilon) * squares - 2.0 * chances


def relative_losses(log_likelihood: FloatArray) -> FloatArray:
    """The logarithmic score ``-log P_k(z)`` less that of the uniform mixture, ``(..., K)``.

    The truth's is least in expectation on any channel. On an eps-private one it lies in ``[-eps, eps]``.
    """
    mean = np.logaddexp.reduce(log_likelihood, axis=-1, keepdims=True) - math.log(log_likelihood.shape[-1])
    return mean - log_likelihood
