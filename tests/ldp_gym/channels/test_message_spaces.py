"""A channel of one's own may send points of any finite space, wherever its numbers begin."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import TABLE

import ldp_agents
import ldp_gym
from ldp_gym import audit
from ldp_gym.privacy import ExactChannel
from ldp_gym.testing import check_learner

SPACES = {
    "numbers from 5": gym.spaces.Discrete(4, start=5),
    "numbers below 0": gym.spaces.Discrete(4, start=-7),
    "bits": gym.spaces.MultiBinary(2),
    "digits from 3": gym.spaces.MultiDiscrete([2, 2], start=[3, 3]),
    "a box of whole numbers": gym.spaces.Box(1, 2, (2,), np.int8),
}


class Points(ldp_gym.Channel):
    """Randomized response on four labels, in a space of four points; at the last one it may break its word.

    Args:
        space: where the messages lie.
        leak: the share of the first label's messages at the last point that go elsewhere.
    """

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


class NearlySide(Side):
    """The same, which claims less eps and makes up for it with a delta."""

    pure = False


def test_the_delta_of_an_adaptive_channel_is_audited_at_a_posterior():
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
            some = {"reset_mask": np.array([True, False, True])}
            observation, _ = env.reset(seed=9, options=some)
            assert observation in env.observation_space
        observation, *_ = env.step(learner.act(observation))
    check_learner("bayes", hypotheses=TABLE, channel=channel, horizon=20)


def test_it_has_an_exact_table(channel):
    exact = ExactChannel(channel)
    for label in range(4):
        message, epsilon = exact.answer(label, TABLE)
        assert (message == channel._points).reshape(4, -1).all(axis=1).any()
        assert epsilon <= 1.0
