"""Prime numbers, by trial division: those that are needed are small."""

from __future__ import annotations

import math
from itertools import count


def least_prime(at_least: int) -> int:
    """The least prime that is not below ``at_least``.

    Example:
        >>> [least_prime(n) for n in (0, 2, 8, 257)]
        [2, 2, 11, 257]
    """
    return next(n for n in count(max(2, at_least)) if all(n % d for d in range(2, math.isqrt(n) + 1)))
