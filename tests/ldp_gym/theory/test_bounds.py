"""The bounds against the paper's text, worked out by hand."""

import math

from ldp_gym import theory


def test_upper_bounds_by_hand():
    """K = 4, T = 100, eps = 2: every factor of the theorems written out."""
    log_kt = math.log(400)
    offset = log_kt * (math.log(100) + math.log(4) + math.log(100)) / 2
    expected = (
        (log_kt + 2 * offset) * math.sqrt(2 * 100 * 4 * math.log(4))
        + 3 * log_kt
        + 103 / 100 * log_kt
    )
    assert math.isclose(theory.exp3_bound(4, 100, 2.0), expected, rel_tol=1e-12)
    offset = log_kt * (1.5 + math.log(400)) / 2
    expected = (log_kt + 2 * offset) * math.sqrt(800 * math.log(4)) + (
        3 + 103 * math.exp(-1.5)
    ) * log_kt
    assert math.isclose(theory.exp3_bound(4, 100, 2.0, gamma=1.5), expected, rel_tol=1e-12)
    scale = (2 * math.sqrt(2 * 4 * math.log(1e5)) + math.sqrt(4 * 2.0)) * log_kt / 2.0
    offset = scale * (3.0 + math.log(4) + math.log(100))
    expected = (log_kt + 2 * offset) * math.sqrt(2 * 100 * math.log(4)) + (
        3 + 103 * math.exp(-3)
    ) * log_kt
    assert math.isclose(theory.wma_bound(4, 100, 2.0, 1e-5, gamma=3.0), expected, rel_tol=1e-12)


def test_lower_bound_by_hand():
    """K = 8 pairs, T = 1000, eps = 0.5; and below the upper bound everywhere."""
    a = math.sqrt(8 / (9 * 1000 * (math.exp(0.5) - 1) ** 2 * math.exp(0.5)))
    assert math.isclose(theory.lower_bound(16, 1000, 0.5), a * 1000 / 132, rel_tol=1e-12)
    for epsilon in (0.1, 1.0, 3.0):
        for horizon in (10**3, 10**6):
            assert theory.lower_bound(16, horizon, epsilon) < theory.exp3_bound(
                16, horizon, epsilon
            )


def test_sample_complexity_is_where_the_bound_crosses_alpha():
    horizon = theory.sample_complexity(4, 0.5, 1.0)
    assert theory.tv_bound(2.0, 4) == 0.5  # Pinsker
    enough, less = (
        theory.tv_bound(theory.exp3_bound(4, t, 1.0), t) for t in (horizon, horizon - 1)
    )
    assert enough <= 0.5 < less
    assert theory.sample_complexity(4, 1e6, 1.0) == 2, "the shortest game"
    assert theory.sample_complexity(4, 0.25, 1.0) > 14 * horizon  # alpha^-4, up to logarithms
