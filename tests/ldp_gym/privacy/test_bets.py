"""Fair bets: whatever a bettor does, wealth is at most 1 on average if the belief is right."""

import itertools
import math

import numpy as np
import pytest

from ldp_gym.privacy import bets, codes, questions
from ldp_gym.privacy.bets import CellBets, Sample, bet, bet_on_delta, bet_on_repeats, mean_wealth


def all_outcomes(beliefs):
    """Every way in which the labels can turn out, and its probability."""
    rows = range(len(beliefs))
    for labels in itertools.product(range(beliefs.shape[1]), repeat=len(beliefs)):
        yield np.array(labels), math.prod(beliefs[i, labels[i]] for i in rows)


@pytest.mark.parametrize("seed", range(2))
def test_every_bettor_s_wealth_has_mean_at_most_one(seed, monkeypatch):
    """By enumeration of all labels of 7 messages: exact, with no chance involved."""
    monkeypatch.setattr(questions, "_SMALLEST_CELL", 1)
    monkeypatch.setattr(questions, "_LEAST_SCORE", 0.1)
    monkeypatch.setattr(codes, "_SPARE", 1)
    rng = np.random.default_rng(seed)
    messages = rng.integers(3, size=(7, 2)) + np.array([0.0, 0.5])
    beliefs = rng.dirichlet(np.ones(2), size=7)
    situations = rng.integers(2, size=7)
    total = None
    for labels, chance in all_outcomes(beliefs):
        counts = np.eye(2)[labels]
        wealth = [value for _, value in bet(Sample(messages, situations, counts, beliefs, (1, 2, 4, 7)))]
        total = chance * np.exp(wealth) + (0.0 if total is None else total)
    assert len(total) > 30
    assert (total <= 1.0 + 1e-9).all()
    assert total.max() > 0.99  # a bettor who stakes the belief itself keeps what it has


def test_wealth_is_what_the_stakes_pay():
    """Tilts by hand: one cell, beliefs that are equal, so that the bound from the sums is exact."""
    counts = np.array([[3.0, 1.0], [5.0, 0.0]])
    beliefs = np.full((2, 2), 0.5)
    sample = Sample(np.zeros((2, 1)), np.zeros(2, dtype=int), counts, beliefs, (1, 2))
    tilt = np.array([3.5, 1.5]) / 2.5
    surprise = abs(3.0 - 2.0) / math.sqrt(2.0 * 0.5 + 0.1)
    expected = 5.0 * math.log(tilt[0] / tilt.mean()) if surprise > 1.5 else 0.0
    assert CellBets(sample, np.zeros(2, dtype=int)).tilted()[0] == pytest.approx(expected)
    sure = Sample(np.zeros((2, 1)), np.zeros(2, dtype=int), counts * [9.0, 1.0], beliefs, (1, 2))
    tilt = np.array([27.5, 1.5]) / 14.5
    expected = 45.0 * math.log(tilt[0] / tilt.mean())
    assert CellBets(sure, np.zeros(2, dtype=int)).tilted() == pytest.approx([expected, expected])


def test_the_sums_bound_wealth_from_below():
    """Jensen: what the cells' sums say is at most what the bettor has, message by message."""
    rng = np.random.default_rng(0)
    beliefs = rng.dirichlet(np.ones(3), size=600)
    labels = np.array([rng.choice(3, p=[0.8, 0.1, 0.1]) for _ in beliefs])
    cells = rng.integers(2, size=600)
    sample = Sample(np.zeros((600, 1)), np.zeros(600, dtype=int), np.eye(3)[labels], beliefs, (300, 600))
    bounds = CellBets(sample, cells).tilted()
    for bound, doubt in zip(bounds, bets._DOUBTS, strict=True):
        wealth = 0.0
        for i in range(300, 600):
            past = (cells == cells[i]) & (np.arange(600) < 300)
            sent, expected = np.eye(3)[labels[past]].sum(axis=0), beliefs[past].sum(axis=0)
            off = np.abs(sent - expected) / np.sqrt(expected * (1.0 - expected / past.sum()) + 0.1)
            stake = beliefs[i] * np.where(off > doubt, (sent + 0.5) / (expected + 0.5), 1.0)
            wealth += math.log(stake[labels[i]] / stake.sum() / beliefs[i, labels[i]])
        assert bound <= wealth + 1e-9
        assert bound > 5.0


def test_a_rule_learned_too_late_earns_nothing():
    """Labels of the last block must not reach the tilts that it is bet on with."""
    counts = np.array([[10.0, 10.0], [100.0, 0.0]])
    sample = Sample(np.zeros((2, 1)), np.zeros(2, dtype=int), counts, np.full((2, 2), 0.5), (1, 2))
    cells = CellBets(sample, np.zeros(2, dtype=int))
    assert cells.tilted() == [0.0, 0.0]


def test_the_mean_of_wealths():
    assert mean_wealth([0.0, math.log(3.0)]) == pytest.approx(math.log(2.0))
    assert mean_wealth([-1e9, -1e9]) == pytest.approx(-1e9)


def test_a_bet_on_delta_has_mean_at_most_one_at_the_true_delta():
    """By enumeration of all messages of two users; and it gains at a smaller one."""
    rng = np.random.default_rng(0)
    density = rng.dirichlet(np.ones(4), size=3)
    epsilon = 0.5
    pairs = np.maximum(density[:, None] - math.exp(epsilon) * density[None], 0.0).sum(axis=-1)

    def mean(delta):
        total = 0.0
        for labels in itertools.product(range(3), repeat=2):
            for messages in itertools.product(range(4), repeat=2):
                chance = math.prod(density[y, z] / 3.0 for y, z in zip(labels, messages, strict=True))
                log_density, counts = np.log(density.T[list(messages)]), np.eye(3)[list(labels)]
                total += chance * np.exp([w for _, w in bet_on_delta(log_density, counts, epsilon, delta)])
        return total

    assert (mean(pairs.max()) <= 1.0 + 1e-12).all()
    assert (mean(0.0) > 1.05).any()


def test_a_bet_on_repeats_has_mean_at_most_one_and_finds_what_comes_too_often(monkeypatch):
    """By enumeration of two blocks of three messages out of two."""
    monkeypatch.setattr(bets, "_REPEATED", 2)
    density = np.array([0.2, 0.8])

    def mean(law):
        total = 0.0
        for drawn in itertools.product(range(2), repeat=6):
            blocks = [(np.array(part), np.ones(3), density[list(part)]) for part in (drawn[:3], drawn[3:])]
            total += math.prod(law[z] for z in drawn) * math.exp(bet_on_repeats(blocks))
        return total

    assert mean([0.2, 0.8]) == pytest.approx(1.0)
    assert mean([0.1, 0.9]) < 1.0
    assert mean([0.7, 0.3]) > 1.5
