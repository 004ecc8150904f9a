"""SB3's view of the games: equal to a DummyVecEnv, step for step."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

import ldp_agents
import ldp_gym
from ldp_agents.rl import SB3VecEnv, ScoreCallback, make_sb3_env, score_policy
from ldp_gym import wrappers

VIEWS = {
    "raw": (lambda env: env, lambda env: env),
    "evidence": (wrappers.EvidenceObservation, wrappers.VectorEvidenceObservation),
}


def same(ours, theirs):
    assert type(ours) is type(theirs) or isinstance(ours, dict) == isinstance(theirs, dict)
    if isinstance(ours, dict):
        assert set(ours) == set(theirs)
        for key in ours:
            same(ours[key], theirs[key])
    else:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("rules", [{}, {"channel": "randomized-response", "reveal": True}])
def test_games_in_lock_step_are_a_dummy_vec_env(view, rules):
    game = small_rules(**rules, horizon=7)
    single, vector = VIEWS[view]
    games = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode="SameStep", **game)
    ours = SB3VecEnv(vector(wrappers.VectorMixtureAction(games)))
    theirs = DummyVecEnv([lambda: single(wrappers.MixtureAction(gym.make("LDPDist-v0", **game)))] * 3)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng = np.random.default_rng(0)
    for env in (ours, theirs):
        env.seed(4)
    for _ in range(2):  # the second time without a seed
        same(ours.reset(), theirs.reset())
        assert ours.reset_infos == theirs.reset_infos
        for _ in range(17):
            actions = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
            (seen, rewards, over, infos), expected = ours.step(actions), theirs.step(actions)
            same(seen, expected[0])
            np.testing.assert_allclose(rewards, expected[1], rtol=1e-5)
            np.testing.assert_array_equal(over, expected[2])
            assert (rewards.dtype, over.dtype) == (expected[1].dtype, expected[2].dtype)
            for info, other in zip(infos, expected[3], strict=True):
                same(info, other)
            assert ours.reset_infos == theirs.reset_infos
            rewards[:] = 0.0  # SB3 writes into what it gets


def test_what_sb3_asks_of_its_games():
    games = gym.make_vec("LDPDist-v0", num_envs=2, autoreset_mode="SameStep", **small_rules())
    env = SB3VecEnv(wrappers.VectorEvidenceObservation(wrappers.VectorMixtureAction(games)))
    assert [game.horizon for game in env.get_attr("game")] == [40, 40]
    assert env.env_is_wrapped(wrappers.VectorEvidenceObservation) == [True, True]
    assert env.env_is_wrapped(gym.wrappers.vector.RecordEpisodeStatistics, indices=[0]) == [False]
    env.set_options({"truth": 2})
    env.reset()
    env.set_attr("note", "seen")
    assert games.note == "seen"
    with pytest.raises(ValueError, match="cannot differ between them"):
        env.set_attr("note", 1, indices=[0])
    with pytest.raises(NotImplementedError, match="call it on SB3VecEnv.envs"):
        env.env_method("reset")
    env.set_options([{"truth": 1}, {"truth": 2}])
    with pytest.raises(ValueError, match="share their reset options"):
        env.reset()
    env.close()
    with pytest.raises(ValueError, match='make the environment with autoreset_mode="SameStep", got'):
        SB3VecEnv(gym.make_vec("LDPDist-v0", num_envs=2))


class Prior:
    """A policy that plays the uniform mixture, or a fixed hypothesis."""

    def __init__(self, logit=0.0):
        self.logit = logit

    def predict(self, observations, state, episode_start, deterministic):
        return np.tile([self.logit, 0.0, 0.0, 0.0], (len(observations), 1)), state


def test_scores_are_relative_to_uniform_and_bayes_on_the_same_episodes():
    rules = small_rules("split", truth=1)
    assert score_policy(Prior(), episodes=4, **rules) == pytest.approx(0.0, abs=1e-6)
    uniform, bayes, ours = (
        ldp_gym.evaluate(learner, rules, episodes=4, seed=3).risk for learner in ("uniform", "bayes", First)
    )
    expected = (uniform - ours) / (uniform - bayes)
    assert score_policy(Prior(20.0), episodes=4, seed=3, **rules) == pytest.approx(expected, rel=1e-4)


class First(ldp_agents.Learner):
    def predict(self, candidates):
        weights = np.exp([20.0, 0.0, 0.0, 0.0])
        return np.einsum("k,...km->...m", weights / weights.sum(), candidates)

    def update(self, candidates, message):
        pass


def test_a_callback_logs_scores():
    env = make_sb3_env("LDPDistBox-easy-v0", num_envs=4, horizon=8)
    callback = ScoreCallback()
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=64, n_epochs=1, device="cpu", seed=0)
    model.learn(64, callback=callback)
    assert [steps for steps, _ in callback.scores] == [32] * 4 + [64] * 4
    assert model.logger.name_to_value or np.isfinite([value for _, value in callback.scores]).all()
    assert len(model.ep_info_buffer) == 8, "returns are in SB3's logs"
