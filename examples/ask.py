"""Agents that design private questions: PPO on LDPAsk-v0, certified, and ranked with other channels.

    python examples/ask.py
    python examples/ask.py --hypotheses disjoint --num-hypotheses 4 --horizon 100

A row has the total KL of Bayes and its standard error, and the score: 0 for random contrasts, 1 for
greedy ones. On disjoint supports the least risk of any sequence of such questions is known, by
dynamic programming.
"""

from __future__ import annotations

import argparse
import math
from itertools import combinations_with_replacement

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

import ldp_gym
from ldp_agents.rl import as_channel, make_sb3_env
from ldp_gym.envs.ask import greedy_contrast


class WithoutTime(BaseFeaturesExtractor):
    """The posterior without t / T, which a channel does not know."""

    def __init__(self, space: gym.spaces.Box) -> None:
        super().__init__(space, space.shape[0] - 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows[:, :-1]


def train(rules: dict, steps: int, gamma: float, seed: int) -> PPO:
    env = make_sb3_env("LDPAsk-v0", num_envs=64, **rules)
    settings = {
        "gamma": gamma,
        "n_steps": 64,
        "batch_size": 1024,
        "n_epochs": 5,
        "learning_rate": 1e-3,
    }
    network = {"features_extractor_class": WithoutTime}
    model = PPO("MlpPolicy", env, policy_kwargs=network, **settings, device="cpu", seed=seed)
    return model.learn(steps)


def least_risk(size: int, horizon: int, epsilon: float, most: int = 30) -> float:
    """Least total KL of one-bit questions about K disjoint supports, under a uniform truth.

    The posterior is ``exp(-eps n_k)``, normalised, where n_k is by how many answers k is behind the
    leader. Sorted, and at most 30, these numbers are the state; the expected loss of a round is the
    entropy.
    """
    states = [(0, *rest) for rest in combinations_with_replacement(range(most + 1), size - 1)]
    index = {state: number for number, state in enumerate(states)}
    behind = np.array(states)
    weights = np.exp(-epsilon * behind)
    weights /= weights.sum(axis=1, keepdims=True)
    losses = -(weights * np.log(weights)).sum(axis=1)

    def after(favoured: np.ndarray) -> np.ndarray:
        """Number of the next state, from each state, if an answer favours these hypotheses."""
        counts = behind + ~favoured
        counts = np.sort(counts - counts.min(axis=1, keepdims=True), axis=1)
        counts = np.minimum(counts, most)
        return np.array([index[tuple(row)] for row in counts.tolist()])

    # A question and its opposite are the same: hypothesis 0 is always in the set.
    sets = []
    for number in range(0, 2**size - 2, 2):
        members = (np.arange(size) == 0) | ((number >> np.arange(size)) & 1 > 0)
        sets.append(members)
    flip = 1.0 / (1.0 + math.exp(epsilon))
    chances = [flip + (1.0 - 2.0 * flip) * weights @ members for members in sets]
    next_states = [(after(members), after(~members)) for members in sets]

    risk = np.zeros(len(states))
    for _ in range(horizon):
        risks_to_come = []
        for yes, (if_yes, if_no) in zip(chances, next_states, strict=True):
            risks_to_come.append(yes * risk[if_yes] + (1.0 - yes) * risk[if_no])
        risk = losses + np.min(risks_to_come, axis=0)
    start = index[(0,) * size]
    return float(risk[start])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hypotheses", default="dirichlet", help="a class without contexts")
    parser.add_argument("--num-hypotheses", type=int, default=8, help="K")
    parser.add_argument("--horizon", type=int, default=200, help="T")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=2_000_000, help="questions to train on")
    parser.add_argument("--gamma", type=float, default=0.0, help="discount (default 0)")
    parser.add_argument("--seeds", type=int, default=5, help="number of training runs")
    parser.add_argument("--episodes", type=int, default=4096)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    names = ("hypotheses", "num_hypotheses", "horizon", "epsilon")
    rules = {name: getattr(arguments, name) for name in names}
    env = gym.make("LDPAsk-v0", **rules)
    size = arguments.num_hypotheses
    table = env.unwrapped.game.hypotheses(np.zeros(1))
    coins = np.random.default_rng(0)

    def ask_at_random(rows: np.ndarray) -> np.ndarray:
        return coins.uniform(-1, 1, (len(rows), size))

    def ask_greedily(rows: np.ndarray) -> np.ndarray:
        return greedy_contrast(rows[:, :size].astype(float), table)

    channels = {
        "random contrasts": as_channel(ask_at_random, env),
        "greedy contrasts": as_channel(ask_greedily, env),
        "challenge": "challenge",
        "half-space": "half-space",
    }
    for seed in range(arguments.seeds):
        model = train(rules, arguments.steps, arguments.gamma, seed)
        channel = as_channel(model, env)
        channels[f"ppo, seed {seed}"] = channel
        worst = 0.0
        for posterior in coins.dirichlet(np.ones(size), 50):
            certificate = ldp_gym.audit.certify(channel, table, posterior)
            worst = max(worst, certificate.epsilon)
        print(f"ppo, seed {seed}: eps = {worst:.6f} at 50 posteriors", flush=True)

    totals = {}
    for name, channel in channels.items():
        game = {**rules, "channel": channel}
        totals[name] = ldp_gym.evaluate("bayes", game, episodes=arguments.episodes).kl[:, -1]
    random, greedy = totals["random contrasts"].mean(), totals["greedy contrasts"].mean()
    for name, risks in sorted(totals.items(), key=lambda row: row[1].mean()):
        error = risks.std(ddof=1) / math.sqrt(len(risks))
        score = (random - risks.mean()) / (random - greedy)
        print(
            f"{name:18s} total KL {risks.mean():6.2f} ± {error:.2f}   score {score:5.2f}",
            flush=True,
        )
    if arguments.hypotheses == "disjoint":
        optimum = least_risk(size, arguments.horizon, arguments.epsilon)
        print(f"{'optimum':18s} total KL {optimum:6.2f}")


if __name__ == "__main__":
    main()
