"""Do the numbers that ``ldp_gym.select`` states hold for new users?

A pool of users is the population. Logs of 600 users are drawn from it with replacement; from each ``select``
recommends a channel, eps, learner and number of users, and the recommendation is played with new users of the
pool. Two numbers count: among the recommendations, all stated at 95%, the share that finds a model within the
tolerance of the pool's best in at least 90% of the surveys; and stated users over the users that 95% really
take.

    python benchmarks/select_calibration.py --logs 4 --csv calibration.csv
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn import datasets, ensemble, linear_model, naive_bayes, neighbors, pipeline, preprocessing, tree

import ldp_gym
from ldp_gym.selection.answer import users_from_on
from ldp_gym.selection.models import Predictions
from ldp_gym.truths import Replay

SETTINGS = {
    "channels": ["randomized-response", "split"],
    "epsilons": [0.5, 2.0],
    "learners": ["bayes", "unbiased"],
    "quiet": True,
    "jobs": 1,
}
SMOOTHING = 1e-3
Pool = tuple[np.ndarray, np.ndarray]
"""Probabilities (n, K, M) that the models give to every user of the pool, and the users' labels (n,)."""


def softmax_pool(seed: int, models: int, labels: int, apart: float, member: bool) -> Pool:
    """Softmax models of 4 features around a truth, which is one of them or none."""
    rng = np.random.default_rng(seed)
    features, centre = rng.standard_normal((5000, 4)), rng.standard_normal((4, labels))
    weights = centre + apart * rng.standard_normal((models, 4, labels)) * rng.uniform(0.2, 1, (models, 1, 1))
    logits = np.einsum("nd,kdm->nkm", features, weights)
    table = np.exp(logits - logits.max(axis=-1, keepdims=True))
    table /= table.sum(axis=-1, keepdims=True)
    law = table[:, 0]
    if not member:
        law = np.exp(features @ centre)
        law /= law.sum(axis=-1, keepdims=True)
    return table, (law.cumsum(axis=-1) > rng.random((5000, 1))).argmax(axis=-1)


def fitted_pool(name: str, fitted: int, seed: int) -> Pool:
    """Classifiers that were fitted on some rows of a data set, and the other rows as the pool."""
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    features, labels = features[order], labels[order]
    scaled = pipeline.make_pipeline
    models = [
        scaled(preprocessing.StandardScaler(), linear_model.LogisticRegression(C=0.1, max_iter=1000)),
        scaled(preprocessing.StandardScaler(), linear_model.LogisticRegression(C=0.01, max_iter=1000)),
        scaled(preprocessing.StandardScaler(), naive_bayes.GaussianNB(var_smoothing=0.1)),
        scaled(preprocessing.StandardScaler(), neighbors.KNeighborsClassifier(15)),
        ensemble.RandomForestClassifier(50, max_depth=3, random_state=0),
        tree.DecisionTreeClassifier(max_depth=2, random_state=0),
    ]
    rest = features[fitted:]
    table = np.stack([m.fit(features[:fitted], labels[:fitted]).predict_proba(rest) for m in models], axis=1)
    return table, labels[fitted:]


def pools() -> Iterator[tuple[str, Pool]]:
    yield "softmax-member", softmax_pool(0, 4, 5, 0.7, True)
    yield "softmax-outside", softmax_pool(1, 6, 10, 0.7, False)
    yield "softmax-close", softmax_pool(2, 5, 4, 0.3, False)
    yield "digits", fitted_pool("digits", 300, 0)
    yield "breast-cancer", fitted_pool("breast_cancer", 120, 0)
    yield "wine", fitted_pool("wine", 60, 0)
    yield "iris", fitted_pool("iris", 50, 0)


class NewUsers(Replay):
    """Users drawn from a pool with replacement, each with the same chance."""

    def draw_episode(self, uniforms: np.ndarray) -> np.ndarray:
        seeds = (uniforms[:, 0] * 2.0**53).astype(np.int64).tolist()
        return np.stack(
            [np.random.default_rng(s).integers(len(self.labels), size=self.horizon) for s in seeds]
        )


def found_by_new_users(
    pool: Pool, row: pd.Series, tolerance: float, runs: int, seed: int
) -> tuple[float, float]:
    """Share of surveys that find a best model with the stated users, and the users that 95% take."""
    table, labels = (1 - SMOOTHING) * pool[0] + SMOOTHING / pool[0].shape[-1], pool[1]
    losses = -np.log(table[np.arange(len(labels)), :, labels]).mean(axis=0)
    good = losses <= losses.min() + tolerance
    stated = int(row["users_needed"])
    horizon = 2 * stated
    truth = NewUsers(table.shape[-1], 1, np.arange(len(labels)), labels, "shuffled", None, True, horizon)
    rules = {"hypotheses": Predictions(table, ""), "truth": truth, "horizon": horizon}
    rules |= {"channel": row["channel"], "epsilon": row["epsilon"]}
    spaced = np.unique(np.geomspace(max(1, stated / 10), horizon, 40).astype(int)).tolist()

    result = ldp_gym.evaluate(
        row["learner"], rules, episodes=runs, seed=seed, checkpoints=[*spaced, stated], leaders=True
    )
    shares = (good[np.maximum(result.leaders, 0)] & (result.leaders >= 0)).mean(axis=0)
    at_stated = shares[list(result.rounds).index(stated)]
    return float(at_stated), users_from_on(result.rounds, shares)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=4, help="logs per pool")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--users", type=int, default=600, help="users of a log")
    parser.add_argument("--runs", type=int, default=300, help="surveys of new users")
    parser.add_argument("--csv", default="calibration.csv", help="write the table here, a row after each log")
    arguments = parser.parse_args()
    rows, every = [], dict(pools())
    for log in range(arguments.first, arguments.first + arguments.logs):
        for name, (table, labels) in every.items():
            drawn = np.random.default_rng(1000 + log).integers(len(labels), size=arguments.users)
            answer = ldp_gym.select(
                probabilities=table[drawn], y=labels[drawn], smoothing=SMOOTHING, seed=log, **SETTINGS
            )
            row = {"pool": name, "log": log, "gap": answer.gap, "gap_error": answer.gap_error}
            if answer.recommended is not None:
                best = answer.recommended
                share, needed = found_by_new_users(
                    (table, labels), best, answer.plan.tolerance, arguments.runs, 10_000 + log
                )
                row |= {name: best[name] for name in ("channel", "epsilon", "learner", "users_needed")}
                row |= {"share": share, "needed": needed, "ratio": best["users_needed"] / needed}
            rows.append(row)
            pd.DataFrame(rows).to_csv(arguments.csv, index=False)
    report(pd.DataFrame(rows))


def report(frame: pd.DataFrame) -> None:
    """Print the two numbers of every pool, and of all."""
    stated = frame.assign(kept=frame["share"] >= 0.9)[frame["share"].notna()]
    for name, some in [*stated.groupby("pool", sort=False), ("all", stated)]:
        logs = len(frame) if name == "all" else (frame["pool"] == name).sum()
        print(
            f"{name}: {logs} logs, {len(some)} recommendations, {some['kept'].sum()} reach 90%; "
            f"stated / needed users: median {some['ratio'].median():.2f}"
        )


if __name__ == "__main__":
    main()
