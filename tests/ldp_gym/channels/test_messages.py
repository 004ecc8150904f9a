"""Lists of messages are exact or unbiased, and a custom channel may send points of any finite space."""

import math

import gymnasium as gym
import numpy as np
import pytest
from helpers import TABLE, make_channel

import ldp_agents
import ldp_gym
from ldp_gym import audit, theory
from ldp_gym.channels import listing, subset_selection
from ldp_gym.channels.adaptive_groups import _order_chances
from ldp_gym.channels.listing import all_orders
from ldp_gym.privacy import ExactChannel
from ldp_gym.testing import check_channel, check_learner

NINE = np.random.default_rng(1).dirichlet(np.full(9, 0.4), size=5)
POSTERIOR = np.random.default_rng(2).dirichlet(np.ones(5))
SAMPLED = {"laplace-single", "laplace-vector", "gaussian-vector"}


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("name", sorted(set(ldp_gym.CHANNELS) - SAMPLED - {"identity"}))
def test_what_a_message_tells_is_exact_and_within_the_capacity(name, epsilon):
    channel = ldp_gym.CHANNELS[name](5, 9, 50, epsilon=epsilon)
    rate, error = theory.information_rate(channel, NINE, POSTERIOR)
    public = POSTERIOR if channel.adaptive else None
    assert (error == 0.0) == channel.list_messages(NINE, public).complete
    assert 0.0 < rate <= theory.capacity(epsilon) * (1 + 1e-9)
    sampled = _monte_carlo(channel, POSTERIOR, public)
    assert abs(rate - sampled[0]) <= 6.0 * math.hypot(error, sampled[1])  # a bound of 1e-6 and less


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Box(0.0, 1.0, (3,)), gym.spaces.MultiBinary(40), gym.spaces.MultiDiscrete([1000, 1000])],
)
def test_spaces_without_end_are_not_listed(space):
    assert listing.list_space(space) is None


def _monte_carlo(channel, prior, public):
    """The same from messages that are sent: an independent estimate and its error."""
    rng = np.random.default_rng(0)
    truths = rng.choice(5, size=20_000, p=prior)
    labels = (np.cumsum(NINE, axis=-1)[truths] < rng.random((20_000, 1))).sum(axis=-1).clip(0, 8)
    likelihood = np.exp(channel.log_likelihood(channel.privatize(labels, NINE, rng, public), NINE, public))
    posterior = likelihood * prior
    posterior /= posterior.sum(axis=-1, keepdims=True)
    gains = (posterior * np.log(np.maximum(posterior, 1e-300) / prior)).sum(axis=-1)
    return gains.mean(), gains.std(ddof=1) / math.sqrt(len(gains))


@pytest.mark.parametrize("name", ["adaptive-groups", "adaptive-split", "wheel", "adaptive-wheel", "split"])
def test_with_many_hypotheses_some_draws_of_the_coins_stand_for_all(name):
    """Exact given the coins: every part, and so the mean, is within the capacity."""
    table, prior = np.random.default_rng(3).dirichlet(np.full(30, 0.3), size=24), np.full(24, 1 / 24)
    channel = ldp_gym.CHANNELS[name](24, 30, 50, epsilon=1.0)
    listed = channel.list_messages(table, prior if channel.adaptive else None)
    assert not listed.complete
    rate, error = theory.information_rate(channel, table, prior)
    assert 0.0 < rate <= theory.capacity(1.0)
    assert 0.0 < error < 0.05 * rate


@pytest.mark.parametrize("name", ["subset-selection", "unary-encoding", "vote"])
def test_windows_on_a_circle_stand_for_all_sets(name, monkeypatch):
    channel = ldp_gym.CHANNELS[name](5, 9, 50, epsilon=1.0)
    exact, nothing = theory.information_rate(channel, NINE, POSTERIOR)
    assert nothing == 0.0
    for module in (listing, subset_selection):
        monkeypatch.setattr(module, "MOST_MESSAGES", 3)
    listed = channel.list_messages(NINE)
    density = np.exp(channel.log_density(listed.messages, NINE) + listed.log_weights[:, None])
    np.testing.assert_allclose(density.sum(axis=0), 1.0, rtol=1e-9)
    rate, error = theory.information_rate(channel, NINE, POSTERIOR)
    assert 0.0 < error < 0.05 * exact
    assert abs(rate - exact) < 6.0 * error


def test_the_order_of_uniform_numbers_has_its_law():
    """By hand for two; for four, against 100,000 draws, at an error rate below 1e-6 in all."""
    two = _order_chances(all_orders(2), np.array([1.0, 1.5]))
    # X in [0.5, 1.5], Y in [0.75, 2.25]: P(X > Y) = (0.75^2 / 2) / 1.5.
    np.testing.assert_allclose(two, [0.1875, 0.8125])
    np.testing.assert_allclose(_order_chances(all_orders(3), np.full(3, 0.2)), 1 / 6)
    weights = np.array([0.4, 0.3, 0.25, 0.05])
    chances = _order_chances(all_orders(4), weights)
    assert abs(chances.sum() - 1.0) < 1e-12
    draws = (-weights * (0.5 + np.random.default_rng(0).random((100_000, 4)))).argsort(axis=-1)
    seen = np.array([(draws == order).all(axis=-1).mean() for order in all_orders(4)])
    assert (np.abs(seen - chances) <= 6.0 * np.sqrt(chances * (1 - chances) / 100_000) + 1e-12).all()


def test_a_list_has_no_more_than_fits_into_memory():
    assert listing.num_circles(1024) * 1024**2 <= 21_000_000
    channel = ldp_gym.CHANNELS["subset-selection"](2, 200, 50, epsilon=1.0)
    table = np.random.default_rng(0).dirichlet(np.ones(200), size=2)
    rate, error = theory.information_rate(channel, table)
    assert 0.0 < error < 0.2 * rate


SPACES = {
    "numbers from 5": gym.spaces.Discrete(4, start=5),
    "numbers below 0": gym.spaces.Discrete(4, start=-7),
    "bits": gym.spaces.MultiBinary(2),
    "digits from 3": gym.spaces.MultiDiscrete([2, 2], start=[3, 3]),
    "a box of whole numbers": gym.spaces.Box(1, 2, (2,), np.int8),
}


class Points(ldp_gym.Channel):
    """Randomized response on four labels, in a space of four points; the first label may leak at the last."""

    num_uniforms = 1

    def __init__(self, *args, space, leak=0.0, **options):
        super().__init__(*args, **options)
        self._space = space
        self._law = np.exp(self.epsilon * np.eye(4))  # label by message
        self._law[0] += [0.0, leak, 0.0, -leak]
        self._law /= self._law.sum(axis=1, keepdims=True)
        self._points = np.stack([space.start + i for i in range(4)]) if space.shape == () else _grid(space)

    @property
    def message_space(self):
        return self._space

    def encode(self, labels, candidates, uniforms, posterior=None):
        number = (uniforms > self._law.cumsum(axis=1)[labels]).sum(axis=-1)
        return self._points[number].astype(self._space.dtype)

    def log_density(self, messages, candidates, posterior=None):
        axes = tuple(range(-len(self._space.shape), 0))
        same = (np.asarray(messages)[..., None, *[slice(None)] * len(axes)] == self._points).all(axis=axes)
        return np.log(same @ self._law.T) + np.zeros((*candidates.shape[:-2], 1))


def _grid(space):
    low = space.low if isinstance(space, gym.spaces.Box) else getattr(space, "start", np.zeros(2, int))
    return low + np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


@pytest.fixture(params=SPACES.values(), ids=SPACES)
def channel(request):
    return Points(3, 4, 20, epsilon=1.0, space=request.param)


def test_every_point_is_audited(channel):
    assert audit.certify(channel, TABLE).epsilon == pytest.approx(1.0)
    leaky = Points(3, 4, 20, epsilon=1.0, space=channel.message_space, leak=0.5)
    found = audit.certify(leaky, TABLE)
    assert not found.holds
    assert np.array_equal(found.message, channel._points[-1])
    assert audit.exact_delta(leaky, TABLE, 1.0).lower > 0.0
    assert audit.reachable(channel, TABLE).holds


def test_every_point_is_listed(channel):
    check_channel(channel, samples=5_000)
    listed, prior = channel.list_messages(TABLE), np.array([0.5, 0.3, 0.2])
    assert listed.complete
    assert sorted(listed.messages.tolist()) == channel._points.tolist()
    rate, error = theory.information_rate(channel, TABLE, prior)
    assert error == 0.0
    like = make_channel("randomized-response", 3, 4, 20, epsilon=1.0)
    assert rate == pytest.approx(theory.information_rate(like, TABLE, prior).rate, rel=1e-9)


def test_a_point_that_nobody_sends_gives_nobody_away():
    wide = Points(3, 4, 20, space=gym.spaces.MultiDiscrete([3, 2], start=[3, 3]))
    with np.errstate(divide="ignore"):
        assert audit.certify(wide, TABLE).epsilon == pytest.approx(1.0)
        assert audit.reachable(wide, TABLE).holds
        assert (wide.log_likelihood(np.array([5, 3]), TABLE) == -np.inf).all()


def test_the_truth_has_the_least_loss(channel):
    messages = channel._points.astype(channel.message_space.dtype)
    chances = np.exp(channel.log_likelihood(messages, TABLE))
    expected = chances.T @ channel.loss_estimates(messages, TABLE)
    assert (expected.argmin(axis=1) == np.arange(3)).all()


class Side(ldp_gym.Channel):
    """Randomized response on whether a label is likelier under the later hypotheses than on average."""

    adaptive = True
    num_uniforms = 1
    message_space = gym.spaces.Discrete(2)

    def _above(self, candidates, posterior):
        tilted = posterior * np.arange(1.0, 1.0 + self.num_hypotheses)
        tilted = tilted / tilted.sum(axis=-1, keepdims=True)
        return np.einsum("...k,...km->...m", tilted - posterior, candidates) > 0.0

    def encode(self, labels, candidates, uniforms, posterior=None):
        above = self._above(candidates, posterior)
        shape = np.broadcast_shapes(np.shape(labels), above.shape[:-1])
        above = np.broadcast_to(above, (*shape, above.shape[-1]))
        right = np.take_along_axis(above, np.broadcast_to(labels, shape)[..., None], axis=-1)[..., 0]
        return (right == (uniforms[..., 0] < 1.0 / (1.0 + np.exp(-self.epsilon)))).astype(np.int64)

    def log_density(self, messages, candidates, posterior=None):
        right = self._above(candidates, posterior) == (np.asarray(messages)[..., None] == 1)
        return np.where(right, 0.0, -self.epsilon) - np.log1p(np.exp(-self.epsilon))


@pytest.mark.parametrize("learner", ["bayes", "centred-exp3"])
@pytest.mark.parametrize("hypotheses", ["dirichlet", "softmax-linear"])
def test_an_adaptive_channel_of_one_s_own_is_read_by_all(learner, hypotheses):
    small = {"hypotheses": hypotheses, "num_hypotheses": 3, "num_labels": 4, "horizon": 20}
    check_learner(learner, **small, channel=Side(3, 4, 20, epsilon=2.0))


def test_the_delta_of_an_adaptive_channel_is_audited_at_a_posterior():
    class NearlySide(Side):
        pure = False

    public, law = np.full(3, 1 / 3), 1.0 / (1.0 + np.exp(-2.0))
    channel = NearlySide(3, 4, 20, epsilon=2.0, delta=0.3)
    found = audit.exact_delta(channel, TABLE, 1.0, public)
    assert found.upper == pytest.approx(law - np.e * (1.0 - law))
    assert audit.certify(channel, TABLE, public).holds
    with pytest.raises(ValueError, match="Pass posterior="):
        audit.exact_delta(channel, TABLE, 1.0)


def test_what_stands_for_no_message_lies_in_the_space(channel):
    env = gym.make_vec("LDPDist-v0", num_envs=3, hypotheses=TABLE, channel=channel, horizon=20)
    learner = ldp_agents.make("bayes", env)
    observation, _ = env.reset(seed=0)
    for t in range(30):
        assert observation in env.observation_space
        if t == 5:
            observation, _ = env.reset(seed=9, options={"reset_mask": np.array([True, False, True])})
            assert observation in env.observation_space
        observation, *_ = env.step(learner.act(observation))
    check_learner("bayes", hypotheses=TABLE, channel=channel, horizon=20)


def test_it_has_an_exact_table(channel):
    exact = ExactChannel(channel)
    for label in range(4):
        message, epsilon = exact.answer(label, TABLE)
        assert (message == channel._points).reshape(4, -1).all(axis=1).any()
        assert epsilon <= 1.0


def test_listed_messages_have_the_type_of_the_space():
    class Narrow(ldp_gym.channels.RandomizedResponse):
        message_space = gym.spaces.Box(0, 2, (), dtype=np.int8)

    listed = Narrow(2, 3, 10).list_messages(np.full((2, 3), 1 / 3))
    assert listed.messages.dtype == np.int8
    assert listed.messages.tolist() == [0, 1, 2]
