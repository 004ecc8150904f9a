"""Games that start in different rounds."""

import gymnasium as gym
import numpy as np

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
