"""Learners on truths inside and outside the class: Dirichlet(0.3) tables, redrawn, K = 8, M = 16, T = 1,000.

python benchmarks/studies/outside.py --csv docs/data    # and posterior.csv, with adaptive channels
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import ldp_gym
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Recording

LEARNERS = ("uniform", "bayes", "fixed-share", "soft-bayes", "pairs", "robust")
TRUTHS = {
    "member": {},
    "half of two": {"truth": "mixture", "truth_kwargs": {"num_members": 2, "weights": [0.5, 0.5]}},
    "mixture of two": {"truth": "mixture", "truth_kwargs": {"num_members": 2}},
    "mixture of all": {"truth": "mixture", "truth_kwargs": {"num_members": 8}},
    "one switch": {"truth": "switching", "truth_kwargs": {"num_switches": 1}},
    "contaminated, 0.2": {"truth": "contaminated", "truth_kwargs": {"rho": 0.2}},
}
CHANNELS = {
    "laplace-single": {},
    "half-space": {},
    "challenge": {},
    "challenge (share)": {"posterior_share": 0.005},
    "adaptive-groups": {},
    "adaptive-groups (share)": {"posterior_share": 0.005},
}
TABLES = {"hypotheses": "dirichlet", "redraw_hypotheses": True, "observe_candidates": True}


def main() -> None:
    """Print the mean over the episodes and its standard error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=96)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--csv", type=Path, help="write the tables into this directory")
    options = parser.parse_args()
    rows = []
    for epsilon in (1.0, 4.0):
        for title, channel_kwargs in CHANNELS.items():
            channel = {"channel": title.partition(" ")[0], "channel_kwargs": channel_kwargs}
            for truth, rules in TRUTHS.items():
                game = {
                    **TABLES,
                    **channel,
                    **rules,
                    "epsilon": epsilon,
                    "horizon": options.horizon,
                }
                tape, row, means = Recording(Rules(**game).scenario()), {}, {}
                for learner in LEARNERS:
                    totals = ldp_gym.evaluate(
                        learner, tape, episodes=options.episodes, seed=2000
                    ).kl[:, -1]
                    means[learner] = totals.mean()
                    row[learner] = (
                        f"{totals.mean():,.1f} ± {totals.std(ddof=1) / np.sqrt(len(totals)):.1f}"
                    )
                best = min(means[learner] for learner in LEARNERS[1:-1])
                row["robust / best"] = f"{means['robust'] / best:.2f}"
                rows.append({"eps": f"{epsilon:g}", "channel": title, "truth": truth, **row})
                print(rows[-1], flush=True)
    if options.csv:
        table = pd.DataFrame(rows)
        table.to_csv(options.csv / "outside.csv", index=False)
        adaptive = [title for title in CHANNELS if title.startswith(("challenge", "adaptive"))]
        robust = table.pivot(index=["eps", "truth"], columns="channel", values="robust")
        robust.loc[[(eps, truth) for eps in ("1", "4") for truth in TRUTHS], adaptive].to_csv(
            options.csv / "posterior.csv"
        )


if __name__ == "__main__":
    main()
