"""The design of extremal channels, against independent solvers and a program over all sets."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import ldp_gym
from ldp_gym.channels import extremal
from ldp_gym.channels.extremal import GAP, covers, design
from ldp_gym.channels.extremal.families import Family, Table
from ldp_gym.channels.extremal.mixture import Mixture
from ldp_gym.channels.extremal.programs import AllSets, FoundSets, TwoHypotheses
from ldp_gym.core.divergences import kl


def random_table(size, labels, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(labels, 0.4), size=size)


def cost_of(laws, table, horizon):
    """J from the laws ``(N, K)`` of a channel's messages, written out."""
    total = 0.0
    for i, f in enumerate(table):
        for j, g in enumerate(table):
            if i != j:
                information = float(np.sum(laws[:, i] * np.log(laws[:, i] / laws[:, j])))
                total += float(kl(f, (f + g) / 2)) / (1 / horizon + information)
    return total


def every_set(labels):
    numbers = np.arange(1, 2**labels - 1)
    return ((numbers[:, None] >> np.arange(labels)) & 1).astype(float)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_design_is_the_optimum_of_a_general_solver(epsilon):
    """SLSQP over the masses of all 14 sets of four labels, from several starts."""
    table, low = random_table(3, 4), math.exp(-epsilon)
    sets = every_set(4)
    raised = low + (1 - low) * sets

    def cost(masses):
        return cost_of(np.maximum(masses, 1e-12)[:, None] * (low + (1 - low) * sets @ table.T), table, 500)

    best = np.inf
    for seed in range(4):
        start = np.random.default_rng(seed).random(14)
        found = minimize(
            cost,
            start / (start @ raised).mean(),
            bounds=[(0, None)] * 14,
            constraints={"type": "eq", "fun": lambda c: c @ raised - 1},
            options={"maxiter": 300},
        )
        if np.abs(found.x @ raised - 1).max() < 1e-7:
            best = min(best, found.fun)
    made = design(table, epsilon, 500, most_sets=100)
    laws = made.family.masses[:, None] * (low + (1 - low) * made.family.sets @ table.T)
    assert made.cost == pytest.approx(cost_of(laws, table, 500), rel=1e-9)
    assert made.exact
    assert best * (1 + 1e-6) >= made.cost * (1 - made.gap)  # the gap is a proof
    assert made.cost <= best * (1 + 2 * GAP)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_no_channel_of_the_package_costs_less(epsilon):
    """Every eps-private channel that is not adaptive: its exact cost is above the proved least."""
    table = random_table(4, 6, seed=1)
    made = design(table, epsilon, 1000, most_sets=100)
    assert made.exact
    assert made.gap < GAP
    for name in ldp_gym.CHANNELS:
        maker = ldp_gym.CHANNELS[name]
        if maker.adaptive or not maker.pure or name in ("identity", "laplace-single"):
            continue
        channel = maker(4, 6, 1000, epsilon=epsilon)
        listed = channel.list_messages(table)
        laws = np.exp(channel.log_likelihood(listed.messages, table) + listed.log_weights[:, None])
        assert cost_of(laws[laws.min(axis=-1) > 0.0], table, 1000) >= made.cost * (1 - made.gap) * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_two_hypotheses_are_exact(epsilon, seed):
    """The tangents' linear program against one over all sets, and the design's own gap."""
    table = Table(random_table(2, 8, seed), epsilon)
    slopes = np.array([[0.0, 0.7], [1.3, 0.0]])
    families, bound = TwoHypotheses(table).best(slopes)
    sets = every_set(8)
    scores, raised = table.scores(sets, slopes), table.low + (1 - table.low) * sets
    program = linprog(-scores, A_eq=raised.T, b_eq=np.ones(8))
    assert bound >= -program.fun * (1 - 1e-9)
    assert bound <= -program.fun * (1 + 1e-4)
    (family,) = families
    assert table.scores(family.sets, slopes) @ family.masses == pytest.approx(-program.fun, rel=1e-4)
    made = design(table.candidates, epsilon, 1000, most_sets=100)
    assert made.exact
    assert made.gap < 1e-4


def test_two_hypotheses_and_many_labels_have_a_proof():
    made = design(random_table(2, 40), 1.0, 1000, most_sets=100)
    assert made.exact
    assert made.gap < 1e-4


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_prices_bound_every_channel(epsilon):
    """The bound of the linear programs against the program over all sets."""
    table = Table(random_table(4, 6), epsilon)
    slopes = np.random.default_rng(0).random((4, 4)) * (1 - np.eye(4))
    families, bound = AllSets(table).best(slopes)
    sets = every_set(6)
    scores, raised = table.scores(sets, slopes), table.low + (1 - table.low) * sets
    program = linprog(-scores, A_eq=raised.T, b_eq=np.ones(6))
    assert -program.fun * (1 - 1e-9) <= bound <= -program.fun * (1 + 1e-4)
    (family,) = families
    assert table.scores(family.sets, slopes) @ family.masses == pytest.approx(-program.fun, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_ascent_finds_the_sets_that_the_best_channel_needs(epsilon):
    """Beginning with the single labels, against the program over all sets. The bound errs upwards."""
    table = Table(random_table(5, 9), epsilon)
    slopes = np.random.default_rng(0).random((5, 5)) * (1 - np.eye(5))
    solver, (_, proved) = FoundSets(table, np.eye(9), np.random.default_rng(0)), AllSets(table).best(slopes)
    for _ in range(20):
        (family,), bound = solver.best(slopes)
    assert table.scores(family.sets, slopes) @ family.masses == pytest.approx(proved, rel=1e-3)
    assert bound > proved * (1 - 1e-3)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_linear_programs_better_a_search_for_covers(epsilon, monkeypatch):
    table = random_table(8, 40)
    made = design(table, epsilon, 1000, most_sets=200)
    monkeypatch.setattr(extremal, "_MOST_LABELS_BY_PROGRAMS", 0)
    assert made.cost < design(table, epsilon, 1000, most_sets=200).cost
    assert not made.exact


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 12.0, 800.0])
@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (4, 30), (2, 30)])
def test_masses_cover_all_labels_alike(shape, epsilon):
    made = design(random_table(*shape), epsilon, 100, most_sets=150)
    covered = made.family.masses @ made.family.sets
    np.testing.assert_allclose(covered, covered[0], rtol=1e-12)
    family, low = made.family.scaled(math.exp(-epsilon)), math.exp(-epsilon)
    np.testing.assert_allclose(family.masses @ (low + (1 - low) * family.sets), 1.0, rtol=1e-12)
    assert (family.masses > 0.0).all()
    assert len(family.masses) <= 150


def test_labels_that_are_cut_into_parts_change_nothing():
    """Parts of unequal sizes, in any order: the same sets, with all parts of a label or none, and a proof."""
    table, low, rng = random_table(4, 6), math.exp(-1.0), np.random.default_rng(1)
    label, shares = rng.permutation(np.repeat(np.arange(6), 5)), rng.random(30)
    cut = table[:, label] * (shares / np.bincount(label, shares)[label])
    whole, parts = (design(candidates, 1.0, 1000, most_sets=100) for candidates in (table, cut))
    assert parts.exact
    assert parts.cost == pytest.approx(whole.cost, rel=2 * GAP)
    laws = parts.family.masses[:, None] * (low + (1 - low) * parts.family.sets @ cut.T)
    assert cost_of(laws, cut, 1000) == pytest.approx(parts.cost, rel=1e-9)
    for y in range(6):
        assert (parts.family.sets[:, label == y].std(axis=1) == 0.0).all()


def test_twins_and_flat_tables_have_a_design():
    for table in (np.full((3, 5), 0.2), np.eye(3)[[0, 0, 1]], np.full((3, 80), 1 / 80)):
        made = design(table, 1.0, 100, most_sets=50)
        assert len(made.family.masses) >= 2
        assert np.isfinite(made.cost)


def test_gradients_are_those_of_the_score():
    table = Table(random_table(3, 5), 1.0)
    slopes = np.random.default_rng(0).random((3, 3)) * (1 - np.eye(3))
    inside = np.random.default_rng(1).random(5)
    for y, direction in enumerate(np.eye(5)):
        ahead, behind = (table.scores(inside + h * direction, slopes) for h in (1e-6, -1e-6))
        expected = table.gradients(inside, slopes)[y] * (1 - table.low)
        assert (ahead - behind) / 2e-6 == pytest.approx(expected, rel=1e-5)


def test_slopes_are_those_of_the_cost():
    table = Table(random_table(3, 5), 1.0)
    mixture = Mixture(table, 100)
    mixture.add([Family(np.eye(5), np.ones(5)).scaled(table.low)])
    information = table.information(mixture.family)
    step = 1e-6

    def cost(told):
        pairs = ~np.eye(3, dtype=bool)
        return float((table.prices[pairs] / (told[pairs] + 1 / 100)).sum())

    for i, j in ((0, 1), (2, 0)):
        moved = information.copy()
        moved[i, j] += step
        assert (cost(information) - cost(moved)) / step == pytest.approx(mixture.slopes[i, j], rel=1e-4)
    assert mixture.cost == pytest.approx(cost(information))


def test_a_label_joins_the_sets_that_it_prefers():
    preferences = np.array([[[0.1, 3.0], [0.2, 1.0], [0.3, 2.0]]])
    assert covers._join(preferences, 2).tolist() == [[[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]]


def test_few_sets_are_kept_where_few_are_wanted():
    table = random_table(6, 32)
    small, large = (design(table, 2.0, 1000, most_sets=most) for most in (20, 200))
    assert len(small.family.masses) <= 20 < len(large.family.masses)
    assert small.cost >= large.cost * (1.0 - GAP)
