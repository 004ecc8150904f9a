"""The public posterior is Bayes' rule, tempered or shared on request, and rounds are worked out ahead."""

import numpy as np
import pytest
from helpers import CHANNELS, make_channel, make_episodes

import ldp_gym
from ldp_gym.engine.posterior import PublicPosterior, send_adaptively

ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]


def test_the_posterior_is_bayes_rule():
    posterior = PublicPosterior(3)
    posterior.advance(np.log([0.5, 0.2, 0.1]))
    np.testing.assert_allclose(posterior.weights, np.array([5, 2, 1]) / 8)
    posterior.advance(np.array([-2000.0, -3000.0, -1e6]))
    assert np.isfinite(posterior.weights).all()


def test_no_number_of_messages_is_too_many():
    posterior = PublicPosterior(2)
    for _ in range(10_000):
        posterior.advance(np.array([-1000.0, -1000.001]))
    np.testing.assert_allclose(np.log(posterior.weights[1]), -10.0, rtol=1e-4)


def test_a_hypothesis_that_is_ruled_out_stays_out():
    posterior = PublicPosterior(3)
    posterior.advance(np.array([-np.inf, -1.0, -2.0]))
    posterior.advance(np.array([0.0, -1.0, -1.0]))
    np.testing.assert_allclose(posterior.weights, np.array([0.0, 1.0, np.exp(-1.0)]) / (1 + np.exp(-1.0)))


@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.1), (0.5, 0.02)])
def test_weights_are_tempered_and_shared_in_linear_space(rate, share):
    likelihoods = np.random.default_rng(0).random((3, 20, 4))
    posterior = PublicPosterior(4, (3,), rate=rate, share=share)
    along = PublicPosterior(4, (3,), rate=rate, share=share).along(np.log(likelihoods))
    weights = np.full((3, 4), 0.25)
    for t in range(20):
        np.testing.assert_allclose(posterior.weights, weights, rtol=1e-9)
        np.testing.assert_allclose(along[:, t], weights, rtol=1e-9)
        posterior.advance(np.log(likelihoods[:, t]))
        weights = weights * likelihoods[:, t] ** rate
        weights = (1 - share) * weights / weights.sum(axis=-1, keepdims=True) + share / 4


def test_a_message_that_all_rule_out_tells_nothing():
    posterior = PublicPosterior(2)
    for ruled_out in ([0.0, 0.5], [0.5, 0.0], [0.0, 0.0]):
        with np.errstate(divide="ignore"):
            posterior.advance(np.log(ruled_out))
    np.testing.assert_allclose(posterior.weights, 0.5)


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
