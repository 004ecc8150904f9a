"""Batch hypothesis selection from private samples, by playing the game online (Section 6).

K distributions are known, one of them is the truth, and n users send one private message each. Play the
online game over the n users and average the predictions, ``p_hat = (1/n) sum_t p_hat_t``: by convexity its
total variation from the truth is at most the average of the rounds'. The table has that distance, and in
brackets how often the hypothesis nearest to p_hat is the truth; both with 95% intervals over the episodes.

    python examples/hypothesis_selection.py --picture selection.png
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import binomtest

from ldp_gym import HYPOTHESES, batch, theory
from ldp_gym.numerics.divergences import tv

SIZE = 8  # K

PAIRS = [
    ("laplace-single", "exp3"),
    ("laplace-single", "bayes"),
    ("split", "bayes"),
    ("adaptive-split", "bayes"),
]


def averaged(channel: str, learner: str, users: int, episodes: int, epsilon: float) -> np.ndarray:
    """The batch estimates ``(K, episodes, M)``, as many of each truth."""
    rules = {"hypotheses": "dirichlet", "channel": channel, "horizon": users, "epsilon": epsilon}
    return np.stack(
        [batch.estimates(learner, rules, episodes=episodes, seed=1000 * j, truth=j) for j in range(SIZE)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", nargs="+", type=int, default=[100, 300, 1000, 3000, 10_000])
    parser.add_argument("--episodes", type=int, default=25, help="of each truth")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--picture", help="save a picture here")
    arguments = parser.parse_args()

    curves: dict[str, list[tuple[float, float]]] = {}
    table = HYPOTHESES["dirichlet"](SIZE)(np.zeros(1))
    truths = np.arange(SIZE)[:, None]
    for channel, learner in PAIRS:
        print(f"{learner} on {channel}")
        for users in arguments.users:
            estimates = averaged(channel, learner, users, arguments.episodes, arguments.epsilon)
            distance = tv(table[truths], estimates)
            half = 1.96 * distance.std(ddof=1) / np.sqrt(distance.size)
            chosen = batch.nearest_hypothesis(estimates, table)
            right = binomtest(int((chosen == truths).sum()), chosen.size)
            low, high = right.proportion_ci()
            curves.setdefault(f"{learner} on {channel}", []).append((distance.mean(), half))
            print(
                f"  n = {users:6,}: TV {distance.mean():.3f} ± {half:.3f}   "
                f"(right {right.statistic:.0%}, {low:.0%} to {high:.0%})",
                flush=True,
            )
    alpha = 0.1
    needed = theory.sample_complexity(SIZE, alpha, arguments.epsilon)
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
