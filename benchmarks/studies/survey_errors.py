"""Does the promise of ``ldp_bench.plan`` hold? Plans for random sets of models, and fresh surveys of each.

A set has 2 to 6 models over 2 to 12 labels: Dirichlet rows, of which some are repeated (ties), nearly
repeated (near-ties, within a tolerance or not), or sparse; half of the sets depend on features, with 40
rows of X. Each is planned at a random eps. Fresh surveys then draw users from every model in turn, on the
recommended channel, and read their messages with the learner that a server uses. Reported: the largest
share over all truths of surveys that named another model, that ruled out all, and that took longer than
planned.

python benchmarks/studies/survey_errors.py  # about a minute
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

import ldp_bench
from ldp_agents import Bayes
from ldp_bench.planning.surveys import draw_labels
from ldp_gym.core.arrays import FloatArray


class Fresh(NamedTuple):
    """Fresh surveys of one truth.

    Attributes:
        wrong: share that named a model that is not like the truth.
        nothing: share that ruled out all models.
        late: share that had not ended within the planned users.
    """

    wrong: float
    nothing: float
    late: float


def draw_models(rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Draw a set of models ``(n, K, M)``, and the tolerance of its plan."""
    num_models = int(rng.integers(2, 6))
    num_labels = int(rng.integers(2, 13))
    num_rows = int(rng.choice([1, 40]))
    concentration = rng.choice([0.3, 1.0, 3.0])
    table = rng.dirichlet(np.full(num_labels, concentration), size=(num_rows, num_models))
    tolerance = 0.0
    kind = rng.choice(["plain", "tie", "near-tie", "tolerated", "sparse"])
    if kind == "tie":
        table = np.concatenate([table, table[:, :1]], axis=1)
    elif kind in ("near-tie", "tolerated"):
        share = 0.3 if kind == "near-tie" else 0.05
        near = (1.0 - share) * table[:, :1] + share / num_labels
        table = np.concatenate([table, near], axis=1)
        if kind == "tolerated":
            tolerance = 0.02
    elif kind == "sparse":
        table = np.where(table < 0.5 / num_labels, 0.0, table)
        table /= table.sum(axis=-1, keepdims=True)
    return table, tolerance


def fresh_surveys(
    plan: ldp_bench.Plan, table: FloatArray, truth: int, runs: int, rng: np.random.Generator
) -> Fresh:
    """Run surveys of one truth with the learner of a server, all at once."""
    learner = Bayes(plan.game())
    learner.reset((runs,))
    channel = plan.channel()
    alike = np.eye(len(plan.models), dtype=np.bool_)
    for j, k in plan.alike:
        alike[j, k] = alike[k, j] = True
    ended = np.full(runs, np.inf)
    final = np.ones((runs, len(plan.models)), dtype=np.bool_)
    for user in range(1, plan.users + 1):
        rows = rng.integers(len(table), size=runs)
        labels = draw_labels(table, rows, np.full(runs, truth), rng.random(runs))
        candidates = table[rows]
        uniforms = rng.random((runs, channel.num_uniforms))
        messages = channel.encode(labels, candidates, uniforms, learner.public_weights)
        learner.update(candidates, messages)
        left = learner.confidence_set(plan.alpha)
        conflicts = np.einsum("rj,rk,jk->r", left, left, ~alike)
        now = np.isinf(ended) & (conflicts == 0)
        ended[now] = user
        final[now] = left[now]
        if np.isfinite(ended).all():
            break
    over = np.isfinite(ended)
    named = over & final.any(axis=-1)
    wrong = named & (final & ~alike[truth]).any(axis=-1)
    return Fresh(wrong.mean(), (over & ~named).mean(), (~over).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=20, help="random sets of models")
    parser.add_argument("--runs", type=int, default=400, help="fresh surveys of each truth")
    parser.add_argument("--most-users", type=int, default=20_000)
    arguments = parser.parse_args()
    everything: list[Fresh] = []
    for seed in range(arguments.sets):
        rng = np.random.default_rng(seed)
        table, tolerance = draw_models(rng)
        epsilon = float(rng.choice([0.5, 1.0, 2.0, 4.0]))
        planned = ldp_bench.plan(
            None,
            probabilities=table,
            epsilon=epsilon,
            tolerance=tolerance,
            most_users=arguments.most_users,
            seed=seed,
            jobs=1,
            quiet=True,
        )
        shape = f"set {seed:2d}: n, K, M = {table.shape}, eps = {epsilon:g}"
        if planned.plan is None:
            print(f"{shape}: no plan within {arguments.most_users:,} users", flush=True)
            continue
        plan = planned.plan
        truths = range(table.shape[1])
        results = [fresh_surveys(plan, table, k, arguments.runs, rng) for k in truths]
        everything += results
        worst = [max(column) for column in zip(*results, strict=True)]
        print(
            f"{shape}: {plan.channel_name}, {plan.users:,} users; at worst {worst[0]:.1%} named "
            f"wrongly, {worst[1]:.1%} ruled out all, {worst[2]:.1%} not ended",
            flush=True,
        )
    wrong = [result.wrong for result in everything]
    late = [result.late for result in everything]
    # Of so many truths, one could show this share by chance if surveys erred with probability 5%.
    chance = binom.isf(0.05 / len(everything), arguments.runs, 0.05) / arguments.runs
    print(
        f"{len(everything)} truths, {len(everything) * arguments.runs:,} surveys: named wrongly "
        f"{np.mean(wrong):.2%} on average, {max(wrong):.2%} at worst; not ended within the planned "
        f"users {np.mean(late):.2%} on average, {max(late):.2%} at worst. If each were 5% everywhere, "
        f"{chance:.2%} could be seen at worst"
    )


if __name__ == "__main__":
    main()
