"""Agents on LDPNature-v0, for docs/train.md: rules, and trained policies.

    python benchmarks/studies/planning.py --csv docs/data/nature.csv    # 5 CPU minutes

An episode draws a class and a pool, so a policy has to read them from its observation. Training
seeds begin at 3,000,000; scores are on the 128 test episodes of the protocol of baselines.py. The
total of an episode is the sum of expected losses J(w), in nats, under a uniform truth.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from stable_baselines3.common.distributions import CategoricalDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn

from ldp_agents.adversaries import (
    ConstantContext,
    CostliestToLearn,
    KeptContext,
    LargestLoss,
    RandomContexts,
)
from ldp_agents.rl import make_sb3_env
from ldp_agents.rl.sb3 import make_algorithm
from ldp_agents.rl.scoring import References, Scoring
from ldp_agents.rl.settings import settings_of
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.statistics import mean, score_of_runs

EPISODES = 128
"""Number of test episodes of a row."""

HINDSIGHT_EPISODES = 32
"""Number of test episodes on which all constant contexts are played."""


class Result(NamedTuple):
    """Totals of a policy on the test episodes, one row per training seed."""

    name: str
    totals: FloatArray  # (seeds, episodes)
    rounds: int = 0
    cpu_seconds: float = 0.0


# -- A network that treats all contexts alike ------------------------------------------------------


class PerContext(nn.Module):
    """A score of each context of the pool from its loss and information, the entropy and t / T.

    The same layers serve all contexts, so the order of the pool does not matter.
    """

    def __init__(self, num_hypotheses: int, width: int = 64) -> None:
        super().__init__()
        self.num_hypotheses = num_hypotheses
        self.layers = nn.Sequential(
            nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scores ``(B, P)`` for observations ``(B, 2 K + 1 + 2 P)``."""
        weights = rows[:, : self.num_hypotheses]
        time_played = rows[:, 2 * self.num_hypotheses : 2 * self.num_hypotheses + 1]
        losses, information = rows[:, 2 * self.num_hypotheses + 1 :].chunk(2, dim=-1)
        entropy = -torch.xlogy(weights, weights).sum(dim=-1, keepdim=True)
        of_game = torch.cat([torch.log(entropy + 1e-6), time_played], dim=-1)
        of_context = torch.stack([losses, information], dim=-1)
        # How a context compares with the others of the pool.
        relative = of_context - of_context.amax(dim=1, keepdim=True)
        shared = of_game[:, None].expand(-1, losses.shape[1], -1)
        return self.layers(torch.cat([of_context, relative, shared], dim=-1))[..., 0]


class EquivariantPolicy(ActorCriticPolicy):
    """Policy of SB3 whose choice comes from the scores of a network."""

    def __init__(self, *arguments: Any, network: Callable[[], nn.Module], **options: Any) -> None:
        self._network = network
        super().__init__(*arguments, **options)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = nn.Identity()
        self.network = self._network()
        learning_rate = lr_schedule(1)
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=learning_rate, **self.optimizer_kwargs
        )

    def _distribution(self, rows: torch.Tensor) -> Any:
        assert isinstance(self.action_dist, CategoricalDistribution)
        return self.action_dist.proba_distribution(action_logits=self.network(rows))

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        distribution = self._distribution(obs.float())
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def evaluate_actions(self, obs: Any, actions: Any) -> Any:
        distribution = self._distribution(obs.float())
        return self.predict_values(obs), distribution.log_prob(actions), distribution.entropy()

    def get_distribution(self, obs: Any) -> Any:
        return self._distribution(obs.float())


# -- Rows -----------------------------------------------------------------------------------------


class Trainer(NamedTuple):
    """Training run: the settings of PPO that differ, the rounds, and the network."""

    name: str
    env_id: str
    rounds: int
    changes: dict[str, Any]
    network: Callable[[], nn.Module] | None = None


def train(trainer: Trainer, seed: int) -> Any:
    """Train PPO once."""
    torch.set_num_threads(1)
    settings = settings_of("ppo", trainer.changes)
    env = make_sb3_env(trainer.env_id, settings["n_envs"])
    if trainer.network is None:
        model = make_algorithm("ppo", env, settings, seed)
    else:
        options = {"network": trainer.network}
        settings["policy"] = EquivariantPolicy
        model = make_algorithm("ppo", env, settings, seed, policy_kwargs=options)
    return model.learn(trainer.rounds)


def train_all(trainer: Trainer, scoring: Scoring, seeds: int) -> Result:
    """Train PPO for each seed, and play the test episodes."""
    totals = []
    start = time.process_time()
    for seed in range(seeds):
        model = train(trainer, seed)
        score = scoring(model)
        totals.append(score.totals)
        print(f"{trainer.name}, seed {seed}: {score}", flush=True)
    seconds = (time.process_time() - start) / seeds
    return Result(trainer.name, np.array(totals), trainer.rounds, seconds)


def rule_rows(scoring: Scoring, rules: dict[str, Any]) -> Iterator[Result]:
    """Rules that do not learn."""
    for name, policy in rules.items():
        score = scoring(policy)
        print(f"{name}: {score}", flush=True)
        yield Result(name, score.totals[None])


def best_in_hindsight(env_id: str) -> Result:
    """The constant context of each episode that cost most, with the coins of that episode."""
    scoring = Scoring(env_id, None, HINDSIGHT_EPISODES, TEST.stop // 2, {})
    game = gym.make(env_id)
    pool_size = int(game.action_space.n)  # type: ignore[attr-defined]
    totals = [scoring(ConstantContext(game, index)).totals for index in range(pool_size)]
    return Result("constant, the best in hindsight", np.min(totals, axis=0)[None])


def nature_rows(seeds: int, rounds: int) -> Iterator[tuple[Result, References]]:
    env_id = "LDPNature-v0"
    scoring = Scoring(env_id, None, EPISODES, TEST.stop // 2, {})
    game = gym.make(env_id)
    rules = {
        "contexts at random": RandomContexts(game, seed=1),
        "the largest loss now": LargestLoss(game),
        "constant: costliest to learn at the start": KeptContext(game),
        "`adversary`": CostliestToLearn(game),
    }
    for result in rule_rows(scoring, rules):
        yield result, scoring.references
    hindsight = best_in_hindsight(env_id)
    worst, best = scoring.references
    first = slice(0, HINDSIGHT_EPISODES)
    yield hindsight, References(worst[first], best[first])

    size = game.unwrapped.game.num_hypotheses  # type: ignore[attr-defined]
    per_context = lambda: PerContext(size)  # noqa: E731
    trainers = [
        Trainer("PPO, MLP, gamma 0.99", env_id, rounds, {"gamma": 0.99}),
        Trainer("PPO, a score per context, gamma 0", env_id, rounds, {"gamma": 0.0}, per_context),
        Trainer(
            "PPO, a score per context, gamma 0.99", env_id, rounds, {"gamma": 0.99}, per_context
        ),
    ]
    for trainer in trainers:
        yield train_all(trainer, scoring, seeds), scoring.references


def written(result: Result, references: References) -> dict[str, str]:
    """Row of the table: the mean total with its interval, the score, and the cost."""
    sums = mean(np.abs(result.totals).mean(axis=0))
    score = score_of_runs(references.worst, result.totals, references.best)
    cells = {
        "policy": result.name,
        "sum of J": f"{sums.value:.1f} [{sums.low:.1f}, {sums.high:.1f}]",
    }
    cells["score"] = "-"
    if score is not None:
        cells["score"] = f"{score.value:z.2f} [{score.low:z.2f}, {score.high:z.2f}]"
    cells["seeds"] = str(len(result.totals)) if result.rounds else "-"
    cells["rounds"] = f"{result.rounds:,}" if result.rounds else "-"
    cells["CPU s"] = f"{result.cpu_seconds:.0f}" if result.rounds else "-"
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of training seeds")
    parser.add_argument("--rounds", type=int, default=600_000, help="rounds of training")
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    rows = nature_rows(options.seeds, options.rounds)
    table = pd.DataFrame([written(*row) for row in rows])
    print(table.to_string(index=False))
    if options.csv:
        table.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
