"""The proved floor: exact for two hypotheses, above the limit, and below everything that was played."""

import math

import floors as dynamic_program
import numpy as np
import pytest
from extremal import entropy, least_risk
from floors import disjoint_floors
from helpers import ALPHA, HARD, PURE
from scipy.special import rel_entr
from scipy.stats import binom, norm, sem

import ldp_gym
from ldp_gym import theory
from ldp_gym.theory import contraction, floor, pairwise


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.3, 60), (1.0, 60), (3.0, 60), (1.0, 3)])
def test_for_two_hypotheses_the_floor_is_the_risk_of_randomized_response(epsilon, rounds):
    """After n right answers of t the odds are ``e^(eps (2 n - t))``: the expected KL by the binomial law."""
    right, total = 1.0 / (1.0 + math.exp(-epsilon)), 0.0
    for t in range(rounds):
        n = np.arange(t + 1)
        total += binom.pmf(n, t, right) @ np.log1p(np.exp(-epsilon * (2.0 * n - t)))
    for adaptive in (True, False):
        assert theory.risk_floor(2, rounds, epsilon, adaptive=adaptive) == pytest.approx(
            total, rel=1e-9
        )
    p, q = np.array([0.3, 0.7, 0.0]), np.array([0.0, 0.0, 1.0])
    assert theory.pair_floor(p, q, rounds, epsilon) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize(
    ("size", "epsilon", "multiple"),
    [(size, epsilon, 1.0) for size in (3, 32) for epsilon in (0.3, 1.0, 3.0)]
    + [(8, 0.5, 1.35), (8, 1.0, 1.48), (8, 2.0, 1.40), (8, 4.0, 1.18)],
)
def test_the_floor_is_above_the_limit_and_higher_without_adaptation(size, epsilon, multiple):
    for horizon in (500, 2000):
        adaptive, plain = (
            theory.risk_floor(size, horizon, epsilon, adaptive=kind) for kind in (True, False)
        )
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
        disjoint_floors(size, epsilon, 6, horizon)[-1],  # nothing is dropped
    ):
        assert (1 - 1e-4) * optimum <= found <= optimum * (1 + 1e-9)
    assert floor._entropy_floor(size, horizon, epsilon, adaptive=True) <= optimum * (1 + 1e-9)


def test_steps_of_the_floor_by_hand():
    """The hull has the corners that a convex function below touches; sets of the best size separate most."""
    found = floor._lower_hull(np.arange(4.0), np.array([3.0, 1.0, 2.0, 0.0]))
    np.testing.assert_array_equal(found, [[0.0, 1.0, 3.0], [3.0, 1.0, 0.0]])
    best = max((math.e + 1) * n * (5 - n) / (5 + (math.e - 1) * n) / 4 for n in range(1, 5))
    assert floor._separation(5, 1.0) == pytest.approx(best)
    assert floor._separation(2, 1.0) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("size", "epsilon", "depth"), [(3, 1.0, 12), (4, 2.0, 6), (5, 4.0, 4)])
def test_shipped_floors_are_those_of_the_dynamic_program(size, epsilon, depth):
    """A shallower program is a lower floor, and close; the shipped one grows with T, and ends."""
    worked = disjoint_floors(size, epsilon, depth, 60)
    for rounds in (2, 10, len(worked)):
        shipped = floor._shipped_floor(size, rounds, epsilon)
        assert 0.999 * shipped <= worked[rounds - 1] <= shipped * (1 + 1e-3)
    assert floor._shipped_floor(size, 10**6, epsilon) == floor._shipped_floor(size, 10**7, epsilon)


def test_between_shipped_eps_the_next_larger_one_counts_and_dropping_or_bad_prices_lower_a_floor(
    monkeypatch,
):
    assert floor._shipped_floor(4, 300, 0.9) == floor._shipped_floor(4, 300, 1.0) > 0.0
    assert floor._shipped_floor(4, 300, 4.1) == floor._shipped_floor(9, 300, 1.0) == 0.0
    floors = [disjoint_floors(5, 1.0, depth, 40)[-1] for depth in (3, 5, 8)]
    assert floors == sorted(floors)
    monkeypatch.setattr(dynamic_program, "_PIVOTS", 1)
    assert disjoint_floors(5, 1.0, 8, 40)[-1] < floors[-1]


@pytest.mark.parametrize(("seed", "epsilon"), [(0, 0.5), (0, 1.5), (1, 0.5), (1, 1.5)])
def test_no_strategy_is_below_the_floor(seed, epsilon):
    p, q = np.random.default_rng(seed).dirichlet(np.ones(3), size=2)
    optimum = least_risk(np.stack([p, q]), epsilon, 4)
    assert 0.97 * optimum <= theory.pair_floor(p, q, 4, epsilon) <= optimum * (1 + 1e-9)


def test_equal_distributions_cost_nothing_and_the_floor_grows_with_rounds():
    p, q = np.array([0.5, 0.5]), np.array([0.45, 0.55])
    assert theory.pair_floor(p, p, 100, 1.0) == 0.0
    floors = [theory.pair_floor(p, q, rounds, 1.0) for rounds in (1, 10, 300)]
    one = entropy((p + q) / 2.0) - (entropy(p) + entropy(q)) / 2.0
    assert (1.0 - 1e-9) * one < floors[0] < one < floors[1] < floors[2]


# -- Any class -----------------------------------------------------------------------------------------


def test_no_strategy_is_below_the_floor_of_a_class():
    """Exact dynamic programming over all eps-private channels, adaptive too; the parts come close to it."""
    rng, shares = np.random.default_rng(0), {"information": [], "pairs": []}
    for _ in range(150):
        size, labels = rng.choice([2, 3], size=2)
        horizon, epsilon = int(rng.integers(1, 5)), float(rng.choice([0.2, 0.5, 1.0, 2.0, 4.0]))
        table = rng.dirichlet(np.full(labels, rng.choice([0.02, 0.3, 1.0, 5.0])), size=size)
        optimum = least_risk(table, epsilon, horizon) + 1e-12
        shares["information"].append(
            contraction._information_floor(table[None], horizon, epsilon) / optimum
        )
        shares["pairs"].append(contraction._pair_floors(table, horizon, epsilon, 0.0) / optimum)
        assert theory.class_floor(table, horizon, epsilon).risk <= optimum * (1 + 1e-6)
    assert max(shares["information"]) <= 1 + 1e-6
    assert max(shares["pairs"]) <= 1 + 1e-6
    assert np.median(shares["information"]) > 0.9
    assert np.median(shares["pairs"]) > 0.6


def test_the_floor_of_named_classes():
    for hypotheses, horizon, risk, method in (
        (ldp_gym.HYPOTHESES["dirichlet"](8, 16), 1000, 9.894, "information"),
        (HARD.tolist(), 1000, 6.8475, "pairs"),  # the best of all 105 matchings
        ("disjoint", 1000, 27.897, "disjoint supports"),
        ("softmax-linear", 1000, 10.090, "information"),
    ):
        found = theory.class_floor(hypotheses, horizon, 1.0)
        assert found == (pytest.approx(risk, rel=1e-3), method, hypotheses != "softmax-linear")
    assert contraction._information_floor(np.eye(8)[None], 1000, 1.0) == pytest.approx(
        19.647, rel=1e-3
    )
    one_round = theory.class_floor(
        [[0.9, 0.1], [0.5, 0.5]], 1, 1.0
    )  # JS, of which no pair is left out
    divergence = entropy([0.7, 0.3]) - (entropy([0.9, 0.1]) + entropy([0.5, 0.5])) / 2.0
    assert one_round == (pytest.approx(divergence, rel=1e-9), "pairs", True)
    odd = contraction._pair_floors(np.eye(3), 500, 1.0, 0.0)
    assert odd == pytest.approx(2 / 3 * theory.pair_floor(*np.eye(3)[:2], 500, 1.0), rel=1e-9)


def test_the_bounds_of_gibbs_and_the_recursion_step_by_step():
    """B against the best of many p, for two contexts; then the recursion with the best lam in every round."""
    rng, epsilon = np.random.default_rng(1), 1.0
    tables = rng.dirichlet(np.full(3, 0.5), size=(2, 4))
    contraction_factor = math.tanh(epsilon / 2) ** 2
    multipliers, log_bounds = contraction._gibbs_bounds(tables, 1 / contraction_factor)
    assert 4.0 < multipliers.max() <= 1 / contraction_factor
    assert np.diff(log_bounds).min() > 0.0, (
        "B rises with lam, and so do its bounds below and from 1 on"
    )
    p = rng.dirichlet(np.ones(3), size=(200_000, 2))
    p[:16, 0], p[:16, 1] = np.repeat(tables[0], 4, axis=0), np.tile(tables[1], (4, 1))
    divergences = sum(rel_entr(tables[x], p[:, x, None]).sum(axis=-1) / 2 for x in (0, 1))
    for multiplier, bound in zip(multipliers, np.exp(log_bounds), strict=True):
        best = np.exp(-divergences / multiplier).sum(axis=1).max()
        assert best <= bound * (1 + 1e-9)
        if multiplier >= 1.0:
            assert bound <= best * 1.001
    unknown, total = math.log(4), 0.0
    for _ in range(300):
        cost = max(0.0, (multipliers * (unknown - log_bounds)).max())
        total += cost
        unknown -= min(theory.capacity(epsilon), contraction_factor * cost)
    found = contraction._information_floor(tables, 300, epsilon)
    assert 0.99 * total <= found <= total
    played = ldp_gym.hypotheses.Callables(
        [lambda x, k=k: tables[int(x[0]), k] for k in range(4)], 1
    )
    expected = pytest.approx(found, rel=1e-9), "information", True
    assert theory.class_floor(played, 300, epsilon, contexts=[[0.0], [1.0]]) == expected
    assert theory.class_floor(tables[0], 10**9, epsilon).risk <= math.log(4) / contraction_factor


def test_tiny_and_nearly_equal_probabilities_and_a_tiny_eps_keep_their_digits():
    """The dominating pair of laws sums to one; where messages tell nothing, T rounds cost T times the JS."""
    for p, q in np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=(50, 2)):
        step, law = pairwise.dominating_law(p, q, 1.0)
        places = step * (np.arange(len(law)) - len(law) // 2) / 2.0
        assert law @ np.exp(places) == pytest.approx(1.0, rel=1e-9)
        assert law @ np.exp(-places) == pytest.approx(1.0, rel=1e-9)
    p, q = np.array([0.9, 0.1]), np.array([0.9 - 1e-5, 0.1 + 1e-5])
    apart = (p - q) / (p + q)
    for epsilon in (1e-9, 1e-4, 1.0):
        expected = pytest.approx(100 * (p + q) @ (apart**2 / 4 + apart**4 / 24), rel=1e-8)
        assert theory.pair_floor(p, q, 100, epsilon) == expected
    assert contraction._information_floor(np.eye(4)[None], 50, 1e-9) == pytest.approx(
        50 * math.log(4)
    )
