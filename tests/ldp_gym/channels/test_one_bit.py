"""Reports of numbers in [-1, 1]: one bit, and the hybrid."""

import math

import numpy as np
import pytest
from helpers import ALPHA, make_channel
from scipy import stats


@pytest.mark.parametrize(
    ("name", "epsilon", "variance"),
    [
        ("one-bit", 0.1, 400.7), ("one-bit", 1.0, 4.68), ("one-bit", 4.0, 1.08),
        ("hybrid", 0.1, 400.7), ("hybrid", 1.0, 4.29), ("hybrid", 4.0, 0.219),
    ],
)  # fmt: skip
def test_reports_are_unbiased_and_have_their_worst_case_variance(name, epsilon, variance):
    """Moments by the densities themselves: atoms, and Riemann sums of the piecewise part."""
    channel = make_channel(name, 3, 4, 50, epsilon=epsilon)
    bit = (math.exp(epsilon) + 1) / math.expm1(epsilon)
    atoms = np.array([-bit, bit])
    piecewise = name == "hybrid" and epsilon > 0.61
    reach = (math.exp(epsilon / 2) + 1) / math.expm1(epsilon / 2)
    grid = np.linspace(-reach, reach, 400_001)
    grid = (grid[1:] + grid[:-1]) / 2
    cell = 2 * reach / 400_000
    found = []
    for value in np.linspace(-1, 1, 21):
        weights = channel.report_density(atoms, np.full(2, value))
        moments = [weights.sum(), weights @ atoms, weights @ atoms**2]
        if piecewise:
            smooth = channel.report_density(grid, np.full(len(grid), value)) * cell
            moments = [m + smooth @ grid**k for k, m in enumerate(moments)]
        assert abs(moments[0] - 1) < 1e-4
        assert abs(moments[1] - value) < 1e-3
        found.append(moments[2] - moments[1] ** 2)
        assert moments[2] <= channel.mean_square * (1 + 1e-3)
    assert math.isclose(max(found), variance, rel_tol=5e-3)
    assert math.isclose(moments[2], channel.mean_square, rel_tol=1e-3), "at t = 1"


@pytest.mark.parametrize("name", ["one-bit", "hybrid"])
def test_randomized_reports_follow_their_density(name):
    channel = make_channel(name, 3, 4, 50, epsilon=2.0)
    rng = np.random.default_rng(0)
    reports = channel.randomize(np.full(200_000, 0.4), rng.random((200_000, channel.num_uniforms - 3)))
    assert abs(reports.mean() - 0.4) < stats.norm.isf(ALPHA / 2) * reports.std() / math.sqrt(200_000)


@pytest.mark.parametrize("name", ["one-bit", "hybrid"])
def test_an_eps_whose_reports_are_no_floats_is_refused(name):
    with pytest.raises(ValueError, match="beyond the floats: raise epsilon"):
        make_channel(name, 3, 4, 10, epsilon=1e-310)
