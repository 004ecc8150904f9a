"""The proved floor: exact for two hypotheses, above the limit, and below everything that was played."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

import ldp_gym
from ldp_gym import theory
from ldp_gym.theory import disjoint, floor


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_for_two_hypotheses_the_floor_is_the_risk_of_randomized_response(epsilon):
    """After n right answers of t the odds are ``e^(eps (2 n - t))``: the expected KL by the binomial law."""
    right, total = 1.0 / (1.0 + math.exp(-epsilon)), 0.0
    for t in range(60):
        n = np.arange(t + 1)
        odds = np.exp(epsilon * (2.0 * n - t))
        total += float(binom.pmf(n, t, right) @ np.log1p(1.0 / odds))
    for adaptive in (True, False):
        assert theory.risk_floor(2, 60, epsilon, adaptive=adaptive) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("size", [3, 8, 32])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_floor_is_above_the_limit_and_higher_without_adaptation(size, epsilon):
    epsilon = (
        {0.3: 0.5, 3.0: 2.0}.get(epsilon, epsilon) if size == 8 else epsilon
    )  # shipped: worked out in seconds
    limit = theory.information_limit(size, 2000, epsilon)
    adaptive, plain = (theory.risk_floor(size, 2000, epsilon, adaptive=kind) for kind in (True, False))
    assert limit < adaptive <= plain


@pytest.mark.parametrize("channel", ["adaptive-groups", "adaptive-split", "wheel", "vote", "designed"])
def test_no_channel_plays_below_the_floor(channel):
    """500 episodes; the mean would be 5 standard errors below the floor with probability below 1e-6."""
    rules = {"hypotheses": "disjoint", "num_hypotheses": 8, "channel": channel, "horizon": 150}
    totals = ldp_gym.evaluate("bayes", rules, episodes=500).kl[:, -1]
    least = theory.risk_floor(8, 150, 1.0, adaptive=ldp_gym.CHANNELS[channel].adaptive)
    assert totals.mean() + 5.0 * totals.std(ddof=1) / math.sqrt(500) >= least


@pytest.mark.parametrize(("size", "horizon"), [(3, 5), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_adaptive_channel_of_all_is_below_the_floor(size, horizon, epsilon):
    """The least risk there is, by dynamic programming: a linear program over all sets at every posterior."""
    numbers = np.arange(1, 2**size - 1)
    sets = ((numbers[:, None] >> np.arange(size)) & 1).astype(float)
    raised = 1.0 + math.expm1(epsilon) * sets

    @cache
    def least(weights, rounds):
        entropy = -sum(w * math.log(w) for w in weights)
        if rounds == 1:
            return entropy
        joint = raised * np.array(weights)
        chances = joint.sum(axis=1)
        # The order of hypotheses does not matter: sorted and rounded, posteriors meet again.
        after = [tuple(np.sort(row).round(12).tolist()) for row in joint / chances[:, None]]
        costs = chances * [least(posterior, rounds - 1) for posterior in after]
        return entropy + linprog(costs, A_eq=raised.T, b_eq=np.ones(size)).fun

    optimum = least((1.0 / size,) * size, horizon)
    for found in (
        theory.risk_floor(size, horizon, epsilon),  # shipped, rounded down and interpolated
        disjoint.disjoint_floors(size, epsilon, 6, horizon)[-1],  # nothing is dropped
    ):
        assert (1 - 1e-4) * optimum <= found <= optimum * (1 + 1e-9)
    assert floor._entropy_floor(size, horizon, epsilon, adaptive=True) <= optimum * (1 + 1e-9)
    assert optimum <= math.log(size) * horizon


def test_information_with_an_atom_bounds_every_channel():
    """The linear program over all sets (Kairouz, Oh and Viswanath 2016) never exceeds ``C(p)``."""
    epsilon, rng = 1.0, np.random.default_rng(0)
    numbers = np.arange(1, 2**6 - 1)
    sets = ((numbers[:, None] >> np.arange(6)) & 1).astype(float)
    raised = 1.0 + math.expm1(epsilon) * sets
    for alpha in (0.2, 1.0, 5.0):
        weights = rng.dirichlet(np.full(6, alpha))
        total = raised @ weights
        gain = (raised * np.log(raised / total[:, None])) @ weights
        most = -linprog(-gain, A_eq=raised.T, b_eq=np.ones(6)).fun
        bound = floor._information_with_atom(weights.max(), epsilon)
        assert most <= bound * (1 + 1e-9)
        assert bound <= theory.capacity(epsilon) * (1 + 1e-3)
        entropy = -float(weights @ np.log(weights))
        assert most <= floor._most_information(entropy, 6, epsilon) * (1 + 1e-9)


def test_the_least_entropy_has_as_many_large_atoms_as_there_can_be():
    assert floor._least_entropy(0.5) == pytest.approx(math.log(2))
    assert floor._least_entropy(0.4) == pytest.approx(-0.8 * math.log(0.4) - 0.2 * math.log(0.2))
    assert floor._least_entropy(1.0) == 0.0


def test_sets_separate_no_more_pairs_than_they_can():
    """Sets of n out of K with equal masses: the mean over pairs of how often they are separated."""
    size, epsilon = 5, 1.0
    gain = math.expm1(epsilon)
    best = max(
        (math.exp(epsilon) + 1) * n * (size - n) / (size + gain * n) / (size - 1) for n in range(1, size)
    )
    assert floor._separation(size, epsilon) == pytest.approx(best)
    assert floor._separation(2, epsilon) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("size", "epsilon", "depth"), [(3, 1.0, 12), (4, 2.0, 6), (5, 4.0, 4)])
def test_shipped_floors_are_those_of_the_dynamic_program(size, epsilon, depth):
    """A shallower program is a lower floor, and close; the shipped one grows with T, and ends."""
    worked = disjoint.disjoint_floors(size, epsilon, depth, 60)
    for rounds in (2, 10, len(worked)):
        shipped = disjoint.dynamic_floor(size, rounds, epsilon)
        assert 0.999 * shipped <= worked[rounds - 1] <= shipped * (1 + 1e-3)
    assert disjoint.dynamic_floor(size, 10**6, epsilon) == disjoint.dynamic_floor(size, 10**7, epsilon)


@pytest.mark.parametrize(("epsilon", "multiple"), [(0.5, 1.35), (1.0, 1.48), (2.0, 1.40), (4.0, 1.18)])
def test_the_floor_of_eight_supports_is_well_above_the_limit(epsilon, multiple):
    assert theory.risk_floor(8, 500, epsilon) >= multiple * theory.information_limit(8, 500, epsilon)


def test_a_floor_that_is_not_shipped_is_worked_out():
    low, high = (theory.risk_floor(4, 300, epsilon) for epsilon in (1.0, 0.9))
    assert low < high < low / 0.9**2 * 1.1
    assert theory.risk_floor(3, 50, 0.9) > theory.information_limit(3, 50, 0.9)


def test_dropping_lowers_the_floor_and_bad_prices_do_too(monkeypatch):
    floors = [disjoint.disjoint_floors(5, 1.0, depth, 40)[-1] for depth in (3, 5, 8)]
    assert floors == sorted(floors)
    monkeypatch.setattr(disjoint, "_PIVOTS", 1)
    disjoint.disjoint_floors.cache_clear()
    assert disjoint.disjoint_floors(5, 1.0, 8, 40)[-1] < floors[-1]
    disjoint.disjoint_floors.cache_clear()
