"""C(eps) and r*, against a numerical maximum."""

import math

import pytest
from scipy.optimize import minimize_scalar

from ldp_gym import theory


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_capacity_is_the_maximum_it_is_said_to_be(epsilon):
    def negative(r):
        return math.log(r * math.exp(epsilon) + 1 - r) - r * math.exp(epsilon) * epsilon / (
            r * math.exp(epsilon) + 1 - r
        )

    best = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    assert math.isclose(theory.capacity(epsilon), -best.fun, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(theory.best_share(epsilon), best.x, rel_tol=1e-3)


def test_capacity_at_the_ends():
    assert math.isclose(theory.capacity(1e-6), 1e-12 / 8, rel_tol=1e-5)  # (D - 1)^2 / 2 with D - 1 = eps / 2
    assert math.isclose(theory.capacity(800.0), 799 - math.log(800.0), rel_tol=1e-12)
    left, right = theory.capacity(0.0199), theory.capacity(0.0201)  # across the change of formula
    assert math.isclose(right / left, (0.0201 / 0.0199) ** 2, rel_tol=1e-4)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-9])
def test_the_share_is_a_half_where_eps_is_next_to_nothing(epsilon):
    assert theory.best_share(epsilon) == pytest.approx(0.5, rel=1e-7)
    assert theory.capacity(epsilon) >= 0.0
