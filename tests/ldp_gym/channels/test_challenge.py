"""The channel of challenges: its sets, the guard, the theorems' inequality in every round, and by play."""

import math
from fractions import Fraction

import numpy as np
import pytest
from helpers import DEGENERATE, HARD, PLAIN
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_gym.channels.bit import differences
from ldp_gym.channels.challenge import Challenge
from ldp_gym.channels.half_space import turn_contrast
from ldp_gym.testing import check_channel

ROUGH = np.random.default_rng(7).dirichlet(np.full(5, 0.05), size=7)
TABLES = DEGENERATE | {
    "rough": ROUGH,
    "clipped at 1e-15": np.concatenate([ROUGH, np.clip(ROUGH[:1], 1e-15, None)]),
    **{
        f"1e-{digits} apart": np.concatenate(
            [PLAIN, PLAIN[:2] + 10.0**-digits * (PLAIN[2:] - PLAIN[:2])]
        )
        for digits in (6, 9, 12, 14, 16)
    },
}

TIES = 2e-12
"""Probability that the tolerance for ties may cost, in the distance of the truth and the mixture."""


def posteriors(size):
    """Posteriors that are even, uneven, sure up to 1e-13, and sure up to 1e-40."""
    rng = np.random.default_rng(size)
    certain = np.where(np.arange(size) == 1, 1.0, 10.0 ** -rng.uniform(13, 40, size))
    spread = [np.full(size, 1.0 / size), *rng.dirichlet(np.full(size, 0.3), size=4), certain]
    return [row / row.sum() for row in spread]


def tempered(posterior):
    return np.sqrt(posterior) / np.sqrt(posterior).sum()


def above(table, q):
    """``f_j - fbar`` for every j, ``(K, M)``, from differences."""
    return np.stack([(q[:, None] * (row - table)).sum(axis=0) for row in table])


def test_the_example_by_hand():
    """Posterior (.64, .32, .04): the roots are .8, .566 and .2, fbar (.428, .310, .262)."""
    table, posterior = (
        np.array([[6, 3, 1], [3, 4, 3], [1, 1, 8]]) / 10,
        np.array([0.64, 0.32, 0.04]),
    )
    channel = Challenge(3, 3, 100, turns=0)
    listed = channel.list_messages(table, posterior)
    assert listed.complete
    np.testing.assert_allclose(np.exp(listed.log_weights[::2]), tempered(posterior))
    sets = channel.agreement(-listed.messages[::2], table, posterior)
    np.testing.assert_array_equal(sets, [[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    coins = (np.arange(1000)[:, None] + 0.5) / 1000
    drawn = channel.messages_given_coins(coins, table, posterior)[:, :1]
    shares = (drawn == listed.messages[::2]).all(axis=-1).mean(axis=0)
    np.testing.assert_allclose(shares, np.exp(listed.log_weights[::2]), atol=0.001)
    others = math.sqrt(0.32) + 0.2
    np.testing.assert_allclose(listed.messages[0], [1, -math.sqrt(0.32) / others, -0.2 / others])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_set_is_where_the_challenger_is_above_the_mixture(table):
    """Against rational arithmetic; only a label closer than the tolerance may toss a coin."""
    size, labels = table.shape
    channel = Challenge(size, labels, 50, turns=0)
    for posterior in posteriors(size):
        q = [Fraction(math.sqrt(weight)) for weight in posterior]
        sets = channel.agreement(
            -channel.list_messages(table, posterior).messages[::2], table, posterior
        )
        for j in range(size):
            for y in range(labels):
                terms = [
                    q[k] * (Fraction(table[j, y]) - Fraction(table[k, y])) for k in range(size)
                ]
                sizes = sum(
                    q[k] * Fraction(table[j, y] + table[k, y]) for k in range(size) if k != j
                )
                difference = sum(terms)
                if abs(difference) > 3e-12 * sizes:
                    assert sets[j, y] == (difference > 0)
                elif difference == 0:
                    assert sets[j, y] == 0.5


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("guard", [0.25, 1.0])
def test_the_potential_falls_as_theorem_1_needs_it(table, turns, guard):
    """For every truth: the expected fall of 1 / q_* in a round, enumerated, against c s^2 TV^2 / 2.

    Under a truth drawn from the posterior, that of ``(sum_k sqrt(w_k))^2`` is c s^2 E TV^2 or more.
    """
    size, labels = table.shape
    for posterior in posteriors(size):
        q, distances = (
            tempered(posterior),
            np.maximum(above(table, tempered(posterior)), 0.0).sum(axis=1),
        )
        for epsilon in (1e-3, 1.0, 30.0):
            channel = Challenge(size, labels, 50, epsilon=epsilon, turns=turns, guard=guard)
            share, s = guard if turns else 1.0, math.tanh(epsilon / 2)
            listed = channel.list_messages(table, posterior)
            sets, drawn = (
                channel.agreement(-listed.messages[::2], table),
                np.exp(listed.log_weights[::2]),
            )
            # 1 - BC of two answers, (question, hypothesis, hypothesis), from differences of their chances.
            held = np.stack([sets @ table.T, (1.0 - sets) @ table.T])
            roots = np.sqrt(1.0 / (1.0 + math.exp(epsilon)) + s * held)
            apart = s * np.einsum("jm,klm->jkl", sets, table[:, None] - table)
            lost = 0.5 * sum(np.square(apart / (r[:, :, None] + r[:, None])) for r in roots)
            needed = share * s**2 / 2 * np.square(np.maximum(distances - TIES, 0.0))
            falls = np.einsum("j,jkl,k->l", drawn, lost, q)  # times 1 / q_*
            assert (falls >= q * needed * (1 - 1e-9)).all()
            whole = np.square(np.sqrt(posterior).sum())
            assert whole * (falls @ q) >= 2.0 * (posterior @ needed) * (1 - 1e-9)


def test_the_last_turned_set_with_its_share_of_the_distance_is_taken():
    """The drawn set, or that after one or two turns; told with plain sums over hypotheses and labels."""
    rng, seen = np.random.default_rng(1), set()
    for _ in range(60):
        table, posterior = rng.dirichlet(np.full(8, 0.2), size=12), rng.dirichlet(np.full(12, 0.15))
        q = tempered(posterior)
        asked = (
            Challenge(12, 8, 50, guard=0.9, turns=2).list_messages(table, posterior).messages[::2]
        )
        drawn = Challenge(12, 8, 50, turns=0).list_messages(table, posterior).messages[::2]
        for j in range(12):
            expected, distance, which = drawn[j], 0.5 * np.abs(table[j] - q @ table).sum(), 0
            turned = drawn[j]
            for turns in (1, 2):
                turned = turn_contrast(turned, table, differences(table), posterior)
                answers = table @ (turned @ table > 0.0)
                told = sum(q[k] * (answers[k] - answers[j]) ** 2 for k in range(12))
                if told >= 0.9 * distance**2:
                    expected, which = turned, turns
            np.testing.assert_allclose(asked[j], expected, rtol=1e-9, atol=1e-12)
            seen.add(which)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_the_set_of_all_challengers(table):
    """Theorem 2's set, label by label, from the coins; where nobody prefers a label, a private coin."""
    size, labels = table.shape
    channel = Challenge(size, labels, 50, question="all", turns=0)
    coins = np.random.default_rng(2).random((40, size))
    for posterior in posteriors(size):
        q = tempered(posterior)
        ahead = above(table, q)
        questions = channel.messages_given_coins(coins, table, posterior)[:, 0]
        sets = channel.agreement(-questions, table, posterior)
        normal = stats.norm.ppf(coins)
        np.testing.assert_allclose(
            questions, normal / np.abs(normal).max(axis=-1, keepdims=True), rtol=1e-12
        )
        for g, found in zip(questions, sets, strict=True):
            for y in range(labels):
                margins = ahead[:, y] / np.maximum(table[:, y], 1e-300)
                if ((margins > 1e-13) & (margins < 1e-11)).any():
                    continue  # the tolerance for ties is in between
                terms = [
                    g[j] * math.sqrt(q[j] * table[j, y]) for j in range(size) if margins[j] > 1e-12
                ]
                if not terms:
                    assert found[y] == 0.5
                elif abs(sum(terms)) > 1e-9 * sum(map(abs, terms)):
                    assert found[y] == (sum(terms) > 0.0)


@pytest.mark.parametrize(
    "name", ["plain", "rough", "blind", "duplicates", "1e-6 apart", "disjoint"]
)
def test_the_potential_falls_as_theorem_2_needs_it(name):
    """``E (f_*(S) - fbar(S))^2 >= q_* Psi^2 / (2 pi)`` over 20,000 draws of the coins, for every truth."""
    table = TABLES[name]
    channel = Challenge(*table.shape, 50, question="all", turns=0)
    coins = np.random.default_rng(3).random((20_000, len(table)))
    for posterior in posteriors(len(table))[:4]:
        q = tempered(posterior)
        ahead, mixed = above(table, q), q @ table
        asked = channel.messages_given_coins(coins, table, posterior)[:, 0]
        sets = channel.agreement(-asked, table, posterior)
        squares = np.square(sets @ ahead.T)
        ratio = np.divide(table, mixed, where=mixed > 0.0, out=np.zeros_like(table))
        psi = (np.maximum(ahead, 0.0) * np.sqrt(ratio)).sum(axis=1)
        error = squares.std(axis=0) / math.sqrt(len(coins))
        assert (
            squares.mean(axis=0) + 5.0 * error + 1e-24 >= q * np.square(psi) / (2.0 * math.pi)
        ).all()
        kl = np.where(table > 0.0, table * np.log(np.where(table > 0.0, ratio, 1.0)), 0.0).sum(
            axis=1
        )
        assert (psi >= kl * (1 - 1e-9) - 1e-15).all()


class RootBayes(ldp_agents.Bayes):
    rate = 0.5


@pytest.mark.parametrize(
    ("table", "options"),
    [(HARD, {}), (HARD, {"question": "all", "turns": 0}), (TABLES["clipped at 1e-15"], {})]
    + [
        (np.concatenate([np.eye(6), np.full((1, 6), 1 / 6)]), options)
        for options in ({}, {"turns": 0})
    ],
)
def test_the_theorems_hold_by_play_for_the_worst_truth(table, options):
    """Mean of the tempered posterior, every truth, 40 episodes of 400 rounds at eps = 3."""
    rules = {"hypotheses": table, "epsilon": 3.0, "horizon": 400, "channel": "challenge"}
    rules["channel_kwargs"], rounds, everyone = (
        options,
        range(1, 400),
        options.get("question") == "all",
    )
    played = ldp_gym.evaluate(RootBayes, rules, episodes=40, truth="all", checkpoints=rounds)
    kl, tv = (np.diff(losses, axis=-1, prepend=0.0) for losses in (played.kl, played.tv))
    squares = np.square(np.maximum(kl, tv) if everyone else tv).sum(axis=-1)
    constant = 4.0 * math.pi if everyone else 2.0 if options else 2.0 / 0.25
    bound = constant * (len(table) - 1) / math.tanh(1.5) ** 2
    assert (
        squares.mean(axis=-1) - 4.0 * squares.std(axis=-1, ddof=1) / math.sqrt(40) <= bound
    ).all()


def test_other_questions_keep_the_contract_and_others_do_not_exist():
    for options in ({"turns": 0}, {"question": "all", "turns": 0}, {"turns": 1, "guard": 1.0}):
        check_channel(Challenge(4, 6, 50, **options), samples=20_000)
    for options in (
        {"turns": 3, "question": "all"},
        {"question": "some"},
        {"turns": -1},
        {"guard": 1.5},
    ):
        with pytest.raises(ValueError, match=next(iter(options))):
            Challenge(3, 3, 9, **options)
