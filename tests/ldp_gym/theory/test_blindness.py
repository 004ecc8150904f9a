"""Pairs of hypotheses: what a message tells about them, blindness, and the floor for two distributions."""

import math

import numpy as np
import pytest
from helpers import READABLE, delta_of
from scipy.optimize import linprog

import ldp_gym
from ldp_gym import theory

BLIND = np.array([[0.2, 0, 0.8], [0, 0.2, 0.8], [0.5, 0.5, 0]])


def _make(name, table, **options):
    return ldp_gym.CHANNELS[name](*table.shape, 50, delta=delta_of(name), **options)


def _entropy(weights):
    return -sum(w * math.log(w) for w in weights if w > 0.0)


def test_the_information_about_a_pair_is_that_of_its_messages():
    """Randomized response on three labels: the Jensen-Shannon divergence of the two message laws."""
    table = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    keep = math.e / (math.e + 2.0)
    laws = table * keep + (1.0 - table) * (1.0 - keep) / 2.0
    found = theory.pair_information(_make("randomized-response", table), table)
    for j in range(4):
        for k in range(4):
            told = _entropy((laws[j] + laws[k]) / 2.0) - (_entropy(laws[j]) + _entropy(laws[k])) / 2.0
            assert found[j, k] == pytest.approx(told, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", ["laplace-single", "half-space", "wheel"])
def test_pairs_agree_with_the_information_rate(name):
    """The rate of a class of two, computed elsewhere, to the error of both samples."""
    table = np.random.default_rng(1).dirichlet(np.ones(4), size=2)
    channel = _make(name, table, epsilon=2.0)
    rate = theory.information_rate(channel, table, samples=20_000)
    assert theory.pair_information(channel, table)[0, 1] == pytest.approx(
        rate.rate, abs=8.0 * rate.error + 1e-9
    )


@pytest.mark.parametrize("name", READABLE)
def test_equal_hypotheses_have_no_information_between_them(name):
    table = np.random.default_rng(2).dirichlet(np.ones(4), size=3)[[0, 1, 1]]
    found = theory.pair_information(_make(name, table), table)
    assert found[1, 2] == 0.0 < found[0, 1]
    assert theory.blind_pairs(_make(name, table), table) == []  # they do not differ


@pytest.mark.parametrize("name", sorted(set(ldp_gym.CHANNELS) - {"designed"}))
def test_blind_channels_are_found(name):
    blind = [(0, 1)] if name in ("split", "vote", "wheel", "adaptive-wheel") else []
    assert theory.blind_pairs(_make(name, BLIND), BLIND) == blind


def test_one_table_that_tells_a_pair_apart_is_enough():
    other = BLIND[[2, 0, 1]]
    channel = _make("split", BLIND)
    assert theory.blind_pairs(channel, other) == [(1, 2)]
    assert theory.blind_pairs(channel, np.stack([BLIND, other])) == []
    assert theory.blind_pairs(channel, BLIND, distance=0.3) == []


def test_half_space_is_not_blind_in_the_default_class_where_split_is_nearly():
    game = ldp_gym.LDPDistEnv().game
    table = game.hypotheses(np.array([-2.7137, -1.1146, 1.1593, 0.4993]))
    told = {name: theory.pair_information(_make(name, table), table) for name in ("split", "half-space")}
    pairs = np.triu_indices(8, 1)
    distance = np.maximum(table[:, None] - table, 0.0).sum(axis=-1)[pairs]
    least = {name: (values[pairs] / distance**2).min() for name, values in told.items()}
    assert least["half-space"] > 0.5 * math.tanh(0.5) ** 2 / (math.pi * 7) > least["split"]


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_on_disjoint_supports_the_floor_is_exact(epsilon):
    p, q = np.array([0.3, 0.7, 0.0]), np.array([0.0, 0.0, 1.0])
    assert theory.pair_floor(p, q, 80, epsilon) == pytest.approx(theory.risk_floor(2, 80, epsilon), rel=1e-8)


def _divergence(p, q, w):
    return _entropy(w * p + (1 - w) * q) - w * _entropy(p) - (1 - w) * _entropy(q)


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_strategy_is_below_the_floor(seed, epsilon):
    """The least risk of four rounds: a linear program over all sets of labels at every posterior."""
    p, q = np.random.default_rng(seed).dirichlet(np.ones(3), size=2)
    sets = (np.arange(1, 7)[:, None] >> np.arange(3)) & 1
    raised = 1.0 + math.expm1(epsilon) * sets

    def least(w, rounds):
        now = _divergence(p, q, w)
        if rounds == 1:
            return now
        first, second = w * raised @ p, (1.0 - w) * raised @ q
        costs = [(a + b) * least(a / (a + b), rounds - 1) for a, b in zip(first, second, strict=True)]
        return now + linprog(costs, A_eq=raised.T, b_eq=np.ones(3)).fun

    optimum = least(0.5, 4)
    assert 0.97 * optimum <= theory.pair_floor(p, q, 4, epsilon) <= optimum * (1 + 1e-9)


def test_equal_distributions_cost_nothing_and_the_floor_grows_with_rounds():
    p, q = np.array([0.5, 0.5]), np.array([0.45, 0.55])
    assert theory.pair_floor(p, p, 100, 1.0) == 0.0
    floors = [theory.pair_floor(p, q, rounds, 1.0) for rounds in (1, 10, 300)]
    assert floors == sorted(floors)
    assert floors[0] == pytest.approx(_divergence(p, q, 0.5), rel=1e-9)
