"""The public rules as an object."""

import gymnasium as gym
import pytest
from helpers import small_rules

from ldp_gym.engine.game import Game, game_of
from ldp_gym.wrappers import EvidenceObservation, MixtureAction, VectorMixtureAction


def test_a_game_is_found_under_every_wrapper():
    env = gym.make("LDPDist-v0", **small_rules())
    envs = gym.make_vec("LDPDist-v0", num_envs=2, **small_rules())
    game = env.unwrapped.game
    assert game_of(game) is game_of(env) is game_of(EvidenceObservation(MixtureAction(env))) is game
    assert game_of(VectorMixtureAction(envs)) is envs.unwrapped.game
    for other in (gym.make("CartPole-v1"), None, "split", Game):
        with pytest.raises(TypeError, match="expected an environment of LDPDist-v0 or a Game, got"):
            game_of(other)
