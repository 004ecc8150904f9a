"""The contract checks say what broke."""

import math

import gymnasium as gym
import numpy as np
import pytest

import ldp_agents
import ldp_gym
from ldp_gym.channels.base import Channel
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.testing import check_channel, check_hypotheses, check_learner


class Leaky(Channel):
    """A user's channel: the parity of the label, flipped at random; its density is wrong on demand."""

    num_uniforms = 1
    claimed = 1.0

    @property
    def message_space(self):

        return gym.spaces.Discrete(2)

    def encode(self, labels, candidates, uniforms, posterior=None):
        keep = uniforms[..., 0] < 1 / (1 + math.exp(-self.epsilon))
        return np.where(keep, labels % 2, 1 - labels % 2)

    def log_density(self, messages, candidates, posterior=None):
        same = np.asarray(messages)[..., None] == np.arange(self.num_labels) % 2
        return -np.logaddexp(0, np.where(same, -1, 1) * self.epsilon * self.claimed)


def test_check_channel_passes_a_user_s_channel_and_catches_a_wrong_density():
    check_channel(Leaky(3, 4, 10))
    wrong = Leaky(3, 4, 10)
    wrong.claimed = 1.5
    with pytest.raises(AssertionError, match="follow log_density"):
        check_channel(wrong)


def test_check_channel_catches_a_channel_that_remembers():
    class Late(Leaky):
        sent = 0

        def encode(self, labels, candidates, uniforms, posterior=None):
            self.sent += 1
            messages = super().encode(labels, candidates, uniforms, posterior)
            return messages if self.sent < 30 else np.broadcast_to(labels % 2, messages.shape)

    with pytest.raises(AssertionError, match="the same message from the same label|follow log_density"):
        check_channel(Late(3, 4, 10), samples=1_000)


def test_check_hypotheses_says_what_broke():
    class Random(SoftmaxLinear):
        def __call__(self, contexts):
            self.weights = self.weights + 1e-3 * np.random.default_rng(0).standard_normal(self.weights.shape)
            return super().__call__(contexts)

    with pytest.raises(AssertionError, match="the same candidates when asked twice"):
        check_hypotheses(Random())


class Peeking(ldp_agents.EXP3):
    """Reads the messages of rounds to come."""

    def play(self, candidates, messages, log_likelihoods=None):
        return super().play(candidates, messages[:, ::-1], log_likelihoods)


class Negative(ldp_agents.Uniform):
    def _predict(self, weights, candidates):
        return 2 * super()._predict(weights, candidates) - 1


class Forgetful(ldp_agents.EXP3):
    def restart(self, mask):
        pass


class Single(ldp_agents.EXP3):
    """Thinks that there is one game."""

    def predict(self, candidates):
        return super().predict(candidates)[0]


class Absent(ldp_agents.EXP3):
    def act(self, observation):
        return np.full(5, 1 / 5)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (Peeking, "play\\(\\) to predict as stepping does"),
        (Negative, "no negative probability"),
        (Single, r"per game, here of shape \(3, 5\) \(games, M\), got \(5,\)"),
        (Forgetful, "restart\\(\\) to forget"),
        (Absent, "act\\(\\) to predict as stepping does"),
    ],
)
def test_check_learner_says_what_broke(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_misuse_of_the_checks_and_of_evaluate_is_said():
    check_learner("bayes", channel="split")
    with pytest.raises(TypeError, match="a learner has reset, predict and update"):
        check_learner(lambda game: 7)
    with pytest.raises(TypeError, match="did you mean 'channel'"):
        check_learner("bayes", chanel="split")
    with pytest.raises(TypeError, match=r"made, not its class or name\), got 'split'"):
        check_channel("split")
    with pytest.raises(TypeError, match="a learner has reset, predict and update"):
        ldp_gym.evaluate(lambda game: 7, {}, episodes=1)
    with pytest.raises(TypeError, match="checkpoints must be a list of rounds, got 5"):
        ldp_gym.evaluate("bayes", {}, episodes=1, checkpoints=5)
    with pytest.raises(ValueError, match=r"Single.predict\(\) must return .* of shape \(2, 16\)"):
        ldp_gym.evaluate(Single, {}, episodes=2)


def test_a_learner_is_checked_on_a_game_that_it_says_it_can_play():
    """Its K and M, at most 40 of its rounds, on the channel that is asked for."""
    from third_party_learners import Picky

    check_learner(Picky)
    check_learner("third_party_learners:Picky", channel="split", epsilon=2.0)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match="trained for K = 8 and M = 3"):
        check_learner(lambda game: Picky(game))
