"""Cost of a round as K and M grow, for every channel; a figure and a table.

Bayes plays 16 episodes on constant Dirichlet tables, one thread, CPU time, medians of five runs in turns.
The work of a round is K times M numbers, so the cost should grow no faster. Exit status 1 if it does.
With --write the table goes to docs/data/scaling.csv, which docs/speed.md shows.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from pathlib import Path
from statistics import median

import gymnasium as gym
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ldp_gym
from ldp_bench.suites import DELTA

HYPOTHESES = (8, 64, 512, 4096)
LABELS = (16, 128, 1024, 4096)
EPISODES, LEAST_ROUNDS, REPEATS = 16, 64, 5
DATA = Path(__file__).resolve().parents[2] / "docs" / "data" / "scaling.csv"


class Play:
    """Bayes' episodes of one size on a channel."""

    def __init__(self, channel: str, num_hypotheses: int, num_labels: int) -> None:
        horizon = min(
            1000, max(LEAST_ROUNDS, 1_000_000 // (EPISODES * num_hypotheses * num_labels))
        )
        rules = {
            "hypotheses": "dirichlet",
            "num_hypotheses": num_hypotheses,
            "num_labels": num_labels,
            "horizon": horizon,
            "channel": channel,
            "delta": 0.0 if ldp_gym.CHANNELS[channel].pure else DELTA,
        }
        self.env, self.rounds = gym.make("LDPDist-v0", **rules), EPISODES * horizon

    def cost(self) -> float:
        """Microseconds of CPU time per round of one episode; making the game is not counted."""
        start = time.process_time()
        ldp_gym.evaluate("bayes", self.env, episodes=EPISODES)
        return (time.process_time() - start) / self.rounds * 1e6


def costs(plays: list[Play]) -> list[float]:
    """The median cost of each, from runs that take turns."""
    plays[0].cost()  # imports, and memory that is kept
    runs = [[play.cost() for play in plays] for _ in range(REPEATS)]
    return [median(run) for run in zip(*runs, strict=True)]


def growth(costs: list[float], sizes: tuple[int, ...]) -> float:
    """Growth of the cost over growth of the size, between the least and the largest; 1 is linear."""
    return costs[-1] / costs[0] / (sizes[-1] / sizes[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, help="file to draw the costs in")
    parser.add_argument("--write", action="store_true", help=f"write {DATA.name}")
    parser.add_argument("--channel", action="append", help="these alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)
    channels = arguments.channel or list(ldp_gym.CHANNELS)
    by_hypotheses, by_labels = {}, {}
    for channel in track(channels, "channels", transient=True):
        by_hypotheses[channel] = costs([Play(channel, size, 16) for size in HYPOTHESES])
        by_labels[channel] = costs([Play(channel, 8, size) for size in LABELS])
    by_k, by_m = (
        [f"{name} = {size:,}" for size in sizes]
        for name, sizes in (("K", HYPOTHESES), ("M", LABELS))
    )
    rows, steep = [["channel", *by_k, "growth in K", *by_m, "growth in M"]], []
    for channel in channels:
        rates = growth(by_hypotheses[channel], HYPOTHESES), growth(by_labels[channel], LABELS)
        steep += [channel] if max(rates) > 1.0 else []
        cells = [
            *(
                f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
                for value in by_hypotheses[channel]
            ),
            f"{rates[0]:.2f}",
            *(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in by_labels[channel]),
            f"{rates[1]:.2f}",
        ]
        rows.append([channel, *cells])
    table = Table(*rows[0])
    for row in rows[1:]:
        table.add_row(*row)
    if arguments.write:
        with DATA.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    Console(width=170).print(
        table, "Microseconds per round; K at M=16, M at K=8; growth 1 is linear."
    )
    if arguments.picture:
        draw(by_hypotheses, by_labels, arguments.picture)
    if steep:
        print(f"grows faster than K or M: {', '.join(steep)}")
    return int(bool(steep))


def draw(
    by_hypotheses: dict[str, list[float]], by_labels: dict[str, list[float]], path: Path
) -> None:
    from matplotlib import pyplot

    figure, both = pyplot.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
    panels = (("K, at M = 16", HYPOTHESES, by_hypotheses), ("M, at K = 8", LABELS, by_labels))
    loud = ("laplace-single", "split", "wheel", "adaptive-split", "adaptive-groups")
    for axes, (title, sizes, costs) in zip(both, panels, strict=True):
        for channel, values in costs.items():
            style = {"label": channel} if channel in loud else {"color": "0.8", "zorder": 1}
            axes.loglog(sizes, values, marker=".", **style)
        start = min(values[0] for values in costs.values())
        axes.loglog(sizes, [start * size / sizes[0] for size in sizes], "k:", label="linear")
        axes.set(xlabel=title)
        axes.grid(alpha=0.3)
    both[0].set(ylabel="microseconds per round")
    both[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
