"""Every channel's law against brute force; and custom channels, which may send points of any finite space."""

import math
from functools import partial
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from helpers import CHANNELS, TABLE, delta_of, make_channel

import ldp_agents
import ldp_gym
from ldp_gym import audit, theory
from ldp_gym.channels.two_level import log_mixture
from ldp_gym.privacy import ExactChannel
from ldp_gym.testing import check_channel, check_learner


@pytest.mark.parametrize(
    ("labels", "epsilon"), [(5, 1e-6), (5, 0.5), (5, 4.0), (5, 800.0), (70, 1.0)]
)
@pytest.mark.parametrize("name", CHANNELS)
def test_every_channel_keeps_the_contract(name, labels, epsilon):
    """Fails a correct channel with probability at most 1e-6. Above 64 labels some are checked."""
    channel = make_channel(name, 3, labels, 50, epsilon=epsilon)
    check_channel(channel, samples=20_000)
    if channel.pure:
        table = np.random.default_rng(0).dirichlet(np.full(labels, 0.3), size=3)
        table[:, 0] = 0.0  # a label that nobody allows
        table /= table.sum(axis=-1, keepdims=True)
        assert audit.certify(channel, table, audit.uniform_posterior(channel)).holds


@pytest.mark.parametrize("name", CHANNELS)
def test_what_a_user_hands_over_is_checked(name):
    channel = make_channel(name, 3, 4, 50)
    rng, public = np.random.default_rng(0), np.array([0.2, 0.5, 0.3])
    for labels in (-1, 4, [0, 7], 1.5):
        with pytest.raises((TypeError, ValueError), match="labels must"):
            channel.privatize(labels, TABLE, rng, public)
    for candidates in (TABLE * 2.0, TABLE[:2], np.full((3, 4), math.nan)):
        with pytest.raises(ValueError, match="hypothesis 0|candidates must have shape"):
            channel.privatize(1, candidates, rng, public)
    calls = (
        partial(channel.privatize, 1, TABLE, rng),
        partial(theory.information_rate, channel, TABLE),
    )
    for call, posterior in product(
        calls, (np.full(3, math.nan), [1.0], [0.5, 0.5, 0.5], [1.5, -0.5, 0.0])
    ):
        with pytest.raises(ValueError, match="posterior"):
            call(posterior)
    message = channel.privatize(np.uint8(1), TABLE, rng, public)
    assert message.shape == channel.message_shape
    if name == "adaptive-split":
        with pytest.raises(
            ValueError, match=r"self\.posterior, and game\.public_posterior\(\) keeps"
        ):
            channel.log_likelihood(message, TABLE)


IMPOSSIBLE = {
    "split": [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [1, -1, -1, -1, -1], [1, 1, -0.5, -1, -1]],
    "adaptive-split": [[0, 0, 0, 0, 0], [-1, -1, -1, -1, -1], [1, -1, -1, -1, 0.5]],
    "scheffe": [[0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, -1, -1, 0, 0], [0.5, -0.5, 0, 0, 0]],
    "half-space": [[0.5, -0.5, 0, 0, 0], [1, -0.5, 0, 0, 0], [1, 1, 1, 1, 1]],
    "vote": [[1, 1, 1, 1, 1], [-1, -1, -1, -1, -1], [-0.5, -0.5, 1, 1, 1]],
    "wheel": [[0, 0.5, 0.5, 1, 1]],
    "subset-selection": [[0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]],
    "adaptive-groups": [
        [0, 0, 0, 0, 0, 0],
        [1, 1, 2, 2, 1, 1],
        [0, 0, 1, 1, 1, 2],
        [0, 2, 2, 2, 2, 0],
    ],
    "laplace-single": [[0, 0, 0, 0, 0], [0.1, 0.2, 0, 0, 0]],
    "one-bit": [[0, 0, 0, 0, 0], [3, 0, 0, 0, -2]],
    "hybrid": [[0, 0, 0, 0, 0], [3, 1, 0, 0, -2]],
}
"""Points of the message space, K = 5, M = 6, eps = 1, that the channel never sends."""


@pytest.mark.parametrize("name", CHANNELS)
def test_a_message_that_its_channel_cannot_send_is_refused(name):
    table, rng = (
        np.random.default_rng(1).dirichlet(np.full(6, 0.5), size=5),
        np.random.default_rng(2),
    )
    env = gym.make("LDPDist-v0", hypotheses=table, channel=name, delta=delta_of(name))
    game = env.unwrapped.game
    channel, learner = game.channel, ldp_agents.make("bayes", game)
    public = np.full(5, 0.2) if channel.adaptive else None
    sent = channel.privatize(rng.integers(6, size=200), table, rng, public)
    assert channel.possible(channel.check_messages(sent)).all()
    try:
        assert channel.possible(channel.list_messages(table, public).messages).all()
    except TypeError:
        assert not channel.pure or name == "laplace-single"
    for message in IMPOSSIBLE.get(name, []):
        assert np.array(message, dtype=channel.message_space.dtype) in channel.message_space
        with pytest.raises(ValueError, match="never sends"):
            learner.update(table, np.array(message))
    learner.update(table, sent[0])


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in CHANNELS]
    + [("challenge", {"question": q, "turns": 0}) for q in ("one", "all")],
)
def test_labels_candidates_coins_and_losses_broadcast(name, options):
    channel, rng = make_channel(name, 3, 4, 50, **options), np.random.default_rng(0)
    coins = rng.random((6, 5, channel.num_uniforms))
    public = np.array([0.2, 0.5, 0.3]) if channel.adaptive else None
    expected = channel.encode(
        np.full((6, 5), 2), np.broadcast_to(TABLE, (6, 5, 3, 4)), coins, public
    )
    for labels, table in ((2, TABLE), (np.full(5, 2), np.broadcast_to(TABLE, (6, 1, 3, 4)))):
        np.testing.assert_allclose(channel.encode(labels, table, coins, public), expected)
    tables = rng.dirichlet(np.ones(4), size=(2, 3))[rng.integers(2, size=(6, 5))]
    messages = channel.encode(2, tables, coins, public)
    losses = channel.loss_estimates(messages, tables, public)
    for i in np.ndindex(6, 5):
        alone = channel.encode(2, tables[i], coins[i], public)
        np.testing.assert_allclose(alone, messages[i], rtol=1e-9, atol=1e-12)
        alone = channel.loss_estimates(messages[i], tables[i], public)
        np.testing.assert_allclose(alone, losses[i], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("laplace-single", {"delta": 1e-5}, "pure channel: it takes delta=0 only, got 1e-05"),
        ("laplace-vector", {"delta": 1.0}, r"delta must lie in \[0, 1\), got 1"),
        ("one-bit", {"epsilon": 1e-310}, "at least 1e-150, so that its square is a float"),
        (
            "gaussian-vector",
            {"epsilon": 1e18, "delta": 1e-5},
            "epsilon must be positive and at most",
        ),
    ],
)
def test_bad_parameters_are_named(name, options, message):
    facts = {"num_hypotheses": 3, "num_labels": 4, "horizon": 10, "delta": 0.0, **options}
    with pytest.raises(ValueError, match=message):
        ldp_gym.CHANNELS[name](**facts)


def test_log_densities_stay_finite_where_rounding_leaves_the_unit_interval():
    for epsilon in (1.0, 60.0, 699.0, 701.0, 744.2, 800.0):
        density = log_mixture(np.array([1.0 + 1e-12, -1e-12]), 0.0, epsilon)
        np.testing.assert_allclose(density, [0.0, -epsilon], atol=1e-9)


SQUARE, PAIRS = spaces.MultiDiscrete([2, 2], start=[3, 3]), spaces.Box(1, 2, (2,), np.int8)


class Points(ldp_gym.Channel):
    """Randomized response on four labels, in a space of four points; the first label may leak at the last."""

    num_uniforms = 1
    message_space = None

    def __init__(self, *args, space, leak=0.0, **options):
        super().__init__(*args, **options)
        self.message_space = space
        self.law = np.exp(self.epsilon * np.eye(4))  # label by message
        self.law[0] += [0.0, leak, 0.0, -leak]
        self.law /= self.law.sum(axis=1, keepdims=True)
        low = getattr(space, "low", getattr(space, "start", 0))
        corners = np.arange(4) if space.shape == () else np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        self.points = (low + corners).astype(space.dtype)

    def encode(self, labels, candidates, uniforms, posterior=None):
        return self.points[(uniforms > self.law.cumsum(axis=1)[labels]).sum(axis=-1)]

    def log_density(self, messages, candidates, posterior=None):
        flat = np.reshape(
            messages, (*np.shape(messages)[: np.ndim(messages) - self.points.ndim + 1], 1, -1)
        )
        same = (flat == self.points.reshape(4, -1)).all(axis=-1)
        return np.log(same @ self.law.T) + np.zeros((*candidates.shape[:-2], 1))


@pytest.mark.parametrize(
    "space",
    [*(spaces.Discrete(4, start=start) for start in (5, -7)), spaces.MultiBinary(2), SQUARE, PAIRS],
    ids=str,
)
def test_a_custom_channel_may_send_points_of_any_finite_space(space):
    """Every point is audited, listed, scored and shown to learners, and has a place in an exact table."""
    channel, leaky = (Points(3, 4, 20, epsilon=1.0, space=space, leak=leak) for leak in (0.0, 0.5))
    check_channel(channel, samples=5_000)
    assert audit.certify(channel, TABLE).epsilon == pytest.approx(1.0)
    assert audit.reachable(channel, TABLE).holds
    found = audit.certify(leaky, TABLE)
    assert not found.holds
    assert np.array_equal(found.message, channel.points[-1])
    assert audit.exact_delta(leaky, TABLE, 1.0).lower > 0.0

    listed, prior = channel.list_messages(TABLE), np.array([0.5, 0.3, 0.2])
    assert listed.complete
    assert sorted(listed.messages.tolist()) == channel.points.tolist()
    assert listed.messages.dtype == space.dtype
    like = make_channel("randomized-response", 3, 4, 20, epsilon=1.0)
    rate = pytest.approx(theory.information_rate(like, TABLE, prior).rate, rel=1e-9)
    assert theory.information_rate(channel, TABLE, prior) == (rate, 0.0)
    chances = np.exp(channel.log_likelihood(channel.points, TABLE))
    expected = chances.T @ channel.loss_estimates(channel.points, TABLE)
    assert (expected.argmin(axis=1) == np.arange(3)).all()  # the truth has the least loss

    exact = ExactChannel(channel)
    answers = [exact.answer(label, TABLE) for label in range(4)]
    assert all(
        message.tolist() in channel.points.tolist() and epsilon <= 1.0
        for message, epsilon in answers
    )
    assert channel.placeholder in space  # stands for no message
    check_learner("bayes", hypotheses=TABLE, channel=channel, horizon=20)


def test_a_point_that_nobody_sends_gives_nobody_away():
    wide = Points(3, 4, 20, space=spaces.MultiDiscrete([3, 2], start=[3, 3]))
    with np.errstate(divide="ignore"):
        assert audit.certify(wide, TABLE).epsilon == pytest.approx(1.0)
        assert audit.reachable(wide, TABLE).holds
        assert (wide.log_likelihood(np.array([5, 3]), TABLE) == -np.inf).all()


class Plain(ldp_gym.CHANNELS["adaptive-groups"]):
    """An adaptive channel with nothing but its messages and their density."""

    log_likelihood, loss_estimates = ldp_gym.Channel.log_likelihood, ldp_gym.Channel.loss_estimates
    list_messages, worst_case_messages = (
        ldp_gym.Channel.list_messages,
        ldp_gym.Channel.worst_case_messages,
    )


@pytest.mark.parametrize("learner", ["bayes", "centred-exp3"])
@pytest.mark.parametrize("hypotheses", ["dirichlet", "softmax-linear"])
def test_an_adaptive_custom_channel_is_read_by_all(learner, hypotheses):
    small = {"hypotheses": hypotheses, "num_hypotheses": 3, "num_labels": 4, "horizon": 20}
    check_learner(learner, **small, channel=Plain(3, 4, 20, epsilon=2.0))
