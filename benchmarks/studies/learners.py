"""Total KL of learners on channels, on one Dirichlet(0.3) table: K = 8, M = 16, T = 10,000, eps = 1.

python benchmarks/studies/learners.py --csv docs/data/learners.csv  # the table of docs/measured-learners.md
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import ldp_gym
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Recording

LEARNERS = ("uniform", "exp3", "centred-exp3", "mle", "bayes")
LOG_LIKELIHOODS = ("laplace-single", "one-bit", "hybrid")
"""Channels whose messages are noisy log-likelihoods: the paper's EXP3 reads no others."""

OTHERS = ("split", "scheffe", "vote", "wheel", "half-space")


def main() -> None:
    """Print the mean over the episodes and its standard error."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--csv", help="write the table here")
    options = parser.parse_args()
    rows = {}
    for channel in (*LOG_LIKELIHOODS, *OTHERS):
        tape = Recording(
            Rules(hypotheses="dirichlet", horizon=options.horizon, channel=channel).scenario()
        )
        row = rows.setdefault(channel, {})
        for learner in LEARNERS:
            if learner == "exp3" and channel in OTHERS:
                continue
            totals = ldp_gym.evaluate(learner, tape, episodes=options.episodes).kl[:, -1]
            error = totals.std(ddof=1) / np.sqrt(len(totals))
            row[learner] = f"{totals.mean():,.0f} ± {error:,.0f}"
        print(channel, row, flush=True)
    if options.csv:
        table = pd.DataFrame.from_dict(rows, orient="index")[list(LEARNERS)]
        table.rename_axis("channel").to_csv(options.csv, na_rep="-")


if __name__ == "__main__":
    main()
