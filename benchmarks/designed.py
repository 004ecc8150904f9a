"""How much `designed` gains over the best other channel that is not adaptive, on tables it was not tuned on.

For every M and eps: the risk of Bayes on `designed` over that of the other channel with the least mean risk
on the same tables, with the standard error over the tables, and the longest time that a design took. Every
hypothesis is the truth equally often: which one it is decides more of the risk than the channel does.

    python benchmarks/designed.py --labels 10 64 --epsilons 0.5 1 2
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ldp_gym

NUM_HYPOTHESES = 8
FIRST_TABLE = 1000
"""The first class_seed: the search was written with others."""


def table_risks(channel: str, rules: dict[str, object], tables: int, episodes: int) -> np.ndarray:
    """The mean total KL of Bayes on each table, over all truths."""
    risks = np.zeros((tables, NUM_HYPOTHESES))
    for i, truth in np.ndindex(risks.shape):
        game = {**rules, "class_seed": FIRST_TABLE + i, "truth": truth, "channel": channel}
        seed = episodes * (i * NUM_HYPOTHESES + truth)
        risks[i, truth] = ldp_gym.evaluate("bayes", game, episodes=episodes, seed=seed).risk
    return risks.mean(axis=1)


def longest_design(rules: dict[str, object], tables: int) -> float:
    """The most CPU seconds that the design of a table took; the designs are kept for the games."""
    seconds = []
    for seed in range(FIRST_TABLE, FIRST_TABLE + tables):
        env = ldp_gym.LDPDistEnv(**rules, class_seed=seed, channel="designed")
        table = env.game.hypotheses(np.zeros(env.game.hypotheses.context_dim))
        start = time.process_time()
        env.game.channel.design(table)
        seconds.append(time.process_time() - start)
    return max(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", nargs="+", type=int, default=[10, 64])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--tables", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=16, help="of every truth, on each table")
    parser.add_argument("--horizon", type=int, default=1000)
    others = ["subset-selection", "vote", "split", "wheel"]
    parser.add_argument("--others", nargs="+", default=others, metavar="NAME")
    arguments = parser.parse_args()
    for labels in arguments.labels:
        for epsilon in arguments.epsilons:
            rules = {
                "hypotheses": "dirichlet",
                "num_hypotheses": NUM_HYPOTHESES,
                "num_labels": labels,
                "horizon": arguments.horizon,
                "epsilon": epsilon,
            }
            seconds = longest_design(rules, arguments.tables)
            risks = {
                name: table_risks(name, rules, arguments.tables, arguments.episodes)
                for name in ("designed", *arguments.others)
            }
            own = risks.pop("designed")
            best = min(risks, key=lambda name: risks[name].mean())
            ratio = own.mean() / risks[best].mean()
            error = (own - ratio * risks[best]).std(ddof=1) / np.sqrt(len(own)) / risks[best].mean()
            print(
                f"M = {labels}, eps = {epsilon:g}: designed {own.mean():.1f}, {best} "
                f"{risks[best].mean():.1f}, ratio {ratio:.3f} ± {error:.3f}; "
                f"a design took {seconds:.1f} s at most",
                flush=True,
            )


if __name__ == "__main__":
    main()
