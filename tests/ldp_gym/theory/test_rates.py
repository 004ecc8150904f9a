"""Our upper bounds: by hand, and every step of their proofs on random and structured classes."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import ldp_gym
from ldp_gym import theory
from ldp_gym.core.divergences import kl, tv

GAMES = [(2, 0.1), (8, 1.0), (64, 3.0)]
"""Numbers of hypotheses and privacy levels; the horizon is 500."""


def signal(epsilon):
    return (math.exp(epsilon) - 1.0) / (math.exp(epsilon) + 1.0)


def growth(ratio):
    """The largest KL(f, p) / TV(f, p) where f is at most ``ratio`` times p."""
    return ratio * math.log(ratio) / (ratio - 1.0)


# -- Half-space ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), GAMES)
def test_the_kl_bound_of_half_space_by_hand(size, epsilon):
    expected = math.sqrt(math.pi * (size - 1) * 500 * math.log(size)) / signal(epsilon)
    assert theory.half_space_kl_bound(size, 500, epsilon) == pytest.approx(expected, rel=1e-12)


def test_the_kl_bound_of_half_space_with_a_rank_and_a_prior_by_hand():
    prior = [0.5, 0.25, 0.25, 0.0]
    entropy = 1.5 * math.log(2.0)
    expected = math.sqrt(math.pi * 2 * 500 * entropy) / signal(1.0)
    bound = theory.half_space_kl_bound(4, 500, 1.0, rank=2, prior=prior)
    assert bound == pytest.approx(expected, rel=1e-12)


def test_a_certain_truth_costs_nothing():
    bound = theory.half_space_kl_bound(4, 500, 1.0, prior=[1.0, 0.0, 0.0, 0.0])
    assert str(bound) == "0.0"


@pytest.mark.parametrize(("size", "epsilon"), GAMES)
def test_the_kl_bound_of_half_space_at_every_truth_by_hand(size, epsilon):
    squares = math.pi / 4.0 * (size - 1) * math.log(size) / signal(epsilon) ** 2
    expected = growth(size) * math.sqrt(500 * squares)
    bound = theory.half_space_worst_kl_bound(size, 500, epsilon)
    assert bound == pytest.approx(expected, rel=1e-12)


def test_the_kl_bound_at_every_truth_counts_the_least_weight_of_a_prior():
    squares = math.pi / 4 * 1 * math.log(25)
    expected = growth(25) * math.sqrt(50 * squares) / signal(1.0)
    prior = [0.64, 0.32, 0.04]
    bound = theory.half_space_worst_kl_bound(3, 50, 1.0, rank=1, prior=prior)
    assert bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("size", "epsilon"), GAMES)
def test_the_tv_bound_of_half_space_by_hand(size, epsilon):
    squares = math.pi / 4.0 * (size - 1) * math.log(size) / signal(epsilon) ** 2
    bound = theory.half_space_tv_bound(size, 500, epsilon)
    assert bound == pytest.approx(math.sqrt(squares / 500), rel=1e-12)


def test_the_tv_bound_of_half_space_with_a_rank_and_a_prior_by_hand():
    squares = math.pi / 4.0 * 1 * math.log(25) / signal(1.0) ** 2
    bound = theory.half_space_tv_bound(3, 50, 1.0, rank=1, prior=[0.64, 0.32, 0.04])
    assert bound == pytest.approx(math.sqrt(squares / 50), rel=1e-12)


def test_the_tv_bound_that_holds_with_high_probability_by_hand():
    squares = math.pi * 2 * (math.log(3) / 2 + math.log(100)) / signal(1.0) ** 2
    bound = theory.half_space_tv_bound(3, 50, 1.0, failure=0.01)
    assert bound == pytest.approx(math.sqrt(squares / 50), rel=1e-12)


@pytest.mark.parametrize("rank", [None, 3])
def test_the_sample_size_of_half_space_is_where_its_bound_crosses_alpha(rank):
    rounds = theory.half_space_sample_size(8, 0.05, 1.0, rank=rank)
    assert theory.half_space_tv_bound(8, rounds, 1.0, rank=rank) <= 0.05
    assert theory.half_space_tv_bound(8, rounds - 1, 1.0, rank=rank) > 0.05


# -- Interactive channels ------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), GAMES)
def test_the_bounds_of_challenge_by_hand(size, epsilon):
    squares = 2.0 * (size - 1) / signal(epsilon) ** 2
    averaged = theory.challenge_tv_bound(size, 500, epsilon)
    assert averaged == pytest.approx(math.sqrt(squares / 500), rel=1e-12)

    of_theorem_1 = theory.challenge_kl_bound(size, 500, epsilon, question="one")
    assert of_theorem_1 == pytest.approx(growth(size) * math.sqrt(500 * squares), rel=1e-12)

    of_theorem_2 = theory.challenge_kl_bound(size, 500, epsilon)
    expected = 2.0 * math.sqrt(math.pi * (size - 1) * 500) / signal(epsilon)
    assert of_theorem_2 == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("size", "smaller"), [(9, "one"), (10, "all")])
def test_the_first_kl_bound_of_challenge_is_smaller_up_to_nine_hypotheses(size, smaller):
    bounds = {
        question: theory.challenge_kl_bound(size, 500, 1.0, question=question)
        for question in ("one", "all")
    }
    assert min(bounds, key=bounds.get) == smaller


@pytest.mark.parametrize("size", [2, 50])
def test_a_uniformly_drawn_hypothesis_has_the_smaller_tv_bound_up_to_fifty(size):
    expected = math.sqrt(size * math.log(size) / 2.0 / 500) / signal(1.0)
    bound = theory.interactive_tv_bound(size, 500, 1.0)
    assert bound == pytest.approx(expected, rel=1e-12)
    assert bound < theory.challenge_tv_bound(size, 500, 1.0)


def test_challenge_has_the_smaller_tv_bound_from_fifty_one_hypotheses_on():
    bound = theory.interactive_tv_bound(51, 500, 1.0)
    assert bound == theory.challenge_tv_bound(51, 500, 1.0)


@pytest.mark.parametrize("size", [2, 15])
def test_a_uniformly_drawn_hypothesis_has_the_smaller_kl_bound_up_to_fifteen(size):
    squares = size * math.log(size) / 2.0 / signal(1.0) ** 2
    expected = growth(size) * math.sqrt(500 * squares)
    bound = theory.interactive_kl_bound(size, 500, 1.0)
    assert bound == pytest.approx(expected, rel=1e-12)
    assert bound < theory.challenge_kl_bound(size, 500, 1.0)


def test_challenge_has_the_smaller_kl_bound_from_sixteen_hypotheses_on():
    bound = theory.interactive_kl_bound(16, 500, 1.0)
    assert bound == theory.challenge_kl_bound(16, 500, 1.0)


@pytest.mark.parametrize("size", [8, 60])
def test_the_interactive_sample_size_is_where_its_bound_crosses_alpha(size):
    rounds = theory.interactive_sample_size(size, 0.05, 1.0)
    assert theory.interactive_tv_bound(size, rounds, 1.0) <= 0.05
    assert theory.interactive_tv_bound(size, rounds - 1, 1.0) > 0.05


@pytest.mark.parametrize(
    ("size", "factor"),
    [
        (2, growth(2) * math.sqrt(math.log(2))),
        (5, growth(5) * math.sqrt(4)),
        (9, growth(9) * math.sqrt(8)),
        (10, math.sqrt(math.pi * 9 * 2)),
        (64, math.sqrt(math.pi * 63 * 2)),
    ],
)
def test_the_interactive_minimax_bound_by_hand(size, factor):
    expected = factor * math.sqrt(500) / signal(1.0)
    assert theory.interactive_minimax_kl_bound(size, 500, 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("size", [2, 3, 5, 8, 9, 10, 16, 64])
def test_the_interactive_minimax_bound_is_below_those_of_explicit_schemes(size):
    minimax = theory.interactive_minimax_kl_bound(size, 500, 1.0)
    assert minimax <= theory.interactive_kl_bound(size, 500, 1.0)
    assert minimax <= theory.half_space_kl_bound(size, 500, 1.0)


# -- What the bounds share -----------------------------------------------------------------------------

UPPER_BOUNDS = [
    theory.half_space_kl_bound,
    theory.half_space_worst_kl_bound,
    theory.half_space_tv_bound,
    theory.challenge_kl_bound,
    theory.challenge_tv_bound,
    theory.interactive_kl_bound,
    theory.interactive_minimax_kl_bound,
    theory.interactive_tv_bound,
]

HALF_SPACE_BOUNDS = UPPER_BOUNDS[:3]


@pytest.mark.parametrize("bound", UPPER_BOUNDS)
def test_users_may_have_their_own_levels(bound):
    plain = bound(4, 3, 1.0)
    assert bound(4, 3, [1.0, 1.0, 1.0]) == pytest.approx(plain, rel=1e-12)

    noise = sum(1.0 / signal(level) ** 2 for level in (0.5, 1.0, 2.0))
    expected = plain * math.sqrt(noise * signal(1.0) ** 2 / 3)
    assert bound(4, 3, [0.5, 1.0, 2.0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bound", HALF_SPACE_BOUNDS)
def test_the_uniform_prior_and_the_largest_rank_are_the_defaults(bound):
    assert bound(4, 30, 1.0, rank=3, prior=[0.25] * 4) == pytest.approx(bound(4, 30, 1.0))


@pytest.mark.parametrize("bound", HALF_SPACE_BOUNDS)
@pytest.mark.parametrize("rank", [-1, 4, 1.5])
def test_a_rank_is_a_whole_number_below_the_number_of_hypotheses(bound, rank):
    with pytest.raises((TypeError, ValueError), match="rank"):
        bound(4, 30, 1.0, rank=rank)


def test_a_hypothesis_of_prior_weight_zero_is_never_found():
    with pytest.raises(ValueError, match="prior must be positive, got 0"):
        theory.half_space_tv_bound(2, 100, 1.0, prior=[1.0, 0.0])


def test_there_must_be_a_level_for_every_user():
    with pytest.raises(ValueError, match=r"one for each of 100 users; got shape \(2,\)"):
        theory.interactive_tv_bound(8, 100, [1.0, 1.0])


def test_without_privacy_the_upper_bounds_stay_finite():
    assert theory.challenge_tv_bound(2, 2, 800.0) == pytest.approx(1.0)


# -- The rank of a class -------------------------------------------------------------------------------


def test_the_rank_of_disjoint_supports_is_one_less_than_their_number():
    assert theory.rank(np.eye(5)) == 4


def test_the_rank_of_mixtures_is_that_of_their_parts():
    rng = np.random.default_rng(0)
    parts = rng.dirichlet(np.ones(30), size=4)
    mixtures = rng.dirichlet(np.ones(4), size=20) @ parts
    assert theory.rank(mixtures) == 3


def test_the_rank_is_at_most_one_less_than_the_number_of_labels():
    table = np.random.default_rng(0).dirichlet(np.ones(5), size=40)
    assert theory.rank(table) == 4


def test_the_rank_of_equal_hypotheses_is_zero():
    assert theory.rank([[0.25, 0.75]] * 6) == 0


def test_the_rank_of_a_class_is_the_largest_over_its_contexts():
    equal = [[0.5, 0.5], [0.5, 0.5]]
    different = [[0.5, 0.5], [0.2, 0.8]]
    assert theory.rank([[equal, different], [equal, equal]]) == 1


@pytest.mark.parametrize(("distance", "expected"), [(1e-15, 1), (1e-10, 1), (1e-6, 2)])
def test_the_rank_does_not_count_a_hypothesis_within_the_tolerance(distance, expected):
    table = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
    table[2] += [distance, -distance, 0.0]
    assert theory.rank(table) == expected


def test_the_tolerance_of_the_rank_is_a_total_variation():
    """Rows of many labels: the bound by the Euclidean length is sharp if the differences are equal."""
    signs = np.tile([1.0, -1.0], 500)
    table = np.stack([np.full(1000, 1e-3), (1.0 + 1e-3 * signs) / 1000])
    assert tv(table[0], table[1]) == pytest.approx(5e-4)
    assert theory.rank(table, tolerance=5.1e-4) == 0
    assert theory.rank(table, tolerance=4.9e-4) == 1


def test_a_single_hypothesis_has_no_rank():
    with pytest.raises(ValueError, match="K >= 2"):
        theory.rank([[0.5, 0.5]])


# -- The steps of the proofs ---------------------------------------------------------------------------


def lewis_weights(table):
    """Lewis weights of the labels, zero where all hypotheses agree, and their points ``L^-1 u_y``."""
    differences = table[1:] - table[0]
    _, singular_values, directions = np.linalg.svd(differences, full_matrices=False)
    points = directions[singular_values > 1e-10 * singular_values[0]]
    lengths = np.linalg.norm(points, axis=0)
    weights = np.where(lengths > 1e-12, lengths, np.inf)
    for _ in range(60):
        lower = np.linalg.cholesky((points / weights) @ points.T)
        moved = np.linalg.solve(lower, points)
        weights = np.where(lengths > 1e-12, np.linalg.norm(moved, axis=0), np.inf)
    return weights, moved


def structured_classes():
    """Classes that are hard for one of the steps, by name."""
    rng = np.random.default_rng(0)
    dense = rng.dirichlet(np.full(12, 0.3), size=6)
    near = 0.999 * dense[0] + 0.001 * dense
    few = rng.dirichlet(np.ones(3), size=20) @ rng.dirichlet(np.full(9, 0.3), size=3)
    spikes = np.diag([1e-1, 1e-2, 1e-4, 1e-6])
    return {
        "disjoint": np.eye(5),
        "star": ldp_gym.HYPOTHESES["hadamard-star"](16, amplitude=0.9).table,
        "flat star": ldp_gym.HYPOTHESES["hadamard-star"](16, amplitude=0.1, loss="tv").table,
        "sparse": rng.dirichlet(np.full(40, 0.02), size=10),
        "near-duplicates": np.concatenate([dense, near[1:]]),
        "mixtures of three": few,
        "two labels": rng.dirichlet([0.2, 0.2], size=50),
        "many labels": rng.dirichlet(np.full(300, 0.3), size=4),
        "spikes": np.column_stack([spikes, 1.0 - spikes.sum(axis=1)]),
    }


def posteriors(size):
    """Posteriors of all kinds: uniform, dense, sparse, nearly certain, of two hypotheses, and certain."""
    rng = np.random.default_rng(1)
    nearly_certain = np.full(size, 1e-6 / size)
    nearly_certain[0] += 1.0 - 1e-6
    two = np.zeros(size)
    two[[0, size - 1]] = 0.9, 0.1
    certain = np.eye(size)[1]
    dense = rng.dirichlet(np.ones(size), size=5)
    sparse = rng.dirichlet(np.full(size, 0.1), size=5)
    return [np.full(size, 1.0 / size), *dense, *sparse, nearly_certain, two, certain]


CLASSES = structured_classes()


@pytest.mark.parametrize("name", CLASSES)
def test_the_expected_kl_is_at_most_the_root_of_rank_times_expected_q(name):
    """Step 2 of Theorem 4: ``E KL <= sqrt(d E Q_k)``, with ``Q_k = sum_y (f_k - p)^2 / tau_y``."""
    table = CLASSES[name]
    weights, _ = lewis_weights(table)
    assert np.where(np.isfinite(weights), weights, 0.0).sum() == pytest.approx(theory.rank(table))
    for posterior in posteriors(len(table)):
        prediction = posterior @ table
        possible = posterior > 0.0
        divergences = np.where(possible, kl(table, prediction), 0.0)
        q = (np.square(table - prediction) / weights).sum(axis=1)
        expected_kl = posterior @ divergences
        bound = math.sqrt(theory.rank(table) * (posterior @ q))
        assert expected_kl <= 0.81 * bound + 1e-12


@pytest.mark.parametrize("name", CLASSES)
def test_a_random_half_space_sees_its_share_of_q(name):
    """Step 4 of Theorem 3: ``E mu(S)^2 >= Q / (2 pi) >= 2 TV^2 / (pi d)``, with exact expectations."""
    table = CLASSES[name]
    weights, points = lewis_weights(table)
    lengths = np.where(np.isfinite(weights), weights, 1.0)
    cosines = np.clip(points.T @ points / np.outer(lengths, lengths), -1.0, 1.0)
    products_of_signs = 2.0 / math.pi * np.arcsin(cosines)
    for posterior in posteriors(len(table)):
        mu = table - posterior @ table
        seen = np.einsum("ky,yz,kz->k", mu, products_of_signs, mu) / 4.0
        q = (np.square(mu) / weights).sum(axis=1)
        total_variation = np.abs(mu).sum(axis=1) / 2.0
        assert (seen >= q / (2.0 * math.pi) - 1e-12).all()
        assert (q >= 4.0 * np.square(total_variation) / theory.rank(table) - 1e-12).all()


@pytest.mark.parametrize(("size", "share"), [(2, 0.693), (5, 0.805), (50, 0.559)])
def test_disjoint_supports_nearly_attain_the_inequality(size, share):
    """There ``E Q = 1`` and ``E KL = log K``: the share ``log K / sqrt(K - 1)`` is largest at K = 5."""
    weights, _ = lewis_weights(np.eye(size))
    assert weights == pytest.approx(1.0 - 1.0 / size)
    assert math.log(size) / math.sqrt(size - 1) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(
    ("size", "horizon", "ratio"), [(64, 226, 1.011), (256, 258, 1.285), (10**6, 496, 3.022)]
)
def test_bayes_exceeds_the_bound_where_contexts_reveal_the_truth(size, horizon, ratio):
    """K contexts; at the k-th, hypothesis k has label 1 for sure and all others label 0, so that d = 1.

    Nature always shows the truth's own context. Bayes does not read contexts as evidence, so its prediction
    gives label 1 the posterior weight of the truth, 1/K at first. The number of true answers is binomial.
    """
    epsilon = 0.2
    risk = 0.0
    for rounds in range(horizon):
        num_true = np.arange(rounds + 1)
        chances = binom.pmf(num_true, rounds, 1.0 / (1.0 + math.exp(-epsilon)))
        log_odds = epsilon * (2 * num_true - rounds) - math.log(size - 1)
        risk += chances @ np.logaddexp(0.0, -log_odds)
    bound = theory.half_space_kl_bound(size, horizon, epsilon, rank=1)
    assert risk / bound == pytest.approx(ratio, abs=1e-3)


def affinities(answers):
    """Affinities ``(n, K, K)`` of coins that say yes with probabilities ``(n, K)``."""
    yes = np.sqrt(answers[:, :, None] * answers[:, None])
    no = np.sqrt((1.0 - answers)[:, :, None] * (1.0 - answers)[:, None])
    return yes + no


def answers_to(sets, table, epsilon):
    """Probabilities ``(n, K)`` of yes, for sets of labels ``(n, M)``; 1/2 stands for a private coin."""
    return 1.0 / (1.0 + math.exp(epsilon)) + signal(epsilon) * (sets @ table.T)


TEMPERED = np.random.default_rng(3).dirichlet(np.ones(6), size=20)
"""Weights q of the hypotheses of :data:`SIX`."""

SIX = np.random.default_rng(4).dirichlet(np.full(8, 0.3), size=6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_challenge_lowers_the_potential_by_the_square_of_tv(epsilon):
    """The step of Theorem 1: ``1 / q_*`` falls by ``s^2 TV^2 / 2`` or more, whichever is the truth."""
    for q in TEMPERED:
        mixed = q @ SIX
        sets = (mixed < SIX).astype(float)
        losses = 1.0 - affinities(answers_to(sets, SIX, epsilon))
        falls = q @ np.einsum("k,jkn->jn", q, losses) / q
        assert (falls >= signal(epsilon) ** 2 * np.square(tv(SIX, mixed)) / 2.0).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_question_of_all_lowers_the_potential_by_the_square_of_kl(epsilon):
    """The step of Theorem 2, over 2,000 draws of the public coins: ``s^2 KL^2 / (4 pi)`` or more."""
    coins = np.random.default_rng(5).standard_normal((2000, 6))
    for q in TEMPERED:
        mixed = q @ SIX
        votes = np.where(mixed < SIX, np.sqrt(q[:, None] * SIX), 0.0)
        sets = (coins @ votes > 0.0).astype(float)
        losses = 1.0 - affinities(answers_to(sets, SIX, epsilon))
        falls = np.einsum("k,nkj->nj", q, losses).mean(axis=0) / q
        assert (falls >= signal(epsilon) ** 2 * np.square(kl(SIX, mixed)) / (4.0 * math.pi)).all()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_on_average_over_the_posterior_a_challenge_lowers_the_potential_twice_as_much(epsilon):
    """The step of the minimax corollary: ``(sum_k sqrt(w_k))^2`` falls by ``s^2 E TV^2`` or more."""
    for q in TEMPERED:
        mixed = q @ SIX
        potential = 1.0 / np.square(q).sum()
        posterior = potential * np.square(q)
        sets = (mixed < SIX).astype(float)
        losses = 1.0 - affinities(answers_to(sets, SIX, epsilon))
        fall = potential * np.einsum("j,i,k,jik->", q, q, q, losses)
        assert fall >= signal(epsilon) ** 2 * (posterior @ np.square(tv(SIX, mixed)))


def test_on_average_over_the_posterior_the_inverse_of_the_tempered_weight_is_the_potential():
    """The step of the minimax corollary for small K: ``E 1/q_* = (sum_k sqrt(w_k))^2``."""
    for posterior in posteriors(6):
        roots = np.sqrt(posterior)
        tempered = roots / roots.sum()
        possible = posterior > 0.0
        inverse = (posterior[possible] / tempered[possible]).sum()
        assert inverse == pytest.approx(roots.sum() ** 2)


def test_kl_is_bounded_by_tv_where_ratios_are():
    """``KL(f, p) <= g(R) TV(f, p)`` for ``f <= R p``."""
    f, p = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=(2, 200))
    ratio = (f / p).max(axis=-1)
    largest = ratio * np.log(ratio) / (ratio - 1.0) * tv(f, p)
    assert (kl(f, p) <= largest * (1 + 1e-9)).all()


def test_the_square_of_kl_over_tv_rises_and_is_concave():
    ratios = np.linspace(1.001, 300.0, 100_000)
    squares = np.square(ratios * np.log(ratios) / (ratios - 1.0))
    assert (np.diff(squares) > 0.0).all()
    assert (np.diff(squares, 2) < 1e-12).all()
