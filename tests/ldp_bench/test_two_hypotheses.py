"""Dynamic programs of the games of two hypotheses: against trees, and the environments against them."""

import gymnasium as gym
import numpy as np
import pytest
import two_hypotheses as study
import two_seats
from scipy.special import rel_entr

import ldp_gym
from ldp_agents.adversaries import CostliestToLearn, LargestLoss
from ldp_agents.designers import GreedyQuestions
from ldp_agents.opponents import DesignerOpponent, NatureOpponent

SMALL = {"num_hypotheses": 2, "num_labels": 4, "context_dim": 2, "pool_size": 3, "epsilon": 2.0}
"""A small game of two hypotheses."""


@pytest.fixture(scope="module")
def nature_env():
    return gym.make("LDPNature-fixed-v0", horizon=20, **SMALL)


@pytest.fixture(scope="module")
def pair_env():
    return ldp_gym.parallel_env(redraw_hypotheses=False, horizon=4, **SMALL)


def expected_loss(weights, table):
    """J_x(w) = sum_k w_k KL(f_k(x), f_w(x))."""
    return weights @ rel_entr(table, weights @ table).sum(axis=1)


def tree_value(weights, rounds_left, tables, questions, epsilon):
    """V(w, n) = max_x min_S J_x(w) + E V(w', n - 1), by all sequences of answers.

    Args:
        weights: the posterior, ``(2,)``.
        rounds_left: n.
        tables: candidates at the contexts, ``(P, 2, M)``.
        questions: sets of labels that may be asked about, as masks ``(P, Q, M)``.
        epsilon: privacy of an answer.
    """
    if rounds_left == 0:
        return 0.0
    flip = 1 / (1 + np.exp(epsilon))
    values = []
    for table, sets in zip(tables, questions, strict=True):
        later = []
        for labels in sets:
            yes = table @ np.where(labels, 1 - flip, flip)
            value = 0.0
            for answer in (yes, 1 - yes):
                joint = weights * answer
                posterior = joint / joint.sum()
                value += joint.sum() * tree_value(
                    posterior, rounds_left - 1, tables, questions, epsilon
                )
            later.append(value)
        values.append(expected_loss(weights, table) + min(later))
    return max(values)


def test_the_optimum_of_nature_is_that_of_the_tree():
    env = gym.make("LDPNature-fixed-v0", horizon=4, **SMALL)
    tables = env.unwrapped.game.hypotheses(env.unwrapped.pool)
    favours_first = tables[:, 0] > tables[:, 1]
    expected = tree_value(np.array([0.5, 0.5]), 4, tables, favours_first[:, None], 2.0)
    solution = study.solve(study.grid_of_nature(env, step=0.01))
    assert solution.value == pytest.approx(expected, abs=1e-5)


def test_the_value_of_two_seats_is_that_of_the_tree(pair_env):
    """The designer of the tree may ask about every set of labels that a contrast defines."""
    tables = pair_env.game.hypotheses(pair_env.pool)
    angles = np.linspace(0.0, 2.0 * np.pi, 400)
    contrasts = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sets = [np.unique(contrasts @ table > 0.0, axis=0) for table in tables]
    expected = tree_value(np.array([0.5, 0.5]), 2, tables, sets, 2.0)
    grid = study.grid_of_pair(pair_env, step=0.01).grid._replace(horizon=2)
    assert study.solve(grid).value == pytest.approx(expected, abs=1e-5)


def play_pair(env, nature, designer, episodes):
    totals = np.zeros(episodes)
    for episode in range(episodes):
        observations, _ = env.reset(seed=episode)
        while env.agents:
            actions = {"nature": nature(observations), "designer": designer(observations)}
            observations, rewards, *_ = env.step(actions)
            totals[episode] += rewards["nature"]
    return totals


def test_the_error_falls_with_the_square_of_the_step(nature_env):
    coarse, middle, fine = (
        study.solve(study.grid_of_nature(nature_env, step)).value for step in (0.08, 0.04, 0.02)
    )
    assert abs(middle - fine) < 0.5 * abs(coarse - middle) < 5e-3


def play_nature(env, policy, episodes, seed):
    games = gym.make_vec(
        "LDPNature-fixed-v0", num_envs=episodes, autoreset_mode="SameStep", horizon=20, **SMALL
    )
    observations, _ = games.reset(seed=seed)
    totals = np.zeros(episodes)
    for _ in range(20):
        observations, rewards, *_ = games.step(policy(observations))
        totals += rewards
    return totals


def test_the_environment_pays_the_optimum_to_the_policy_of_the_program(nature_env):
    """The mean of 4,000 episodes is within four standard errors: wrong for 1 seed in 16,000."""
    grid = study.grid_of_nature(nature_env, step=0.01)
    solution = study.solve(grid)
    totals = play_nature(nature_env, study.OptimalContexts(nature_env, grid, solution), 4000, 0)
    error = totals.std(ddof=1) / np.sqrt(4000)
    assert totals.mean() == pytest.approx(solution.value, abs=4 * error)
    assert error < 0.02 * solution.value


def test_the_environment_pays_rules_what_the_program_computes(nature_env):
    """Four standard errors of 4,000 episodes, as above."""
    grid = study.grid_of_nature(nature_env, step=0.01)
    only_question = np.zeros(3, dtype=int)
    expected = study.solve(grid, study.adversary(grid, only_question)).value
    totals = play_nature(nature_env, CostliestToLearn(nature_env), 4000, 0)
    error = totals.std(ddof=1) / np.sqrt(4000)
    assert totals.mean() == pytest.approx(expected, abs=4 * error)


def test_contrasts_of_questions_ask_about_their_labels(pair_env):
    game = study.grid_of_pair(pair_env, step=0.1)
    flip = 1 / (1 + np.exp(2.0))
    for question in range(4):
        contrasts = study.contrast_of(game.candidates, np.full(3, question))
        for context, table in enumerate(game.candidates):
            inside = contrasts[context] @ table > 0.0
            yes = table @ np.where(inside, 1 - flip, flip)
            answers = game.grid.answers[context, question, :, :]
            same_set = np.allclose(answers[0], yes)
            complement = np.allclose(answers[1], yes)
            assert same_set or complement


def test_random_contrasts_have_the_probabilities_of_their_questions(pair_env):
    """Shares of 100,000 draws, within 0.01: five standard errors."""
    game = study.grid_of_pair(pair_env, step=0.1)
    probabilities = study.random_questions(game.candidates)(1)[0]
    drawn = np.random.default_rng(0).uniform(-1, 1, (100_000, 2))
    for context, table in enumerate(game.candidates):
        sizes = (drawn @ table > 0.0).sum(axis=1)
        informative = (sizes > 0) & (sizes < 4)
        first_coefficient_positive = drawn[:, 0] > 0.0
        question = np.where(first_coefficient_positive, sizes, 4 - sizes)
        shares = np.bincount(np.where(informative, question, 0), minlength=4) / 100_000
        np.testing.assert_allclose(shares, probabilities[context], atol=0.01)


def test_no_player_gains_by_leaving_the_value(pair_env):
    grid = study.grid_of_pair(pair_env, step=0.02).grid
    equilibrium = study.solve(grid)
    contexts = study.best_contexts(grid, equilibrium)
    questions = study.best_questions(grid, equilibrium)
    assert study.solve(grid, contexts, None).value == pytest.approx(equilibrium.value, abs=1e-12)
    assert study.solve(grid, None, questions).value == pytest.approx(equilibrium.value, abs=1e-12)


def test_the_environment_of_two_seats_pays_its_value_to_the_players_of_the_program(pair_env):
    """The mean of 1,000 episodes is within four standard errors: wrong for 1 seed in 16,000."""
    game = study.grid_of_pair(pair_env, step=0.01)
    equilibrium = study.solve(game.grid)
    rule = study.OptimalContexts(pair_env, game.grid, equilibrium)
    nature = NatureOpponent(pair_env, rule)
    designer = study.OptimalQuestions(game, equilibrium)
    totals = play_pair(pair_env, nature, designer, episodes=1000)
    error = totals.std(ddof=1) / np.sqrt(1000)
    assert totals.mean() == pytest.approx(equilibrium.value, abs=4 * error)
    assert error < 0.02 * equilibrium.value


def test_opponents_are_paid_what_the_program_computes(pair_env):
    """Largest loss against greedy questions: 1,000 episodes, within four standard errors."""
    grid = study.grid_of_pair(pair_env, step=0.01).grid
    expected = study.solve(grid, study.largest_loss(grid), study.greedy_questions(grid)).value
    nature = NatureOpponent(pair_env, LargestLoss(pair_env))
    designer = DesignerOpponent(pair_env, GreedyQuestions(pair_env))
    totals = play_pair(pair_env, nature, designer, episodes=1000)
    error = totals.std(ddof=1) / np.sqrt(1000)
    assert totals.mean() == pytest.approx(expected, abs=4 * error)
    assert error < 0.02 * expected


def test_games_in_lock_step_pay_what_the_program_computes(pair_env):
    """Largest loss against greedy questions: 4,000 episodes, within four standard errors."""
    grid = study.grid_of_pair(pair_env, step=0.01).grid
    expected = study.solve(grid, study.largest_loss(grid), study.greedy_questions(grid)).value
    nature, designer = LargestLoss(pair_env), GreedyQuestions(pair_env)
    totals = two_seats.play(pair_env, nature, designer, seed=0, episodes=4000)
    error = totals.std(ddof=1) / np.sqrt(4000)
    assert totals.mean() == pytest.approx(expected, abs=4 * error)
    assert error < 0.02 * expected
