"""Noise scales, deltas, C(eps) and r*, against direct integrals and the design's table."""

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
    shifts = np.array([0.8, 0.5])
    epsilon = 0.6

    def excess(u, v):
        p = math.exp(-abs(u) - abs(v)) / 4
        q = math.exp(-abs(u - 0.8) - abs(v - 0.5)) / 4
        return max(p - math.exp(epsilon) * q, 0.0)

    exact, _ = integrate.dblquad(excess, -30, 30, -30, 30, epsabs=1e-6)
    lower, upper = accounting.laplace_delta(shifts, epsilon)
    assert lower <= exact + 1e-4
    assert upper >= exact - 1e-4
    assert upper - lower < 2e-3 * upper


def test_laplace_delta_is_0_from_the_sum_of_the_shifts_on():
    shifts = np.array([0.8, 0.5])
    assert accounting.laplace_delta(shifts, 1.29).upper > 0.0
    assert accounting.laplace_delta(shifts, 1.3).upper == 0.0


def test_the_paper_s_scale_of_a_vector_by_hand():
    """K = 8, T = 1,000, eps = 0.5, delta = 1e-5: log(KT) = 8.98720, ln(1/delta) = 11.51293."""
    assert accounting.vector_noise_scale(8, 1000, 0.5, 1e-5) == pytest.approx(523.856, rel=1e-5)


def test_the_paper_s_scale_of_a_coordinate_by_hand():
    """K = 8, T = 1,000, eps = 0.5: log(KT) = 8.98720, times 2."""
    assert accounting.single_noise_scale(8, 1000, 0.5) == pytest.approx(17.97439, rel=1e-6)


def test_the_offset_by_hand():
    """K = 8 and T = 1,000: gamma is log(1,000) = 6.90776."""
    assert accounting.offset(8, 1000, 17.97439) == pytest.approx(285.7021, rel=1e-6)


def test_the_offset_of_another_gamma_by_hand():
    assert accounting.offset(8, 1000, 17.97439, 2.5) == pytest.approx(206.4754, rel=1e-6)


def test_the_laplace_scale_of_one_coordinate_by_hand():
    """For one coordinate delta = 1 - e^((eps - shift) / 2): at eps = 1 and 0.1, shift = 1 - 2 log 0.9."""
    scale = accounting.laplace_vector_scale(1, 1.0, 0.1)
    assert scale == pytest.approx(1.0 / (1.0 - 2.0 * math.log(0.9)), rel=1e-3)


@pytest.mark.parametrize("delta", [1e-2, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("size", [1, 3, 8, 128])
def test_the_gaussian_scale_is_the_least_that_keeps_delta(size, epsilon, delta):
    shift = math.sqrt(size) / accounting.gaussian_vector_scale(size, epsilon, delta)
    assert (1 - 1e-9) * delta <= accounting.gaussian_delta(shift, epsilon) <= delta


def test_the_laplace_scale_keeps_delta_and_a_hundredth_less_does_not():
    shifts = np.full(32, 1.0 / accounting.laplace_vector_scale(32, 2.0, 1e-5))
    assert accounting.laplace_delta(shifts, 2.0).upper <= 1e-5
    assert accounting.laplace_delta(1.01 * shifts, 2.0).lower > 1e-5


def test_the_laplace_scale_at_a_large_epsilon_is_a_closed_form():
    """1,000 coordinates, eps = 51: below the scale 1000 / 51 of pure composition."""
    closed_form = (2 * math.sqrt(2000 * math.log(1e5)) + math.sqrt(51_000)) / 51.0
    assert closed_form < 1000 / 51.0
    assert accounting.laplace_vector_scale(1000, 51.0, 1e-5) == pytest.approx(closed_form)


@pytest.mark.parametrize(("shift", "epsilon"), [(0.5, 0.3), (2.0, 1.0), (0.1, 1.0)])
def test_gaussian_delta_against_a_direct_integral(shift, epsilon):
    def excess(x):
        return max(norm.pdf(x) - math.exp(epsilon) * norm.pdf(x, shift), 0.0)

    kink = shift / 2 - epsilon / shift
    exact, _ = integrate.quad(excess, -40, 10, limit=500, points=[kink])
    delta = accounting.gaussian_delta(shift, epsilon)
    assert math.isclose(delta, exact, rel_tol=1e-6, abs_tol=1e-14)


def test_gaussian_delta_at_a_huge_epsilon_is_nearly_0():
    assert 0 <= accounting.gaussian_delta(0.01, 800.0) < 1e-300


def standard_deviation_of_laplace(scale):
    """A Laplace variable's standard deviation is sqrt(2) times its scale."""
    return math.sqrt(2) * scale


@pytest.mark.parametrize(("size", "deviation"), [(8, 42.4), (32, 84.8), (128, 169.6)])
def test_the_paper_s_noise_in_the_calibration_table(size, deviation):
    """Standard deviation per coordinate in units of log(KT), delta = 1e-5, eps = 1; within 1%."""
    channel = LaplaceVector(size, 4, 1000, delta=1e-5)
    scale = channel.noise(np.full((size, 4), 0.25)).scale[0]
    found = standard_deviation_of_laplace(scale) / math.log(1000 * size)
    assert math.isclose(found, deviation, rel_tol=0.01)


@pytest.mark.parametrize(("size", "deviation"), [(8, 11.3), (32, 45.3), (128, 181.0)])
def test_the_noise_of_pure_composition_in_the_calibration_table(size, deviation):
    assert math.isclose(standard_deviation_of_laplace(size), deviation, rel_tol=0.01)


@pytest.mark.parametrize(("size", "deviation"), [(8, 11.3), (32, 28.4), (128, 58.9)])
def test_the_tight_laplace_noise_in_the_calibration_table(size, deviation):
    scale = accounting.laplace_vector_scale(size, 1.0, 1e-5)
    assert math.isclose(standard_deviation_of_laplace(scale), deviation, rel_tol=0.01)


@pytest.mark.parametrize(("size", "deviation"), [(8, 10.6), (32, 21.1), (128, 42.2)])
def test_the_gaussian_noise_in_the_calibration_table(size, deviation):
    assert math.isclose(accounting.gaussian_vector_scale(size, 1.0, 1e-5), deviation, rel_tol=0.01)


@pytest.mark.parametrize("size", [8, 32, 128])
def test_the_tight_laplace_noise_is_at_most_that_of_pure_composition(size):
    assert accounting.laplace_vector_scale(size, 1.0, 1e-5) <= size


@pytest.mark.parametrize("size", [8, 32, 128])
def test_the_laplace_scale_at_a_large_epsilon_is_the_smaller_of_two_closed_forms(size):
    composed = 2 * math.sqrt(2 * size * math.log(1e5)) + math.sqrt(size * 51.0)
    expected = min(size, composed) / 51.0
    assert accounting.laplace_vector_scale(size, 51.0, 1e-5) == pytest.approx(expected)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
def test_capacity_is_the_maximum_it_is_said_to_be(epsilon):
    def negative(r):
        total = r * math.exp(epsilon) + 1 - r
        return math.log(total) - r * math.exp(epsilon) * epsilon / total

    best = minimize_scalar(negative, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    assert math.isclose(theory.capacity(epsilon), -best.fun, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(theory.best_share(epsilon), best.x, rel_tol=1e-3)


def test_capacity_at_a_small_epsilon_is_its_square_over_8():
    assert math.isclose(theory.capacity(1e-6), 1e-12 / 8, rel_tol=1e-5)


def test_capacity_at_a_large_epsilon_is_eps_minus_1_minus_log_eps():
    assert math.isclose(theory.capacity(800.0), 799 - math.log(800.0), rel_tol=1e-12)


def test_capacity_has_no_jump_where_its_formula_changes():
    """At eps = 0.02; capacity grows as the square of eps there."""
    ratio = theory.capacity(0.0201) / theory.capacity(0.0199)
    assert math.isclose(ratio, (0.0201 / 0.0199) ** 2, rel_tol=1e-4)


def test_the_best_share_at_a_huge_epsilon_is_0():
    assert theory.best_share(800.0) == 0.0


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-9])
def test_the_best_share_at_a_tiny_epsilon_is_one_half(epsilon):
    assert theory.best_share(epsilon) == pytest.approx(0.5, rel=1e-7)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-200, 1e-9])
def test_capacity_at_a_tiny_epsilon_is_not_negative(epsilon):
    assert theory.capacity(epsilon) >= 0.0


def test_the_information_limit_at_a_tiny_epsilon_is_that_without_learning():
    assert theory.information_limit(8, 100, 1e-165) == pytest.approx(100 * math.log(8))


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
def test_laplace_delta_refuses_a_wrong_shift(wrong):
    """It would count as none, which is perfect privacy."""
    with pytest.raises(ValueError, match="shifts must be K nonnegative, finite numbers"):
        accounting.laplace_delta(np.array([1.0, wrong]), 1.0)


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
def test_gaussian_delta_refuses_a_wrong_shift(wrong):
    with pytest.raises(ValueError, match="shift must be"):
        accounting.gaussian_delta(wrong, 1.0)
