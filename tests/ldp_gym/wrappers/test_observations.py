"""The views for RL: single against vector, and that they show nothing hidden."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import CHANNELS, assert_same, assert_same_games, small_rules

from ldp_gym import wrappers

VIEWS = ["EvidenceObservation", "MessageObservation"]
REDRAWN = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True, "horizon": 9}
ADAPTIVE = small_rules("adaptive-split", horizon=9)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("game", [small_rules(horizon=9), ADAPTIVE, REDRAWN], ids=str)
def test_single_and_vector_views_agree(game, view, mode):
    """Through the end of an episode, whichever way the next begins, and a reset of some games."""
    native = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode=mode, **game)
    native = getattr(wrappers, f"Vector{view}")(native)
    single = getattr(wrappers, view)
    sync = SyncVectorEnv([lambda: single(gym.make("LDPDist-v0", **game))] * 3, autoreset_mode=mode)
    labels = native.single_action_space.shape[0]
    actions = np.random.default_rng(0).dirichlet(np.ones(labels), size=(24, 3))
    assert_same_games(native, sync, actions, rtol=1e-5)


@pytest.mark.parametrize("channel", CHANNELS)
def test_before_the_first_message_there_is_no_evidence(channel):
    """At the first reset and at later ones."""
    view = wrappers.EvidenceObservation(gym.make("LDPDist-v0", **small_rules(channel)))
    for _ in range(2):
        assert not view.reset(seed=0)[0].any()
        for _ in range(3):
            shown = view.step(np.full(6, 1 / 6))[0]
        assert shown[:-1].any()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("game", [small_rules(horizon=9), REDRAWN], ids=str)
def test_the_first_reset_may_be_of_some_games(game, view):
    envs, all_at_once = (
        getattr(wrappers, f"Vector{view}")(gym.make_vec("LDPDist-v0", num_envs=3, **game)) for _ in range(2)
    )
    some = np.array([True, False, True])
    begun, _ = envs.reset(seed=1, options={"reset_mask": some})
    whole, _ = envs.reset(seed=1, options={"reset_mask": ~some})
    expected, _ = all_at_once.reset(seed=1)
    np.testing.assert_array_equal(begun[some], expected[some])
    np.testing.assert_array_equal(whole, expected)
    actions = envs.action_space.sample()
    assert_same(envs.step(actions)[0], all_at_once.step(actions)[0], 1e-5)


@pytest.mark.parametrize("view", VIEWS)
def test_views_do_not_depend_on_truth_label_or_reward_but_by_the_message(view):
    """Two environments with the same messages and contexts, and everything hidden different."""

    class Deceived(gym.Wrapper):
        def step(self, action):
            observation, reward, *flags, info = self.env.step(action)
            hidden = {"truth": 3, "label": 2, "kl": 1e9, "tv": info["tv"] + 7}
            return observation, -1e6 * reward, *flags, hidden

    game = small_rules(reveal=True)
    plain, deceived = (
        getattr(wrappers, view)(wrap(gym.make("LDPDist-v0", **game))) for wrap in (lambda env: env, Deceived)
    )
    assert_same(plain.reset(seed=3)[0], deceived.reset(seed=3)[0])
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert_same(plain.step(rng.dirichlet(np.ones(6)))[0], deceived.step(rng.dirichlet(np.ones(6)))[0])


def test_what_wrappers_go_around_is_checked():
    other = gym.make("CartPole-v1")
    for wrapper in (wrappers.EvidenceObservation, wrappers.MixtureAction, wrappers.SoftmaxAction):
        with pytest.raises(TypeError, match="environment of LDPDist-v0 or a Game, got .*CartPole"):
            wrapper(other)
    seen = wrappers.EvidenceObservation(gym.make("LDPDist-v0"))
    with pytest.raises(TypeError, match="goes around what shows messages; <Evidence"):
        wrappers.EvidenceObservation(seen)
