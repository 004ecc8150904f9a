"""Noise scales, deltas, C(eps) and r*, against direct integrals and the design's table."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from ldp_gym import theory
from ldp_gym.channels import accounting
from ldp_gym.channels.noisy import LaplaceVector


def test_laplace_delta_against_a_direct_integral():
    """Two coordinates with different shifts: the hockey-stick divergence by quadrature."""
    shifts, epsilon = np.array([0.8, 0.5]), 0.6

    def excess(u, v):
        p = math.exp(-abs(u) - abs(v)) / 4
        q = math.exp(-abs(u - shifts[0]) - abs(v - shifts[1])) / 4
        return max(p - math.exp(epsilon) * q, 0.0)

    exact, _ = integrate.dblquad(excess, -30, 30, -30, 30, epsabs=1e-6)
    lower, upper = accounting.laplace_delta(shifts, epsilon)
    assert lower <= exact + 1e-4
    assert upper >= exact - 1e-4
    assert upper - lower < 2e-3 * upper
    assert (
        accounting.laplace_delta(shifts, 1.3).upper
        == 0.0
        < accounting.laplace_delta(shifts, 1.29).upper
    )


def test_scales_and_offsets_by_hand():
    """K = 8, T = 1,000, eps = 0.5, delta = 1e-5: log(KT) = 8.98720, ln(1/delta) = 11.51293."""
    assert accounting.vector_noise_scale(8, 1000, 0.5, 1e-5) == pytest.approx(523.856, rel=1e-5)
    assert accounting.single_noise_scale(8, 1000, 0.5) == pytest.approx(17.97439, rel=1e-6)
    assert accounting.offset(8, 1000, 17.97439) == pytest.approx(
        285.7021, rel=1e-6
    )  # gamma = 6.90776
    assert accounting.offset(8, 1000, 17.97439, 2.5) == pytest.approx(206.4754, rel=1e-6)
    one = accounting.laplace_vector_scale(1, 1.0, 0.1)  # delta = 1 - e^((eps - shift) / 2)
    assert one == pytest.approx(1.0 / (1.0 - 2.0 * math.log(0.9)), rel=1e-3)


def test_scales_are_the_least_that_keep_delta():
    for size, epsilon, delta in itertools.product((1, 3, 8, 128), (0.1, 1.0, 5.0), (1e-2, 1e-9)):
        shift = math.sqrt(size) / accounting.gaussian_vector_scale(size, epsilon, delta)
        assert (1 - 1e-9) * delta <= accounting.gaussian_delta(shift, epsilon) <= delta
    shifts = np.full(32, 1.0 / accounting.laplace_vector_scale(32, 2.0, 1e-5))
    least, more = (accounting.laplace_delta(factor * shifts, 2.0) for factor in (1.0, 1.01))
    assert least.upper <= 1e-5 < more.lower
    large = 2 * math.sqrt(2000 * math.log(1e5)) + math.sqrt(
        51_000
    )  # below the 1,000 of pure composition
    assert accounting.laplace_vector_scale(1000, 51.0, 1e-5) == pytest.approx(large / 51.0)


@pytest.mark.parametrize(("shift", "epsilon"), [(0.5, 0.3), (2.0, 1.0), (0.1, 1.0)])
def test_gaussian_delta_against_a_direct_integral(shift, epsilon):
    def excess(x):
        return max(norm.pdf(x) - math.exp(epsilon) * norm.pdf(x, shift), 0.0)

    exact, _ = integrate.quad(excess, -40, 10, limit=500, points=[shift / 2 - epsilon / shift])
    assert math.isclose(
        accounting.gaussian_delta(shift, epsilon), exact, rel_tol=1e-6, abs_tol=1e-14
    )
    assert 0 <= accounting.gaussian_delta(0.01, 800.0) < 1e-300


@pytest.mark.parametrize(
    ("size", "paper", "pure", "tight", "gauss"),
    [(8, 42.4, 11.3, 11.3, 10.6), (32, 84.8, 45.3, 28.4, 21.1), (128, 169.6, 181.0, 58.9, 42.2)],
)
def test_the_calibration_table(size, paper, pure, tight, gauss):
    """Noise standard deviation per coordinate in units of log(KT), delta = 1e-5, eps = 1; within 1%."""
    literal = LaplaceVector(size, 4, 1000, delta=1e-5).noise(np.full((size, 4), 0.25)).scale[0]
    accounted = accounting.laplace_vector_scale(size, 1.0, 1e-5)
    found = math.sqrt(2) * np.array([literal / math.log(1000 * size), size, accounted])
    np.testing.assert_allclose(found, [paper, pure, tight], rtol=0.01)
    assert math.isclose(accounting.gaussian_vector_scale(size, 1.0, 1e-5), gauss, rel_tol=0.01)
    assert accounted <= size
    large = 2 * math.sqrt(2 * size * math.log(1e5)) + math.sqrt(size * 51.0)  # closed forms
    assert accounting.laplace_vector_scale(size, 51.0, 1e-5) == pytest.approx(
        min(size, large) / 51.0
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_capacity_is_the_maximum_it_is_said_to_be(epsilon):
    def negative(r):
        total = r * math.exp(epsilon) + 1 - r
        return math.log(total) - r * math.exp(epsilon) * epsilon / total

    best = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    assert math.isclose(theory.capacity(epsilon), -best.fun, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(theory.best_share(epsilon), best.x, rel_tol=1e-3)


def test_capacity_and_share_at_the_ends():
    assert math.isclose(
        theory.capacity(1e-6), 1e-12 / 8, rel_tol=1e-5
    )  # (D - 1)^2 / 2 with D - 1 = eps / 2
    assert math.isclose(theory.capacity(800.0), 799 - math.log(800.0), rel_tol=1e-12)
    left, right = theory.capacity(0.0199), theory.capacity(0.0201)  # across the change of formula
    assert math.isclose(right / left, (0.0201 / 0.0199) ** 2, rel_tol=1e-4)
    assert theory.best_share(800.0) == 0.0
    for epsilon in (5e-324, 1e-200, 1e-9):
        assert theory.best_share(epsilon) == pytest.approx(0.5, rel=1e-7)
        assert theory.capacity(epsilon) >= 0.0
    assert theory.information_limit(8, 100, 1e-165) == pytest.approx(100 * math.log(8))


def test_shifts_that_are_no_shifts_are_refused():
    """They would count as none, which is perfect privacy."""
    for wrong in (np.nan, -1.0, np.inf):
        with pytest.raises(ValueError, match="shifts must be K nonnegative, finite numbers"):
            accounting.laplace_delta(np.array([1.0, wrong]), 1.0)
        with pytest.raises(ValueError, match="shift must be"):
            accounting.gaussian_delta(wrong, 1.0)
