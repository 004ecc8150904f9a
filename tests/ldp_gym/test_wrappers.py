"""Logits as actions: single against vector environments, and errors."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import assert_same_games, small_rules

import ldp_gym
from ldp_gym import wrappers

ACTIONS = ["MixtureAction", "SoftmaxAction"]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("wrapper", ACTIONS)
def test_wrapped_single_and_vector_environments_agree(wrapper, mode):
    """Through the end of an episode, whichever way the next begins, and a reset of some games."""
    game = small_rules(horizon=9)
    native = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode=mode, **game)
    native, single = getattr(wrappers, f"Vector{wrapper}")(native), getattr(wrappers, wrapper)
    sync = SyncVectorEnv([lambda: single(gym.make("LDPDist-v0", **game))] * 3, autoreset_mode=mode)
    native.action_space.seed(0)
    actions = [native.action_space.sample() for _ in range(24)]
    assert_same_games(native, sync, actions, rtol=1e-5)


def test_what_wrappers_go_around_is_checked():
    other = gym.make("CartPole-v1")
    for wrapper in (wrappers.MixtureAction, wrappers.SoftmaxAction):
        with pytest.raises(TypeError, match="environment of LDPDist-v0 or a Game, got .*CartPole"):
            wrapper(other)
    with pytest.raises(TypeError, match="around a vector environment goes VectorMixtureAction"):
        wrappers.MixtureAction(gym.make_vec("LDPDist-v0", num_envs=2))
    with pytest.raises(TypeError, match="around a single environment goes MixtureAction"):
        wrappers.VectorMixtureAction(ldp_gym.LDPDistEnv())
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        wrappers.MixtureAction(ldp_gym.LDPDistEnv()).step(np.zeros(8))


@pytest.mark.parametrize("name", [*ACTIONS, *(f"Vector{name}" for name in ACTIONS)])
def test_an_action_is_turned_into_a_distribution_once(name):
    make = partial(gym.make_vec, num_envs=2) if name.startswith("Vector") else gym.make
    with pytest.raises(TypeError, match=r"takes distributions; .* takes Box\(-5.0, 5.0"):
        getattr(wrappers, name)(make("LDPDistBox-v0", num_hypotheses=4, num_labels=4))
