"""The proved floor: exact for two hypotheses, above the limit, and below everything that was played."""

import math

import numpy as np
import pytest
from extremal import entropy, least_risk, most_information
from helpers import ALPHA, PURE
from scipy.stats import binom, norm, sem

import ldp_gym
from ldp_gym import theory
from ldp_gym.theory import disjoint, floor


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_for_two_hypotheses_the_floor_is_the_risk_of_randomized_response(epsilon):
    """After n right answers of t the odds are ``e^(eps (2 n - t))``: the expected KL by the binomial law."""
    right, total = 1.0 / (1.0 + math.exp(-epsilon)), 0.0
    for t in range(60):
        n = np.arange(t + 1)
        total += binom.pmf(n, t, right) @ np.log1p(np.exp(-epsilon * (2.0 * n - t)))
    for adaptive in (True, False):
        assert theory.risk_floor(2, 60, epsilon, adaptive=adaptive) == pytest.approx(total, rel=1e-9)
    p, q = np.array([0.3, 0.7, 0.0]), np.array([0.0, 0.0, 1.0])
    assert theory.pair_floor(p, q, 60, epsilon) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize(
    ("size", "epsilon", "multiple"),
    [(size, epsilon, 1.0) for size in (3, 32) for epsilon in (0.3, 1.0, 3.0)]
    + [(8, 0.5, 1.35), (8, 1.0, 1.48), (8, 2.0, 1.40), (8, 4.0, 1.18)],
)
def test_the_floor_is_above_the_limit_and_higher_without_adaptation(size, epsilon, multiple):
    for horizon in (500, 2000):
        adaptive, plain = (theory.risk_floor(size, horizon, epsilon, adaptive=kind) for kind in (True, False))
        assert multiple * theory.information_limit(size, horizon, epsilon) < adaptive <= plain


@pytest.mark.parametrize("channel", PURE)
def test_no_channel_plays_below_the_floor(channel):
    """500 episodes: a private channel has a mean that is this far below the floor with probability 1e-6."""
    rules = {"hypotheses": "disjoint", "num_hypotheses": 8, "channel": channel, "horizon": 150}
    totals = ldp_gym.evaluate("bayes", rules, episodes=500).kl[:, -1]
    least = theory.risk_floor(8, 150, 1.0, adaptive=ldp_gym.CHANNELS[channel].adaptive)
    assert totals.mean() + norm.isf(ALPHA) * sem(totals) >= least


@pytest.mark.parametrize(("size", "horizon"), [(3, 5), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_adaptive_channel_of_all_is_below_the_floor(size, horizon, epsilon):
    optimum = least_risk(np.eye(size), epsilon, horizon, symmetric=True)
    for found in (
        theory.risk_floor(size, horizon, epsilon),  # shipped, rounded down and interpolated
        disjoint.disjoint_floors(size, epsilon, 6, horizon)[-1],  # nothing is dropped
    ):
        assert (1 - 1e-4) * optimum <= found <= optimum * (1 + 1e-9)
    assert floor._entropy_floor(size, horizon, epsilon, adaptive=True) <= optimum * (1 + 1e-9)
    assert optimum <= math.log(size) * horizon


def test_information_with_an_atom_bounds_every_channel():
    """The linear program over all sets (Kairouz, Oh and Viswanath 2016) never exceeds ``C(p)``."""
    rng = np.random.default_rng(0)
    for alpha in (0.2, 1.0, 5.0):
        weights = rng.dirichlet(np.full(6, alpha))
        most = most_information(weights, 1.0)
        bound = floor._information_with_atom(weights.max(), 1.0)
        assert most <= bound * (1 + 1e-9)
        assert bound <= theory.capacity(1.0) * (1 + 1e-3)
        assert most <= floor._most_information(entropy(weights), 6, 1.0) * (1 + 1e-9)


def test_steps_of_the_floor_by_hand():
    """The least entropy has as many large atoms as can be; sets of the best size separate most pairs."""
    for largest, atoms in ((0.5, [0.5, 0.5]), (0.4, [0.4, 0.4, 0.2]), (1.0, [1.0])):
        assert floor._least_entropy(largest) == pytest.approx(entropy(atoms))
    best = max((math.e + 1) * n * (5 - n) / (5 + (math.e - 1) * n) / 4 for n in range(1, 5))
    assert floor._separation(5, 1.0) == pytest.approx(best)
    assert floor._separation(2, 1.0) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("size", "epsilon", "depth"), [(3, 1.0, 12), (4, 2.0, 6), (5, 4.0, 4)])
def test_shipped_floors_are_those_of_the_dynamic_program(size, epsilon, depth):
    """A shallower program is a lower floor, and close; the shipped one grows with T, and ends."""
    worked = disjoint.disjoint_floors(size, epsilon, depth, 60)
    for rounds in (2, 10, len(worked)):
        shipped = disjoint.dynamic_floor(size, rounds, epsilon)
        assert 0.999 * shipped <= worked[rounds - 1] <= shipped * (1 + 1e-3)
    assert disjoint.dynamic_floor(size, 10**6, epsilon) == disjoint.dynamic_floor(size, 10**7, epsilon)


def test_a_floor_that_is_not_shipped_is_worked_out_and_dropping_or_bad_prices_lower_it(monkeypatch):
    low, high = (theory.risk_floor(4, 300, epsilon) for epsilon in (1.0, 0.9))
    assert low < high < low / 0.9**2 * 1.1
    assert theory.risk_floor(3, 50, 0.9) > theory.information_limit(3, 50, 0.9)
    floors = [disjoint.disjoint_floors(5, 1.0, depth, 40)[-1] for depth in (3, 5, 8)]
    assert floors == sorted(floors)
    monkeypatch.setattr(disjoint, "_PIVOTS", 1)
    disjoint.disjoint_floors.cache_clear()
    assert disjoint.disjoint_floors(5, 1.0, 8, 40)[-1] < floors[-1]
    disjoint.disjoint_floors.cache_clear()


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_strategy_is_below_the_floor(seed, epsilon):
    p, q = np.random.default_rng(seed).dirichlet(np.ones(3), size=2)
    optimum = least_risk(np.stack([p, q]), epsilon, 4)
    assert 0.97 * optimum <= theory.pair_floor(p, q, 4, epsilon) <= optimum * (1 + 1e-9)


def test_equal_distributions_cost_nothing_and_the_floor_grows_with_rounds():
    p, q = np.array([0.5, 0.5]), np.array([0.45, 0.55])
    assert theory.pair_floor(p, p, 100, 1.0) == 0.0
    floors = [theory.pair_floor(p, q, rounds, 1.0) for rounds in (1, 10, 300)]
    assert floors == sorted(floors)
    middle = entropy((p + q) / 2.0) - (entropy(p) + entropy(q)) / 2.0
    assert floors[0] == pytest.approx(middle, rel=1e-9)
