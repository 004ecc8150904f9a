"""Policies of LDPAsk-v0 as channels: the same answers as in the environment, read by Bayes, and certified."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO

import ldp_gym
from ldp_agents.rl import as_channel, make_sb3_env

pytestmark = pytest.mark.filterwarnings("ignore::ldp_gym.BlindChannelWarning")

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 3, "num_labels": 5, "horizon": 20}


def untrained():
    env = make_sb3_env("LDPAsk-v0", num_envs=4, **RULES)
    return PPO("MlpPolicy", env, n_steps=8, batch_size=16, seed=0).learn(64)


@pytest.mark.parametrize("make", [untrained, lambda: lambda rows: 3.0 * np.cos(9.0 * rows[:, :3])])
def test_a_policy_asks_as_a_channel_what_it_asks_in_the_environment(make):
    policy, env = make(), gym.make("LDPAsk-v0", **RULES)
    channel = as_channel(policy, env, progress=0.25)
    act = policy if callable(policy) else lambda rows: policy.predict(rows, deterministic=True)[0]
    losses = ldp_gym.evaluate("bayes", {**RULES, "channel": channel}, episodes=6, checkpoints=range(1, 21)).kl
    for seed in range(6):
        shown, _ = env.reset(seed=seed)
        total = 0.0
        for t in range(20):
            shown, *_, info = env.step(act(np.append(shown[:-1], np.float32(0.25))[None])[0])
            total += info["kl"]
            assert losses[seed, t] == pytest.approx(total, rel=1e-9)
    table, posterior = env.unwrapped.game.hypotheses(np.zeros(1)), np.array([0.7, 0.2, 0.1])
    assert ldp_gym.audit.certify(channel, table, posterior).holds
    if callable(policy):  # the last digits of a network depend on its batch
        ldp_gym.testing.check_channel(channel)


def test_other_environments_and_policies_are_refused():
    with pytest.raises(TypeError, match=r"LDPAsk-v0.*LaplaceSingle"):
        as_channel(np.cos, gym.make("LDPDist-v0"))
    with pytest.raises(TypeError, match=r"have predict\(\), got 'ppo'"):
        as_channel("ppo", gym.make("LDPAsk-v0"))
