"""Risk of Bayes on every pure channel, on random tables and where channels are blind.

python benchmarks/studies/half_spaces.py      # docs/data/which-channel.csv: about five minutes
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import ldp_agents  # noqa: F401  (registers the learners)
import ldp_gym
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

_LEWIS_STEPS = 40
"""Number of fixed-point steps for the Lewis weights of a trial."""

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
design that misses a pair has an infinite cost; docs/proofs.md has the proof for half-spaces.
"""


def lewis_matrix(points: FloatArray) -> FloatArray:
    """``A = sum_y u_y u_y^T / tau_y`` of points ``(K, M)``, tau the Lewis weights."""
    weights = np.linalg.norm(points, axis=0)
    for _ in range(_LEWIS_STEPS):
        matrix = points / np.maximum(weights, 1e-300) @ points.T
        inverse = np.linalg.pinv(matrix, hermitian=True)
        squares = np.einsum("km,kl,lm->m", points, inverse, points)
        weights = np.sqrt(np.maximum(squares, 0.0))
    return matrix


class Trial(HalfSpace):
    """Planes ``A^(-1/2) g``, or ``g`` without scaling, or those of ``split`` with probability ``share``.

    Args:
        table: the class, which is constant.
        scaled: scale by the Lewis weights.
        share: probability of a random half of the hypotheses against the rest.
    """

    def __init__(
        self, table: FloatArray, *, scaled: bool = True, share: float = 0.0, **options: Any
    ) -> None:
        super().__init__(*table.shape, **options)
        self.share = share
        self.half = len(table) // 2
        centred = table - table.mean(axis=0)
        values, vectors = np.linalg.eigh(lewis_matrix(centred))
        used = values > 1e-12 * values.max()
        power = -0.5 if scaled else 0.0
        powers = np.where(used, np.where(used, values, 1.0) ** power, 0.0)
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
        ranks = coins[..., :-1].argsort(axis=-1).argsort(axis=-1)
        halves = np.where(ranks < self.half, 1.0, -1.0)
        contrast = np.where(coins[..., -1:] < self.share, halves, contrast)
        return contrast / np.abs(contrast).max(axis=-1, keepdims=True)


def random_games(num_labels: int, count: int) -> list[dict[str, Any]]:
    """Games on Dirichlet(0.3) tables of eight hypotheses."""
    games = []
    for number in range(count):
        rng = np.random.default_rng(100 + number)
        table = rng.dirichlet(np.full(num_labels, 0.3), size=8)
        games.append({"hypotheses": table, "horizon": 1500})
    return games


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
    is_trial = name.startswith("trial")
    if is_trial and "hypotheses" not in games[0]:
        return "-"  # made for constant classes
    options = HALF_SPACES.get(name, {})
    episodes_of_group = episodes // (len(games) * len(truths))
    groups = []
    for game, truth in itertools.product(games, truths):
        if is_trial:
            trial = Trial(game["hypotheses"], horizon=game["horizon"], **options)
            rules = {**game, "channel": trial}
        else:
            channel = name.partition(" ")[0]
            rules = {**game, "channel": channel, "channel_kwargs": options}
        played = ldp_gym.evaluate(
            "bayes",
            rules,
            episodes=episodes_of_group,
            seed=len(groups) * episodes_of_group,
            truth=truth,
        )
        groups.append(played.kl[:, -1])
    variances_of_means = np.var(groups, axis=1, ddof=1) / episodes_of_group
    error = np.sqrt(variances_of_means.sum()) / len(groups)
    return f"{np.mean(groups):.1f} ± {error:.1f}"


def write_table(path: Path, episodes: int) -> None:
    """Write the risks of every pure channel and of the trials as a table."""
    classes = {
        name: made
        for name, made in ldp_gym.CHANNELS.own.items()
        if name != "identity" and made.pure
    }
    rows = []
    for name in sorted([*classes, *HALF_SPACES]):
        adaptive = name in classes and classes[name].adaptive
        row = {"channel": name, "adaptive": "yes" if adaptive else "no"}
        row["never blind"] = NEVER_BLIND.get(name, "yes")
        row |= {title: cell(name, *setting, episodes) for title, setting in settings().items()}
        print(row, flush=True)
        rows.append(row)
    pd.DataFrame(rows).to_csv(path, index=False)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument("--out", type=Path, default=Path("docs/data/which-channel.csv"))
    options = parser.parse_args()
    write_table(options.out, options.episodes)


if __name__ == "__main__":
    main()
