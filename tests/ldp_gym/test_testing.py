"""The contract checks say what broke."""

import math
from copy import copy

import broken_channels as broken
import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import binom
from third_party import Picky

import ldp_agents
import ldp_gym
from ldp_agents import Thompson
from ldp_gym.channels import GaussianVector, LaplaceSingle, RandomizedResponse
from ldp_gym.core.sampling import categorical
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.privacy.misfit import (
    ERROR_RATE,
    _goodness_of_fit,
    _log_gains,
    find_misfit,
)
from ldp_gym.testing import (
    check_channel,
    check_hypotheses,
    check_learner,
    check_nature,
    check_truth,
)


def test_check_channel_catches_a_channel_that_remembers():
    class Late(RandomizedResponse):
        sent = 0

        def encode(self, labels, candidates, uniforms, posterior=None):
            self.sent += 1
            messages = super().encode(labels, candidates, uniforms, posterior)
            return messages if self.sent < 29 else np.broadcast_to(labels, messages.shape)

    with pytest.raises(
        AssertionError, match="the same message from the same label|follow log_density"
    ):
        check_channel(Late(3, 4, 10), samples=1_000)


class OnePrediction(ldp_agents.EXP3):
    """Predicts for the first game only."""

    def predict(self, candidates):
        return super().predict(candidates)[0]


class PlaysBackwards(ldp_agents.EXP3):
    """Reads the messages of a block in reverse order."""

    def play(self, candidates, messages, *log_likelihoods):
        return super().play(candidates, messages[:, ::-1], *log_likelihoods)


class Negative(ldp_agents.Uniform):
    """Predicts negative probabilities."""

    def _predict(self, *arguments):
        return 2.0 * super()._predict(*arguments) - 1.0


class NeverRestarts(ldp_agents.EXP3):
    """Goes on where a game begins again."""

    def restart(self, mask):
        pass


class IgnoresGenerators(Thompson):
    """Draws from a generator of its own."""

    def reset(self, batch_shape=(), generators=None):
        super().reset(batch_shape)


class SharesGenerators(Thompson):
    """Draws for all games from the first one's generator: a game depends on the others in the batch."""

    def reset(self, batch_shape=(), generators=None):
        if generators is not None:
            generators = [generators[0]] * len(generators)
        super().reset(batch_shape, generators)


class ActsUniformly(ldp_agents.EXP3):
    """Its ``act`` ignores what it has learned."""

    def act(self, observation):
        return np.full(5, 1 / 5)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (PlaysBackwards, r"play\(\) to predict as"),
        (Negative, "no negative"),
        (OnePrediction, r"per game, here of shape \(3, 5\) \(games, M\), got \(5,\)"),
        (NeverRestarts, r"restart\(\) to forget"),
        (IgnoresGenerators, "same predictions"),
        (SharesGenerators, "alone and in a"),
        (ActsUniformly, r"act\(\) to predict as stepping does"),
    ],
)
def test_check_learner_says_what_broke(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_a_misspelled_rule_of_check_learner_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'channel'"):
        check_learner("bayes", chanel="split")


def test_check_learner_refuses_an_object_that_is_not_a_learner():
    with pytest.raises(TypeError, match="a learner has reset, predict and update"):
        check_learner(lambda game: 7)


def test_evaluate_names_the_learner_whose_predictions_have_the_wrong_shape():
    with pytest.raises(
        ValueError, match=r"OnePrediction.predict\(\) must return .* of shape \(2, 16\)"
    ):
        ldp_gym.evaluate(OnePrediction, {}, episodes=2)


def test_check_channel_refuses_fewer_than_a_thousand_samples():
    with pytest.raises(ValueError, match="samples must be at least 1000, got 10"):
        check_channel(RandomizedResponse(2, 5, 10), samples=10)


def test_a_learner_is_checked_on_its_example_rules():
    """It has K = 8 and M = 3 only."""
    check_learner(Picky)


def test_a_learner_is_checked_on_another_channel_than_that_of_its_example():
    check_learner("third_party:Picky", channel="split", epsilon=2.0)


def test_a_learner_without_example_rules_is_checked_on_a_small_game():
    with pytest.raises(ldp_agents.IncompatibleChannelError, match="trained for K = 8 and M = 3"):
        check_learner(lambda game: Picky(game))


@pytest.mark.parametrize(
    "kind",
    [
        broken.FlatClearText,
        broken.FlatReal,
        broken.ClearText,
        broken.permuted(RandomizedResponse),
        broken.permuted(LaplaceSingle),
        broken.less_noise(LaplaceSingle, 0.7),
        broken.sharper(RandomizedResponse),
        *[broken.sharper(ldp_gym.CHANNELS[name]) for name in ("split", "one-bit", "wheel")],
        broken.sharper(RandomizedResponse, 1.0, 2.0),
    ],
    ids=lambda kind: f"{kind.__name__}({kind.__base__.__name__})",
)
def test_messages_that_do_not_follow_the_density_are_reported(kind):
    """At the smallest effort that shows it with any seed; see below for the default effort."""
    for seed in range(3):
        assert "follow log_density" in find_misfit(kind(3, 5, 50), samples=30_000, seed=seed)


class SendsAnotherLabel(RandomizedResponse):
    """Sends M, which is not a point of its message space."""

    def encode(self, *arguments):
        return np.full_like(super().encode(*arguments), self.num_labels)


class SendsFloats(RandomizedResponse):
    """Sends labels as floats."""

    def encode(self, *arguments):
        return 1.0 * super().encode(*arguments)


class SendsLists(RandomizedResponse):
    """Sends a list in place of an array."""

    def encode(self, *arguments):
        return super().encode(*arguments).tolist()


class SendsNaN(LaplaceSingle):
    """Sends NaN."""

    def encode(self, *arguments):
        return np.nan * super().encode(*arguments)


SENDING = [SendsAnotherLabel, SendsFloats, SendsLists, SendsNaN]
"""Channels whose messages are not points of their message space."""


@pytest.mark.parametrize("kind", SENDING)
def test_messages_that_are_not_points_of_the_space_are_reported(kind):
    with pytest.raises(AssertionError, match="expected (messages in|an array of messages)"):
        check_channel(kind(3, 5, 50))


@pytest.mark.parametrize("kind", SENDING)
def test_messages_that_are_not_points_of_the_space_end_an_evaluation(kind):
    rules = {"channel": kind(3, 5, 50), "hypotheses": np.full((3, 5), 0.2), "horizon": 50}
    with pytest.raises(ValueError, match=kind.__name__):
        ldp_gym.evaluate("uniform", rules, episodes=1)


def play_one_round(env):
    """Begin an episode and predict once; the first message may be drawn by either call."""
    env.reset(seed=0)
    env.step(np.full(5, 0.2))


@pytest.mark.parametrize("kind", SENDING)
def test_messages_that_are_not_points_of_the_space_end_an_episode(kind):
    table = np.full((3, 5), 0.2)
    env = gym.make("LDPDist-v0", channel=kind(3, 5, 50), hypotheses=table, horizon=50)
    with pytest.raises(ValueError, match=kind.__name__):
        play_one_round(env)


class ReusesItsBuffer(SoftmaxLinear):
    """Hands out the same array from every call with contexts of one shape."""

    def __call__(self, contexts):
        candidates = super().__call__(contexts)
        buffers = self.__dict__.setdefault("buffers", {})
        buffer = buffers.setdefault(candidates.shape, np.empty_like(candidates))
        np.copyto(buffer, candidates)
        return buffer


class InSinglePrecision(SoftmaxLinear):
    def __call__(self, contexts):
        return super().__call__(contexts).astype(np.float32)


def test_a_class_that_hands_out_one_buffer_is_reported():
    with pytest.raises(AssertionError, match="a new array of candidates from every call"):
        check_hypotheses(ReusesItsBuffer(4, 5, 2))


def test_a_class_in_single_precision_is_reported():
    with pytest.raises(AssertionError, match="float64 candidates, got float32"):
        check_hypotheses(InSinglePrecision(4, 5, 2))


BUFFERS = {"float64": np.empty(10**5), "int64": np.empty(10**5, dtype=np.int64)}


def in_one_buffer(array):
    """Copy an array to the start of the one buffer for its type."""
    buffer = BUFFERS[array.dtype.name][: array.size].reshape(array.shape)
    np.copyto(buffer, array)
    return buffer


def with_changed_method(part, method, change):
    """Return a part of a game whose method returns what ``change`` makes of its result."""
    original = getattr(part, method)
    changed_part = copy(part)
    setattr(changed_part, method, lambda *arguments: change(original(*arguments)))
    return changed_part


PARTS = [
    (check_nature, ldp_gym.NATURES["cycle"](2), "contexts"),
    (check_truth, ldp_gym.TRUTHS["switching"](4, 6), "distributions"),
    (check_channel, RandomizedResponse(4, 5, 12), "encode"),
]
"""Checks, a part that passes each, and the method that returns its arrays."""


@pytest.mark.parametrize(("check", "part", "method"), PARTS)
def test_a_part_that_hands_out_one_buffer_is_reported(check, part, method):
    with pytest.raises(AssertionError, match="a new array|the same"):
        check(with_changed_method(part, method, in_one_buffer))


@pytest.mark.parametrize(("check", "part", "method"), PARTS)
def test_a_part_in_single_precision_is_reported(check, part, method):
    with pytest.raises(AssertionError, match="float64|messages in Discrete"):
        check(with_changed_method(part, method, np.float32))


def test_a_truth_is_checked_on_a_class_of_its_size():
    check_truth(ldp_gym.TRUTHS["mixture"](3))


def test_a_truth_for_another_class_asks_for_the_class_that_it_was_made_for():
    five_hypotheses = ldp_gym.HYPOTHESES["softmax-linear"](5, 6, 2)
    with pytest.raises(AssertionError, match=r"pass the class that the truth was made for"):
        check_truth(ldp_gym.TRUTHS["mixture"](3), five_hypotheses)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (broken.TooFar, "expected messages in Box"),
        (broken.Denied, "a positive density of every message"),
        (broken.Nameless, "NaN"),
    ],
)
def test_messages_outside_of_the_space_or_without_density_are_reported(kind, reason):
    with pytest.raises(AssertionError, match=reason):
        check_channel(kind(3, 5, 50, epsilon=0.1), samples=5_000)


@pytest.mark.parametrize(
    "channel",
    [
        broken.FlatReal(3, 5, 50, epsilon=0.5),
        broken.less_noise(GaussianVector, 0.7)(3, 5, 50, epsilon=0.5, delta=1e-5),
    ],
)
def test_check_channel_reports_messages_off_their_density_at_the_default_effort(channel):
    with pytest.raises(AssertionError, match="expected messages that follow log_density: "):
        check_channel(channel)


def misfit_of_two_messages(count):
    """Verdict on label 7, which sends message 0 ``count`` times out of 1,000 and declares one half.

    The error of 1e-6 is shared by three tables, two messages and two sides. P(more than 583) is the first
    tail of the binomial law below 1e-6 / 12.
    """
    sent = np.repeat([0, 1], [count, 1000 - count])
    declared = np.full((2, 1), 0.5)
    label_indices = np.zeros(1000, dtype=int)
    return _goodness_of_fit(np.arange(2), declared, sent, label_indices, np.array([7]))


def test_583_of_1000_messages_of_probability_one_half_are_not_too_many():
    assert misfit_of_two_messages(583) is None


def test_584_of_1000_messages_of_probability_one_half_are_too_many():
    expected = "label 7 sent [0] 584 times out of 1000; "
    assert expected in misfit_of_two_messages(584)


def test_the_error_rate_is_at_most_the_stated_one():
    """The classifiers' mean product exceeds 20 with probability at most 1/20, if the density is right."""
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.ones(4), size=3)  # three labels, four messages
    repeats = 1500
    exceeded = 0
    for _ in range(repeats):
        labels = rng.integers(3, size=60)
        messages = categorical(law[labels], rng.random(60))
        log_gains = [gain for _, gain in _log_gains(labels, messages, np.log(law.T[messages]))]
        log_mean_product = np.logaddexp.reduce(log_gains) - math.log(len(log_gains))
        exceeded += log_mean_product >= math.log(20.0)
    assert exceeded <= binom.isf(ERROR_RATE, repeats, 1 / 20)
