"""LDPNature-v0: the games of evaluate, rewards and information by brute force, pools, and scores."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import assert_same_games, record, small_rules, total_kl
from scipy.special import rel_entr

import ldp_gym
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.theory import information_rate

SIZES = {"num_hypotheses": 4, "num_labels": 6, "context_dim": 3, "pool_size": 5}
FIXED = {**SIZES, "redraw_hypotheses": False}


def expected_losses(weights, candidates):
    """J_x(w) at each context of a pool, by a loop over hypotheses, from candidates (P, K, M)."""
    losses = []
    for table in candidates:
        divergences = rel_entr(table, weights @ table).sum(axis=1)
        losses.append(weights @ divergences)
    return np.array(losses)


def test_a_row_shows_the_posterior_the_time_and_loss_and_information_of_each_context():
    env = gym.make("LDPNature-v0", channel="randomized-response", epsilon=2.0, horizon=20, **FIXED)
    env.reset(seed=0)
    for _ in range(7):
        row, *_ = env.step(2)
    game = env.unwrapped.game
    candidates = game.hypotheses(env.unwrapped.pool)

    weights = row[:4].astype(np.float64)
    losses = expected_losses(weights, candidates)
    information = [information_rate(game.channel, table, weights).rate for table in candidates]

    assert row.dtype == np.float32
    assert weights.sum() == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(row[4:8], np.log(weights), rtol=1e-5)
    assert row[8] == np.float32(7 / 20)
    np.testing.assert_allclose(row[9:14], np.log(losses), rtol=1e-4)
    np.testing.assert_allclose(row[14:19], np.log(information), rtol=1e-4)


def test_logarithms_in_a_row_have_a_floor_and_stay_in_the_space():
    env = gym.make("LDPNature-v0", epsilon=20.0, horizon=300, **FIXED)
    row, _ = env.reset(seed=0)
    for t in range(300):
        assert row in env.observation_space
        row, *_ = env.step(t % 5)
    assert row[4:8].min() == -10.0
    assert row[9:].min() == -20.0


def test_the_reward_is_the_expected_loss_of_the_context():
    env = gym.make("LDPNature-v0", horizon=6, **FIXED)
    row, _ = env.reset(seed=3)
    candidates = env.unwrapped.game.hypotheses(env.unwrapped.pool)
    for choice in (4, 0, 3):
        losses = expected_losses(row[:4].astype(np.float64), candidates)
        row, reward, *_ = env.step(choice)
        assert reward == pytest.approx(losses[choice], rel=1e-5)


def test_the_reward_is_the_loss_that_was_shown_in_a_redrawn_game():
    env = gym.make("LDPNature-v0", horizon=6, **SIZES)
    row, _ = env.reset(seed=3)
    for choice in (4, 0, 3):
        shown = np.exp(row[9:14].astype(np.float64))
        row, reward, *_ = env.step(choice)
        assert reward == pytest.approx(shown[choice], rel=1e-5)


def test_the_adversary_of_the_rules_picks_the_same_contexts_as_the_role_s():
    """In a fixed game: the same contexts, labels and losses as evaluate with the nature "adversary"."""
    rules = small_rules("split", "adversary", nature_kwargs={"pool_size": 5}, horizon=30)
    _, tape = record(rules, seed=2)
    env = gym.make("LDPNature-v0", horizon=30, reveal=True, **FIXED)
    env.reset(seed=2)
    role = env.unwrapped._referee.role

    labels = []
    contexts = []
    losses = 0.0
    for _ in range(30):
        choice = int(role.adversary()[0])
        contexts.append(env.unwrapped.pool[choice])
        *_, info = env.step(choice)
        labels.append(info["label"])
        losses += info["kl"]

    np.testing.assert_array_equal(contexts, tape.contexts[0])
    assert labels == tape.labels[0].tolist()
    assert losses == pytest.approx(total_kl("bayes", gym.make("LDPDist-v0", **rules), seed=2))
    assert info["risk"] == pytest.approx(losses)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("rules", [SIZES, FIXED, {**SIZES, "channel": "adaptive-split"}])
def test_single_and_vector_environments_agree(rules, mode):
    rules = {**rules, "horizon": 9}
    native = gym.make_vec("LDPNature-v0", num_envs=3, autoreset_mode=mode, **rules)
    sync = SyncVectorEnv([lambda: gym.make("LDPNature-v0", **rules)] * 3, autoreset_mode=mode)
    actions = np.random.default_rng(0).integers(5, size=(24, 3))
    assert_same_games(native, sync, actions, rtol=1e-5)


def test_class_and_pool_are_redrawn_in_every_episode():
    env = gym.make("LDPNature-v0", horizon=5, **SIZES)
    env.reset(seed=0)
    first = env.unwrapped.pool
    rows = [env.step(0)[0]]
    env.reset()
    second = env.unwrapped.pool
    rows.append(env.step(0)[0])
    env.reset(seed=0)

    assert first.shape == (5, 3)
    assert not np.allclose(first, second)
    assert not np.allclose(rows[0], rows[1])
    np.testing.assert_array_equal(env.unwrapped.pool, first)
    np.testing.assert_array_equal(env.step(0)[0], rows[0])


def test_the_fixed_game_keeps_class_and_pool():
    env = gym.make("LDPNature-fixed-v0", horizon=5)
    first, _ = env.reset(seed=0)
    pool = env.unwrapped.pool
    second, _ = env.reset(seed=1)
    assert pool.shape == (32, 4)
    np.testing.assert_array_equal(env.unwrapped.pool, pool)
    np.testing.assert_array_equal(first, second)


def test_a_pool_that_is_given_is_not_redrawn():
    pool = [[1.0, 0.0, 2.0], [0.5, 0.1, 0.3]]
    envs = gym.make_vec("LDPNature-v0", num_envs=2, horizon=5, pool=pool, context_dim=3)
    rows, _ = envs.reset(seed=0)
    assert envs.unwrapped.pool.tolist() == pool
    assert envs.single_action_space == gym.spaces.Discrete(2)
    assert not np.allclose(rows[0], rows[1]), "the classes differ"


def test_a_vector_environment_shows_the_pool_of_each_game():
    envs = gym.make_vec("LDPNature-v0", num_envs=2, horizon=5, **SIZES)
    envs.reset(seed=7)
    alone = gym.make("LDPNature-v0", horizon=5, **SIZES)
    alone.reset(seed=8)
    assert envs.unwrapped.pool.shape == (2, 5, 3)
    np.testing.assert_array_equal(envs.unwrapped.pool[1], alone.unwrapped.pool)


def test_scores_are_0_for_random_contexts_and_1_for_the_adversary():
    """On other episodes than those of the references."""
    envs = gym.make_vec(
        "LDPNature-v0", num_envs=300, horizon=60, epsilon=2.0, autoreset_mode="Disabled", **FIXED
    )
    role = envs.unwrapped._referee.role
    rng = np.random.default_rng(1)

    def score(choose):
        envs.reset(seed=TEST.start)
        for _ in range(60):
            *_, infos = envs.step(choose())
        return infos["score"].mean()

    assert abs(score(lambda: rng.integers(5, size=300))) < 0.3
    assert abs(score(role.adversary) - 1.0) < 0.3


def test_the_expected_sum_of_rewards_is_the_risk_of_bayes():
    """Under a uniform truth, for contexts that follow the transcript; 400 episodes."""
    envs = gym.make_vec("LDPNature-v0", num_envs=400, horizon=25, **SIZES)
    envs.reset(seed=0)
    role = envs.unwrapped._referee.role
    differences = np.zeros(400)
    for _ in range(25):
        _, rewards, _, _, infos = envs.step(role.adversary())
        differences += infos["kl"] - rewards
    error = differences.std() / np.sqrt(400)
    assert abs(differences.mean()) < 5.0 * error


def test_the_checkers_of_the_libraries_pass():
    env = gym.make("LDPNature-v0", horizon=5)
    check_env(env.unwrapped)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env)
    assert gym.make(EnvSpec.from_json(env.spec.to_json())).spec.kwargs == {"horizon": 5}


@pytest.mark.parametrize("action", [5, -1, 0.5, [1], "east", None])
def test_an_action_is_the_index_of_a_context(action):
    env = gym.make("LDPNature-v0", horizon=5, **SIZES)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"an action is indices of contexts.* in 0\.\.4"):
        env.step(action)


def test_a_class_without_contexts_is_refused():
    with pytest.raises(ValueError, match=r"needs a class with contexts.*'softmax-linear'"):
        gym.make("LDPNature-v0", hypotheses="dirichlet")


def test_learners_do_not_play_it():
    with pytest.raises(TypeError, match="learners do not play"):
        ldp_gym.evaluate("bayes", gym.make("LDPNature-v0"), episodes=1)
