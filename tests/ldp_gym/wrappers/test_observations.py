"""The views for RL: single against vector, and that they show nothing hidden."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers import small_rules
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from ldp_gym import wrappers

VIEWS = ["EvidenceObservation", "MessageObservation"]
REDRAWN = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True, "horizon": 9}
ADAPTIVE = small_rules("adaptive-split", horizon=9)


def assert_same(one, other):
    assert one.dtype == other.dtype == np.float32
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("game", [small_rules(horizon=9), ADAPTIVE, REDRAWN], ids=str)
def test_single_and_vector_views_agree(game, view, mode):
    """Through the end of an episode, whichever way the next begins."""
    envs = getattr(wrappers, f"Vector{view}")(
        gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode=mode, **game)
    )
    alone = [getattr(wrappers, view)(gym.make("LDPDist-v0", **game)) for _ in range(3)]
    shown, _ = envs.reset(seed=5)
    ours = [env.reset(seed=5 + i)[0] for i, env in enumerate(alone)]
    actions = envs.action_space.sample()
    for t in range(24):
        for i in range(3):
            assert_same(shown[i], ours[i])
        shown, _, over, _, infos = envs.step(actions)
        for i, env in enumerate(alone):
            if mode is AutoresetMode.NEXT_STEP and t % 10 == 9:
                ours[i] = env.reset()[0]
                continue
            ours[i], _, ended, _, _ = env.step(actions[i])
            assert ended == over[i]
            if ended and mode is AutoresetMode.SAME_STEP:
                assert_same(infos["final_obs"][i], ours[i])
                ours[i] = env.reset()[0]
        if mode is AutoresetMode.DISABLED and over.any():
            shown, _ = envs.reset(options={"reset_mask": over})
            ours = [env.reset()[0] for env in alone]


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "identity", "adaptive-wheel"])
def test_before_the_first_message_there_is_no_evidence(channel):
    """At the first reset and at later ones."""
    view = wrappers.EvidenceObservation(gym.make("LDPDist-v0", **small_rules(channel)))
    for _ in range(2):
        assert not view.reset(seed=0)[0].any()
        for _ in range(3):
            shown = view.step(np.full(6, 1 / 6))[0]
        assert shown[:-1].any()


@pytest.mark.parametrize("view", VIEWS)
def test_a_reset_of_some_games_leaves_the_others_evidence(view):
    game = small_rules(horizon=30)
    envs, alone = (
        getattr(wrappers, f"Vector{view}")(
            gym.make_vec("LDPDist-v0", num_envs=3, autoreset_mode="Disabled", **game)
        )
        for _ in range(2)
    )
    actions = envs.action_space.sample()
    for env in (envs, alone):
        env.reset(seed=1)
        for _ in range(5):
            env.step(actions)
    envs.reset(options={"reset_mask": np.array([False, True, False])})
    shown, kept = envs.step(actions)[0], alone.step(actions)[0]
    np.testing.assert_array_equal(shown[[0, 2]], kept[[0, 2]])
    assert not np.array_equal(shown[1], kept[1])


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
    assert_same(envs.step(actions)[0], all_at_once.step(actions)[0])


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "split"])
def test_the_checkers_pass_with_views(view, channel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tolerated in ("A Box observation space m", "We recommend you to use a symmetric and normalized"):
            warnings.filterwarnings("ignore", message=f".*{tolerated}")
        env = getattr(wrappers, view)(wrappers.MixtureAction(gym.make("LDPDist-v0", **small_rules(channel))))
        sb3_check_env(env)
    for _ in range(3):
        assert env.observation_space.contains(env.reset()[0])
        assert env.observation_space.contains(env.step(env.action_space.sample())[0])


@pytest.mark.parametrize("view", VIEWS)
def test_views_do_not_depend_on_truth_label_or_reward_but_by_the_message(view):
    """Two environments with the same messages and contexts, and everything hidden different."""

    class Deceived(gym.Wrapper):
        def step(self, action):
            observation, reward, *flags, info = self.env.step(action)
            return (
                observation,
                -1e6 * reward,
                *flags,
                {"truth": 3, "label": 2, "kl": 1e9, "tv": info["tv"] + 7},
            )

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
