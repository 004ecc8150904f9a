"""Rounds that are worked out ahead from guesses are those that are played in turn, to the last bit."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import CHANNELS, make_channel

import ldp_gym
from ldp_gym.engine.posterior import PublicPosterior, send_adaptively
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes

ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]


def in_turn(channel, posterior, labels, candidates, uniforms):
    """Round by round, as the channel's contract has it."""
    messages, log_likelihoods = [], []
    for t in range(labels.shape[1]):
        now = slice(t, t + 1)
        here = candidates if candidates.ndim == 2 else candidates[:, now]
        public = posterior.weights[:, None]
        messages.append(channel.encode(labels[:, now], here, uniforms[:, now], public))
        log_likelihoods.append(channel.log_likelihood(messages[-1], here, public))
        posterior.advance(log_likelihoods[-1][:, 0])
    return np.concatenate(messages, axis=1), np.concatenate(log_likelihoods, axis=1)


@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("contexts", [False, True])
@pytest.mark.parametrize("games", [1, 3])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_guesses_change_nothing(name, games, contexts, share):
    rng, rounds = np.random.default_rng(4), 70
    channel = make_channel(name, 9, 7, 100, posterior_share=share)
    shape = (games, rounds) if contexts else ()
    candidates = rng.dirichlet(np.full(7, 0.3), (*shape, 9))
    labels = rng.integers(7, size=(games, rounds))
    uniforms = rng.random((games, rounds, channel.num_uniforms))
    results = []
    for play in (send_adaptively, in_turn):
        posterior = PublicPosterior(9, (games,), rate=channel.posterior_rate, share=share)
        results.append((*play(channel, posterior, labels, candidates, uniforms), posterior.weights))
    for ahead, turn in zip(*results, strict=True):
        np.testing.assert_array_equal(ahead, turn)


def test_guesses_save_calls(monkeypatch):
    """In a quiet game a call serves many rounds; in the worst case it serves one."""
    scenario = Scenario(channel="adaptive-wheel", horizon=400)
    calls, send = [], scenario.channel.send
    monkeypatch.setattr(scenario.channel, "send", lambda *given: calls.append(given) or send(*given))
    tape = Episodes(scenario, [scenario.start_episode(first_generator(0))]).play(400)
    assert tape.messages.shape[1] == 400
    assert 400 / 32 <= len(calls) < 100


@pytest.mark.parametrize(("num_hypotheses", "num_labels"), [(2, 2), (5, 3), (33, 20)])
@pytest.mark.parametrize("hypotheses", ["dirichlet", "softmax-linear"])
@pytest.mark.parametrize("channel", ADAPTIVE)
def test_alone_in_a_batch_and_on_a_tape_messages_are_the_same_bits(
    channel, hypotheses, num_hypotheses, num_labels
):
    rules = {
        "channel": channel,
        "hypotheses": hypotheses,
        "num_hypotheses": num_hypotheses,
        "num_labels": num_labels,
        "horizon": 80,
    }
    scenario = Scenario(**rules)
    starts = [scenario.start_episode(first_generator(seed)) for seed in range(40)]
    tape = Episodes(scenario, starts).play(80).messages
    envs, env = gym.make_vec("LDPDist-v0", num_envs=3, **rules), gym.make("LDPDist-v0", **rules)
    envs.reset(seed=0)
    env.reset(seed=2)
    uniform = np.full((3, num_labels), 1 / num_labels)
    for t in range(80):
        together = envs.step(uniform)[0]["message"]
        np.testing.assert_array_equal(together, tape[:3, t])
        np.testing.assert_array_equal(env.step(uniform[0])[0]["message"], tape[2, t])
