"""The tables of docs/measured-learners.md: `amortized` against the exact posterior, on the same episodes.

python benchmarks/studies/learned.py --out ldp-gym-results/learned              # trains, then measures
python benchmarks/studies/learned.py --tables channels --shipped half-space  # the shipped model

Each model is trained once and kept. A cell is the total KL of an agent over that of Bayes, both on the same
episodes, each of which draws a class of its own where the family is random.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console

import ldp_gym
from ldp_agents.rl import Model, load, network
from ldp_agents.rl.amortized import CLASSES, make_rules
from ldp_agents.rl.storage import MODEL, SHIPPED
from ldp_agents.rl.training import SCORES, Config, default_steps, train_agent
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Recording

EPSILONS = (0.5, 1.0, 2.0, 4.0)
USUAL = ("dirichlet(0.3)", 8, 16, 1000)
"""Class family, K, M and T of a cell that names none."""

SIZES = ((2, 2, 1000), (2, 128, 1000), (8, 16, 100), (8, 16, 3000), (64, 16, 1000), (64, 128, 1000))
"""K, M and T at the ends of what the agents are trained on."""

FOR_CLASSES = ("laplace-single", "one-bit", "split", "subset-selection", "adaptive-groups")
FOR_SIZES = ("laplace-single", "split", "adaptive-groups")
OUTSIDE = {
    "epsilon": ((0.1, 8, 16, 1000), (16.0, 8, 16, 1000)),
    "K": ((1.0, 128, 16, 1000), (4.0, 128, 16, 1000)),
    "M": ((1.0, 8, 512, 1000), (4.0, 8, 512, 1000)),
    "T": ((1.0, 8, 16, 50), (4.0, 8, 16, 50), (1.0, 8, 16, 10_000), (4.0, 8, 16, 10_000)),
}
"""Eps, K, M and T beyond what the agents are trained on, by what is beyond."""

TABLES = ("channels", "classes", "sizes", "outside")

_SEED = 7 * 10**9
"""Seed of the first episode; these episodes were used neither in training nor for any choice."""

Cell = tuple[str, float, str, int, int, int]
"""Channel, eps, class family, K, M and T."""


def cells_of(table: str) -> list[tuple[str, list[Cell]]]:
    """The rows of a table: a title, and a cell for each eps."""
    family, *sizes = USUAL
    if table == "channels":
        channels = [name for name in ldp_gym.CHANNELS if name != "identity"]  # which is not private
        return [(name, [(name, eps, family, *sizes) for eps in EPSILONS]) for name in channels]
    if table == "classes":
        rows = product(FOR_CLASSES, CLASSES)
        return [(f"{name}, {f}", [(name, eps, f, *sizes) for eps in EPSILONS]) for name, f in rows]
    if table == "outside":
        return [
            (f"{name}, {key}", [(name, eps, family, *others) for eps, *others in games])
            for name, (key, games) in product(FOR_SIZES, OUTSIDE.items())
        ]
    return [
        (f"{name}, K = {K}, M = {M}, T = {T}", [(name, eps, family, K, M, T) for eps in EPSILONS])
        for name, (K, M, T) in product(FOR_SIZES, SIZES)
    ]


def rules_of(cell: Cell) -> dict[str, Any]:
    """The rules of a cell."""
    channel, epsilon, *game = cell
    return make_rules(game[0], channel, epsilon, *game[1:])


def total_kl(
    learners: Mapping[str, Any], rules: Mapping[str, Any], episodes: int
) -> dict[str, FloatArray]:
    """The total KL ``(episodes,)`` of each learner, all on the same tapes."""
    recording = Recording(Rules(**rules).scenario())
    return {
        name: ldp_gym.evaluate(learner, recording, episodes=episodes, seed=_SEED).kl[:, -1]
        for name, learner in learners.items()
    }


def ratio(total: FloatArray, bayes: FloatArray) -> tuple[float, float]:
    """The ratio of two means over the same episodes, and half of its 95% interval (delta method)."""
    value = float(total.mean() / bayes.mean())
    spread = (total - value * bayes).std(ddof=1) / bayes.mean()
    return value, float(1.96 * spread / np.sqrt(len(total)))


def lines(
    table: str, rows: list[tuple[str, list[Cell]]], models: Sequence[Any], episodes: int
) -> Iterator[str]:
    """A table in Markdown, line by line, as it is measured; at its end the worst and the mean ratio.

    A cell has one ratio per training seed, and the largest of their half-widths.
    """
    heads = [f"eps = {eps:g}" for eps in EPSILONS]
    if table == "outside":
        heads = ["cells"]
    yield f"| {table} | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    learners = {str(seed): model for seed, model in enumerate(models)}
    all_ratios = []
    for title, cells in rows:
        written = []
        for cell in cells:
            totals = total_kl({"bayes": "bayes", **learners}, rules_of(cell), episodes)
            ratios = [ratio(totals[name], totals["bayes"]) for name in learners]
            values = [value for value, _ in ratios]
            all_ratios += values
            listed = ", ".join(f"{value:.3f}" for value in values)
            half_width = max(half for _, half in ratios)
            game = f"eps = {cell[1]:g}, T = {cell[-1]}: " if table == "outside" else ""
            written.append(f"{game}{listed} ± {half_width:.3f}")
        separator = " | " if len(heads) > 1 else "; "
        yield f"| {title} | {separator.join(written)} |"
    yield f"\n{table}: worst {max(all_ratios):.3f}, mean {np.mean(all_ratios):.3f}\n"


def draw_figure(model: Model, path: Path) -> None:
    """Draw the learned weights of relations next to the exact log densities, which it has never seen."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axis, channel in zip(axes, ("split", "laplace-single", "gaussian-vector"), strict=True):
        for i, epsilon in enumerate(EPSILONS):
            made = (
                Rules(**make_rules("dirichlet(0.3)", channel, epsilon, 8, 16, 1000))
                .scenario()
                .channel
            )
            relation = network.Relation(made)
            points = relation.nodes
            shown = points <= 5.0
            learned = network.learned_weights(model.parameters, made)
            axis.plot(points[shown], (learned - learned[0])[shown], color=f"C{i}")
            exact = {"laplace": -points, "gauss": -np.square(points) / 2.0}.get(
                relation.kind, np.log1p(points * np.expm1(epsilon))
            )
            if relation.kind == "agreement":
                end = (points[-1], max(learned[-1] - learned[0], exact[-1]))
                axis.annotate(
                    f"eps = {epsilon:g}",
                    end,
                    (-2, 4),
                    textcoords="offset points",
                    ha="right",
                    color=f"C{i}",
                )
            if i == 0 or relation.kind == "agreement":
                axis.plot(
                    points[shown], exact[shown], color="black", linewidth=0.8, linestyle="dashed"
                )
        axis.set_xlabel(
            "agreement" if relation.kind == "agreement" else f"distance, {relation.kind}"
        )
    axes[0].set_ylabel("weight (exact: dashed)")
    axes[0].margins(y=0.12)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def trained(options: argparse.Namespace, console: Console) -> list[Any]:
    """The models, one per training seed; missing ones are trained now."""
    models = []
    for seed in range(options.seeds):
        path = options.out / f"amortized-{seed}"
        if not (path / MODEL).exists():
            config = Config("amortized", {}, options.steps, seed)
            train_agent(config, path, console=console, scores=5)
        minutes = json.loads((path / SCORES).read_text().splitlines()[-1])["cpu_seconds"] / 60.0
        console.print(f"{path.name}: {minutes:.1f} CPU minutes, scoring included")
        models.append(load(path))
    return models


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("ldp-gym-results/learned"), help="for the models"
    )
    parser.add_argument(
        "--episodes", type=int, default=512, help="paired episodes per cell (default 512)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="training seeds (default 3)")
    parser.add_argument(
        "--steps", type=int, default=default_steps("amortized"), help="rounds of training"
    )
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES, help="default: all")
    parser.add_argument(
        "--shipped", nargs="+", metavar="ROW", help="play the shipped model, on these rows"
    )
    parser.add_argument("--figure", type=Path, help="file for a figure of the learned weights")
    options = parser.parse_args(arguments)
    console = Console(stderr=True)
    tables = {
        table: [row for row in cells_of(table) if not options.shipped or row[0] in options.shipped]
        for table in options.tables
    }
    if empty := [table for table, rows in tables.items() if not rows]:
        parser.error(
            f"no row of {', '.join(empty)} has a name in {options.shipped}: choose other --tables"
        )
    models = [load(SHIPPED)] if options.shipped else trained(options, console)
    if options.figure is not None:
        draw_figure(models[0], options.figure)
    for table, rows in tables.items():
        for line in lines(table, rows, models, options.episodes):
            print(line, flush=True)


if __name__ == "__main__":
    main()
