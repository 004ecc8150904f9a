"""Policies of LDPAsk-v0 as channels: the same answers as in the environment, read by Bayes, and certified."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO

import ldp_gym
from ldp_agents.rl import as_channel, make_sb3_env

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 3, "num_labels": 5, "horizon": 20}


@pytest.mark.filterwarnings("ignore::ldp_gym.BlindChannelWarning")
@pytest.mark.parametrize("kind", ["function", "PPO"])
def test_a_policy_asks_as_a_channel_what_it_asks_in_the_environment(kind):
    env, act = gym.make("LDPAsk-v0", **RULES), lambda rows: 3.0 * np.cos(9.0 * rows[:, :3])
    channel = as_channel(act, env, progress=0.25)
    ldp_gym.testing.check_channel(channel)
    if kind == "PPO":
        model = PPO(
            "MlpPolicy", make_sb3_env("LDPAsk-v0", num_envs=4, **RULES), n_steps=8, batch_size=16
        )
        channel = as_channel(model.learn(64), model.get_env(), progress=0.25)
        act = lambda rows: model.predict(rows, deterministic=True)[0]  # noqa: E731
    losses = ldp_gym.evaluate(
        "bayes", {**RULES, "channel": channel}, episodes=6, checkpoints=range(1, 21)
    ).kl
    for seed in range(6):
        (shown, _), total = env.reset(seed=seed), 0.0
        for t in range(20):
            shown, *_, info = env.step(act(np.append(shown[:-1], np.float32(0.25))[None])[0])
            total += info["kl"]
            assert losses[seed, t] == pytest.approx(total, rel=1e-9)
    table = env.unwrapped.game.hypotheses(np.zeros(1))
    assert ldp_gym.audit.certify(channel, table, np.array([0.7, 0.2, 0.1])).holds


def test_other_environments_and_policies_are_refused():
    with pytest.raises(TypeError, match=r"LDPAsk-v0.*LaplaceSingle"):
        as_channel(np.cos, gym.make("LDPDist-v0"))
    with pytest.raises(TypeError, match=r"have predict\(\), got 'ppo'"):
        as_channel("ppo", gym.make("LDPAsk-v0"))
    env = gym.make("LDPAsk-v0", **RULES)
    for act in (lambda rows: rows[:, :3].T, lambda rows: rows, lambda rows: np.nan * rows[:, :3]):
        with pytest.raises(ValueError, match=r"finite contrasts of shape \(2, 3\)"):
            as_channel(act, env).policy(np.full((2, 3), 1 / 3))
    with pytest.raises(TypeError, match="learners do not play .*LDPAsk.*as_channel"):
        ldp_gym.evaluate("bayes", env, episodes=2)
