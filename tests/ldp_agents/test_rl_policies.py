"""A policy of stable-baselines3, saved by one call, plays wherever a learner does."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules
from rl_helpers import EASY
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecNormalize

import ldp_agents
import ldp_gym
from ldp_agents.rl import load, make_sb3_env, save
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.engine.scenario import Scenario
from ldp_gym.testing import check_learner

SHORT = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "gamma": 0.0, "device": "cpu", "seed": 0}
ADAPTIVE = small_rules("adaptive-split", horizon=12)


def played(model, venv, seed, rounds):
    """The total KL of a policy in its own SB3 environment."""
    venv.seed(seed)
    observation = venv.reset()
    state, begins, total = None, np.ones(venv.num_envs, dtype=bool), 0.0
    for _ in range(rounds):
        action, state = model.predict(observation, state=state, episode_start=begins, deterministic=True)
        observation, _, begins, infos = venv.step(action)
        total = total + np.array([info["kl"] for info in infos])
    return total


@pytest.mark.parametrize(
    ("kind", "policy", "rules", "lock_step"),
    [
        (PPO, "MlpPolicy", EASY, True),
        (PPO, "MlpPolicy", ADAPTIVE, False),
        (RecurrentPPO, "MlpLstmPolicy", EASY, True),
    ],
)
def test_it_plays_as_in_its_own_environment(kind, policy, rules, lock_step, tmp_path):
    """Through evaluate, on the same seeds, to float32; and it keeps the contract, on its own game."""
    env = make_sb3_env(num_envs=4, **rules) if lock_step else gym.make("LDPDistBox-v0", **rules)
    model = kind(policy, env, **SHORT).learn(64)
    save(model, tmp_path)
    with pytest.raises(UntrustedCodeError, match="trust=True, or --trust"):
        load(tmp_path)
    learner = load(tmp_path, trust=True)
    venv = model.get_env()
    ours = ldp_gym.evaluate(learner, rules, episodes=venv.num_envs, seed=3).kl[:, -1]
    np.testing.assert_allclose(ours, played(model, venv, 3, rules["horizon"]), rtol=1e-3)
    check_learner(learner)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"T \d+ \(not 50\)"):
        learner(Scenario(**{**rules, "horizon": 50}).game)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: VecNormalize(make_sb3_env(num_envs=2, **EASY)), "cannot repeat VecNormalize"),
        (lambda: make_sb3_env(num_envs=2, observation="message", **EASY), 'observation="evidence"'),
        (lambda: gym.make("Pendulum-v1"), "trained on LDPDistBox-v0, got Pendulum-v1"),
    ],
)
def test_what_a_learner_cannot_repeat_is_refused(env, message, tmp_path):
    model = PPO("MlpPolicy", env(), **SHORT)
    with pytest.raises(TypeError, match=message):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_card_names_no_code(tmp_path):
    env = make_sb3_env(num_envs=2, **EASY)
    save(PPO("MlpPolicy", env, **SHORT), tmp_path)
    card = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(card.replace('"split"', '"os:system"'))
    with pytest.raises(ValueError, match="model.json names code, 'os:system'"):
        load(tmp_path, trust=True)(Scenario(**EASY).game)
    (tmp_path / "model.json").write_text(card.replace('"policy": "PPO"', '"policy": "os:system"'))
    with pytest.raises(ValueError, match="unknown algorithm 'os:system'; known: A2C"):
        load(tmp_path, trust=True)(Scenario(**EASY).game)
