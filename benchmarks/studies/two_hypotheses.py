"""Games of two hypotheses, solved by dynamic programming on a grid of log-odds, for docs/train.md.

    python benchmarks/studies/two_hypotheses.py --game nature --csv docs/data/nature-optimum.csv
    python benchmarks/studies/two_hypotheses.py --game pair --csv docs/data/two-seats.csv

With two hypotheses the public posterior is one number, the log-odds w_1 / w_2, and every answer is a
private bit. So with n rounds left the value of the game is

    V_n(w) = max_x min_S J_x(w) + E V_{n-1}(w'),    V_0 = 0,

where x is a context of the pool, S the set of labels that the private question is about, J_x(w) the
expected loss of the posterior mean, and w' the posterior after the answer. In LDPNature-v0 the
channel asks, and there is no choice of S. A player that follows a rule takes the average of its rule
in place of its maximum or minimum. Values between the points of the grid are interpolated linearly;
the tables show the change when the grid is made twice as fine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd

import ldp_gym
from ldp_agents.adversaries import PoolPolicy, PoolRows
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import mixture_loss, negentropy
from ldp_gym.engine.game import game_of
from ldp_gym.natures.adversary import first_of_best, learning_costs

LARGEST_LOG_ODDS = 16.0
"""Largest log-odds of the grid; the other hypothesis has a weight of 1e-7 there."""

STEP = 0.01
"""Distance of neighbours on the finer grid."""


# -- The game --------------------------------------------------------------------------------------


class GridGame(NamedTuple):
    """A game of two hypotheses on G log-odds, with P contexts, Q questions and Z answers."""

    log_odds: FloatArray  # log w_1 / w_2, (G,)
    horizon: int
    losses: FloatArray  # expected loss J_x(w) of a round, (G, P)
    answers: FloatArray  # probability of an answer under each hypothesis, (P, Q, Z, 2)

    @property
    def weights(self) -> FloatArray:
        """Posteriors ``(G, 2)``."""
        return posteriors(self.log_odds)

    @property
    def start(self) -> int:
        """Index of the uniform posterior."""
        return len(self.log_odds) // 2


def posteriors(log_odds: FloatArray) -> FloatArray:
    """Weights ``(..., 2)`` of the two hypotheses at log-odds ``(...)``."""
    first = 1.0 / (1.0 + np.exp(-log_odds))
    second = 1.0 / (1.0 + np.exp(log_odds))
    return np.stack([first, second], axis=-1)


def grid_game(candidates: FloatArray, answers: FloatArray, horizon: int, step: float) -> GridGame:
    """Put a game on a grid.

    Args:
        candidates: labels' distributions at the contexts of the pool, ``(P, 2, M)``.
        answers: probabilities of answers, ``(P, Q, Z, 2)``.
        horizon: T.
        step: distance of neighbours.
    """
    half = round(LARGEST_LOG_ODDS / step)
    log_odds = step * np.arange(-half, half + 1)
    weights = posteriors(log_odds)
    losses = mixture_loss(weights[:, None], candidates, negentropy(candidates))
    return GridGame(log_odds, horizon, np.maximum(losses, 0.0), answers)


def answers_of_channel(game: Any, candidates: FloatArray) -> FloatArray:
    """Probabilities ``(P, 1, 2, 2)`` of the two answers of a channel of one bit at each context."""
    channel = game_of(game).channel
    answers = []
    for table in candidates:
        listed = channel.list_messages(table)
        log_likelihoods = channel.log_likelihood(listed.messages, table)
        likelihoods = np.exp(log_likelihoods + listed.log_weights[:, None])

        # Messages that favour the same hypothesis are the same answer.
        favours_first = likelihoods[:, 0] > likelihoods[:, 1]
        yes = likelihoods[favours_first].sum(axis=0)
        answers.append([yes, 1.0 - yes])
    return np.array(answers)[:, None]


def label_orders(candidates: FloatArray) -> IntArray:
    """Labels in falling order of f_1 / f_2, ``(P, M)``, for candidates ``(P, 2, M)``."""
    return np.argsort(-candidates[:, 0] / candidates[:, 1], axis=1, kind="stable")


def answers_of_questions(candidates: FloatArray, epsilon: float) -> FloatArray:
    """Probabilities ``(P, M, 2, 2)`` of the answers yes and no to all questions.

    A contrast asks about the labels whose f_1 / f_2 is above a threshold. Question q is about the
    first q labels in that order: question 0 tells nothing. The complement of a set tells the same,
    so these are all questions, up to contrasts that are 0 at a label.
    """
    orders = label_orders(candidates)
    sorted_masses = np.take_along_axis(candidates, orders[:, None], axis=2)
    shares = np.cumsum(sorted_masses, axis=2)[..., :-1]
    shares = np.concatenate([np.zeros((*shares.shape[:2], 1)), shares], axis=2)  # (P, 2, Q)

    flip = 1.0 / (1.0 + np.exp(epsilon))
    yes = flip + (1.0 - 2.0 * flip) * shares
    answers = np.stack([yes, 1.0 - yes], axis=1)  # (P, Z, 2, Q)
    return np.moveaxis(answers, 3, 1)


def contrast_of(candidates: FloatArray, questions: IntArray) -> FloatArray:
    """Contrasts ``(P, 2)`` of questions ``(P,)`` as :func:`answers_of_questions` counts them."""
    ratios = np.take_along_axis(
        candidates[:, 0] / candidates[:, 1], label_orders(candidates), axis=1
    )
    contexts = np.arange(len(questions))
    inside = ratios[contexts, np.maximum(questions - 1, 0)]
    outside = ratios[contexts, questions]
    thresholds = np.sqrt(inside * outside)
    largest = np.maximum(thresholds, 1.0)
    contrasts = np.stack([1.0 / largest, -thresholds / largest], axis=1)
    contrasts[questions == 0] = 1.0  # asks about all labels
    return contrasts


class PairGame(NamedTuple):
    """Nature against the designer, with two hypotheses, on a grid."""

    grid: GridGame
    candidates: FloatArray  # (P, 2, M)


# -- Dynamic programming ---------------------------------------------------------------------------

ContextRule = Callable[[int], FloatArray]
"""Probabilities ``(G, P)`` of the contexts, given the number of rounds left."""

QuestionRule = Callable[[int], FloatArray]
"""Probabilities ``(G, P, Q)`` of the questions at each context, given the number of rounds left."""


class Solution(NamedTuple):
    """Result of dynamic programming; index n of the first axis means n rounds left, less one."""

    value: float
    contexts: IntArray  # the best ones, (T, G)
    questions: IntArray  # the best ones at each context, (T, G, P)


class Transitions:
    """Expected values after an answer, from values on the grid."""

    def __init__(self, game: GridGame) -> None:
        step = game.log_odds[1] - game.log_odds[0]
        jumps = np.log(game.answers[..., 0] / game.answers[..., 1])  # (P, Q, Z)
        last = len(game.log_odds) - 1
        positions = np.arange(last + 1) + jumps[..., None] / step
        positions = np.clip(positions, 0.0, last)
        self._below = np.minimum(positions.astype(np.int64), last - 1)
        self._fraction = positions - self._below
        self._chances = np.einsum("gk,pqzk->pqzg", game.weights, game.answers)

    def __call__(self, values: FloatArray) -> FloatArray:
        """Expected values ``(G, P, Q)`` from values ``(G,)``."""
        below = values[self._below]
        slopes = np.diff(values)[self._below]
        interpolated = below + self._fraction * slopes
        return np.einsum("pqzg,pqzg->gpq", self._chances, interpolated)


def solve(
    game: GridGame, nature: ContextRule | None = None, designer: QuestionRule | None = None
) -> Solution:
    """Solve a game backwards in time. A player without a rule plays its best answer."""
    num_states, num_contexts = game.losses.shape
    expected = Transitions(game)
    values = np.zeros(num_states)
    contexts = np.zeros((game.horizon, num_states), dtype=np.int16)
    questions = np.zeros((game.horizon, num_states, num_contexts), dtype=np.int16)

    for index in range(game.horizon):
        rounds_left = index + 1
        later = expected(values)
        if designer is None:
            questions[index] = later.argmin(axis=2)
            later_by_context = later.min(axis=2)
        else:
            later_by_context = (designer(rounds_left) * later).sum(axis=2)

        totals = game.losses + later_by_context
        if nature is None:
            contexts[index] = totals.argmax(axis=1)
            values = totals.max(axis=1)
        else:
            values = (nature(rounds_left) * totals).sum(axis=1)
    return Solution(float(values[game.start]), contexts, questions)


# -- Rules of both players, on the grid ------------------------------------------------------------


def choices(indices: IntArray, size: int) -> FloatArray:
    """Probabilities ``(..., size)`` that are 1 at indices ``(...)``."""
    return (indices[..., None] == np.arange(size)).astype(np.float64)


def random_contexts(game: GridGame) -> ContextRule:
    probabilities = np.full(game.losses.shape, 1.0 / game.losses.shape[1])
    return lambda rounds_left: probabilities


def largest_loss(game: GridGame) -> ContextRule:
    probabilities = choices(first_of_best(game.losses), game.losses.shape[1])
    return lambda rounds_left: probabilities


def adversary(game: GridGame, question: IntArray) -> ContextRule:
    """The context that costs most to learn, if question ``(P,)`` is asked at each context."""
    answers = game.answers[np.arange(len(question)), question]  # (P, Z, 2)
    mixed = np.einsum("gk,pzk->gpz", game.weights, answers)
    of_hypotheses = np.einsum("gk,pk->gp", game.weights, (answers * np.log(answers)).sum(axis=1))
    information = np.maximum(of_hypotheses - (mixed * np.log(mixed)).sum(axis=2), 0.0)

    def rule(rounds_left: int) -> FloatArray:
        costs = learning_costs(game.losses, information, game.weights, rounds_left)
        return choices(first_of_best(costs), costs.shape[1])

    return rule


def only_context(game: GridGame, index: int) -> GridGame:
    """The game on a pool of one context."""
    one = slice(index, index + 1)
    return game._replace(losses=game.losses[:, one], answers=game.answers[one])


def best_contexts(game: GridGame, solution: Solution) -> ContextRule:
    """Nature's choices of a solution."""
    num_contexts = game.losses.shape[1]
    return lambda rounds_left: choices(solution.contexts[rounds_left - 1], num_contexts)


def random_questions(candidates: FloatArray) -> QuestionRule:
    """Questions of contrasts that are uniform in [-1, 1]^2, with their exact probabilities.

    The two coefficients have opposite signs with probability 1/2, and ask about labels whose ratio
    is above the quotient of their sizes; with equal signs the answer tells nothing.
    """
    orders = label_orders(candidates)
    ratios = np.take_along_axis(candidates[:, 0] / candidates[:, 1], orders, axis=1)
    # Distribution function of the quotient of two uniform numbers.
    below = np.where(ratios <= 1.0, ratios / 2.0, 1.0 - 1.0 / (2.0 * np.maximum(ratios, 1.0)))
    informative = 0.5 * -np.diff(below, axis=1)  # question q: threshold between labels q and q + 1
    silent = 1.0 - informative.sum(axis=1, keepdims=True)
    probabilities = np.concatenate([silent, informative], axis=1)[None]
    return lambda rounds_left: probabilities


def greedy_question(game: GridGame) -> IntArray:
    """Questions ``(P,)`` whose answers differ most between the hypotheses, at any posterior."""
    yes = game.answers[:, :, 0]
    return np.abs(yes[..., 0] - yes[..., 1]).argmax(axis=1)


def greedy_questions(game: GridGame) -> QuestionRule:
    probabilities = choices(greedy_question(game), game.answers.shape[1])[None]
    return lambda rounds_left: probabilities


def best_questions(game: GridGame, solution: Solution) -> QuestionRule:
    """The designer's choices of a solution."""
    num_questions = game.answers.shape[1]
    return lambda rounds_left: choices(solution.questions[rounds_left - 1], num_questions)


# -- Rules of both players, as policies of the environments ----------------------------------------


def nearest(game: GridGame, log_odds: FloatArray) -> IntArray:
    """Index of the point of the grid that is nearest to each of the log-odds."""
    step = game.log_odds[1] - game.log_odds[0]
    indices = np.rint(log_odds / step).astype(np.int64) + game.start
    return np.clip(indices, 0, len(game.log_odds) - 1)


def state_indices(game: GridGame, weights: FloatArray) -> IntArray:
    """Indices ``(B,)`` of posteriors ``(B, 2)`` on the grid."""
    logs = np.log(np.maximum(weights, 1e-12))
    return nearest(game, logs[:, 0] - logs[:, 1])


class OptimalContexts(PoolPolicy):
    """Nature's choices of a solution, as a policy of LDPNature-v0."""

    def __init__(self, env: Any, game: GridGame, solution: Solution) -> None:
        super().__init__(env)
        self._grid = game
        self._contexts = solution.contexts

    def pick(self, rows: PoolRows) -> IntArray:
        rounds_left = np.rint((1.0 - rows.progress) * self.game.horizon).astype(np.int64)
        return self._contexts[rounds_left - 1, state_indices(self._grid, rows.weights)]


class OptimalQuestions:
    """The designer's choices of a solution, as contrasts for ldp_gym.parallel_env."""

    def __init__(self, game: PairGame, solution: Solution) -> None:
        self._game = game
        self._questions = solution.questions

    def __call__(self, observations: Mapping[str, FloatArray]) -> FloatArray:
        """Contrasts ``(P, 2)``, for the observations of a round by agent."""
        numbers = observations["designer"].astype(np.float64)
        state = state_indices(self._game.grid, numbers[None, :2])[0]
        rounds_left = round((1.0 - numbers[4]) * self._game.grid.horizon)
        return contrast_of(self._game.candidates, self._questions[rounds_left - 1, state])


# -- Tables ----------------------------------------------------------------------------------------


def nature_game(class_seed: int, step: float, **rules: Any) -> GridGame:
    """LDPNature-fixed-v0 of two hypotheses on a grid."""
    env = gym.make("LDPNature-fixed-v0", num_hypotheses=2, class_seed=class_seed, **rules)
    return grid_of_nature(env, step)


def grid_of_nature(env: Any, step: float) -> GridGame:
    """An environment of LDPNature-fixed-v0 on a grid."""
    game = game_of(env)
    candidates = game.hypotheses(env.unwrapped.pool)
    return grid_game(candidates, answers_of_channel(env, candidates), game.horizon, step)


def nature_values(game: GridGame) -> dict[str, float]:
    """Values of LDPNature-v0 for rules of Nature, and the optimum."""
    only_question = np.zeros(game.losses.shape[1], dtype=np.int64)
    constants = [solve(only_context(game, i)).value for i in range(len(only_question))]
    return {
        "at random": solve(game, random_contexts(game)).value,
        "the largest loss now": solve(game, largest_loss(game)).value,
        "the best constant context": max(constants),
        "`adversary`": solve(game, adversary(game, only_question)).value,
        "optimum": solve(game).value,
    }


def nature_table(seeds: int, step: float) -> pd.DataFrame:
    """Values of rules for some class seeds, and how much they change on the finer grid."""
    columns: dict[str, dict[str, str]] = {}
    largest_change: dict[str, float] = {}
    for seed in range(seeds):
        coarse = nature_values(nature_game(seed, 2.0 * step, horizon=200))
        fine = nature_values(nature_game(seed, step, horizon=200))
        columns[f"class seed {seed}"] = {name: f"{value:.3f}" for name, value in fine.items()}
        for name, value in fine.items():
            change = abs(value - coarse[name])
            largest_change[name] = max(change, largest_change.get(name, 0.0))
    columns["change on the finer grid"] = {
        name: f"{change:.1e}" for name, change in largest_change.items()
    }
    return pd.DataFrame(columns).rename_axis("contexts").reset_index()


def grid_of_pair(env: Any, step: float) -> PairGame:
    """An environment of ldp_gym.parallel_env with one class, on a grid."""
    game = game_of(env)
    candidates = game.hypotheses(env.unwrapped.pool)
    answers = answers_of_questions(candidates, game.channel.epsilon)
    return PairGame(grid_game(candidates, answers, game.horizon, step), candidates)


def pair_game(class_seed: int, step: float, **rules: Any) -> PairGame:
    """Nature against the designer in a class of two hypotheses, on a grid."""
    env = ldp_gym.parallel_env(
        num_hypotheses=2, class_seed=class_seed, redraw_hypotheses=False, **rules
    )
    return grid_of_pair(env, step)


def cross_play(game: PairGame) -> dict[str, dict[str, float]]:
    """Value of each pair of rules, by designer and then Nature, with the best answers."""
    grid = game.grid
    equilibrium = solve(grid)
    natures: dict[str, ContextRule | None] = {
        "at random": random_contexts(grid),
        "the largest loss now": largest_loss(grid),
        "costliest to learn": adversary(grid, greedy_question(grid)),
        "of the value": best_contexts(grid, equilibrium),
        "best answer": None,
    }
    designers: dict[str, QuestionRule | None] = {
        "random contrasts": random_questions(game.candidates),
        "greedy": greedy_questions(grid),
        "of the value": best_questions(grid, equilibrium),
        "best answer": None,
    }
    matrix: dict[str, dict[str, float]] = {}
    for question_name, designer in designers.items():
        matrix[question_name] = {
            context_name: solve(grid, nature, designer).value
            for context_name, nature in natures.items()
        }
    return matrix


def pair_table(seeds: int, step: float) -> pd.DataFrame:
    """Cross-play matrices of some class seeds, one below the other."""
    pieces = []
    for seed in range(seeds):
        fine = pd.DataFrame(cross_play(pair_game(seed, step)))
        coarse = pd.DataFrame(cross_play(pair_game(seed, 2.0 * step)))
        change = (fine - coarse).abs().max(axis=None)
        print(f"class seed {seed}: largest change on the finer grid {change:.1e}", flush=True)
        piece = fine.map("{:.3f}".format).rename_axis("contexts").reset_index()
        piece.insert(0, "class seed", seed)
        pieces.append(piece)
    return pd.concat(pieces)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", choices=("nature", "pair"), required=True)
    parser.add_argument("--seeds", type=int, default=3, help="number of class seeds")
    parser.add_argument("--step", type=float, default=STEP, help="distance on the finer grid")
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    tables = {"nature": nature_table, "pair": pair_table}
    table = tables[options.game](options.seeds, options.step)
    print(table.to_string(index=False))
    if options.csv:
        table.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
