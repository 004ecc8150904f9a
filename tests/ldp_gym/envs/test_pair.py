"""Nature against the designer: PettingZoo's own tests, a round by the formulas, and LDPAsk-v0's game."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from scipy.special import rel_entr

import ldp_gym

pettingzoo_tests = pytest.importorskip("pettingzoo.test")

SMALL = {"num_hypotheses": 3, "num_labels": 4, "context_dim": 2, "pool_size": 5, "horizon": 6}


def test_pettingzoo_s_test_of_parallel_environments_passes():
    pettingzoo_tests.parallel_api_test(ldp_gym.parallel_env(**SMALL), num_cycles=20)


def test_pettingzoo_s_test_of_seeds_passes():
    pettingzoo_tests.parallel_seed_test(lambda: ldp_gym.parallel_env(**SMALL))


def test_a_round_is_that_of_the_formulas():
    """The posterior after the answer at the context of Nature, and both rewards."""
    env = ldp_gym.parallel_env(epsilon=1.5, **SMALL)
    observations, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    flip = 1 / (1 + math.exp(1.5))
    for choice in (3, 0, 4):
        tables = observations["designer"][7:].reshape(5, 3, 4).astype(np.float64)
        weights = observations["nature"][:3].astype(np.float64)
        loss = weights @ rel_entr(tables[choice], weights @ tables[choice]).sum(axis=1)
        contrasts = rng.uniform(-1, 1, (5, 3))
        yes = np.where(contrasts[choice] @ tables[choice] > 0, 1 - flip, flip)
        law = tables[choice] @ yes
        posteriors = [weights * law, weights * (1 - law)]

        assert observations["nature"][7 + choice] == pytest.approx(math.log(loss), abs=1e-4)
        observations, rewards, *_ = env.step({"nature": choice, "designer": contrasts})

        assert rewards["nature"] == pytest.approx(loss, rel=1e-4)
        assert rewards["designer"] == -rewards["nature"]
        after = observations["designer"][:3]
        distances = [abs(after - posterior / posterior.sum()).max() for posterior in posteriors]
        assert min(distances) < 1e-5


def test_the_designer_plays_the_game_of_ldpask_against_a_nature_of_the_rules():
    """Nature's choices in a fixed order are the nature "cycle": the same losses and posteriors."""
    env = ldp_gym.parallel_env(redraw_hypotheses=False, **SMALL)
    rules = {name: value for name, value in SMALL.items() if name != "pool_size"}
    ask = gym.make(
        "LDPAsk-v0",
        hypotheses="softmax-linear",
        nature="cycle",
        nature_kwargs={"pool_size": 5},
        **rules,
    )
    observations, _ = env.reset(seed=1)
    row, _ = ask.reset(seed=1)
    contrast = np.array([0.3, -0.9, 0.6])
    for t in range(6):
        np.testing.assert_allclose(observations["designer"][:7], row[:7], rtol=1e-6)
        actions = {"nature": t % 5, "designer": np.tile(contrast, (5, 1))}
        observations, _, terminations, _, infos = env.step(actions)
        row, _, over, _, info = ask.step(contrast)
        assert infos["nature"]["kl"] == pytest.approx(info["kl"], rel=1e-9)
        assert terminations == {"nature": over, "designer": over}


def test_a_game_ends_for_both_agents_and_must_be_reset():
    env = ldp_gym.parallel_env(**SMALL | {"horizon": 2})
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step({})
    env.reset(seed=0)
    actions = {"nature": 0, "designer": np.zeros((5, 3))}
    env.step(actions)
    *_, terminations, truncations, _ = env.step(actions)
    assert terminations == {"nature": True, "designer": True}
    assert truncations == {"nature": False, "designer": False}
    assert env.agents == []
    with pytest.raises(ResetNeeded, match="the game is over"):
        env.step(actions)


def test_spaces_and_pool_have_their_shapes():
    env = ldp_gym.parallel_env(**SMALL)
    env.reset(seed=0)
    assert env.pool.shape == (5, 2)
    assert env.observation_space("nature").shape == (2 * 3 + 1 + 5,)
    assert env.observation_space("designer").shape == (2 * 3 + 1 + 5 * 3 * 4,)
    assert env.action_space("nature") == gym.spaces.Discrete(5)
    assert env.action_space("designer").shape == (5, 3)


def test_actions_are_checked():
    env = ldp_gym.parallel_env(**SMALL)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"whole numbers in 0\.\.4"):
        env.step({"nature": 5, "designer": np.zeros((5, 3))})
    with pytest.raises(ValueError, match=r"finite coefficients of shape \(5, 3\)"):
        env.step({"nature": 1, "designer": np.zeros(3)})
