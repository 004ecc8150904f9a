"""The public rules as an object."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules

import ldp_gym
from ldp_gym.engine.game import Game, game_of
from ldp_gym.wrappers import EvidenceObservation, MixtureAction, VectorMixtureAction


def test_a_game_has_the_sizes_of_its_channel():
    game = ldp_gym.LDPDistEnv(**small_rules()).game
    assert (game.num_hypotheses, game.num_labels, game.horizon) == (4, 6, 40)
    with pytest.raises(dataclasses.FrozenInstanceError):
        game.horizon = 7


def test_a_game_is_found_under_every_wrapper():
    env = gym.make("LDPDist-v0", **small_rules())
    envs = gym.make_vec("LDPDist-v0", num_envs=2, **small_rules())
    game = env.unwrapped.game
    assert game_of(game) is game_of(env) is game_of(EvidenceObservation(MixtureAction(env))) is game
    assert game_of(VectorMixtureAction(envs)) is envs.unwrapped.game
    for other in (gym.make("CartPole-v1"), None, "split", Game):
        with pytest.raises(TypeError, match="expected an environment of LDPDist-v0 or a Game, got"):
            game_of(other)


def test_the_public_posterior_begins_uniform():
    game = ldp_gym.LDPDistEnv(**small_rules()).game
    assert game.public_posterior().weights.tolist() == [0.25] * 4
    one, other = game.public_posterior((2, 3)), game.public_posterior((2, 3))
    assert one.weights.shape == (2, 3, 4)
    one.advance(np.log([0.1, 0.2, 0.3, 0.4]))
    assert (other.weights == 0.25).all(), "everyone keeps their own"
