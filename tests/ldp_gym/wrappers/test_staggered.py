"""Games that start in different rounds."""

import gymnasium as gym
import numpy as np
import pytest

from ldp_gym import wrappers


def test_a_staggered_start_spreads_the_games_over_the_episode():
    games = gym.make_vec(
        "LDPDist-v0", num_envs=5, horizon=20, hypotheses="dirichlet", autoreset_mode="SameStep"
    )
    envs = wrappers.StaggeredStart(wrappers.VectorEvidence(wrappers.VectorMixtureAction(games)))
    shown, _ = envs.reset(seed=0)
    np.testing.assert_allclose(shown[:, -1] * 20, [16, 12, 8, 4, 0], atol=1e-4)
    ended = [np.flatnonzero(envs.step(np.zeros((5, 8)))[2]).tolist() for _ in range(20)]
    assert [games for games in ended if games] == [[0], [1], [2], [3], [4]]
    assert [t for t, games in enumerate(ended) if games] == [3, 7, 11, 15, 19]


def test_a_staggered_start_of_distributions():
    envs = wrappers.StaggeredStart(gym.make_vec("LDPDist-v0", num_envs=2, horizon=4))
    shown, _ = envs.reset(seed=0)
    assert shown["message"][0].any()
    assert not shown["message"][1].any()


def test_copies_play_the_same_episodes_whatever_they_do():
    games = gym.make_vec("LDPDist-v0", num_envs=6, horizon=5, autoreset_mode="SameStep")
    envs = wrappers.StaggeredStart(wrappers.VectorMixtureAction(games), copies=3)
    seen, _ = envs.reset(seed=7)
    rng, rewards = np.random.default_rng(0), []
    for _ in range(12):  # over the ends of episodes
        for value in seen.values():
            np.testing.assert_array_equal(value[:3], value[[0, 0, 0]])
            np.testing.assert_array_equal(value[3:], value[[3, 3, 3]])
        seen, reward, *_ = envs.step(rng.uniform(-1.0, 1.0, (6, 8)))
        rewards.append(reward)
    assert (np.std(np.array(rewards).reshape(-1, 3), axis=1) > 0).all()
    assert (seen["round"][0] != seen["round"][3]).all()
    with pytest.raises(ValueError, match="6 games cannot be 4 copies each"):
        wrappers.StaggeredStart(games, copies=4)
