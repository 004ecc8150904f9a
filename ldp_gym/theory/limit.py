"""The information limit: a floor under the risk of every eps-private system."""

from __future__ import annotations

import math

from ldp_gym.calibration.capacity import capacity
from ldp_gym.calibration.noise_scales import MOST_ROUNDS
from ldp_gym.numerics import validation


def information_limit(num_hypotheses: int, horizon: int, epsilon: float) -> float:
    """``sum_t max(0, log K - (t - 1) C(eps))``: the floor on disjoint supports under a uniform truth.

    Example:
        >>> round(information_limit(128, 10_000, 1.0), 1)
        97.9
    """
    log_k = math.log(validation.whole("num_hypotheses (K)", num_hypotheses, least=2))
    rate = capacity(epsilon)
    rounds = validation.whole("horizon (T)", horizon, least=1, most=MOST_ROUNDS)
    if rate * rounds > log_k:  # all is known before the end
        rounds = math.floor(log_k / rate) + 1
    return rounds * log_k - rate * rounds * (rounds - 1) / 2.0
