"""PPO in one file, in the manner of CleanRL: PyTorch and `gym.make_vec`, no stable-baselines3.

python examples/cleanrl_ppo.py

As an action never changes a message, gamma is 0: the return is the reward, and the advantage is the reward
minus the critic's estimate.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

import ldp_gym


class Agent(nn.Module):
    """Gaussian logits for the hypotheses, and the reward they are expected to bring."""

    def __init__(self, features: int, hypotheses: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(features, 64), nn.Tanh(), nn.Linear(64, hypotheses))
        self.critic = nn.Sequential(nn.Linear(features, 64), nn.Tanh(), nn.Linear(64, 1))
        self.log_std = nn.Parameter(torch.zeros(hypotheses))

    def forward(self, seen: torch.Tensor) -> tuple[Normal, torch.Tensor]:
        return Normal(self.actor(seen), self.log_std.exp()), self.critic(seen)[:, 0]


def make(rules: dict, games: int) -> gym.vector.VectorEnv:
    return gym.make_vec("LDPDistBox-v0", num_envs=games, autoreset_mode="SameStep", **rules)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--updates", type=int, default=250, help="updates of 64 x 64 rounds (default 250)"
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy level (default 1)")
    parser.add_argument(
        "--horizon", type=int, default=1000, help="rounds of an episode (default 1000)"
    )
    parser.add_argument(
        "--episodes", type=int, default=256, help="episodes to score on (default 256)"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    rules = {"hypotheses": "dirichlet", "epsilon": arguments.epsilon, "horizon": arguments.horizon}
    envs = make(rules, 64)
    rounds = 64
    clip = 0.2
    agent = Agent(envs.single_observation_space.shape[0], envs.single_action_space.shape[0])
    bound = float(envs.single_action_space.high[0])
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    seen = torch.from_numpy(envs.reset(seed=10**9)[0])

    for update in range(arguments.updates):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1.0 - update / arguments.updates)

        # Collect 64 rounds of 64 games.
        stored = []
        for _ in range(rounds):
            with torch.no_grad():
                law, value = agent(seen)
                logits = law.sample()
            following, reward, *_ = envs.step(logits.clamp(-bound, bound).numpy())
            reward = torch.from_numpy(reward).float()
            log_prob = law.log_prob(logits).sum(1)
            stored.append((seen, logits, log_prob, reward - value, reward))
            seen = torch.from_numpy(following)
        observations, actions, log_probs, advantages, returns = (
            torch.cat(part) for part in zip(*stored, strict=True)
        )

        # Learn from them in 5 passes.
        for _ in range(5):
            for batch in torch.randperm(len(returns)).split(1024):
                law, value = agent(observations[batch])
                ratio = (law.log_prob(actions[batch]).sum(1) - log_probs[batch]).exp()
                advantage = advantages[batch]
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                clipped_ratio = ratio.clamp(1 - clip, 1 + clip)
                gain = torch.min(ratio * advantage, clipped_ratio * advantage).mean()
                loss = 0.5 * (returns[batch] - value).pow(2).mean() - gain
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if update % 25 == 24:
            print(f"update {update + 1:4d}  gain per round {returns.mean():.3f}", flush=True)

    # Score the mean action on whole episodes, seeds 0, 1, ...: the same that evaluate plays.
    scored = make(rules, arguments.episodes)
    seen, _ = scored.reset(seed=0)
    total = np.zeros(arguments.episodes)
    for _ in range(arguments.horizon):
        with torch.no_grad():
            action = agent.actor(torch.from_numpy(seen)).clamp(-bound, bound).numpy()
        seen, _, over, _, infos = scored.step(action)
        total += (infos["final_info"] if over.any() else infos)["kl"]
    print(f"cleanrl  total KL {total.mean():7.1f} ± {1.96 * total.std() / len(total) ** 0.5:.1f}")
    for name in ("uniform", "exp3", "bayes"):
        result = ldp_gym.evaluate(name, rules, episodes=arguments.episodes)
        low, high = result.interval()
        print(f"{name:8s} total KL {result.risk:7.1f} ± {(high - low) / 2:.1f}")


if __name__ == "__main__":
    main()
