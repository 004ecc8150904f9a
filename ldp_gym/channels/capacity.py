"""What one eps-private message can tell at most, C(eps), and the share r* at which it does."""

from __future__ import annotations

import math
import sys

from ldp_gym.core import validation


def capacity(epsilon: float) -> float:
    """``C(eps) = D - 1 - log D`` with ``D = eps / (1 - e^-eps)``: the most one eps-LDP message can tell.

    No eps-LDP message, however chosen, even interactively, carries more nats about the truth.

    Example:
        >>> round(capacity(1.0), 4)
        0.1233
    """
    excess = _excess(epsilon)
    if excess > 1e-2:
        return excess - math.log1p(excess)
    return sum((-1) ** n * excess**n / n for n in range(2, 9))


def best_share(epsilon: float) -> float:
    """``r* = (D - 1) / (e^eps - 1)``: the share of possibilities that a message at capacity speaks for.

    Example:
        >>> round(best_share(1.0), 4)
        0.3387
    """
    excess = _excess(epsilon)
    if epsilon < sys.float_info.min:  # half of it may round to 0
        return 0.5
    return excess / math.expm1(epsilon) if epsilon < 700.0 else 0.0


def _excess(epsilon: float) -> float:
    """``D - 1``, without the cancellation."""
    half = validation.positive("epsilon", epsilon) / 2.0
    return half / math.tanh(half) - 1.0 + half if half > 0.0 else 0.0
