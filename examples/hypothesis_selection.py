"""Batch hypothesis selection from private samples, by playing the game online (Section 6).

K distributions are known, one of them is the truth, and n users send one private message each. Play the
online game over the n users and average the predictions, ``p_hat = (1/n) sum_t p_hat_t``: by convexity its
total variation from the truth is at most the average of the rounds'. The table has that distance, and in
brackets how often the hypothesis nearest to p_hat is the truth; both with 95% intervals over the episodes.

    python examples/hypothesis_selection.py --picture selection.png
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
from scipy.stats import binomtest

import ldp_agents
import ldp_gym  # noqa: F401 - registers LDPDist-v0
from ldp_gym import theory
from ldp_gym.divergences import tv

PAIRS = [
    ("laplace-single", "exp3"),
    ("laplace-single", "bayes"),
    ("split", "bayes"),
    ("adaptive-split", "bayes"),
]


def averaged(channel: str, learner: str, users: int, episodes: int, epsilon: float):
    """The batch estimates ``(episodes, M)``, the truths ``(episodes,)`` and the class."""
    rules = {"hypotheses": "dirichlet", "channel": channel, "horizon": users, "epsilon": epsilon}
    envs = gym.make_vec("LDPDist-v0", num_envs=episodes, reveal=True, **rules).unwrapped
    player = ldp_agents.make(learner, envs.game)
    observations, infos = envs.reset(seed=0)
    truths, total = infos["truth"], 0.0  # for us who judge: the learner gets observations alone
    for _ in range(users):
        prediction = player.act(observations)
        total = total + prediction
        observations, *_ = envs.step(prediction)
    return total / users, truths, envs.game.hypotheses(np.zeros(1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", nargs="+", type=int, default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--picture", help="save a picture here")
    arguments = parser.parse_args()

    curves = {}
    for channel, learner in PAIRS:
        print(f"{learner} on {channel}")
        for users in arguments.users:
            estimates, truths, table = averaged(
                channel, learner, users, arguments.episodes, arguments.epsilon
            )
            distance = tv(table[truths], estimates)
            half = 1.96 * distance.std(ddof=1) / np.sqrt(len(distance))
            nearest = tv(table, estimates[:, None]).argmin(axis=-1)
            right = binomtest(int((nearest == truths).sum()), len(truths))
            low, high = right.proportion_ci()
            curves.setdefault(f"{learner} on {channel}", []).append((distance.mean(), half))
            print(
                f"  n = {users:6,}: TV {distance.mean():.3f} ± {half:.3f}   "
                f"(right {right.statistic:.0%}, {low:.0%} to {high:.0%})",
                flush=True,
            )
    alpha = 0.1
    needed = theory.sample_complexity(8, alpha, arguments.epsilon)
    print(f"the theorem's guarantee of TV <= {alpha} for exp3 begins at n = {needed:,}")
    if arguments.picture:
        draw(arguments.picture, arguments.users, curves)


def draw(path: str, users: list[int], curves: dict[str, list[tuple[float, float]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, points in curves.items():
        means, halves = zip(*points, strict=True)
        axes.errorbar(users, means, yerr=halves, marker="o", capsize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="TV from the truth, with 95% intervals")
    axes.legend()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
