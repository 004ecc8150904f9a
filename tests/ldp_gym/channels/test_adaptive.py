"""The channels that act on the public posterior, plain, tempered or sharing."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import CHANNELS, make_channel

import ldp_agents
import ldp_gym
from ldp_gym.engine.learners import build_learner
from ldp_gym.testing import check_channel, check_learner

ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]
OPTIONS = {"posterior_rate": 0.5, "posterior_share": 0.05}


@pytest.mark.parametrize("channel", ADAPTIVE)
def test_adaptive_channels_take_the_options_and_keep_their_contract(channel):
    check_channel(make_channel(channel, 4, 5, 12, **OPTIONS))
    for learner in ("bayes", "robust", "fixed-share"):
        check_learner(learner, channel=channel, channel_kwargs=OPTIONS)


@pytest.mark.parametrize("channel", ADAPTIVE)
def test_a_channel_acts_on_the_posterior_that_it_names(channel):
    """Environment, vector environment and tape agree, and differ from the plain posterior's messages."""
    rules = {"hypotheses": "dirichlet", "channel": channel, "epsilon": 4.0, "horizon": 60, "truth": 1}
    shared = {**rules, "channel_kwargs": {"posterior_share": 0.2}}
    messages = {}
    for name, game in (("plain", rules), ("shared", shared)):
        env = gym.make("LDPDist-v0", **game)
        learner = build_learner("bayes", env.unwrapped.game)
        observation, _ = env.reset(seed=3)
        heard, total = [], 0.0
        for _ in range(60):
            observation, _, _, _, info = env.step(learner.act(observation))
            heard.append(observation["message"])
            total += info["kl"]
        messages[name] = heard
        assert ldp_gym.evaluate("bayes", game, episodes=1, seed=3).kl[0, -1] == pytest.approx(total, rel=1e-9)
    assert any(not np.array_equal(a, b) for a, b in zip(*messages.values(), strict=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"posterior_rate": 0.0}, "posterior_rate must be positive"),
        ({"posterior_share": 1.0}, "posterior_share must"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ldp_gym.CHANNELS["adaptive-groups"](4, 5, 12, **options)


def test_a_posterior_that_shares_serves_a_truth_that_switches():
    """On these eight episodes."""
    rules = {
        "hypotheses": "dirichlet",
        "channel": "adaptive-groups",
        "epsilon": 4.0,
        "horizon": 600,
        "truth": "switching",
        "truth_kwargs": {"switches": [300]},
    }
    plain, shared = (
        ldp_gym.evaluate("robust", {**rules, "channel_kwargs": options}, episodes=8, seed=50).risk
        for options in ({}, {"posterior_share": 0.005})
    )
    assert shared < 0.6 * plain


def test_a_missing_posterior_is_said_with_where_to_find_it():
    channel = make_channel("adaptive-split", 4, 5, 12)
    candidates = np.full((4, 5), 0.2)
    with pytest.raises(ValueError, match=r"has it as self\.posterior, and game\.public_posterior\(\) keeps"):
        channel.log_likelihood(channel.message_space.sample(), candidates)


@pytest.mark.parametrize("channel", ADAPTIVE)
def test_a_learner_that_passes_its_posterior_reads_an_adaptive_channel(channel):
    class Hedge(ldp_agents.ExponentialWeights):
        rate = 0.5

        def losses(self, messages, candidates):
            return -self.game.channel.log_likelihood(messages, candidates, self.posterior)

    check_learner(Hedge, channel=channel)
