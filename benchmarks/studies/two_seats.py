"""Nature against the designer with eight hypotheses: a cross-play matrix, for docs/train.md.

    python benchmarks/studies/two_seats.py --csv docs/data/cross-play.csv    # 80 CPU seconds

The game is ldp_gym.parallel_env with its defaults; class and pool are drawn in every episode. A cell
is the mean sum of expected losses J(w), in nats, with its 95% interval, on the same test episodes
from seed 500,000 on. For each rule of one seat, the answers of a family of rules of the other seat
are tried on training episodes; the best one is then played on the test episodes. It bounds from one
side what a player can gain by deviating: the best answer itself may gain more.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import ldp_gym
from ldp_agents.adversaries import (
    CostliestToLearn,
    LargestLoss,
    PoolPolicy,
    PoolRows,
    RandomContexts,
)
from ldp_agents.designers import GreedyQuestions, QuestionPolicy, RandomQuestions
from ldp_agents.opponents import PairState, pool_rows
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.seed_ranges import TEST, TRAINING
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.scenario import first_generator
from ldp_gym.envs.pair import NatureAgainstDesigner, PairActions, PairRole
from ldp_gym.statistics import mean

TRAINING_SEED = TRAINING.start + 2**41
"""Seed of the first episode on which answers are chosen."""

LEAST_INFORMATION = 1e-9
"""Lower bound on the information of an answer, in nats."""


class PowerCosts(CostliestToLearn):
    """The context of the largest loss * min(rounds left, factor * entropy / information)^power."""

    def __init__(self, game: Any, factor: float, power: float) -> None:
        super().__init__(game)
        self._factor = factor
        self._power = power

    def pick(self, rows: PoolRows) -> IntArray:
        entropies = -negentropy(rows.weights)[:, None]
        rounds_to_learn = entropies / np.maximum(rows.information, LEAST_INFORMATION)
        rounds_left = np.rint((1.0 - rows.progress) * self.game.horizon)[:, None]
        rounds = np.minimum(rounds_left, self._factor * rounds_to_learn)
        return (rows.losses * rounds**self._power).argmax(axis=1)


class TemperedGreedy(GreedyQuestions):
    """Greedy questions for the posterior to a power, normalised."""

    def __init__(self, game: Any, power: float) -> None:
        super().__init__(game)
        self._power = power

    def ask(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        tempered = weights**self._power
        tempered /= tempered.sum(axis=1, keepdims=True)
        return super().ask(tempered, candidates)


class HalfQuestions(QuestionPolicy):
    """Contrasts of a random half of the hypotheses against the rest, as the channel `split` asks."""

    def __init__(self, game: Any, seed: int = 0) -> None:
        super().__init__(game)
        self._rng = np.random.default_rng(seed)

    def ask(self, weights: FloatArray, candidates: FloatArray) -> FloatArray:
        signs = np.ones(weights.shape)
        signs[:, : weights.shape[1] // 2] = -1.0
        return self._rng.permuted(signs, axis=1)


def play(
    env: NatureAgainstDesigner,
    nature: PoolPolicy,
    designer: QuestionPolicy,
    seed: int,
    episodes: int,
) -> FloatArray:
    """Total of each episode, ``(episodes,)``. The designer is asked at Nature's context only."""
    referee = Referee(env.scenario, episodes, PairRole, env.arguments)
    role = referee.role
    assert isinstance(role, PairRole), "made of it"
    games = np.arange(episodes)
    referee.begin(games, [first_generator(seed + game) for game in games])
    totals = np.zeros(episodes)
    for t in range(env.game.horizon):
        weights = role.playback.weights
        assert weights is not None, "Bayes predicts"
        progress = np.full(episodes, t / env.game.horizon)
        candidates = np.broadcast_to(
            role.pool.candidates, (episodes, *role.pool.candidates.shape[1:])
        )
        state = PairState(weights.copy(), progress, candidates)
        choices = nature.pick(pool_rows(state, nature, env.game.channel.epsilon))

        contrasts = np.zeros((episodes, role.pool.size, env.game.num_hypotheses))
        contrasts[games, choices] = designer.ask(state.weights, state.candidates[games, choices])
        rewards, _ = referee.judge(PairActions(choices, contrasts))  # type: ignore[arg-type]
        totals += rewards
    return totals


def nature_answers(env: NatureAgainstDesigner) -> dict[str, PoolPolicy]:
    """Rules of Nature that are tried against each designer."""
    answers: dict[str, PoolPolicy] = {}
    for factor, power in product((0.5, 1.0, 2.0), (0.7, 1.0)):
        answers[f"factor {factor:g}, power {power:g}"] = PowerCosts(env, factor, power)
    return answers


def designer_answers(env: NatureAgainstDesigner) -> dict[str, QuestionPolicy]:
    """Rules of the designer that are tried against each Nature."""
    answers: dict[str, QuestionPolicy] = {"halves": HalfQuestions(env)}
    for power in (0.5, 0.7, 0.85, 1.0, 1.2):
        answers[f"greedy, posterior^{power:g}"] = TemperedGreedy(env, power)
    return answers


def cross_play(training_episodes: int, episodes: int) -> pd.DataFrame:
    """The matrix: Natures by row, designers by column, with the best answers found."""
    env = ldp_gym.parallel_env()
    natures: dict[str, PoolPolicy] = {
        "at random": RandomContexts(env),
        "the largest loss now": LargestLoss(env),
        "costliest to learn": CostliestToLearn(env),
    }
    designers: dict[str, QuestionPolicy] = {
        "random contrasts": RandomQuestions(env),
        "halves": HalfQuestions(env),
        "greedy": GreedyQuestions(env),
    }

    def cell(nature: PoolPolicy, designer: QuestionPolicy) -> str:
        estimate = mean(play(env, nature, designer, TEST.stop // 2, episodes))
        return f"{estimate.value:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]"

    def training_mean(nature: PoolPolicy, designer: QuestionPolicy) -> float:
        return float(play(env, nature, designer, TRAINING_SEED, training_episodes).mean())

    table: dict[str, dict[str, str]] = {}
    for question_name, designer in designers.items():
        column = {name: cell(nature, designer) for name, nature in natures.items()}
        answers = nature_answers(env)
        means = {name: training_mean(answer, designer) for name, answer in answers.items()}
        best = max(means, key=means.__getitem__)
        column["best answer found"] = f"{cell(answers[best], designer)} ({best})"
        table[question_name] = column
        print(question_name, column, flush=True)

    best_answers = {}
    for context_name, nature in natures.items():
        responses = designer_answers(env)
        means = {name: training_mean(nature, response) for name, response in responses.items()}
        best = min(means, key=means.__getitem__)
        best_answers[context_name] = f"{cell(nature, responses[best])} ({best})"
        print(context_name, best_answers[context_name], flush=True)
    best_answers["best answer found"] = "-"
    table["best answer found"] = best_answers
    return pd.DataFrame(table).rename_axis("contexts").reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--training-episodes", type=int, default=32, help="episodes of a choice")
    parser.add_argument("--episodes", type=int, default=256, help="test episodes")
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    table = cross_play(options.training_episodes, options.episodes)
    print(table.to_string(index=False))
    if options.csv:
        table.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
