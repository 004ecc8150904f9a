"""Half-spaces of several geometries against splits, and the figure of the bounds.

python benchmarks/half_spaces.py table      # the table of docs/theory.md: about five minutes
python benchmarks/half_spaces.py figure     # docs/pictures/bounds.png: about two minutes
python benchmarks/half_spaces.py channels --episodes 512   # docs/data/which_channel.csv: about ten minutes
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels import Channel
from ldp_gym.channels.half_space import HalfSpace
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.sampling import normal

BLIND = np.array(
    [[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]]
    + [[0.04 - 0.005 * i, 0.04 - 0.005 * i, 0.92 + 0.01 * i] for i in range(5)]
)
"""A table on which ``split``, ``vote`` and ``wheel`` never tell the first two hypotheses apart."""

CONTEXT = np.array([-2.7137, -1.1146, 1.1593, 0.4993])
"""A context of the default class at which ``split`` hardly learns."""

CHANNELS: dict[str, Any] = {
    "split": "split",
    "half-space": "half-space",
    "half-space, turned 1/2": ("half-space", {"turned": 0.5}),
    "adaptive-split": "adaptive-split",
    "adaptive-half-space": "adaptive-half-space",
    **{f"A^(-{power}/2)": {"power": power} for power in (0.75, 0.5, 0.25, 0.0)},
    **{f"half-space, {share} split": {"share": share} for share in (0.25, 0.5, 0.75)},
}


NEVER_BLIND = {
    **dict.fromkeys(("split", "vote", "wheel", "adaptive-wheel"), "no"),
    **dict.fromkeys(("adaptive-split", "adaptive-groups"), "not proved"),
}
"""Channels that are blind on :data:`BLIND`, or are not known to see every pair. All others are never blind.

A label channel's matrix has a left inverse. A coordinate of the log-likelihoods tells f and g apart, as
``sum_y (f - g)(log f - log g) > 0``. Scheffe's question about a pair is asked with positive probability; a
design that misses a pair has an infinite cost; docs/theory.md has the proof for half-spaces.
"""


class Between(HalfSpace):
    """Planes ``A^(-power/2) g`` in place of ``A^(-1/2) g``, or those of ``split`` with probability ``share``.

    Args:
        table: the class, which is constant.
        power: 1 for Lewis weights, 0 for no scaling.
        share: probability of a random half of the hypotheses against the rest.
    """

    def __init__(self, table: FloatArray, *, power: float = 1.0, share: float = 0.0, **options: Any) -> None:
        super().__init__(*table.shape, **options)
        self.share, size = share, len(table)
        centred = table - table.mean(axis=0)
        weights = np.linalg.norm(centred, axis=0)
        for _ in range(40):
            matrix = centred / np.maximum(weights, 1e-300) @ centred.T
            inverse = np.linalg.pinv(matrix, hermitian=True)
            weights = np.sqrt(np.maximum(np.einsum("km,kl,lm->m", centred, inverse, centred), 0.0))
        values, vectors = np.linalg.eigh(matrix)
        used = values > 1e-12 * values.max()
        powers = np.where(used, np.where(used, values, 1.0) ** (-power / 2.0), 0.0)
        self.root = vectors * powers @ vectors.T
        self.half = size // 2

    @property
    def num_public_coins(self) -> int:
        """One uniform for each hypothesis, and one that decides about the split."""
        return self.num_hypotheses + 1

    def _contrast(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        contrast = normal(coins[..., :-1]) @ self.root
        contrast -= contrast.mean(axis=-1, keepdims=True)
        halves = np.where(coins[..., :-1].argsort(axis=-1).argsort(axis=-1) < self.half, 1.0, -1.0)
        contrast = np.where(coins[..., -1:] < self.share, halves, contrast)
        return contrast / np.abs(contrast).max(axis=-1, keepdims=True)


def make_rules(channel: Any, table: FloatArray, horizon: int) -> dict[str, Any]:
    """The rules of a game on one table."""
    rules: dict[str, Any] = {"hypotheses": table, "horizon": horizon}
    if isinstance(channel, dict):
        built: Channel = Between(table, horizon=horizon, epsilon=1.0, **channel)
        return {**rules, "channel": built}
    name, options = channel if isinstance(channel, tuple) else (channel, {})
    return {**rules, "channel": name, "channel_kwargs": options}


@lru_cache(maxsize=2)
def random_tables(num_labels: int, count: int) -> list[FloatArray]:
    """Dirichlet(0.3) tables of eight hypotheses."""
    return [np.random.default_rng(100 + i).dirichlet(np.full(num_labels, 0.3), size=8) for i in range(count)]


def print_table(episodes: int) -> None:
    """Print the mean total KL of Bayes on every channel as Markdown."""
    default = ldp_gym.LDPDistEnv().game.hypotheses
    assert default is not None
    columns: dict[str, tuple[Sequence[FloatArray], int, int | None]] = {
        "M = 16": (random_tables(16, 8), 1500, None),
        "M = 64": (random_tables(64, 4), 1500, None),
        "blind, T = 1,000": ([BLIND], 1000, 0),
        "T = 8,000": ([BLIND], 8000, 0),
        "default class, one context, T = 4,000": ([default(CONTEXT)], 4000, 4),
    }
    print(f"| channel | {' | '.join(columns)} |\n|---|" + "---|" * len(columns))
    for name, channel in CHANNELS.items():
        cells = []
        for tables, horizon, truth in columns.values():
            games = (make_rules(channel, table, horizon) for table in tables)
            risks = [ldp_gym.evaluate("bayes", game, episodes=episodes, truth=truth).risk for game in games]
            cells.append(f"{np.mean(risks):.1f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def write_channels(path: Path, episodes: int) -> None:
    """Write the mean total KL of Bayes on every pure channel, with its standard error over the episodes.

    The tables of a setting and their truths share the episodes. All channels play the same seeds, from 0 on.
    """
    settings: dict[str, tuple[list[dict[str, Any]], int | str]] = {
        "8 tables M = 16": ([make_rules("", t, 1500) for t in random_tables(16, 8)], "all"),
        "4 tables M = 64": ([make_rules("", t, 1500) for t in random_tables(64, 4)], "all"),
        "default game": ([{"horizon": 1000}], "all"),
        "blind table": ([make_rules("", BLIND, 4000)], 0),
    }
    classes = {name: made for name, made in ldp_gym.CHANNELS.own.items() if name != "identity" and made.pure}
    channels: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in classes}
    channels["half-space, turned=1/2"] = ("half-space", {"turned": 0.5})
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["setting", "channel", "adaptive", "never_blind", "episodes", "risk", "standard_error"])
        for setting, (games, truth) in settings.items():
            each = episodes // (len(games) * (8 if truth == "all" else 1))
            for title, (name, options) in sorted(channels.items()):
                if name == "designed" and "hypotheses" not in games[0]:
                    continue  # it is made for few tables
                played = [{**game, "channel": name, "channel_kwargs": options} for game in games]
                totals = [
                    ldp_gym.evaluate("bayes", g, episodes=each, truth=truth).kl[..., -1] for g in played
                ]
                groups = np.concatenate([np.atleast_2d(some) for some in totals])  # by table and truth
                error = np.sqrt((groups.var(axis=1, ddof=1) / each).sum()) / len(groups)
                kind = "yes" if classes[name].adaptive else "no"
                row = [setting, title, kind, NEVER_BLIND.get(name, "yes"), groups.size]
                rows.writerow([*row, f"{groups.mean():.2f}", f"{error:.2f}"])
                file.flush()


def draw_figure(path: Path, episodes: int) -> None:
    """Bounds on the KL-risk against T for eight Hadamard pairs, eps = 1, and what Bayes pays there."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    horizons = [int(t) for t in np.geomspace(100, 100_000, 13).round()]
    played = horizons[::2][:6]
    rules = {"hypotheses": "hadamard", "num_hypotheses": 16, "channel": "half-space"}
    measured = [
        ldp_gym.evaluate("bayes", {**rules, "horizon": t}, episodes=episodes, checkpoints=[t]).risk
        for t in played
    ]
    figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    styles = {"paper, upper": "C0--", "ours, upper": "C1-", "ours, lower": "C2-", "paper, lower": "C0:"}
    bounds = theory.exp3_bound, theory.half_space_kl_bound, theory.hadamard_lower_bound, theory.lower_bound
    for (name, style), bound, size in zip(styles.items(), bounds, (16, 16, 8, 16), strict=True):  # 8 pairs
        axes.plot(horizons, [bound(size, rounds, 1.0) for rounds in horizons], style, label=name)
    axes.plot(played, measured, "ko", label="Bayes on half-space")
    axes.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="KL-risk, nats")
    axes.set_title("16 hypotheses (8 Hadamard pairs), eps = 1")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table, or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=["table", "figure", "channels"])
    parser.add_argument("--episodes", type=int, default=200, help="512 for channels")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.what == "table":
        print_table(options.episodes)
    elif options.what == "channels":
        write_channels(options.out or Path("docs/data/which_channel.csv"), options.episodes)
    else:
        draw_figure(options.out or Path("docs/pictures/bounds.png"), options.episodes)


if __name__ == "__main__":
    main()
