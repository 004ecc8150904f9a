"""Gain of tight calibration: the same learners on the same channels with the paper's noise and with less.

A cell is the total KL in nats with half of its 95% interval.

    python examples/calibration.py --horizon 10000 --episodes 100
"""

from __future__ import annotations

import argparse

import ldp_gym

ROWS = [
    ("laplace-single", "exp3"),
    ("laplace-single", "bayes"),
    ("laplace-vector", "wma"),
    ("laplace-vector", "bayes"),
    ("gaussian-vector", "wma"),
    ("gaussian-vector", "bayes"),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--csv", help="write the table here")
    arguments = parser.parse_args()
    shared = {"hypotheses": "dirichlet", "horizon": arguments.horizon, "epsilon": arguments.epsilon}
    uniform = ldp_gym.evaluate("uniform", shared, episodes=arguments.episodes).risk
    print(
        f"K = 8, M = 16, dirichlet, T = {arguments.horizon:,}, eps = {arguments.epsilon:g}, delta = 1e-5"
    )
    print(f"for comparison, the uniform mixture: {uniform:,.0f}\n")
    print(f"{'channel':16s} {'learner':8s} {'paper':>16s} {'tight':>16s}")
    rows = []
    for channel, learner in ROWS:
        cells = []
        for calibration in ("paper", "tight"):
            delta = 0.0 if channel == "laplace-single" else 1e-5
            rules = {
                "channel": channel,
                "delta": delta,
                "channel_kwargs": {"calibration": calibration},
            }
            result = ldp_gym.evaluate(learner, {**shared, **rules}, episodes=arguments.episodes)
            low, high = result.interval()
            cells.append(f"{result.risk:,.0f} ± {(high - low) / 2:,.0f}")
        print(f"{channel:16s} {learner:8s} {cells[0]:>16s} {cells[1]:>16s}", flush=True)
        rows.append({"channel": channel, "learner": learner, "paper": cells[0], "tight": cells[1]})
    if arguments.csv:
        import pandas as pd

        pd.DataFrame(rows).to_csv(arguments.csv, index=False)


if __name__ == "__main__":
    main()
