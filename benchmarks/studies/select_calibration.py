"""Do the numbers that ``ldp_bench.select`` states hold for new users?

A pool of users is the population. Logs of 600 users are drawn from it with replacement; from each ``select``
recommends a channel, eps, learner and number of users, and the recommendation is played with new users of the
pool. Two numbers count: among the recommendations, all stated at 95%, the share that finds a model within the
tolerance of the pool's best in at least 90% of the surveys; and stated users over the users that 95% really
take.

python benchmarks/studies/select_calibration.py --csv docs/data/select-calibration.csv  # about four minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn import (
    datasets,
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    pipeline,
    preprocessing,
    tree,
)

import ldp_bench
import ldp_gym
from ldp_bench.selection import Plan
from ldp_bench.selection.answer import users_from_on
from ldp_bench.selection.models import Predictions
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
    weights = centre + apart * rng.standard_normal((models, 4, labels)) * rng.uniform(
        0.2, 1, (models, 1, 1)
    )
    logits = np.einsum("nd,kdm->nkm", features, weights)
    table = np.exp(logits - logits.max(axis=-1, keepdims=True))
    table /= table.sum(axis=-1, keepdims=True)
    law = table[:, 0]
    if not member:
        law = np.exp(features @ centre)
        law /= law.sum(axis=-1, keepdims=True)
    return table, (law.cumsum(axis=-1) > rng.random((5000, 1))).argmax(axis=-1)


def fitted_pool(data: Pool, fitted: int, seed: int) -> Pool:
    """Classifiers that were fitted on some rows of a data set, and the other rows as the pool."""
    features, labels = data[0], np.unique(data[1], return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(labels))
    features, labels = features[order], labels[order]
    scaled = pipeline.make_pipeline
    models = [
        scaled(
            preprocessing.StandardScaler(), linear_model.LogisticRegression(C=0.1, max_iter=1000)
        ),
        scaled(
            preprocessing.StandardScaler(), linear_model.LogisticRegression(C=0.01, max_iter=1000)
        ),
        scaled(preprocessing.StandardScaler(), naive_bayes.GaussianNB(var_smoothing=0.1)),
        scaled(preprocessing.StandardScaler(), neighbors.KNeighborsClassifier(15)),
        ensemble.RandomForestClassifier(50, max_depth=3, random_state=0),
        tree.DecisionTreeClassifier(max_depth=2, random_state=0),
    ]
    rest = features[fitted:]
    table = np.stack(
        [m.fit(features[:fitted], labels[:fitted]).predict_proba(rest) for m in models], axis=1
    )
    return table, labels[fitted:]


def table_pool(seed: int, models: int, labels: int, weight: float) -> Pool:
    """Rows of a table as models; the users' labels follow a mixture of the first row and another one."""
    rng = np.random.default_rng(seed)
    *table, other = rng.dirichlet(np.ones(labels), size=models + 1)
    drawn = rng.choice(labels, size=5000, p=weight * table[0] + (1 - weight) * other)
    return np.tile(table, (5000, 1, 1)), drawn


def pools() -> Iterator[tuple[str, Pool]]:
    yield "softmax-member", softmax_pool(0, 4, 5, 0.7, True)
    yield "softmax-outside", softmax_pool(1, 6, 10, 0.7, False)
    yield "softmax-close", softmax_pool(2, 5, 4, 0.3, False)
    yield "digits", fitted_pool(datasets.load_digits(return_X_y=True), 300, 0)
    yield "breast-cancer", fitted_pool(datasets.load_breast_cancer(return_X_y=True), 120, 0)
    yield "wine", fitted_pool(datasets.load_wine(return_X_y=True), 60, 0)
    yield "iris", fitted_pool(datasets.load_iris(return_X_y=True), 50, 0)
    yield "table", table_pool(3, 5, 8, 0.8)
    features, progress = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", fitted_pool((features, np.digitize(progress, [100, 180])), 100, 0)
    shared = {"n_samples": 4000, "random_state": 4}
    yield "quantiles", fitted_pool(datasets.make_gaussian_quantiles(n_features=4, **shared), 200, 0)
    skewed = {"n_classes": 4, "n_informative": 6, "weights": [0.85, 0.1, 0.03, 0.02]}
    yield "skewed", fitted_pool(datasets.make_classification(**skewed, **shared), 400, 0)
    yield "hastie", fitted_pool(datasets.make_hastie_10_2(**shared), 300, 0)
    yield "moons", fitted_pool(datasets.make_moons(noise=0.5, **shared), 100, 0)
    yield "blobs", fitted_pool(datasets.make_blobs(centers=6, cluster_std=4.0, **shared), 200, 0)


class NewUsers(Replay):
    """Users drawn from a pool with replacement, each with the same chance."""

    def draw_episode(self, uniforms: np.ndarray) -> np.ndarray:
        seeds = (uniforms[:, 0] * 2.0**53).astype(np.int64).tolist()
        return np.stack(
            [np.random.default_rng(s).integers(len(self.labels), size=self.horizon) for s in seeds]
        )


def found_by_new_users(pool: Pool, plan: Plan, runs: int, seed: int) -> tuple[float, float]:
    """Share of surveys that find a best model with the planned users, and the users that 95% take."""
    table, labels = plan.smooth(pool[0]), pool[1]
    losses = -np.log(table[np.arange(len(labels)), :, labels]).mean(axis=0)
    good = losses <= losses.min() + plan.tolerance
    horizon = max(plan.horizon, 3 * plan.users)
    truth = NewUsers(
        table.shape[-1], 1, np.arange(len(labels)), labels, "shuffled", None, True, horizon
    )
    rules = {"hypotheses": Predictions(table, ""), "truth": truth, "horizon": horizon}
    rules |= {"channel": plan.channel_name, "epsilon": plan.epsilon}
    spaced = np.unique(np.geomspace(max(1, plan.users / 10), horizon, 40).astype(int)).tolist()
    result = ldp_gym.evaluate(
        plan.learner_name,
        rules,
        episodes=runs,
        seed=seed,
        checkpoints=[*spaced, plan.users],
        leaders=True,
    )
    shares = (good[np.maximum(result.leaders, 0)] & (result.leaders >= 0)).mean(axis=0)
    at_stated = shares[list(result.rounds).index(plan.users)]
    return float(at_stated), users_from_on(result.rounds, shares)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--logs", type=int, default=5, help="logs per pool")
    parser.add_argument("--first", type=int, default=0, help="number of the first log")
    parser.add_argument("--users", type=int, default=600, help="users of a log")
    parser.add_argument("--runs", type=int, default=300, help="surveys of new users")
    parser.add_argument("--csv", help="file for the table")
    arguments = parser.parse_args()
    rows = []
    for name, (table, labels) in pools():
        for log in range(arguments.first, arguments.first + arguments.logs):
            drawn = np.random.default_rng([38, log]).integers(len(labels), size=arguments.users)
            answer = ldp_bench.select(
                probabilities=table[drawn],
                y=labels[drawn],
                smoothing=SMOOTHING,
                seed=log,
                **SETTINGS,
            )
            share, ratio, stated = np.nan, np.nan, "no recommendation"
            if answer.plan is not None:
                share, needed = found_by_new_users(
                    (table, labels), answer.plan, arguments.runs, 10_000 + log
                )
                ratio = answer.plan.users / needed
                stated = f"{answer.plan.users:,} users stated; {needed:,} needed; {share:.0%} with the stated"
            rows.append({"pool": name, "share": share, "ratio": ratio})
            print(f"{name} {log}: {stated}", flush=True)
    result = summarize(pd.DataFrame(rows))
    print(result.to_string(index=False))
    if arguments.csv:
        result.to_csv(arguments.csv, index=False)


def summarize(frame: pd.DataFrame) -> pd.DataFrame:
    """Logs, recommendations, those that reach 90%, and the median of stated over needed users, by pool."""
    result = []
    for name, some in [*frame.groupby("pool", sort=False), ("all", frame)]:
        kept, ratio = (some["share"] >= 0.9).sum(), some["ratio"].median()
        counts = {"pool": name, "logs": len(some), "recommendations": some["share"].notna().sum()}
        result.append(
            counts
            | {"reach 90%": kept, "stated / needed": f"{ratio:.2f}" if ratio == ratio else "-"}
        )
    return pd.DataFrame(result)


if __name__ == "__main__":
    main()
