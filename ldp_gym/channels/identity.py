"""No privacy: the reference from which the price of privacy is measured."""

from __future__ import annotations

import math
import warnings

from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core import validation
from ldp_gym.core.errors import NoPrivacyWarning


class Identity(RandomizedResponse):
    """No privacy: the label itself, to measure what privacy costs.

    It says so when it is made. Bayes on it has risk at most ``log K`` whatever the class (Section 1). An
    ``epsilon`` that is passed, as a sweep over all channels does, has no effect.
    """

    def _valid_epsilon(self, epsilon: float) -> float:
        if not validation.real("epsilon", epsilon) > 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")
        warnings.warn(
            "the channel 'identity' reveals every label: it gives no privacy at all (epsilon = inf)",
            NoPrivacyWarning,
            stacklevel=2,
        )
        return math.inf
