"""A policy of stable-baselines3 with its wrappers, saved by one call, plays wherever a learner does."""

from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest
from command_line import run_in_line as run
from rl_helpers import EASY
from sb3_contrib import RecurrentPPO
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecExtractDictObs, VecNormalize

import ldp_agents
import ldp_gym
from ldp_agents.rl import SB3VecEnv, load, save
from ldp_agents.rl.algorithms import ALGORITHMS
from ldp_gym.engine.scenario import Scenario
from ldp_gym.testing import check_learner
from ldp_gym.wrappers import (
    DecodedMessage,
    Evidence,
    MixtureAction,
    SoftmaxAction,
    VectorEvidence,
    VectorMixtureAction,
)

SHORT = {"n_steps": 16, "batch_size": 32, "n_epochs": 1, "gamma": 0.0, "device": "cpu", "seed": 0}


def single():
    return Evidence(MixtureAction(gym.make("LDPDist-v0", **EASY), logit_range=7.0))


def trained(env, kind=PPO, policy="MlpPolicy"):
    return kind(policy, env, **SHORT).learn(64)


def played(model, venv, seeds, rounds=40):
    """The total KL of a policy in its own SB3 environment."""
    venv.seed(seeds)
    observation = venv.reset()
    state, begins, total = None, np.ones(venv.num_envs, dtype=bool), 0.0
    for _ in range(rounds):
        action, state = model.predict(observation, state=state, episode_start=begins, deterministic=True)
        observation, _, begins, infos = venv.step(action)
        total = total + np.array([info["kl"] for info in infos])
    return total


def views():
    normalized = VecNormalize(make_vec_env(single, n_envs=2), norm_reward=False)
    raw = lambda: DecodedMessage(MixtureAction(gym.make("LDPDist-v0", **EASY)))  # noqa: E731
    games = gym.make_vec("LDPDist-v0", num_envs=4, autoreset_mode="SameStep", **EASY)
    return {
        "single environments": (make_vec_env(single, n_envs=2), PPO, "MlpPolicy"),
        "normalized": (normalized, PPO, "MlpPolicy"),
        "in lock step": (SB3VecEnv(VectorEvidence(VectorMixtureAction(games))), PPO, "MlpPolicy"),
        "raw messages": (
            VecExtractDictObs(make_vec_env(raw, n_envs=2), "message"),
            RecurrentPPO,
            "MlpLstmPolicy",
        ),
    }


@pytest.mark.parametrize("name", ["single environments", "normalized", "in lock step", "raw messages"])
def test_it_plays_as_in_its_own_environment(name, tmp_path):
    """Through evaluate, on the same seeds, to float32; and it keeps the contract, on its own game."""
    env, kind, policy = views()[name]
    model = trained(env, kind, policy)
    if isinstance(env, VecNormalize):
        env.training = False
    save(model, env, tmp_path)
    learner = load(tmp_path, trust=True)
    ours = ldp_gym.evaluate(learner, EASY, episodes=env.num_envs, seed=3).kl[:, -1]
    np.testing.assert_allclose(ours, played(model, env, 3), rtol=1e-3)
    check_learner(learner)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=r"T 40 \(not 50\)"):
        learner(Scenario(**{**EASY, "horizon": 50}).game)


def test_it_is_trained_further(tmp_path):
    """--resume takes rules and settings along."""
    env = make_vec_env(single, n_envs=2)
    save(trained(env), env, tmp_path)
    code, output = run("train", "sb3", "--out", str(tmp_path), "--resume", "--steps", "96")
    assert code == 2
    assert "--trust" in output
    code, output = run("train", "sb3", "--out", str(tmp_path), "--resume", "--trust", "--steps", "96")
    assert code == 0, output
    assert load(tmp_path, trust=True)(Scenario(**EASY).game).algorithm.num_timesteps >= 96


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda env: Evidence(SoftmaxAction(env)), "cannot repeat what SoftmaxAction does"),
        (lambda env: MixtureAction(env), "needs a view of the observation"),
        (
            lambda env: VecNormalize(VecNormalize(DummyVecEnv([lambda: Evidence(MixtureAction(env))]))),
            "one VecNormalize of the observation",
        ),
        (lambda env: DecodedMessage(MixtureAction(env)), "no contexts: let the policy see the message alone"),
        (
            lambda env: gym.wrappers.NormalizeObservation(Evidence(MixtureAction(env))),
            "cannot repeat what NormalizeObservation does: known are",
        ),
    ],
)
def test_what_a_learner_cannot_repeat_is_named(wrap, message, tmp_path):
    model = trained(make_vec_env(single, n_envs=2))
    env = wrap(gym.make("LDPDist-v0", **EASY))
    with pytest.raises(TypeError, match=message):
        save(model, env, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_help_names_every_setting_and_resume_needs_a_run(tmp_path):
    code, output = run("train", "--help")
    assert code == 0
    for name, algorithm in ALGORITHMS.items():
        assert f"{name} {algorithm.steps:,}" in output
        for setting in fields(algorithm.settings):
            assert f"{setting.name}=" in output, (name, setting.name)
    for text in ("recurrent: num_envs=64", "memory=64", "buffer_size=300000"):
        assert text in output, text
    code, output = run("train", "sac", "--resume", "--out", str(tmp_path / "nothing"))
    assert code == 2
    assert "there is no run to resume in" in output
    env = make_vec_env(single, n_envs=2)
    save(trained(env), env, tmp_path / "mine")
    code, output = run("train", "sac", "--resume", "--out", str(tmp_path / "mine"))
    assert "holds a run of 'sb3', not of 'sac'" in output
