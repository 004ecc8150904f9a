"""Risk of Bayes on every pure channel, on random tables and where channels are blind; figure of the bounds.

python benchmarks/half_spaces.py table      # docs/data/which-channel.csv: about five minutes
python benchmarks/half_spaces.py figure     # docs/pictures/bounds.png: about two minutes
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ldp_agents
import ldp_gym
from ldp_gym import theory
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

HALF_SPACES: dict[str, dict[str, Any]] = {
    "half-space (turned 1/2)": {"turned": 0.5},
    "trial: no scaling": {"scaled": False},
    "trial: split half of the time": {"share": 0.5},
}
"""Options of the half-spaces that are not registered; the trials are of :class:`Trial`."""

NEVER_BLIND = {
    **dict.fromkeys(("split", "vote", "wheel"), "no"),
    **dict.fromkeys(("adaptive-split", "adaptive-groups"), "not proved"),
}
"""Channels that are blind on :data:`BLIND`, or are not known to see every pair. All others are never blind.

A label channel's matrix has a left inverse. A coordinate of the log-likelihoods tells f and g apart, as
``sum_y (f - g)(log f - log g) > 0``. Scheffe's question about a pair is asked with positive probability; a
design that misses a pair has an infinite cost; docs/theory.md has the proof for half-spaces.
"""


class Trial(HalfSpace):
    """Planes ``A^(-1/2) g``, or ``g`` without scaling, or those of ``split`` with probability ``share``.

    Args:
        table: the class, which is constant.
        scaled: scale by the Lewis weights.
        share: probability of a random half of the hypotheses against the rest.
    """

    def __init__(self, table: FloatArray, *, scaled: bool = True, share: float = 0.0, **options: Any) -> None:
        super().__init__(*table.shape, **options)
        self.share, self.half = share, len(table) // 2
        centred = table - table.mean(axis=0)
        weights = np.linalg.norm(centred, axis=0)
        for _ in range(40):
            matrix = centred / np.maximum(weights, 1e-300) @ centred.T
            inverse = np.linalg.pinv(matrix, hermitian=True)
            weights = np.sqrt(np.maximum(np.einsum("km,kl,lm->m", centred, inverse, centred), 0.0))
        values, vectors = np.linalg.eigh(matrix)
        used = values > 1e-12 * values.max()
        powers = np.where(used, np.where(used, values, 1.0) ** (-0.5 if scaled else 0.0), 0.0)
        self.root = vectors * powers @ vectors.T

    @property
    def num_public_coins(self) -> int:
        """One uniform for each hypothesis, and one that decides about the split."""
        return self.num_hypotheses + 1

    def _question(
        self, coins: FloatArray, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        contrast = normal(coins[..., :-1]) @ self.root
        contrast -= contrast.mean(axis=-1, keepdims=True)
        halves = np.where(coins[..., :-1].argsort(axis=-1).argsort(axis=-1) < self.half, 1.0, -1.0)
        contrast = np.where(coins[..., -1:] < self.share, halves, contrast)
        return contrast / np.abs(contrast).max(axis=-1, keepdims=True)


def random_games(num_labels: int, count: int) -> list[dict[str, Any]]:
    """Games on Dirichlet(0.3) tables of eight hypotheses."""
    tables = [
        np.random.default_rng(100 + i).dirichlet(np.full(num_labels, 0.3), size=8) for i in range(count)
    ]
    return [{"hypotheses": table, "horizon": 1500} for table in tables]


def settings() -> dict[str, tuple[list[dict[str, Any]], Sequence[int]]]:
    """Games and truths of each column of the table."""
    default = ldp_gym.LDPDistEnv().game.hypotheses
    assert default is not None
    return {
        "8 tables M = 16": (random_games(16, 8), range(8)),
        "4 tables M = 64": (random_games(64, 4), range(8)),
        "default game": ([{"horizon": 1000}], range(8)),
        "blind table": ([{"hypotheses": BLIND, "horizon": 4000}], [0]),
        "one context": ([{"hypotheses": default(CONTEXT), "horizon": 4000}], [4]),
    }


def cell(name: str, games: list[dict[str, Any]], truths: Sequence[int], episodes: int) -> str:
    """Mean total KL of Bayes on a channel and its standard error over the episodes.

    The tables of a setting and their truths share the episodes, and no two episodes have the same seed. All
    channels play the same seeds.
    """
    trial = name.startswith("trial")
    if "hypotheses" not in games[0] and (trial or name == "designed"):
        return "-"  # made for constant classes
    channel, options = name.partition(" ")[0], HALF_SPACES.get(name, {})
    each = episodes // (len(games) * len(truths))
    groups = []
    for game, truth in itertools.product(games, truths):
        rules = {**game, "channel": channel, "channel_kwargs": options}
        if trial:
            rules = {**game, "channel": Trial(game["hypotheses"], horizon=game["horizon"], **options)}
        seed = len(groups) * each
        result = ldp_gym.evaluate("bayes", rules, episodes=each, seed=seed, truth=truth)
        groups.append(result.kl[:, -1])
    error = np.sqrt((np.var(groups, axis=1, ddof=1) / each).sum()) / len(groups)
    return f"{np.mean(groups):.1f} ± {error:.1f}"


def write_table(path: Path, episodes: int) -> None:
    """Write the risks of every pure channel and of the trials as a table."""
    classes = {name: made for name, made in ldp_gym.CHANNELS.own.items() if name != "identity" and made.pure}
    rows = []
    for name in sorted([*classes, *HALF_SPACES]):
        adaptive = name in classes and classes[name].adaptive
        row = {"channel": name, "adaptive": "yes" if adaptive else "no"}
        row["never blind"] = NEVER_BLIND.get(name, "yes")
        row |= {title: cell(name, *setting, episodes) for title, setting in settings().items()}
        print(row, flush=True)
        rows.append(row)
    pd.DataFrame(rows).to_csv(path, index=False)


def draw_figure(path: Path, episodes: int) -> None:
    """Bounds on the KL-risk against T for eight Hadamard pairs, eps = 1, and what Bayes pays there."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    horizons = [int(t) for t in np.geomspace(100, 100_000, 13).round()]
    played = horizons[::2][:6]
    rules = {"hypotheses": "hadamard-star", "num_hypotheses": 16}
    figure, (risks, growth) = plt.subplots(1, 2, figsize=(9.6, 4.8), layout="constrained")
    bounds = {
        "paper, at most": (theory.exp3_bound, "C0--"),
        "without interaction, at most": (theory.half_space_kl_bound, "C1-"),
        "with interaction, at most": (theory.interactive_kl_bound, "C2-"),
        "without interaction, at least": (theory.noninteractive_lower_bound, "C1:"),
        "with interaction, at least": (theory.interactive_lower_bound, "C2:"),
        "paper, at least": (theory.lower_bound, "C0:"),
    }
    for name, (bound, style) in bounds.items():
        risks.plot(horizons, [bound(16, rounds, 1.0) for rounds in horizons], style, label=name)
    for channel, style in (("half-space", "C1o"), ("challenge", "C2s")):
        worst = [
            ldp_gym.evaluate(
                "bayes",
                {**rules, "channel": channel, "horizon": t},
                episodes=max(2, episodes // 32),
                checkpoints=[t],
                truth="all",
            ).risk
            for t in played
        ]
        risks.plot(played, worst, style, label=f"Bayes on {channel}, worst truth")
        print(channel, dict(zip(played, np.round(worst, 1), strict=True)), flush=True)
        sizes, means, halves = (4, 16, 64), [], []
        for size in sizes:
            squares = sum_of_squares(channel, size, max(2, episodes // 2))
            means.append(squares.mean())
            halves.append(1.96 * squares.std(ddof=1) / np.sqrt(squares.size))
        print(channel, sizes, np.round(means, 3), np.round(halves, 3), flush=True)
        growth.errorbar(sizes, means, halves, fmt=f"{style}-", capsize=3)
    risks.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="KL-risk, nats")
    risks.set_title("16 hypotheses (hadamard-star), eps = 1")
    growth.set(xscale="log", xlabel="hypotheses K", ylabel="sum of TV^2, times tanh^2(eps/2) / (K - 1)")
    growth.set_xticks(sizes, [str(size) for size in sizes])
    growth.minorticks_off()
    growth.set_title("All Hadamard tilts, eps = 1")
    figure.legend(*risks.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    for axes in (risks, growth):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def sum_of_squares(channel: str, size: int, episodes: int) -> np.ndarray:
    """``sum_t TV_t^2 tanh^2(eps/2) / (K-1)`` by episode, for U and K - 1 tilts, until the truth is found."""
    star = ldp_gym.HYPOTHESES["hadamard-star"](size, loss="tv", amplitude=1.0)
    theorem = channel == "challenge"  # its theorem is for the posterior at rate 1/2, without turning
    rules = {"hypotheses": star, "channel": channel, "horizon": 150 * size}
    rules |= {"channel_kwargs": {"turns": 0}} if theorem else {}
    learner = partial(ldp_agents.Bayes, rate=0.5) if theorem else ldp_agents.Bayes
    played = ldp_gym.evaluate(learner, rules, episodes=episodes, checkpoints=[150 * size])
    return played.tv_squared[:, -1] * np.tanh(0.5) ** 2 / (size - 1)


def main() -> None:
    """Write the table, or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("what", choices=["table", "figure"])
    parser.add_argument("--episodes", type=int, help="512 for the table and 200 for the figure if not given")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.what == "table":
        write_table(options.out or Path("docs/data/which-channel.csv"), options.episodes or 512)
    else:
        draw_figure(options.out or Path("docs/pictures/bounds.png"), options.episodes or 200)


if __name__ == "__main__":
    main()
