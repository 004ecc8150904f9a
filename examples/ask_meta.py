"""PPO that asks private questions about models it has never seen: LDPAskMeta-v0, in one file.

    python examples/ask_meta.py                                           # a minute
    python examples/ask_meta.py --seeds 5 --csv docs/data/ask-meta.csv    # 4 minutes

An episode draws K distributions over M labels, and the agent sees their table and the posterior.
Hypotheses and labels have no order, so neither has the network: hypotheses in another order get
their coefficients in that order, and the order of the labels does not matter. It is trained on
the classes of training seeds and scored on those of test seeds. The table has policies without
training too: the form of the contrasts and of the network does most of the work.

A reward depends on the question and not on its answer, and gamma is 0: the advantage is the reward
minus the critic's estimate.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.distributions import Normal

from ldp_agents.designers import GreedyQuestions, RandomQuestions
from ldp_agents.rl.scoring import References, Scoring
from ldp_gym.statistics import mean, score_of_runs

ENV_ID = "LDPAskMeta-v0"
FIRST_TEST_SEED = 500_000  # as score_policy's
FIRST_TRAINING_SEED = 10**9  # seeds from 3,000,000 on are for training
GAMES = 64
LEARNING_RATE = 1e-3  # falls linearly to zero
BATCH_SIZE = 1024
PASSES = 5
CLIP = 0.2


class Observed(NamedTuple):
    """Parts of B observations."""

    weights: torch.Tensor  # (B, K)
    log_weights: torch.Tensor  # (B, K)
    progress: torch.Tensor  # (B, 1), t / T
    candidates: torch.Tensor  # (B, K, M)


def parts_of(rows: torch.Tensor, num_hypotheses: int) -> Observed:
    """Split observations ``(B, 2 K + 1 + K M)`` into their parts."""
    sizes = [num_hypotheses, num_hypotheses, 1, rows.shape[1] - 2 * num_hypotheses - 1]
    weights, log_weights, progress, table = rows.split(sizes, dim=1)
    candidates = table.reshape(len(rows), num_hypotheses, -1)
    return Observed(weights, log_weights, progress, candidates)


class Layer(nn.Module):
    """Features of labels from sums over hypotheses, then features of hypotheses from sums over labels.

    In these sums the pair (k, y) has the factor ``f_k[y] - f_w[y]``.
    """

    def __init__(self, width: int, num_features: int) -> None:
        super().__init__()
        self.of_label = nn.Linear(width + 1, width)
        self.of_hypothesis = nn.Linear(2 * width + num_features, width)

    def forward(
        self,
        hidden: torch.Tensor,  # (B, K, width)
        features: torch.Tensor,  # (B, K, num_features)
        weights: torch.Tensor,  # (B, K)
        deviations: torch.Tensor,  # (B, K, M), f_k[y] - f_w[y]
        mixture: torch.Tensor,  # (B, M), f_w[y]
    ) -> torch.Tensor:
        sums = torch.einsum("bk,bkm,bkh->bmh", weights, deviations, hidden)

        # Late in an episode all deviations are small, so only ratios of sums are kept.
        sums = sums / (sums.square().mean(dim=1, keepdim=True).sqrt() + 1e-6)
        labels = torch.tanh(self.of_label(torch.cat([sums, 4.0 * mixture[..., None]], dim=-1)))

        sums_of_labels = 2.0 * torch.einsum("bkm,bmh->bkh", deviations, labels)
        inputs = torch.cat([hidden, sums_of_labels, features], dim=-1)
        return torch.tanh(self.of_hypothesis(inputs))


class Agent(nn.Module):
    """A preference for each hypothesis, and the expected reward.

    The contrast has the coefficients ``w_k (preference_k - mean)``, where the mean is the posterior's.
    So they sum to 0, and hypotheses that are ruled out hardly matter.
    """

    NUM_FEATURES = 4
    """Number of features of a hypothesis before the first layer."""

    def __init__(self, num_hypotheses: int, width: int = 32) -> None:
        super().__init__()
        self.num_hypotheses = num_hypotheses
        self.first = nn.Linear(self.NUM_FEATURES, width)
        self.layers = nn.ModuleList(Layer(width, self.NUM_FEATURES) for _ in range(2))
        self.actor = nn.Linear(width, 1)
        self.critic = nn.Sequential(nn.Linear(2 * width + 3, 64), nn.Tanh(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.tensor(-0.5))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
                nn.init.zeros_(layer.bias)
        nn.init.orthogonal_(self.actor.weight, 0.5)

    def forward(self, rows: torch.Tensor) -> tuple[Normal, torch.Tensor]:
        """The law of preferences ``(B, K)``, and the expected rewards ``(B,)``."""
        weights, log_weights, progress, candidates = parts_of(rows, self.num_hypotheses)
        mixture = torch.einsum("bk,bkm->bm", weights, candidates)
        deviations = candidates - mixture[:, None]
        log_ratios = torch.log((candidates + 1e-9) / (mixture[:, None] + 1e-9))
        divergences = (candidates * log_ratios).sum(dim=-1)
        expected_loss = (weights * divergences).sum(dim=1, keepdim=True)

        features = torch.stack(
            [weights, 0.1 * log_weights, divergences, 0.3 * torch.log(divergences + 1e-4)], dim=-1
        )
        hidden = torch.tanh(self.first(features))
        for layer in self.layers:
            hidden = layer(hidden, features, weights, deviations, mixture)

        preferences = self.actor(hidden)[..., 0]
        pooled = [
            hidden.mean(dim=1),
            torch.einsum("bk,bkh->bh", weights, hidden),
            progress,
            expected_loss,
            0.3 * torch.log(expected_loss + 1e-5),
        ]
        value = self.critic(torch.cat(pooled, dim=1))[:, 0]
        return Normal(preferences, self.log_std.exp().expand_as(preferences)), value


def contrasts_of(preferences: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Contrasts ``(B, K)`` whose largest coefficient is 1 or -1."""
    average = (weights * preferences).sum(dim=1, keepdim=True)
    contrasts = weights * (preferences - average)
    largest = contrasts.abs().amax(dim=1, keepdim=True)
    return contrasts / largest.clamp(min=1e-9)


class Policy:
    """Contrasts of the mean preferences, with the ``predict`` of stable-baselines3."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def preferences(self, rows: torch.Tensor) -> torch.Tensor:
        """Preferences ``(B, K)``."""
        law, _ = self.agent(rows)
        return law.mean

    def predict(
        self, observations: Any, state: Any = None, episode_start: Any = None, deterministic=True
    ) -> tuple[np.ndarray, Any]:
        rows = torch.from_numpy(observations)
        with torch.no_grad():
            preferences = self.preferences(rows)
            weights = parts_of(rows, self.agent.num_hypotheses).weights
            return contrasts_of(preferences, weights).numpy(), state


class RandomPreferences(Policy):
    """Contrasts of Gaussian preferences, so the posterior's weights do all that is done."""

    def preferences(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.randn(len(rows), self.agent.num_hypotheses)


class HeaviestHypothesis(Policy):
    """Contrasts of the heaviest hypothesis with the others."""

    def preferences(self, rows: torch.Tensor) -> torch.Tensor:
        weights = parts_of(rows, self.agent.num_hypotheses).weights
        return nn.functional.one_hot(weights.argmax(dim=1), weights.shape[1]).float()


def new_agent(seed: int) -> Agent:
    """An agent before training."""
    torch.manual_seed(seed)
    num_hypotheses = gym.make(ENV_ID).unwrapped.game.num_hypotheses
    return Agent(num_hypotheses)


def train(updates: int, rounds: int, seed: int) -> Agent:
    """Train on ``updates * rounds`` rounds of 64 games."""
    agent = new_agent(seed)
    envs = gym.make_vec(ENV_ID, num_envs=GAMES, autoreset_mode="SameStep")
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    first_seed = FIRST_TRAINING_SEED + 2**20 * seed
    seen = torch.from_numpy(envs.reset(seed=first_seed)[0])

    for update in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1.0 - update / updates)

        # Collect some rounds of all games.
        stored = []
        for _ in range(rounds):
            with torch.no_grad():
                law, value = agent(seen)
                preferences = law.sample()
            weights = parts_of(seen, agent.num_hypotheses).weights
            following, reward, *_ = envs.step(contrasts_of(preferences, weights).numpy())
            reward = torch.from_numpy(reward).float()
            log_prob = law.log_prob(preferences).sum(dim=1)
            stored.append((seen, preferences, log_prob, reward - value, reward))
            seen = torch.from_numpy(following)
        observations, actions, log_probs, advantages, returns = (
            torch.cat(part) for part in zip(*stored, strict=True)
        )

        # Learn from them.
        for _ in range(PASSES):
            for batch in torch.randperm(len(returns)).split(BATCH_SIZE):
                law, value = agent(observations[batch])
                ratio = (law.log_prob(actions[batch]).sum(dim=1) - log_probs[batch]).exp()
                advantage = advantages[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped_ratio = ratio.clamp(1.0 - CLIP, 1.0 + CLIP)
                gain = torch.min(ratio * advantage, clipped_ratio * advantage).mean()
                loss = 0.5 * (returns[batch] - value).square().mean() - gain
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return agent


class Result(NamedTuple):
    """Totals of the test episodes, one row for each training run, and what a run took."""

    questions: str
    totals: np.ndarray  # (runs, episodes)
    rounds: int | None = None
    cpu_seconds: float = 0.0


def row_of(result: Result, references: References) -> dict[str, str]:
    """Row of the table: the mean total and the score, with their intervals, and the cost."""
    sums = mean(result.totals.mean(axis=0))
    score = score_of_runs(references.worst, result.totals, references.best)
    row = dict.fromkeys(["questions", "sum of J", "score", "seeds", "rounds", "CPU s"], "-")
    row["questions"] = result.questions
    row["sum of J"] = f"{sums.value:.1f} [{sums.low:.1f}, {sums.high:.1f}]"
    if score is not None:
        row["score"] = f"{score.value:z.2f} [{score.low:z.2f}, {score.high:z.2f}]"
    if result.rounds is not None:
        row["seeds"] = str(len(result.totals))
        row["rounds"] = f"{result.rounds:,}"
        row["CPU s"] = f"{result.cpu_seconds:.0f}"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=50, help="updates of PPO (default 50)")
    parser.add_argument(
        "--rounds", type=int, default=64, help="rounds of each game between them (default 64)"
    )
    parser.add_argument("--seeds", type=int, default=1, help="training runs (default 1)")
    parser.add_argument(
        "--episodes", type=int, default=128, help="episodes to score on (default 128)"
    )
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seeds = range(arguments.seeds)

    # Policies that are not trained. The first scores 0 and the last 1, on the same episodes.
    game = gym.make(ENV_ID)
    untrained = [Policy(new_agent(seed)) for seed in seeds]
    rules = {
        "random contrasts": RandomQuestions(game, seed=1),
        "random preferences": RandomPreferences(untrained[0].agent),
        "the heaviest hypothesis against the rest": HeaviestHypothesis(untrained[0].agent),
        "greedy contrasts": GreedyQuestions(game),
    }
    scoring = Scoring(ENV_ID, None, arguments.episodes, FIRST_TEST_SEED, {})
    results = [Result(name, scoring(rule).totals[None]) for name, rule in rules.items()]
    totals = np.array([scoring(policy).totals for policy in untrained])
    results.append(Result("the network before training", totals, rounds=0))

    start = time.process_time()
    agents = [train(arguments.updates, arguments.rounds, seed) for seed in seeds]
    seconds = (time.process_time() - start) / len(seeds)
    scores = [scoring(Policy(agent)) for agent in agents]
    for seed, score in zip(seeds, scores, strict=True):
        print(f"PPO, seed {seed}: score {score}")
    totals = np.array([score.totals for score in scores])
    rounds = GAMES * arguments.updates * arguments.rounds
    results.append(Result("PPO", totals, rounds, seconds))

    table = pd.DataFrame([row_of(result, scoring.references) for result in results])
    print(table.to_string(index=False))
    if arguments.csv:
        table.to_csv(arguments.csv, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
