"""The channel that is designed for the candidates: its optimum, its privacy, its games."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pytest
from helpers import small_rules
from scipy.optimize import minimize

import ldp_gym
from ldp_gym.channels import designed
from ldp_gym.channels.designed import Designed
from ldp_gym.core.divergences import kl
from ldp_gym.core.errors import IncompatibleChannelError


def random_table(size, labels, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(labels, 0.4), size=size)


def cost_of(laws, table, horizon):
    """J from the laws ``(N, K)`` of a channel's messages, written out."""
    total = 0.0
    for i, j in itertools.permutations(range(len(table)), 2):
        information = np.sum(laws[:, i] * np.log(laws[:, i] / laws[:, j]))
        total += kl(table[i], (table[i] + table[j]) / 2) / (1 / horizon + information)
    return total


def laws_of(design, table, epsilon):
    low = math.exp(-epsilon)
    return design.masses[:, None] * (low + (1 - low) * design.sets @ table.T)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_design_is_the_optimum_of_a_general_solver(epsilon):
    """SLSQP over the masses of all 14 sets of four labels, from several starts."""
    table, low = random_table(3, 4), math.exp(-epsilon)
    raised = low + (1 - low) * np.array(list(itertools.product((0, 1), repeat=4))[1:-1])
    covers = {"type": "eq", "fun": lambda masses: masses @ raised - 1}

    def cost(masses):
        return cost_of(np.maximum(masses, 1e-12)[:, None] * (raised @ table.T), table, 500)

    best = np.inf
    for start in np.random.default_rng(0).random((3, 14)):
        start /= (start @ raised).mean()
        found = minimize(
            cost, start, bounds=[(0, None)] * 14, constraints=covers, options={"maxiter": 200}
        )
        if np.abs(covers["fun"](found.x)).max() < 1e-7:
            best = min(best, found.fun)
    made = Designed(3, 4, 500, epsilon=epsilon).design(table)
    assert made.cost == pytest.approx(cost_of(laws_of(made, table, epsilon), table, 500), rel=1e-9)
    assert made.gap < 2e-3
    assert best * (1 + 1e-6) >= made.cost * (1 - made.gap)  # the gap is a proof
    assert made.cost <= best * (1 + 2e-3)


def test_the_information_of_nearly_equal_laws_keeps_its_digits():
    for h in (0.0014, 0.003):  # by a series, and by the formula
        problem = designed._Problem(np.array([[0.5, 0.5], [0.5 + h, 0.5 - h]]), 0.5, 9)
        p, q = ((1 + Decimal(share)) / 2 for share in (0.5, 0.5 + h))
        expected = [float(a * (a / b).ln() - a + b) for a, b in ((p, q), (q, p))]
        np.testing.assert_allclose(problem.information(np.eye(2)[:1])[:, 0], expected, rtol=1e-9)


EQUAL = [np.full((3, 5), 0.2), np.eye(3)[[0, 0, 1]], np.full((3, 40), 1 / 40), np.eye(16)]
SHAPES = [(2, 2), (3, 5), (4, 30), (2, 30)]


@pytest.mark.parametrize(
    ("table", "epsilon"),
    [
        (random_table(*shape), epsilon)
        for shape in SHAPES
        for epsilon in (1e-6, 0.5, 3.0, 12.0, 800.0)
    ]
    + [(table, 1.0) for table in EQUAL],
)
def test_masses_cover_all_labels_alike_and_the_cost_is_that_of_the_true_eps(table, epsilon):
    low, labels = math.exp(-epsilon), table.shape[1]
    channel = Designed(*table.shape, 100, epsilon=epsilon)
    made, certificate = channel.design(table), ldp_gym.audit.certify(channel, table)
    assert certificate.holds
    assert certificate.epsilon == pytest.approx(epsilon, rel=1e-12)
    np.testing.assert_allclose(made.masses @ (low + (1 - low) * made.sets), 1.0, rtol=1e-12)
    assert (made.masses > 0.0).all()
    assert 2 <= len(made.masses) <= 128 + labels // 2
    laws = np.maximum(laws_of(made, table, epsilon), 1e-300)
    assert made.cost == pytest.approx(cost_of(laws, table, 100), rel=1e-6, abs=1e-9)
    last = channel.encode(np.arange(labels), table, np.full((labels, 1), 1.0 - 2.0**-53))
    assert epsilon == 800.0 or (last == channel.message_space.n - 1).all()


def test_labels_that_are_cut_into_parts_change_nothing():
    """Parts of unequal sizes, in any order: all parts of a label are in a set, or none; the same cost."""
    table, rng = random_table(4, 6), np.random.default_rng(1)
    label, shares = rng.permutation(np.repeat(np.arange(6), 5)), rng.random(30)
    cut = table[:, label] * (shares / np.bincount(label, shares)[label])
    whole, parts = (Designed(4, t.shape[1], 1000).design(t) for t in (table, cut))
    assert parts.cost == pytest.approx(whole.cost, rel=1e-3)
    assert parts.gap is not None
    for y in range(6):
        assert (parts.sets[:, label == y].std(axis=1) == 0.0).all()


def test_it_is_designed_once_and_kept():
    designed._design.cache_clear()
    rules = small_rules("designed", nature_kwargs={"pool_size": 3})
    result, again = (ldp_gym.evaluate("bayes", rules, episodes=4) for _ in range(2))
    assert designed._design.cache_info().misses == 3  # a design per context of the pool
    np.testing.assert_array_equal(result.kl, again.kl)


def test_games_with_many_or_large_tables_are_refused_with_the_reason():
    redrawn = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True}
    for rules in ({}, {"nature": "cycle", "nature_kwargs": {"pool_size": 65}}, redrawn):
        with pytest.raises(IncompatibleChannelError, match="for every table of candidates"):
            ldp_gym.LDPDistEnv(channel="designed", **rules)
    for shape in ((4, 65), (33, 8), (3000, 16)):
        with pytest.raises(
            ValueError, match="at most 64 labels and 32 hypotheses, got .*'half-space' takes"
        ):
            Designed(*shape, 100)
