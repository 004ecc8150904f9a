"""Channels that ask about hypotheses: the questions, the posterior they go by, and that M is not seen."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, FREE_OF_NUM_LABELS, TABLE, make_channel

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels.vote import vote_laws_of_winners, votes
from ldp_gym.testing import check_channel, check_learner

NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]
ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]
KEEP = math.e / (1 + math.e)
"""Probability of a true answer to a question of two sides, at eps = 1."""


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in (*FREE_OF_NUM_LABELS, *NOISY[1:])]
    + [(name, {"calibration": "tight"}) for name in NOISY],
)
def test_m_free_channels_do_not_see_that_labels_are_refined(name, options):
    """With the same coins the message of a label is that of any of its parts, and so is its likelihood."""
    rng = np.random.default_rng(0)
    base = rng.dirichlet(np.full(6, 0.3), size=4)
    fine = np.repeat(base, 7, axis=-1) / 7
    channels = [make_channel(name, *table.shape, 50, **options) for table in (base, fine)]
    labels, coins = rng.integers(6, size=300), rng.random((300, channels[0].num_uniforms))
    public = rng.dirichlet(np.ones(4)) if channels[0].adaptive else None
    coarse = channels[0].encode(labels, base, coins, public)
    likelihood = channels[0].log_likelihood(coarse, base, public)
    likelihood -= likelihood.max(axis=-1, keepdims=True)
    shift = (
        math.log(7) if name in ("one-bit", "hybrid") else 0.0
    )  # their losses are log-likelihoods
    tolerance = {"rtol": 1e-9} if name in NOISY else {"rtol": 1e-7, "atol": 1e-9}
    for part in (0, 6):
        messages = channels[1].encode(7 * labels + part, fine, coins, public)
        np.testing.assert_allclose(
            messages, np.where(coarse != 0.0, coarse + shift, 0.0), **tolerance
        )
        refined = channels[1].log_likelihood(messages, fine, public)
        refined -= refined.max(axis=-1, keepdims=True)
        np.testing.assert_allclose(refined, likelihood, atol=1e-7)


def test_a_comparison_by_hand():
    """Hypotheses 0 and 1 against 2: the last label is liked better by 2, the first by the others."""
    channel, message = make_channel("split", 3, 4, 50), np.array([-1.0, -1.0, 1.0])  # 0 and 1 won
    likes = TABLE[:2].mean(axis=0) > TABLE[2]
    assert likes.tolist() == [True, False, True, False]
    chance = np.where(likes, KEEP, 1 - KEEP)
    chance[3] = 0.5  # nobody's label: a coin decides
    np.testing.assert_allclose(np.exp(channel.log_density(message, TABLE)), chance)
    for answer, law in ((message, chance), (-message, 1.0 - chance)):
        np.testing.assert_allclose(np.exp(channel.log_likelihood(answer, TABLE)), TABLE @ law)


def test_a_tie_up_to_rounding_is_a_tie():
    """0.1 + 0.2 against 0.3, at any size of the column; and off by 1e-13 and by 1e-11 of it, which wins."""
    channel, message = (
        make_channel("split", 4, 4, 50),
        np.array([-1.0, -1.0, 1.0, 1.0]),
    )  # 0 and 1 won
    for size in (1.0, 1e-9, 1e-30):
        column = np.array([0.1, 0.2, 0.3, 0.0]) * size
        off = [column + share * size * np.eye(4)[0] for share in (0.0, 1e-13, 1e-11)]
        table = np.stack([*off, 1.0 - 3.0 * column], axis=-1)
        assert channel.agreement(message, table)[:3].tolist() == [0.5, 0.5, 1.0]
        assert channel.agreement(-message, table)[:3].tolist() == [0.5, 0.5, 0.0]
    near = np.array(
        [[0.3, 0.301, 0.399], [0.3, 0.301, 0.399], [0.301, 0.3, 0.399]]
    )  # sides of 2 and 1
    assert make_channel("split", 3, 3, 50).agreement(message[1:], near[[2, 0, 1]]).tolist() == [
        1.0,
        0.0,
        0.5,
    ]
    assert make_channel("split", 3, 3, 50).agreement(message[:3], near).tolist() == [0.0, 1.0, 0.5]


def test_groups_by_hand():
    """Hypothesis 0, and 1 with 2 as one: the second label is liked best by the latter, weighted 1 to 3."""
    channel, weights = make_channel("adaptive-groups", 3, 4, 50), np.array([0.6, 0.1, 0.3])
    favours_second = (TABLE[1] * 0.25 + TABLE[2] * 0.75) > TABLE[0]
    assert favours_second.tolist() == [False, True, True, False]
    chance = np.where(favours_second, KEEP, 1 - KEEP)
    chance[3] = 0.5  # nobody's label
    for named, law in ((1, chance), (0, 1.0 - chance)):
        density = channel.log_density(np.array([0, 1, 1, named]), TABLE, weights)
        np.testing.assert_allclose(np.exp(density), law)
    three = [
        np.exp(channel.log_density(np.array([1, 0, 2, named]), TABLE, weights))
        for named in range(3)
    ]
    np.testing.assert_allclose(sum(three), 1.0)
    assert np.argmax(three, axis=0)[:3].tolist() == [1, 2, 0]
    np.testing.assert_allclose(
        [chances[3] for chances in three], 1 / 3
    )  # of nobody's label, any group
    np.testing.assert_allclose(np.max(three), math.e / (math.e + 2))


@pytest.mark.parametrize(
    ("name", "sent"), [("adaptive-split", [-1, 1, 1]), ("adaptive-groups", [0, 1, 1, 0])]
)
def test_sides_are_compared_by_their_posterior_means(name, sent):
    """{1} against {2, 3}: with weights 9 to 1 the second decides for both, where the plain mean would not."""
    table = np.array([[0.4, 0.3, 0.3], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    likes_first = table[0] > np.array([0.9, 0.1]) @ table[1:]
    assert (likes_first != (table[0] > table[1:].mean(axis=0))).any()
    channel = make_channel(name, 3, 3, 50)
    message = np.array(sent, dtype=channel.message_space.dtype)
    density = np.exp(channel.log_density(message, table, np.array([0.8, 0.18, 0.02])))
    np.testing.assert_allclose(density, np.where(likes_first, KEEP, 1 - KEEP))


def deal(weights, lots, count):
    """Hypotheses in turn, the likely ones first, each to the lightest of so many groups."""
    loads, groups = [0.0] * count, np.zeros(len(weights), dtype=int)
    for turn, k in enumerate(
        sorted(range(len(weights)), key=lambda k: -weights[k] * (0.5 + lots[k]))
    ):
        groups[k] = turn if turn < count else loads.index(min(loads))
        loads[groups[k]] += weights[k]
    return groups


def doubt(channel, groups, weights):
    """The expected sum of square roots of the next posterior: by Bayes' rule on every message."""
    messages = np.array([[*groups, named] for named in range(groups.max() + 1)])
    joint = np.exp(channel.log_likelihood(messages, np.eye(len(weights)), weights)) * weights
    return (np.sqrt(joint).sum(axis=1) * np.sqrt(joint.sum(axis=1))).sum()


@pytest.mark.parametrize("epsilon", [1.0, 1.7, 4.0])
def test_the_groups_are_those_that_leave_least_doubt(epsilon):
    """Of the deals to every number of groups; with a likely hypothesis that is it against all others."""
    channel, rng = (
        make_channel("adaptive-groups", 7, 7, 50, epsilon=epsilon),
        np.random.default_rng(3),
    )
    likely, counts = np.array([0.96, 0.02, 0.01, 0.004, 0.003, 0.002, 0.001]), set()
    for weights in (np.full(7, 1 / 7), likely, *rng.dirichlet(np.full(7, 0.7), size=60)):
        uniforms = rng.random(channel.num_uniforms)
        deals = [deal(weights, uniforms, count) for count in channel.sizes]
        best = min(deals, key=lambda groups: doubt(channel, groups, weights))
        assert channel.encode(0, np.eye(7), uniforms, weights)[:-1].tolist() == best.tolist()
        counts.add(best.max() + 1)
    assert len(counts) > 1
    if epsilon == 1.0:
        groups = channel.encode(0, np.eye(7), rng.random((500, channel.num_uniforms)), likely)[
            :, :-1
        ]
        assert (groups == [0, 1, 1, 1, 1, 1, 1]).all()
    sizes = [
        make_channel("adaptive-groups", 20, 20, 50, epsilon=level).sizes
        for level in (0.1, 1, 4, 800)
    ]
    assert sizes == [[2], [2, 3], [2, 3, 5, 9, 17], [2, 3, 5, 9, 17, 20]]


def test_a_vote_s_sets_have_the_size_that_tells_most():
    """On disjoint supports, exactly: I(truth; message) of sets of every size."""
    for size, epsilon in ((8, 1.0), (8, 3.0), (20, 1.0), (20, 0.2)):
        held, ratio = np.arange(1, size), math.exp(epsilon)
        inside = ratio * held / (ratio * held + size - held)  # the truth's name is in the set
        told = inside * np.log(inside * size / held)
        told += (1 - inside) * np.log((1 - inside) * size / (size - held))
        assert make_channel("vote", size, size, 50, epsilon=epsilon).size == held[told.argmax()]


def test_votes_by_hand():
    table = np.array([[0.7, 0.1 + 1e-16, 0.2], [0.2, 0.1, 0.7]])
    assert votes(table).tolist() == [
        [1.0, 0.5, 0.0],
        [0.0, 0.5, 1.0],
    ]  # equals share the second label's vote
    np.testing.assert_allclose(vote_laws_of_winners(table), [[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("table", "weights", "arc"),
    [
        (np.eye(4), [0.25] * 4, theory.best_share(1.0)),
        (
            np.array([[0.6, 0.2, 0.1, 0.1], *[[0.4, 0.3, 0.2, 0.1]] * 3]),
            [0.475, 0.175, 0.175, 0.175],
            0.475,
        ),
        (np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]]), [0.675, 0.0, 0.0, 0.325], 0.5),
    ],
)
def test_a_wheel_s_stretches_are_the_chances_of_votes(table, weights, arc):
    """Neighbours on the circle are as far apart as the middles of their stretches; the arc covers r."""
    channel, weights = make_channel("wheel", *table.shape, 50), np.array(weights)
    message = channel.privatize(0, table, np.random.default_rng(0))
    order = message.argsort()
    gaps = np.append(np.diff(message[order]), 1 - np.ptp(message))
    np.testing.assert_allclose(gaps, (weights[order] + weights[np.roll(order, -1)]) / 2, atol=1e-12)
    ends = np.array([[place, 1.0, 1.0, 1.0] for place in (arc - 1e-9, arc + 1e-9)])
    covered, beyond = channel.log_density(ends, table)[:, 0]
    assert covered - beyond == pytest.approx(1.0)


def test_the_wheel_s_last_bits_tell_nothing():
    """Every distance is a whole number of steps: no rounding shows whose place the arc was put at."""
    channel, rng = make_channel("wheel", 3, 4, 50), np.random.default_rng(0)
    steps = channel.privatize(rng.integers(4, size=1000), TABLE, rng) * 2.0**40
    assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("channel", ADAPTIVE)
def test_adaptive_channels_take_the_options_and_keep_their_contract(channel):
    options = {"posterior_rate": 0.5, "posterior_share": 0.05}
    check_channel(make_channel(channel, 4, 5, 12, **options), samples=20_000)
    for learner in ("bayes", "fixed-share"):
        check_learner(learner, channel=channel, channel_kwargs=options)
