"""PPO of stable-baselines3 on LDPDistBox-v0: 64 games at once, a score, and a learner of it.

python examples/train_ppo.py

`ldp-gym train ppo` does the same, and keeps the model on the way.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from stable_baselines3 import PPO

import ldp_gym
from ldp_agents.rl import load, make_sb3_env, save, score_policy


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--steps", type=int, default=300_000, help="rounds of training (default 300,000)"
    )
    parser.add_argument("--epsilon", type=float, default=1.0, help="privacy level (default 1)")
    parser.add_argument(
        "--episodes", type=int, default=512, help="episodes to score on (default 512)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("ldp-gym-results/own-ppo"), help="where the policy goes"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    # 64 games in lock step. The policy sees the evidence of the messages and answers with a logit
    # for each hypothesis; it never sees the label or the truth, and the reward only trains it.
    rules = {"hypotheses": "dirichlet", "epsilon": arguments.epsilon}
    env = make_sb3_env("LDPDistBox-v0", num_envs=64, **rules)

    # An action never changes a message: every round is a bandit problem, so gamma is 0.
    settings = {
        "gamma": 0.0,
        "n_steps": 64,
        "batch_size": 1024,
        "n_epochs": 5,
        "learning_rate": 1e-3,
    }
    model = PPO("MlpPolicy", env, device="cpu", seed=0, **settings)
    model.learn(arguments.steps)
    score = score_policy(model, "LDPDistBox-v0", episodes=arguments.episodes, **rules)
    print(f"score {score} (0 is the uniform mixture, 1 is Bayes)")

    # In a directory it is a learner, which evaluate and `ldp-gym bench --learner` take.
    save(model, arguments.out)
    ppo = load(arguments.out, trust=True)
    learners = {"uniform": "uniform", "exp3": "exp3", "ppo": ppo, "bayes": "bayes"}
    for name, learner in learners.items():
        result = ldp_gym.evaluate(learner, rules, episodes=arguments.episodes)
        low, high = result.interval()
        print(f"{name:8s} total KL {result.risk:7.1f} ± {(high - low) / 2:.1f}")


if __name__ == "__main__":
    main()
