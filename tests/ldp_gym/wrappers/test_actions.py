"""Logits as actions."""

import math

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules

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
    games = 3
    envs = vector(gym.make_vec("LDPDist-v0", num_envs=games, **small_rules()))
    envs.reset(seed=2)
    alone = [single(gym.make("LDPDist-v0", **small_rules())) for _ in range(games)]
    for i, env in enumerate(alone):
        env.reset(seed=2 + i)
    envs.action_space.seed(0)
    for _ in range(10):
        acts = envs.action_space.sample()
        _, rewards, *_ = envs.step(acts)
        np.testing.assert_allclose(rewards, [env.step(a)[1] for env, a in zip(alone, acts, strict=True)])
        assert np.isfinite(rewards).all()


def test_equal_logits_are_the_uniform_mixture():
    env = MixtureAction(gym.make("LDPDist-v0", **small_rules()))
    env.reset(seed=0)
    mixed = env.unwrapped.candidates.mean(axis=0)
    _, reward, *_ = env.step(np.zeros(4, dtype=np.float32))
    env.reset(seed=0)
    assert math.isclose(reward, env.unwrapped.step(mixed)[1], rel_tol=1e-12)


@pytest.mark.parametrize("wrapper", [MixtureAction, SoftmaxAction])
def test_an_action_is_turned_into_a_distribution_once(wrapper):
    with pytest.raises(TypeError, match=r"takes distributions; .* takes Box\(-5.0, 5.0"):
        wrapper(gym.make("LDPDistBox-v0", num_hypotheses=4, num_labels=4))


@pytest.mark.parametrize("wrapper", [VectorMixtureAction, VectorSoftmaxAction])
def test_the_actions_of_many_games_are_turned_into_distributions_once(wrapper):
    with pytest.raises(TypeError, match=r"takes distributions; .* takes Box\(-5.0, 5.0"):
        wrapper(gym.make_vec("LDPDistBox-v0", num_envs=2, num_hypotheses=4, num_labels=4))
