"""Wrappers for RL: single against vector, logits as actions, and views that show nothing hidden."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import CHANNELS, assert_same, assert_same_games, small_rules

import ldp_gym
from ldp_gym import wrappers

VIEWS, ACTIONS = ["EvidenceObservation", "MessageObservation"], ["MixtureAction", "SoftmaxAction"]
REDRAWN = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True, "horizon": 9}
ADAPTIVE = small_rules("adaptive-split", horizon=9)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("wrapper", "game"),
    [(view, game) for view in VIEWS for game in (small_rules(horizon=9), ADAPTIVE, REDRAWN)]
    + [(action, small_rules(horizon=9)) for action in ACTIONS],
    ids=str,
)
def test_wrapped_single_and_vector_environments_agree(wrapper, game, mode):
    """Through the end of an episode, whichever way the next begins, and a reset of some games."""
    native = gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode=mode, **game)
    native, single = getattr(wrappers, f"Vector{wrapper}")(native), getattr(wrappers, wrapper)
    sync = SyncVectorEnv([lambda: single(gym.make("LDPDist-v0", **game))] * 3, autoreset_mode=mode)
    native.action_space.seed(0)
    actions = [native.action_space.sample() for _ in range(24)]
    assert_same_games(native, sync, actions, rtol=1e-5)


@pytest.mark.parametrize("channel", CHANNELS)
def test_before_the_first_message_there_is_no_evidence(channel):
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


@pytest.mark.parametrize("wrapper", [wrappers.MixtureAction, wrappers.SoftmaxAction])
def test_wrappers_say_what_is_wrong(wrapper):
    env = wrapper(ldp_gym.LDPDistEnv())
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"finite logits of shape .*, got shape \(3,\)"):
        env.step(np.zeros(3))
    with pytest.raises(ValueError, match="finite logits"):
        env.step(np.full(env.action_space.shape, np.nan))
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        wrappers.MixtureAction(ldp_gym.LDPDistEnv()).step(np.zeros(8))


@pytest.mark.parametrize("name", [*ACTIONS, *(f"Vector{name}" for name in ACTIONS)])
def test_an_action_is_turned_into_a_distribution_once(name):
    make = partial(gym.make_vec, num_envs=2) if name.startswith("Vector") else gym.make
    with pytest.raises(TypeError, match=r"takes distributions; .* takes Box\(-5.0, 5.0"):
        getattr(wrappers, name)(make("LDPDistBox-v0", num_hypotheses=4, num_labels=4))
