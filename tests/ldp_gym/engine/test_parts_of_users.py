"""Parts of users: lists, tensors, shared buffers and writes play the same game through every door."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import record

import ldp_gym
from ldp_gym.channels import RandomizedResponse
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.natures import IID
from ldp_gym.truths import Member

RULES = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "horizon": 30}


class ListedClass(SoftmaxLinear):
    """A class that returns nested lists."""

    def __call__(self, contexts):
        return super().__call__(contexts).tolist()


class TensorClass(SoftmaxLinear):
    """A class that returns a tensor."""

    def __call__(self, contexts):
        torch = pytest.importorskip("torch")
        return torch.tensor(super().__call__(contexts))


class BufferedClass(SoftmaxLinear):
    """A class that writes all its candidates into one array, round by round."""

    def __call__(self, contexts):
        if not hasattr(self, "buffer") or self.buffer.shape[:-2] != contexts.shape[:-1]:
            self.buffer = np.empty((*contexts.shape[:-1], 3, 4))
        self.buffer[...] = super().__call__(contexts)
        return self.buffer


class BufferedTruth(Member):
    """A member that writes its distributions into one array."""

    def distributions(self, view):
        laws = super().distributions(view)
        if not hasattr(self, "buffer") or self.buffer.shape != laws.shape:
            self.buffer = np.empty(laws.shape)
        self.buffer[...] = laws
        return self.buffer


class BufferedChannel(RandomizedResponse):
    """Randomized response that writes its messages into one array."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        if not hasattr(self, "buffer") or self.buffer.shape != messages.shape:
            self.buffer = np.empty(messages.shape, dtype=np.int64)
        self.buffer[...] = messages
        return self.buffer


class WritingTruth(Member):
    """A member that sorts the candidates that it is shown."""

    def distributions(self, view):
        view.candidates.sort(axis=-1)
        return super().distributions(view)


class WritingNature(IID):
    """Standard normal contexts, by writing into the uniforms that it is shown."""

    def contexts(self, view):
        view.uniforms[...] = 0.5
        return super().contexts(view)


class WritingChannel(RandomizedResponse):
    """A channel that writes into the labels that it is shown."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        labels[...] = 0
        return labels


def step_through(rules, seed):
    """Labels' messages of an episode of a single environment."""
    env = gym.make("LDPDist-v0", **rules)
    env.reset(seed=seed)
    messages = []
    for _ in range(30):
        observation = env.step(np.full(4, 0.25))[0]
        messages.append(int(observation["message"]))
    return messages


def randomized(**parts):
    return {**RULES, "channel": "randomized-response", **parts}


@pytest.mark.parametrize("kind", [ListedClass, TensorClass, BufferedClass])
def test_a_class_plays_the_games_of_the_built_in_class(kind):
    expected = step_through(randomized(hypotheses=SoftmaxLinear(3, 4, 2)), seed=1)
    assert step_through(randomized(hypotheses=kind(3, 4, 2)), seed=1) == expected


def test_a_class_that_shares_a_buffer_is_charged_the_same():
    expected = ldp_gym.evaluate("bayes", randomized(hypotheses=SoftmaxLinear(3, 4, 2)), episodes=3)
    shared = ldp_gym.evaluate("bayes", randomized(hypotheses=BufferedClass(3, 4, 2)), episodes=3)
    np.testing.assert_allclose(shared.kl, expected.kl, rtol=1e-12)


def test_a_truth_that_shares_a_buffer_keeps_its_distributions_on_the_tape():
    rules = randomized(nature="adversary")  # one round at a time
    _, expected = record({**rules, "truth": Member(3)})
    _, tape = record({**rules, "truth": BufferedTruth(3)})
    np.testing.assert_array_equal(tape.distributions, expected.distributions)


def test_a_channel_that_shares_a_buffer_keeps_its_messages_on_the_tape():
    rules = {**RULES, "nature": "adversary"}  # one round at a time
    _, expected = record({**rules, "channel": RandomizedResponse(3, 4, 30)})
    _, tape = record({**rules, "channel": BufferedChannel(3, 4, 30)})
    np.testing.assert_array_equal(tape.messages, expected.messages)


@pytest.mark.parametrize(
    "parts",
    [
        {"truth": WritingTruth(3)},
        {"nature": WritingNature(2)},
        {"channel": WritingChannel(3, 4, 30)},
    ],
)
def test_a_part_that_writes_into_what_it_is_shown_is_stopped_by_an_environment(parts):
    with pytest.raises(ValueError, match="read-only"):
        step_through({**randomized(), **parts}, seed=0)


@pytest.mark.parametrize(
    "parts",
    [
        {"truth": WritingTruth(3)},
        {"nature": WritingNature(2)},
        {"channel": WritingChannel(3, 4, 30)},
    ],
)
def test_a_part_that_writes_into_what_it_is_shown_is_stopped_by_evaluate(parts):
    with pytest.raises(ValueError, match="read-only"):
        ldp_gym.evaluate("bayes", {**randomized(), **parts}, episodes=2)
