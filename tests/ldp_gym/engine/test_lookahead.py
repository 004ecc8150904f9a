"""Rounds that are worked out ahead from guesses are those that are played in turn, to the last bit."""

import numpy as np
import pytest
from helpers import CHANNELS, make_channel, make_episodes

import ldp_gym
from ldp_gym.engine.posterior import PublicPosterior, send_adaptively

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
    episodes = make_episodes({"channel": "adaptive-wheel", "horizon": 400})
    channel, calls = episodes.scenario.channel, []
    send = channel.send
    monkeypatch.setattr(channel, "send", lambda *given: calls.append(given) or send(*given))
    assert episodes.play(400).messages.shape[1] == 400
    assert 400 / 32 <= len(calls) < 100
