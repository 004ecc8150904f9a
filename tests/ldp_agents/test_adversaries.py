"""Rules that pick contexts: as policies, in scores, and as natures."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO

import ldp_gym
from ldp_agents.adversaries import (
    ConstantContext,
    CostliestToLearn,
    KeptContext,
    LargestLoss,
    RandomContexts,
)
from ldp_agents.rl import as_nature, make_sb3_env, score_policy
from ldp_gym.testing import check_nature

RULES = {"num_hypotheses": 3, "num_labels": 5, "horizon": 30, "epsilon": 2.0}
"""A small game of LDPNature-v0."""


def losses_of(pool, candidates, weights):
    """J_x(w) = sum_k w_k KL(f_k(x), f_w(x)) at each context, written out."""
    losses = []
    for table in candidates(pool):
        mixed = weights @ table
        losses.append(weights @ (table * np.log(table / mixed)).sum(axis=1))
    return np.array(losses)


def test_the_largest_loss_is_that_of_the_round():
    env = gym.make("LDPNature-fixed-v0", pool_size=6, **RULES)
    policy = LargestLoss(env)
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        weights = observation[:3].astype(float)
        losses = losses_of(env.unwrapped.pool, env.unwrapped.game.hypotheses, weights)
        (choice,) = policy(observation[None])
        assert losses[choice] == pytest.approx(losses.max(), rel=1e-5)
        observation, *_ = env.step(choice)


def test_the_costliest_context_is_that_of_the_nature_adversary():
    """The same contexts, so the same risks, episode by episode."""
    env = gym.make("LDPNature-fixed-v0", pool_size=6, **RULES)
    pool = {"pool": env.unwrapped.pool.tolist()}
    rules = {**RULES, "channel": "split"}
    adversary = {**rules, "nature": "adversary", "nature_kwargs": pool}
    ours = {**rules, "nature": as_nature(CostliestToLearn(env), env)}
    expected = ldp_gym.evaluate("bayes", adversary, episodes=20).kl
    np.testing.assert_allclose(ldp_gym.evaluate("bayes", ours, episodes=20).kl, expected)


@pytest.mark.parametrize("rule", [LargestLoss, CostliestToLearn])
def test_a_nature_plays_the_games_of_the_environment(rule):
    env = gym.make("LDPNature-fixed-v0", pool_size=6, **RULES)
    policy = rule(env)
    nature = as_nature(policy, env)
    rules = {**RULES, "channel": "split", "nature": nature}
    losses = ldp_gym.evaluate("bayes", rules, episodes=5).kl[:, -1]
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        total = 0.0
        for _ in range(30):
            observation, *_, info = env.step(policy(observation[None])[0])
            total += info["kl"]
        assert losses[seed] == pytest.approx(total, rel=1e-9)


def test_a_policy_of_ppo_is_a_nature():
    env = make_sb3_env("LDPNature-v0", num_envs=2, pool_size=6, **RULES)
    model = PPO("MlpPolicy", env, n_steps=8, batch_size=16)
    nature = as_nature(model, env, pool_seed=3)
    rules = {**RULES, "channel": "split", "nature": nature}
    assert ldp_gym.evaluate("bayes", rules, episodes=4).risk > 0.0


def test_a_nature_of_a_policy_keeps_the_contract():
    env = gym.make("LDPNature-v0", pool_size=6, **RULES)
    check_nature(as_nature(lambda rows: (rows[:, 0] > 0.3).astype(int), env))


def test_a_nature_of_an_environment_that_draws_pools_has_the_pool_of_its_seed():
    env = gym.make("LDPNature-v0", pool_size=6, **RULES)
    first = as_nature(LargestLoss(env), env, pool_seed=3)
    second = as_nature(LargestLoss(env), env, pool_seed=4)
    assert first.pool.shape == (6, 4)
    assert not np.array_equal(first.pool, second.pool)


def test_other_environments_are_no_place_for_natures():
    with pytest.raises(TypeError, match="env must be an environment of LDPNature-v0"):
        as_nature(np.cos, gym.make("LDPDist-v0"))


def test_what_is_no_policy_is_refused():
    with pytest.raises(TypeError, match=r"have predict\(\), got 'ppo'"):
        as_nature("ppo", gym.make("LDPNature-v0", pool_size=6, **RULES))


@pytest.mark.parametrize("choices", [[0, 9], [0, -1], [0], [0.5, 1.0]])
def test_choices_outside_of_the_pool_are_refused(choices):
    env = gym.make("LDPNature-fixed-v0", pool_size=6, **RULES)
    nature = as_nature(lambda rows: np.array(choices), env)
    rules = {**RULES, "channel": "split", "nature": nature}
    with pytest.raises((ValueError, TypeError), match="contexts"):
        ldp_gym.evaluate("bayes", rules, episodes=2)


def test_a_kept_context_is_that_of_the_first_round_of_its_episode():
    env = gym.make_vec("LDPNature-v0", 2, pool_size=6, **RULES)
    policy = KeptContext(env)
    first, _ = env.reset(seed=3)
    chosen, state = policy.predict(first, None, np.ones(2, dtype=bool))
    np.testing.assert_array_equal(chosen, CostliestToLearn(env)(first))
    later = env.step(1 - np.minimum(chosen, 1))[0]
    kept, state = policy.predict(later, state, np.zeros(2, dtype=bool))
    np.testing.assert_array_equal(kept, chosen)
    other, _ = env.reset(seed=40)
    mixed, _ = policy.predict(other, state, np.array([True, False]))
    assert mixed.tolist() == [CostliestToLearn(env)(other)[0], chosen[1]]


def test_a_constant_context_is_its_index():
    env = gym.make_vec("LDPNature-v0", 2, pool_size=6, **RULES)
    choices, _ = ConstantContext(env, 4).predict(env.reset(seed=3)[0])
    assert choices.tolist() == [4, 4]


def test_random_contexts_come_from_the_whole_pool():
    env = gym.make_vec("LDPNature-v0", 200, pool_size=6, **RULES)
    choices = RandomContexts(env)(env.reset(seed=3)[0])
    assert set(choices.tolist()) == set(range(6))


def test_the_adversary_scores_1_and_random_contexts_0():
    game = gym.make("LDPNature-v0", **RULES)
    best = score_policy(CostliestToLearn(game), "LDPNature-v0", episodes=64, **RULES)
    worst = score_policy(RandomContexts(game), "LDPNature-v0", episodes=64, **RULES)
    assert (float(best), float(worst)) == (pytest.approx(1.0), pytest.approx(0.0))


def test_a_total_of_contexts_is_the_negated_return():
    game = gym.make("LDPNature-v0", **RULES)
    score = score_policy(ConstantContext(game, 2), "LDPNature-v0", episodes=64, seed=7, **RULES)
    game.reset(seed=8)
    rewards = [game.step(2)[1] for _ in range(30)]
    assert score.totals[1] == pytest.approx(-sum(rewards), rel=1e-9)
