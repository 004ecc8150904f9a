"""The proved floors: exact for two hypotheses, above the limit, and below every channel that was played."""

import math
from itertools import combinations_with_replacement

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

# -- Disjoint supports ---------------------------------------------------------------------------------


def risk_of_randomized_response(rounds, epsilon):
    """Two disjoint hypotheses. After n right answers of t the odds are ``e^(eps (2 n - t))``."""
    truthful = 1.0 / (1.0 + math.exp(-epsilon))
    total = 0.0
    for t in range(rounds):
        num_right = np.arange(t + 1)
        chances = binom.pmf(num_right, t, truthful)
        total += chances @ np.log1p(np.exp(-epsilon * (2.0 * num_right - t)))
    return total


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.3, 60), (1.0, 60), (3.0, 60), (1.0, 3)])
@pytest.mark.parametrize("adaptive", [True, False])
def test_for_two_hypotheses_the_floor_is_the_risk_of_randomized_response(epsilon, rounds, adaptive):
    exact = risk_of_randomized_response(rounds, epsilon)
    assert theory.risk_floor(2, rounds, epsilon, adaptive=adaptive) == pytest.approx(exact)


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.3, 60), (1.0, 60), (3.0, 60), (1.0, 3)])
def test_the_floor_of_a_disjoint_pair_is_the_risk_of_randomized_response(epsilon, rounds):
    p = np.array([0.3, 0.7, 0.0])
    q = np.array([0.0, 0.0, 1.0])
    exact = risk_of_randomized_response(rounds, epsilon)
    assert theory.pair_floor(p, q, rounds, epsilon) == pytest.approx(exact, rel=1e-8)


MULTIPLES_OF_THE_LIMIT = [
    (3, 0.3, 1.0),
    (3, 1.0, 1.0),
    (3, 3.0, 1.0),
    (32, 0.3, 1.0),
    (32, 1.0, 1.0),
    (32, 3.0, 1.0),
    (8, 0.5, 1.35),
    (8, 1.0, 1.48),
    (8, 2.0, 1.40),
    (8, 4.0, 1.18),
]


@pytest.mark.parametrize("horizon", [500, 2000])
@pytest.mark.parametrize(("size", "epsilon", "multiple"), MULTIPLES_OF_THE_LIMIT)
def test_the_floor_is_above_the_limit_and_higher_without_adaptation(
    size, epsilon, multiple, horizon
):
    limit = theory.information_limit(size, horizon, epsilon)
    adaptive = theory.risk_floor(size, horizon, epsilon, adaptive=True)
    fixed = theory.risk_floor(size, horizon, epsilon, adaptive=False)
    assert multiple * limit < adaptive <= fixed


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

    # Rounded down and interpolated.
    shipped = theory.risk_floor(size, horizon, epsilon)
    assert (1 - 1e-4) * optimum <= shipped <= optimum * (1 + 1e-9)

    # Deep enough that no hypothesis is dropped.
    computed = disjoint_floors(size, epsilon, 6, horizon)[-1]
    assert (1 - 1e-4) * optimum <= computed <= optimum * (1 + 1e-9)

    by_entropy = floor._entropy_floor(size, horizon, epsilon, adaptive=True)
    assert by_entropy <= optimum * (1 + 1e-9)


def test_the_lower_hull_has_the_corners_that_a_convex_function_below_touches():
    x, y = floor._lower_hull(np.arange(4.0), np.array([3.0, 1.0, 2.0, 0.0]))
    assert x.tolist() == [0.0, 1.0, 3.0]
    assert y.tolist() == [3.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_the_lower_hull_is_the_lowest_chord_at_every_place(seed):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.random(12)) + 1.0
    y = rng.standard_normal(12)
    hull = np.interp(x, *floor._lower_hull(x, y))
    for place, value in zip(x, hull, strict=True):
        chords = [
            np.interp(place, x[[i, j]], y[[i, j]])
            for i, j in combinations_with_replacement(range(12), 2)
            if x[i] <= place <= x[j]
        ]
        assert value == pytest.approx(min(chords))


def test_sets_of_the_best_size_separate_most_pairs():
    by_size = [(math.e + 1) * n * (5 - n) / (5 + (math.e - 1) * n) / 4 for n in range(1, 5)]
    assert floor._separation(5, 1.0) == pytest.approx(max(by_size))


def test_every_message_separates_the_only_pair():
    assert floor._separation(2, 1.0) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(("size", "epsilon", "depth"), [(3, 1.0, 12), (4, 2.0, 6), (5, 4.0, 4)])
def test_shipped_floors_are_those_of_the_dynamic_program(size, epsilon, depth):
    """A shallower program is a lower floor, and close."""
    computed = disjoint_floors(size, epsilon, depth, 60)
    for rounds in (2, 10, len(computed)):
        shipped = floor._shipped_floor(size, rounds, epsilon)
        assert 0.999 * shipped <= computed[rounds - 1] <= shipped * (1 + 1e-3)


def test_beyond_its_last_round_a_shipped_floor_stays():
    assert floor._shipped_floor(3, 10**6, 1.0) == floor._shipped_floor(3, 10**7, 1.0)


def test_between_shipped_levels_the_next_larger_one_counts():
    assert floor._shipped_floor(4, 300, 0.9) == floor._shipped_floor(4, 300, 1.0) > 0.0


def test_above_the_largest_shipped_level_there_is_no_shipped_floor():
    assert floor._shipped_floor(4, 300, 4.1) == 0.0


def test_for_more_than_eight_hypotheses_there_is_no_shipped_floor():
    assert floor._shipped_floor(9, 300, 1.0) == 0.0


def test_to_drop_hypotheses_lowers_the_floor_of_the_dynamic_program():
    by_depth = [disjoint_floors(5, 1.0, depth, 40)[-1] for depth in (3, 5, 8)]
    assert by_depth == sorted(by_depth)


def test_bad_prices_lower_the_floor_of_the_dynamic_program(monkeypatch):
    with_good_prices = disjoint_floors(5, 1.0, 8, 40)[-1]
    monkeypatch.setattr(dynamic_program, "_PIVOTS", 1)
    assert disjoint_floors(5, 1.0, 8, 40)[-1] < with_good_prices


# -- Pairs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_no_strategy_is_below_the_floor_of_a_pair(seed, epsilon):
    p, q = np.random.default_rng(seed).dirichlet(np.ones(3), size=2)
    optimum = least_risk(np.stack([p, q]), epsilon, 4)
    assert 0.97 * optimum <= theory.pair_floor(p, q, 4, epsilon) <= optimum * (1 + 1e-9)


def test_equal_distributions_cost_nothing():
    p = np.array([0.5, 0.5])
    assert theory.pair_floor(p, p, 100, 1.0) == 0.0


def test_the_floor_of_a_pair_is_one_divergence_in_the_first_round_and_grows():
    p = np.array([0.5, 0.5])
    q = np.array([0.45, 0.55])
    divergence = entropy((p + q) / 2.0) - (entropy(p) + entropy(q)) / 2.0
    first = theory.pair_floor(p, q, 1, 1.0)
    assert (1.0 - 1e-9) * divergence < first < divergence
    assert first < theory.pair_floor(p, q, 10, 1.0) < theory.pair_floor(p, q, 300, 1.0)


def test_the_dominating_laws_sum_to_one():
    for p, q in np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=(50, 2)):
        step, affinities = pairwise.dominating_law(p, q, 1.0)
        half_log_ratios = step * (np.arange(len(affinities)) - len(affinities) // 2) / 2.0
        assert affinities @ np.exp(half_log_ratios) == pytest.approx(1.0, rel=1e-9)
        assert affinities @ np.exp(-half_log_ratios) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 1.0])
def test_nearly_equal_probabilities_and_a_tiny_eps_keep_their_digits(epsilon):
    """Messages tell nearly nothing: T rounds cost T times the Jensen-Shannon divergence, here its series."""
    p = np.array([0.9, 0.1])
    q = np.array([0.9 - 1e-5, 0.1 + 1e-5])
    apart = (p - q) / (p + q)
    expected = 100 * (p + q) @ (apart**2 / 4 + apart**4 / 24)
    assert theory.pair_floor(p, q, 100, epsilon) == pytest.approx(expected, rel=1e-8)


def test_a_pair_has_the_same_labels():
    with pytest.raises(ValueError, match=r"same labels, got \(2,\) and \(3,\)"):
        theory.pair_floor([0.5, 0.5], [0.2, 0.3, 0.5], 5, 1.0)


# -- Any class -----------------------------------------------------------------------------------------


class Optimum:
    """A random small game and its least risk, by dynamic programming over all eps-private channels."""

    def __init__(self, rng):
        size, num_labels = rng.choice([2, 3], size=2)
        self.horizon = int(rng.integers(1, 5))
        self.epsilon = float(rng.choice([0.2, 0.5, 1.0, 2.0, 4.0]))
        concentration = rng.choice([0.02, 0.3, 1.0, 5.0])
        self.table = rng.dirichlet(np.full(num_labels, concentration), size=size)
        self.risk = least_risk(self.table, self.epsilon, self.horizon) + 1e-12


@pytest.fixture(scope="module")
def optima():
    rng = np.random.default_rng(0)
    return [Optimum(rng) for _ in range(150)]


def test_no_strategy_is_below_the_floor_of_a_class(optima):
    for game in optima:
        proved = theory.class_floor(game.table, game.horizon, game.epsilon)
        assert proved.risk <= game.risk * (1 + 1e-6)


def test_the_floor_by_information_is_below_the_optimum_and_close_to_it(optima):
    shares = [
        contraction._information_floor(game.table[None], game.horizon, game.epsilon) / game.risk
        for game in optima
    ]
    assert max(shares) <= 1 + 1e-6
    assert np.median(shares) > 0.9


def test_the_floor_by_pairs_is_below_the_optimum_and_close_to_it(optima):
    shares = [
        contraction._pair_floors(game.table, game.horizon, game.epsilon, 0.0) / game.risk
        for game in optima
    ]
    assert max(shares) <= 1 + 1e-6
    assert np.median(shares) > 0.6


@pytest.mark.parametrize(
    ("hypotheses", "risk", "method"),
    [
        (ldp_gym.HYPOTHESES["dirichlet"](8, 16), 9.894, "information"),
        (HARD.tolist(), 6.8475, "pairs"),  # the best of all 105 matchings
        ("disjoint", 27.897, "disjoint supports"),
    ],
)
def test_the_floor_of_a_class_without_contexts_is_proved(hypotheses, risk, method):
    proved = theory.class_floor(hypotheses, 1000, 1.0)
    assert proved.risk == pytest.approx(risk, rel=1e-3)
    assert proved.method == method
    assert proved.certified


def test_the_floor_with_contexts_that_are_drawn_is_an_estimate():
    estimate = theory.class_floor("softmax-linear", 1000, 1.0)
    assert estimate.risk == pytest.approx(10.090, rel=1e-3)
    assert estimate.method == "information"
    assert not estimate.certified


def test_the_floor_by_information_on_disjoint_supports():
    by_information = contraction._information_floor(np.eye(8)[None], 1000, 1.0)
    assert by_information == pytest.approx(19.647, rel=1e-3)


def test_one_round_on_two_hypotheses_costs_their_divergence():
    one_round = theory.class_floor([[0.9, 0.1], [0.5, 0.5]], 1, 1.0)
    divergence = entropy([0.7, 0.3]) - (entropy([0.9, 0.1]) + entropy([0.5, 0.5])) / 2.0
    assert one_round.risk == pytest.approx(divergence, rel=1e-9)


def test_of_three_hypotheses_one_stays_alone():
    of_pair = theory.pair_floor(*np.eye(3)[:2], 500, 1.0)
    of_class = contraction._pair_floors(np.eye(3), 500, 1.0, 0.0)
    assert of_class == pytest.approx(2 / 3 * of_pair, rel=1e-9)


@pytest.mark.parametrize("best", [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)]])
@pytest.mark.parametrize("valuable", [0, 1])
def test_four_hypotheses_are_matched_in_the_most_valuable_way(best, valuable):
    """One pair alone is worth something, and so decides the matching."""
    values = np.zeros((4, 4))
    j, k = best[valuable]
    values[j, k] = values[k, j] = 1.0
    matching = contraction._matching(values)
    assert sorted(tuple(sorted(pair)) for pair in matching) == best


def test_without_a_signal_every_round_costs_log_k():
    by_information = contraction._information_floor(np.eye(4)[None], 50, 1e-9)
    assert by_information == pytest.approx(50 * math.log(4))


# -- The steps of the floor by information, for a class with two contexts ------------------------------

TABLES = np.random.default_rng(1).dirichlet(np.full(3, 0.5), size=(2, 4))
CONTRACTION = math.tanh(0.5) ** 2  # eps = 1


def largest_sums(multipliers):
    """The largest ``sum_k exp(-KL(f_k, p) / lam)`` over 200,000 functions p of the context."""
    p = np.random.default_rng(2).dirichlet(np.ones(3), size=(200_000, 2))
    p[:16, 0] = np.repeat(TABLES[0], 4, axis=0)
    p[:16, 1] = np.tile(TABLES[1], (4, 1))
    at_first = rel_entr(TABLES[0], p[:, 0, None]).sum(axis=-1)
    at_second = rel_entr(TABLES[1], p[:, 1, None]).sum(axis=-1)
    divergences = (at_first + at_second) / 2
    return [np.exp(-divergences / lam).sum(axis=1).max() for lam in multipliers]


def test_the_multipliers_end_where_information_has_its_price():
    multipliers, _ = contraction._gibbs_bounds(TABLES, 1 / CONTRACTION)
    assert 4.0 < multipliers.max() <= 1 / CONTRACTION


def test_the_bounds_of_gibbs_rise_with_the_multiplier():
    _, log_bounds = contraction._gibbs_bounds(TABLES, 1 / CONTRACTION)
    assert np.diff(log_bounds).min() > 0.0


def test_the_bounds_of_gibbs_are_above_the_best_of_many_predictions():
    multipliers, log_bounds = contraction._gibbs_bounds(TABLES, 1 / CONTRACTION)
    best = np.array(largest_sums(multipliers))
    bounds = np.exp(log_bounds)
    assert (best <= bounds * (1 + 1e-9)).all()

    sharp = multipliers >= 1.0
    assert (bounds[sharp] <= best[sharp] * 1.001).all()


def test_the_floor_by_information_is_that_of_the_recursion_round_by_round():
    """The best multiplier in every round; the package chooses it anew only now and then."""
    multipliers, log_bounds = contraction._gibbs_bounds(TABLES, 1 / CONTRACTION)
    unknown = math.log(4)
    total = 0.0
    for _ in range(300):
        cost = max(0.0, (multipliers * (unknown - log_bounds)).max())
        total += cost
        unknown -= min(theory.capacity(1.0), CONTRACTION * cost)
    assert 0.99 * total <= contraction._information_floor(TABLES, 300, 1.0) <= total


def test_the_floor_with_listed_contexts_is_proved():
    members = [lambda x, k=k: TABLES[int(x[0]), k] for k in range(4)]
    hypotheses = ldp_gym.hypotheses.Callables(members, 1)
    proved = theory.class_floor(hypotheses, 300, 1.0, contexts=[[0.0], [1.0]])
    by_information = contraction._information_floor(TABLES, 300, 1.0)
    assert proved.risk == pytest.approx(by_information, rel=1e-9)
    assert proved.certified


def test_the_floor_tends_to_the_price_of_all_information():
    assert theory.class_floor(TABLES[0], 10**9, 1.0).risk <= math.log(4) / CONTRACTION
