"""The bounds against the paper's text, worked out by hand."""

import math

import pytest

from ldp_gym import theory


def test_the_bound_of_algorithm_2_by_hand():
    """K = 4, T = 100, eps = 2, gamma = log T: every factor of the theorem written out."""
    log_kt = math.log(400)
    offset = log_kt * (math.log(100) + math.log(4) + math.log(100)) / 2
    regret = (log_kt + 2 * offset) * math.sqrt(2 * 100 * 4 * math.log(4))
    expected = regret + 3 * log_kt + 103 / 100 * log_kt
    assert theory.exp3_bound(4, 100, 2.0) == pytest.approx(expected, rel=1e-12)


def test_the_bound_of_algorithm_2_with_another_gamma_by_hand():
    log_kt = math.log(400)
    offset = log_kt * (1.5 + math.log(400)) / 2
    regret = (log_kt + 2 * offset) * math.sqrt(800 * math.log(4))
    expected = regret + (3 + 103 * math.exp(-1.5)) * log_kt
    assert theory.exp3_bound(4, 100, 2.0, gamma=1.5) == pytest.approx(expected, rel=1e-12)


def test_the_bound_of_algorithm_1_by_hand():
    """K = 4, T = 100, eps = 2, delta = 1e-5, gamma = 3."""
    log_kt = math.log(400)
    scale = (2 * math.sqrt(2 * 4 * math.log(1e5)) + math.sqrt(4 * 2.0)) * log_kt / 2.0
    offset = scale * (3.0 + math.log(4) + math.log(100))
    regret = (log_kt + 2 * offset) * math.sqrt(2 * 100 * math.log(4))
    expected = regret + (3 + 103 * math.exp(-3)) * log_kt
    bound = theory.wma_bound(4, 100, 2.0, 1e-5, gamma=3.0)
    assert bound == pytest.approx(expected, rel=1e-12)


def test_the_lower_bound_by_hand():
    """K = 8 pairs, T = 1000, eps = 0.5."""
    a = math.sqrt(8 / (9 * 1000 * (math.exp(0.5) - 1) ** 2 * math.exp(0.5)))
    assert theory.lower_bound(16, 1000, 0.5) == pytest.approx(a * 1000 / 132, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("horizon", [10**3, 10**6])
def test_the_lower_bound_is_below_the_upper_bound(epsilon, horizon):
    upper = theory.exp3_bound(16, horizon, epsilon)
    assert 0.0 < theory.lower_bound(16, horizon, epsilon) < upper


def test_the_bound_on_tv_is_that_of_pinsker():
    assert theory.tv_bound(2.0, 4) == 0.5


def test_the_sample_complexity_is_where_the_bound_crosses_alpha():
    horizon = theory.sample_complexity(4, 0.5, 1.0)
    at_horizon = theory.tv_bound(theory.exp3_bound(4, horizon, 1.0), horizon)
    before = theory.tv_bound(theory.exp3_bound(4, horizon - 1, 1.0), horizon - 1)
    assert at_horizon <= 0.5 < before


def test_the_sample_complexity_is_at_least_the_shortest_game():
    assert theory.sample_complexity(4, 1e6, 1.0) == 2


def test_the_sample_complexity_grows_as_the_fourth_power_up_to_logarithms():
    horizon = theory.sample_complexity(4, 0.5, 1.0)
    assert theory.sample_complexity(4, 0.25, 1.0) > 14 * horizon


def test_a_delta_of_two_is_refused():
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got 2"):
        theory.wma_bound(8, 1000, 1.0, 2.0)


def test_the_lower_bound_names_the_horizon_it_needs():
    with pytest.raises(ValueError, match="needs a horizon of at least"):
        theory.lower_bound(16, 2, 0.01)


def test_a_level_must_have_a_square_in_floats():
    with pytest.raises(ValueError, match=r"at least 1e-150, .* got 1e-170"):
        theory.hadamard_gap(8, 1000, 1e-170)


def test_a_sample_complexity_beyond_all_horizons_is_refused():
    with pytest.raises(ValueError, match="alpha=1e-80 at epsilon=1 takes more than"):
        theory.sample_complexity(8, 1e-80, 1.0)
