"""PPO of stable-baselines3 on LDPDist-v0, from its parts: views, games in lock step, algorithm, score.

python examples/train_ppo.py

`ldp-gym train ppo` does the same with a network that plays any class, checkpoints and a progress bar.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import gymnasium as gym
import torch
from stable_baselines3 import PPO

import ldp_gym
from ldp_agents.rl import SB3VecEnv, load, save
from ldp_gym.wrappers import StaggeredStart, VectorEvidence, VectorMixtureAction


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000, help="rounds of training (default 10^6)")
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy level (default 1)")
    parser.add_argument("--episodes", type=int, default=512, help="episodes to score on (default 512)")
    parser.add_argument(
        "--out", type=Path, default=Path("ldp-gym-results/own-ppo"), help="where the policy goes"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    # 64 games in lock step. The policy sees sums of messages and answers with a logit for each hypothesis;
    # it never sees the label or the truth, and the reward only trains it.
    rules = {"hypotheses": "dirichlet", "epsilon": arguments.epsilon}
    games = gym.make_vec("LDPDist-v0", num_envs=64, autoreset_mode="SameStep", **rules)
    views = VectorEvidence(VectorMixtureAction(games, logit_range=10.0))
    env = SB3VecEnv(StaggeredStart(views))

    # An action never changes a message: every round is a bandit of its own, so gamma is 0.
    model = PPO(
        "MlpPolicy",
        env,
        gamma=0.0,
        gae_lambda=1.0,
        n_steps=64,
        batch_size=1024,
        n_epochs=5,
        learning_rate=lambda remaining: 1e-3 * max(remaining, 0.0),
        policy_kwargs={"log_std_init": -0.5 - math.log(10.0)},
        device="cpu",
        seed=0,
    )
    model.learn(arguments.steps)

    # With its wrappers it goes into a directory, which evaluate, `ldp-gym bench --learner` and `train` take.
    save(model, env, arguments.out)

    # The policy as a learner, on the same episodes as the others. They are not those it trained on.
    ppo = load(arguments.out, trust=True)
    for name, learner in {"uniform": "uniform", "exp3": "exp3", "ppo": ppo, "bayes": "bayes"}.items():
        result = ldp_gym.evaluate(learner, rules, episodes=arguments.episodes, seed=10**6)
        low, high = result.interval()
        print(f"{name:8s} total KL {result.risk:7.1f} ± {(high - low) / 2:.1f}")


if __name__ == "__main__":
    main()
