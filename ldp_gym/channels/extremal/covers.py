"""Covers: good channels of g sets with every label in w of them, found by ascent.

The score of a set is convex in the laws of the hypotheses. If every label moves to the w sets in which the
score's gradient is largest for it, the scores' sum can only grow; and so on until nothing changes.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ldp_gym.channels.extremal.families import Family, Table, ascend
from ldp_gym.core.arrays import FloatArray

_MOST_SETS = 64
"""How many sets a cover has at most."""

_FINDS = 3
"""How many covers of each shape are handed on."""


class CoverSearch:
    """A search that starts from random covers, and from the best that it has found before.

    Args:
        table: what the covers are for.
        share: about which share of the labels a set has.
        rng: where random covers come from.
    """

    def __init__(self, table: Table, share: float, rng: np.random.Generator) -> None:
        self._table = table
        self._rng = rng
        self._shapes = _shapes(share, table.num_labels)
        self._starts = 12 if table.num_labels <= 128 else 6
        self._found: dict[tuple[int, int], FloatArray] = {}

    @property
    def sets(self) -> FloatArray:
        """The sets of the best covers found so far, ``(n, M)``."""
        return np.concatenate([covers.reshape(-1, covers.shape[-1]) for covers in self._found.values()])

    def first(self) -> list[Family]:
        """Channels to begin with: random covers, the votes, and the labels' names if they are few."""
        candidates, num_hypotheses = self._table.candidates, self._table.num_hypotheses
        covers = [cover for g, w in self._shapes for cover in self._random(g, w)]
        covers += list(_join(self._rng.standard_normal((1, 2, self._table.num_labels)), 1))
        covers.append((candidates.argmax(axis=0) == np.arange(num_hypotheses)[:, None]).astype(np.float64))
        if self._table.num_labels <= _MOST_SETS:
            covers.append(np.eye(self._table.num_labels))
        families = [self._family(cover) for cover in covers]
        return [family for family in families if len(family.masses)]

    def best(self, slopes: FloatArray) -> tuple[list[Family], float]:
        """A few channels that score high, and the highest score."""
        families: list[Family] = []
        most = 0.0
        for g, w in self._shapes:
            covers = self._random(g, w)
            known = self._found.get((g, w), covers)[: self._starts // 2]
            covers[: len(known)] = known
            covers = ascend(partial(self._move, slopes, w), covers)
            made = [self._family(cover) for cover in covers]
            scores = np.array([self._table.scores(f.sets, slopes) @ f.masses for f in made])
            order = np.argsort(-scores, kind="stable")
            self._found[g, w] = covers[order]
            families += [made[i] for i in order[:_FINDS] if len(made[i].masses)]
            most = max(most, float(scores.max()))
        return families, most

    def _move(self, slopes: FloatArray, w: int, covers: FloatArray) -> FloatArray:
        return _join(self._table.gradients(covers, slopes), w)

    def _family(self, cover: FloatArray) -> Family:
        return self._table.family(cover, np.ones(len(cover)))

    def _random(self, g: int, w: int) -> FloatArray:
        """Covers ``(starts, g, M)`` in which labels join by random tastes for hypotheses."""
        candidates = self._table.candidates
        liked = candidates / np.maximum(candidates.sum(axis=0), np.finfo(np.float64).tiny)
        return _join(self._rng.standard_normal((self._starts, g, len(candidates))) @ liked, w)


def _shapes(share: float, num_labels: int) -> list[tuple[int, int]]:
    """Shapes ``(g, w)`` with ``w / g`` about the given share, and halves."""
    most = min(_MOST_SETS, 2 * num_labels)
    each = 1.0 / max(share, 1.0 / most)
    around = [(math.floor(each), 1), (math.ceil(each), 1), (math.ceil(each) + 1, 1)]
    several = [(round(w * each), w) for w in (2, 3)]
    return sorted({(g, w) for g, w in [(2, 1), *around, *several] if w < g <= most})


def _join(preferences: FloatArray, w: int) -> FloatArray:
    """Covers ``(n, g, M)`` in which every label is in the w sets that it prefers."""
    chosen = np.argpartition(-preferences, w - 1, axis=1)[:, :w]
    covers = np.zeros(preferences.shape)
    np.put_along_axis(covers, chosen, 1.0, axis=1)
    return covers
