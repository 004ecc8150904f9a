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


def staggered(copies=1):
    return wrappers.StaggeredStart(gym.make_vec("LDPDist-v0", num_envs=6, horizon=12, reveal=True), copies)


def test_copies_without_a_seed_are_the_same_and_others_are_not():
    envs = staggered(copies=3)
    for _ in range(2):
        contexts = envs.reset()[0]["context"]
        np.testing.assert_array_equal(contexts[[0, 3]], contexts[[2, 5]])
        assert (contexts[0] != contexts[3]).all()


def test_seeds_of_copies_are_of_any_kind_that_seeds_are():
    (first, _), (same, _) = (staggered(copies=3).reset(seed=seed) for seed in (3, np.int64(3)))
    np.testing.assert_array_equal(first["context"], same["context"])
    with pytest.raises(ValueError, match="a list of 6, one for each game, got 2"):
        staggered(copies=3).reset(seed=[1, 2])


def test_every_game_of_a_staggered_start_has_the_truth_that_was_chosen():
    envs = staggered()
    envs.reset(seed=0, options={"truth": 2})
    assert (envs.step(np.full((6, 16), 1 / 16))[4]["truth"] == 2).all()


def test_a_reset_of_some_games_leaves_the_others_in_their_rounds():
    envs = staggered()
    envs.reset(seed=0)
    shown, _ = envs.reset(options={"reset_mask": np.array([True, False, False, False, False, False])})
    assert shown["round"].ravel().tolist() == [0, 8, 6, 4, 2, 0]
