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
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.privacy.misfit import (
    _CHECKED_TABLES,
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


class Single(ldp_agents.EXP3):
    def predict(self, candidates):
        return super().predict(candidates)[0]


def changed(method, function, base=ldp_agents.EXP3):
    """A learner with one method changed: ``function`` gets the method of its base, self and the arguments."""
    own = getattr(base, method)
    return type(
        "Changed", (base,), {method: lambda *given, **options: function(own, *given, **options)}
    )


def share_generators(reset, self, batch_shape=(), generators=None):
    """Games share a generator: a game depends on the others in the batch."""
    reset(self, batch_shape, generators and [generators[0]] * len(generators))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            changed("play", lambda play, self, c, m, *more: play(self, c, m[:, ::-1], *more)),
            "play\\(\\) to predict as",
        ),
        (
            changed("_predict", lambda own, *given: 2 * own(*given) - 1, ldp_agents.Uniform),
            "no negative",
        ),
        (Single, r"per game, here of shape \(3, 5\) \(games, M\), got \(5,\)"),
        (changed("restart", lambda *given: None), "restart\\(\\) to forget"),
        (changed("reset", lambda reset, *given, **_: reset(*given), Thompson), "same predictions"),
        (changed("reset", share_generators, Thompson), "alone and in a"),
        (changed("act", lambda *given: np.full(5, 1 / 5)), "act\\(\\) to predict as stepping does"),
    ],
)
def test_check_learner_says_what_broke(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_misuse_of_the_checks_and_of_evaluate_is_said():
    with pytest.raises(TypeError, match="did you mean 'channel'"):
        check_learner("bayes", chanel="split")
    with pytest.raises(TypeError, match="a learner has reset, predict and update"):
        check_learner(lambda game: 7)
    with pytest.raises(ValueError, match=r"Single.predict\(\) must return .* of shape \(2, 16\)"):
        ldp_gym.evaluate(Single, {}, episodes=2)
    with pytest.raises(ValueError, match="samples must be at least 1000, got 10"):
        check_channel(RandomizedResponse(2, 5, 10), samples=10)


def test_a_learner_is_checked_on_a_game_that_it_says_it_can_play():
    """Its K and M, at most 40 of its rounds, on the channel that is asked for."""
    check_learner(Picky)
    check_learner("third_party:Picky", channel="split", epsilon=2.0)
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


def sending(kind, change):
    """The channel with its messages changed."""
    changed = lambda self, *drawn: change(kind.encode(self, *drawn))  # noqa: E731
    return type(f"Sending{kind.__name__}", (kind,), {"encode": changed})


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (RandomizedResponse, change)
        for change in (lambda m: m + 1, lambda m: m * 1.0, lambda m: m.tolist())
    ]
    + [(LaplaceSingle, lambda m: m * np.nan)],
)
def test_messages_that_are_not_points_of_the_space_end_the_game(kind, change):
    channel = sending(kind, change)(3, 5, 50)
    with pytest.raises(AssertionError, match="expected (messages in|an array of messages)"):
        check_channel(channel)
    rules = {"channel": channel, "hypotheses": np.full((3, 5), 0.2), "horizon": 50}
    with pytest.raises(ValueError, match="SendingRandomized|SendingLaplace"):
        ldp_gym.evaluate("uniform", rules, episodes=1)
    env = gym.make("LDPDist-v0", **rules)
    with pytest.raises(ValueError, match="SendingRandomized|SendingLaplace"):
        env.reset(seed=0), env.step(np.full(5, 0.2))


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


def test_a_part_that_hands_out_one_buffer_or_single_precision_is_reported():
    buffers = {name: np.empty(10**5, dtype=name) for name in ("float64", "int64")}

    def reuse(found):
        np.copyto(kept := buffers[found.dtype.name][: found.size].reshape(found.shape), found)
        return kept

    for check, part, method in (
        (check_nature, ldp_gym.NATURES["cycle"](2), "contexts"),
        (check_truth, ldp_gym.TRUTHS["switching"](4, 6), "distributions"),
        (check_channel, RandomizedResponse(4, 5, 12), "encode"),
    ):
        for change, said in (
            (reuse, "a new array|the same"),
            (np.float32, "float64|messages in Discrete"),
        ):
            changed_part, own = copy(part), getattr(type(part), method)
            called = {method: lambda *given, own=own, change=change: change(own(*given))}
            changed_part.__class__ = type("Changed", (type(part),), called)
            with pytest.raises(AssertionError, match=said):
                check(changed_part)


def test_a_truth_is_checked_on_a_class_of_its_size():
    check_truth(ldp_gym.TRUTHS["mixture"](3))
    with pytest.raises(AssertionError, match=r"pass the class that the truth was made for"):
        check_truth(ldp_gym.TRUTHS["mixture"](3), ldp_gym.HYPOTHESES["softmax-linear"](5, 6, 2))


def test_messages_outside_of_the_space_or_of_density_zero_are_reported():
    reasons = ("expected messages in Box", "a positive density of every message", "NaN")
    for kind, reason in zip((broken.TooFar, broken.Denied, broken.Nameless), reasons, strict=True):
        with pytest.raises(AssertionError, match=reason):
            check_channel(kind(3, 5, 50, epsilon=0.1), samples=5_000)


def test_check_channel_says_so_at_the_default_effort():
    quiet = broken.less_noise(GaussianVector, 0.7)(3, 5, 50, epsilon=0.5, delta=1e-5)
    for channel in (broken.FlatReal(3, 5, 50, epsilon=0.5), quiet):
        with pytest.raises(AssertionError, match="expected messages that follow log_density: "):
            check_channel(channel)


def test_a_message_is_sent_too_often_from_the_exact_binomial_count_on():
    """1,000 messages of one label, two declared as equal: tables, sides and cells share the error."""
    first = 1 + int(binom.isf(ERROR_RATE / (2 * len(_CHECKED_TABLES) * 2), 1000, 0.5))
    for count, said in (
        (first - 1, "None"),
        (first, f"label 7 sent [0] {first} times out of 1000; "),
    ):
        sent, one = np.repeat([0, 1], [count, 1000 - count]), np.zeros(1000, dtype=int)
        assert said in str(
            _goodness_of_fit(np.arange(2), np.full((2, 1), 0.5), sent, one, np.array([7]))
        )


def test_the_error_rate_is_at_most_the_stated_one():
    """The classifiers' mean product exceeds 1/a with probability at most a: counted at a = 1/20."""
    rng, exceeded, repeats = np.random.default_rng(0), 0, 1500
    law = rng.dirichlet(np.ones(4), size=3)  # three labels, four messages
    for _ in range(repeats):
        places = rng.integers(3, size=60)
        messages = (rng.random(60)[:, None] > law.cumsum(axis=1)[places]).sum(axis=1)
        gains = [gain for _, gain in _log_gains(places, messages, np.log(law.T[messages]))]
        exceeded += np.logaddexp.reduce(gains) - math.log(len(gains)) >= math.log(20.0)
    assert exceeded <= binom.isf(ERROR_RATE, repeats, 1 / 20)
