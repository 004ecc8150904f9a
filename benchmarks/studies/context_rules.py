"""A search for contexts that cost more than those of `adversary`, for docs/train.md.

    python benchmarks/studies/context_rules.py --family exponents    # 7 CPU minutes
    python benchmarks/studies/context_rules.py --family rollouts     # 4 CPU minutes

The game is LDPNature-v0: class and pool are drawn in every episode. Two families are tried. The
first is a rule with five exponents, chosen by the cross-entropy method on training seeds and scored
on test episodes, from seed 500,000 on. The second knows the class: rollouts compare `adversary`
with plans that keep one context for 100 rounds or for good, and the plan of the largest mean is
played on fresh episodes. A total is the sum of expected losses J(w) in nats: Bayes' risk under a
uniform truth.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd

from ldp_agents.adversaries import (
    CostliestToLearn,
    KeptContext,
    LargestLoss,
    PoolPolicy,
    PoolRows,
    RandomContexts,
)
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.seed_ranges import TEST, TRAINING
from ldp_gym.statistics import mean, score_estimate

ENV_ID = "LDPNature-v0"
"""Game of the study."""

LEAST = 1e-12
"""Lower bound of numbers whose logarithm is taken."""


# -- Rules with exponents --------------------------------------------------------------------------


class Exponents(NamedTuple):
    """Parameters of :class:`PowerRule`; the values here make it nearly `adversary`."""

    weight: float = 1.0
    """Weight of the logarithm of the rounds, next to that of the loss."""

    log_factor: float = 0.0
    """Logarithm of the factor of entropy / information."""

    entropy: float = 1.0
    """Exponent of the entropy."""

    information: float = 1.0
    """Exponent of the information."""

    log_sharpness: float = 2.0
    """Logarithm of the sharpness of the smooth minimum."""


class PowerRule(PoolPolicy):
    """The context of the largest loss times a power of min(rounds left, c H^a / I^b)."""

    def __init__(self, game: Any, exponents: Exponents) -> None:
        super().__init__(game)
        self.exponents = exponents

    def pick(self, rows: PoolRows) -> IntArray:
        e = self.exponents
        entropies = -negentropy(rows.weights)[:, None]
        rounds_left = np.rint((1.0 - rows.progress) * self.game.horizon)[:, None]

        log_rounds_to_learn = (
            e.log_factor
            + e.entropy * np.log(np.maximum(entropies, LEAST))
            - e.information * np.log(np.maximum(rows.information, LEAST))
        )
        log_rounds = smooth_minimum(
            np.log(rounds_left), log_rounds_to_learn, np.exp(e.log_sharpness)
        )
        log_costs = np.log(np.maximum(rows.losses, LEAST)) + e.weight * log_rounds
        return log_costs.argmax(axis=1)


def smooth_minimum(first: FloatArray, second: FloatArray, sharpness: float) -> FloatArray:
    """Smooth minimum of two arrays: the minimum as the sharpness grows."""
    return -np.logaddexp(-sharpness * first, -sharpness * second) / sharpness


def search_exponents(seed: int, generations: int, candidates: int, episodes: int) -> Exponents:
    """Choose exponents by the cross-entropy method, by the mean total of training episodes."""
    rng = np.random.default_rng(seed)
    centre = np.array(Exponents())
    spread = np.array([0.4, 0.7, 0.4, 0.4, 0.7])
    first = TRAINING.start + 2**40 + 2**30 * seed
    for generation in range(generations):
        drawn = centre + spread * rng.standard_normal((candidates, len(centre)))
        drawn[0] = centre
        totals = []
        for parameters in drawn:
            rule = PowerRule(gym.make(ENV_ID), Exponents(*parameters))
            totals.append(play(rule, first + generation * episodes, episodes).mean())

        elite = drawn[np.argsort(totals)[-candidates // 4 :]]
        centre = elite.mean(axis=0)
        spread = elite.std(axis=0) + 0.05
        print(
            f"generation {generation}: best {max(totals):.2f}, centre {totals[0]:.2f}", flush=True
        )
    return Exponents(*centre.tolist())


# -- Rollouts in a known class ---------------------------------------------------------------------


class ClassResult(NamedTuple):
    """Totals in one class and pool on fresh episodes, ``(episodes,)``."""

    constant: FloatArray  # the best constant context in rollouts
    rollout: FloatArray  # the best plan in rollouts
    adversary: FloatArray
    kept: FloatArray  # costliest to learn at the start
    random: FloatArray


def play_plans(
    class_seed: int, seed: int, episodes: int, firsts: IntArray, until: IntArray
) -> FloatArray:
    """Totals ``(plans, episodes)`` of plans: a constant context at first, then `adversary`.

    Args:
        class_seed: seed of the class and of the pool.
        seed: seed of the first episode.
        episodes: number of episodes of a plan.
        firsts: constant context of each plan, ``(plans,)``; -1 for a random one in each round.
        until: round in which a plan goes over to `adversary`, ``(plans,)``.
    """
    num_games = len(firsts) * episodes
    games = gym.make_vec(
        "LDPNature-fixed-v0",
        num_envs=num_games,
        autoreset_mode="SameStep",
        class_seed=class_seed,
        pool_seed=class_seed,
    )
    adversary = CostliestToLearn(games)
    observations, _ = games.reset(seed=seed)
    rng = np.random.default_rng(seed)
    first_of_game = np.repeat(firsts, episodes)
    until_of_game = np.repeat(until, episodes)
    pool_size = int(games.single_action_space.n)  # type: ignore[attr-defined]
    totals = np.zeros(num_games)
    for t in range(adversary.game.horizon):
        choices = np.where(t < until_of_game, first_of_game, adversary(observations))
        anything = rng.integers(pool_size, size=num_games)
        observations, rewards, *_ = games.step(np.where(choices < 0, anything, choices))
        totals += rewards
    return totals.reshape(len(firsts), episodes)


def kept_context(class_seed: int) -> int:
    """Index of the context that costs most to learn at the start."""
    env = gym.make("LDPNature-fixed-v0", class_seed=class_seed, pool_seed=class_seed)
    observation, _ = env.reset(seed=0)
    return int(CostliestToLearn(env)(observation[None])[0])


def roll_out(class_seed: int, episodes: int, fresh: int, horizon: int = 1000) -> ClassResult:
    """Choose a plan by its mean total in rollouts, and play it on fresh episodes.

    Plans: each context of the pool for 100 rounds or to the end, and `adversary` from the start.
    """
    contexts = np.arange(32)
    firsts = np.concatenate([[0], contexts, contexts])
    until = np.repeat([0, horizon, 100], [1, 32, 32])
    training_seed = TRAINING.start + 2**43 + class_seed * 2**20
    means = play_plans(class_seed, training_seed, episodes, firsts, until).mean(axis=1)
    best_plan = int(means.argmax())
    best_constant = int(means[1:33].argmax())

    chosen = np.array([best_constant, firsts[best_plan], 0, kept_context(class_seed), -1])
    ends = np.array([horizon, until[best_plan], 0, horizon, horizon])
    totals = play_plans(class_seed, TEST.stop // 2, fresh, chosen, ends)
    return ClassResult(*totals)


# -- Episodes --------------------------------------------------------------------------------------


def play(policy: PoolPolicy, seed: int, episodes: int) -> FloatArray:
    """Total of each episode, ``(episodes,)``."""
    games = gym.make_vec(ENV_ID, num_envs=episodes, autoreset_mode="SameStep")
    observations, _ = games.reset(seed=seed)
    begins = np.ones(episodes, dtype=np.bool_)
    totals = np.zeros(episodes)
    memory: Any = None
    for _ in range(policy.game.horizon):
        choices, memory = policy.predict(observations, memory, begins)
        observations, rewards, begins, _, _ = games.step(choices)
        totals += rewards
    return totals


# -- Tables ----------------------------------------------------------------------------------------


def interval(samples: FloatArray) -> str:
    """Mean with its 95% interval; a dash if all samples are 0."""
    if not samples.any():
        return "-"
    estimate = mean(samples)
    return f"{estimate.value:.1f} [{estimate.low:.1f}, {estimate.high:.1f}]"


def exponents_table(exponents: Exponents, episodes: int) -> pd.DataFrame:
    """Totals and scores of the rule and of others on the same test episodes."""
    game = gym.make(ENV_ID)
    rules: dict[str, PoolPolicy] = {
        "at random": RandomContexts(game),
        "the largest loss now": LargestLoss(game),
        "constant: costliest to learn at the start": KeptContext(game),
        "`adversary`": CostliestToLearn(game),
        "five exponents, by CEM": PowerRule(game, exponents),
    }
    totals = {name: play(rule, TEST.stop // 2, episodes) for name, rule in rules.items()}
    rows = []
    for name, sums in totals.items():
        gains = sums - totals["`adversary`"]
        # A score is of losses: the negative totals.
        score = score_estimate(-totals["at random"], -sums, -totals["`adversary`"])
        assert score is not None, "adversary beats random contexts"
        rows.append(
            {
                "contexts": name,
                "sum of J": interval(sums),
                "less that of `adversary`": interval(gains),
                "score": f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}]",
            }
        )
    return pd.DataFrame(rows)


def rollout_table(classes: int, episodes: int, fresh: int) -> pd.DataFrame:
    """Means over classes of the mean totals in a class, with intervals over classes."""
    results = []
    for class_seed in range(classes):
        result = roll_out(class_seed, episodes, fresh)
        results.append([totals.mean() for totals in result])
        print(class_seed, np.round(results[-1], 1), flush=True)
    means = ClassResult(*np.array(results).T)
    names = ClassResult(
        constant="constant: the best in rollouts",
        rollout="the best plan in rollouts",
        adversary="`adversary`",
        kept="constant: costliest to learn at the start",
        random="at random",
    )
    rows = []
    for name, sums in zip(names, means, strict=True):
        rows.append(
            {
                "contexts": name,
                "sum of J": interval(sums),
                "less that of `adversary`": interval(sums - means.adversary),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", choices=("exponents", "rollouts"), required=True)
    parser.add_argument("--seed", type=int, default=0, help="seed of the search")
    parser.add_argument("--generations", type=int, default=8, help="generations of the search")
    parser.add_argument("--classes", type=int, default=16, help="number of classes for rollouts")
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    start = time.process_time()
    if options.family == "exponents":
        exponents = search_exponents(options.seed, options.generations, candidates=16, episodes=128)
        print(exponents)
        table = exponents_table(exponents, episodes=512)
    else:
        table = rollout_table(options.classes, episodes=16, fresh=64)
    print(table.to_string(index=False))
    print(f"{time.process_time() - start:.0f} CPU seconds")
    if options.csv:
        table.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
