"""Every episode has a generator of its own, and the same seed gives the same."""

import numpy as np
from helpers import small_rules

import ldp_gym
from ldp_gym.engine.scenario import episode_generator, first_generator


def test_the_first_episode_s_generator_is_that_of_a_reset_environment():
    """Gymnasium's own seeding, then the first child."""
    from gymnasium.utils.seeding import np_random

    for seed in (0, 7, 2**40):
        root, _ = np_random(seed)
        drawn = episode_generator(root).random(5)
        np.testing.assert_array_equal(first_generator(seed).random(5), drawn)


def test_an_episode_s_generator_does_not_depend_on_draws_from_the_root():
    plain, used = np.random.default_rng(3), np.random.default_rng(3)
    used.random(1000)
    for _ in range(3):
        np.testing.assert_array_equal(episode_generator(plain).random(4), episode_generator(used).random(4))


def test_episodes_differ():
    root = np.random.default_rng(3)
    draws = [episode_generator(root).random() for _ in range(20)]
    draws += [first_generator(seed).random() for seed in range(10, 30)]
    assert len(set(draws)) == 40


def test_an_environment_s_episodes_are_those_of_its_seed():
    """reset(seed=s) and two more resets, twice: the same three games, all different."""
    env = ldp_gym.LDPDistEnv(**small_rules(reveal=True))
    games = []
    for _ in range(2):
        games.append([env.reset(seed=s)[0]["context"] for s in (5, None, None)])
    np.testing.assert_array_equal(*games)
    assert len({context.tobytes() for context in games[0]}) == 3
