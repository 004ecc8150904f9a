"""Logits as actions."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from helpers import assert_same_games, small_rules

import ldp_gym
from ldp_gym.wrappers import MixtureAction, SoftmaxAction, VectorMixtureAction, VectorSoftmaxAction


@pytest.mark.parametrize("wrapper", [MixtureAction, SoftmaxAction])
def test_wrappers_say_what_is_wrong(wrapper):
    env = wrapper(ldp_gym.LDPDistEnv())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"finite logits of shape .*, got shape \(3,\)"):
        env.step(np.zeros(3))
    with pytest.raises(ValueError, match="finite logits"):
        env.step(np.full(env.action_space.shape, np.nan))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        MixtureAction(ldp_gym.LDPDistEnv()).step(np.zeros(8))


@pytest.mark.parametrize(
    ("single", "vector"), [(MixtureAction, VectorMixtureAction), (SoftmaxAction, VectorSoftmaxAction)]
)
def test_wrapped_single_and_vector_environments_agree(single, vector):
    native = vector(gym.make_vec("LDPDist-v0", num_envs=3, **small_rules()))
    sync = SyncVectorEnv([lambda: single(gym.make("LDPDist-v0", **small_rules()))] * 3)
    native.action_space.seed(0)
    assert_same_games(native, sync, [native.action_space.sample() for _ in range(10)])


def test_equal_logits_are_the_uniform_mixture():
    env = MixtureAction(gym.make("LDPDist-v0", **small_rules()))
    env.reset(seed=0)
    mixed = env.unwrapped.candidates.mean(axis=0)
    _, reward, *_ = env.step(np.zeros(4, dtype=np.float32))
    env.reset(seed=0)
    assert math.isclose(reward, env.unwrapped.step(mixed)[1], rel_tol=1e-12)


@pytest.mark.parametrize(
    ("wrapper", "make"),
    [(wrapper, gym.make) for wrapper in (MixtureAction, SoftmaxAction)]
    + [
        (wrapper, partial(gym.make_vec, num_envs=2)) for wrapper in (VectorMixtureAction, VectorSoftmaxAction)
    ],
)
def test_an_action_is_turned_into_a_distribution_once(wrapper, make):
    with pytest.raises(TypeError, match=r"takes distributions; .* takes Box\(-5.0, 5.0"):
        wrapper(make("LDPDistBox-v0", num_hypotheses=4, num_labels=4))
