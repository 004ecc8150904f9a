"""Channels that were found, mixed so that the cost is least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ldp_gym.channels.extremal.families import Family, Table
from ldp_gym.core.arrays import BoolArray, FloatArray

_NEGLIGIBLE = 1e-4
"""A channel with less weight is dropped."""

_ROUNDS = 300
_SETTLED = 1e-7


class Mixture:
    """A mixture of channels: with public coins, one of them is drawn and used.

    Args:
        table: what they are for.
        horizon: T.
    """

    def __init__(self, table: Table, horizon: int) -> None:
        self._table = table
        self._pairs = ~np.eye(table.num_hypotheses, dtype=np.bool_)
        self._prices = np.maximum(table.prices[self._pairs], 1e-12)  # twins cost nothing
        self._shift = 1.0 / horizon
        self._channels: list[Family] = []
        self._told = np.zeros((0, self._prices.size))
        self._weights = np.zeros(0)

    @property
    def _information(self) -> FloatArray:
        """``D_ij`` of all pairs."""
        return self._weights @ self._told

    @property
    def _pair_slopes(self) -> FloatArray:
        slopes: FloatArray = self._prices / (self._information + self._shift) ** 2
        return slopes

    @property
    def cost(self) -> float:
        """J."""
        return float((self._prices / (self._information + self._shift)).sum())

    @property
    def slopes(self) -> FloatArray:
        """``u_ij = -dJ / dD_ij``, ``(K, K)``."""
        slopes = np.zeros(self._pairs.shape)
        slopes[self._pairs] = self._pair_slopes
        return slopes

    @property
    def score(self) -> float:
        """``sum_ij u_ij D_ij``."""
        return float(self._pair_slopes @ self._information)

    @property
    def family(self) -> Family:
        """The mixture as one channel."""
        sets = np.concatenate([channel.sets for channel in self._channels])
        masses = [w * channel.masses for w, channel in zip(self._weights, self._channels, strict=True)]
        sets, where = np.unique(sets, axis=0, return_inverse=True)
        merged = np.zeros(len(sets)) + np.bincount(where, np.concatenate(masses))
        return self._table.family(sets, merged)

    def add(self, channels: Sequence[Family]) -> None:
        """Take in more channels, and mix all of them again."""
        if not channels:
            return
        told = [self._table.information(channel)[self._pairs] for channel in channels]
        self._channels += channels
        self._told = np.concatenate([self._told, np.array(told)])
        share = len(channels) / len(self._channels)
        new = np.full(len(channels), 1.0 / len(self._channels))
        self._weights = np.concatenate([(1.0 - share) * self._weights, new])
        self._settle()
        self._keep(self._weights > _NEGLIGIBLE)

    def keep_sets(self, most: int) -> None:
        """Drop channels, those with the least weight first, until there are no more sets than so many."""
        while len(self.family.masses) > most and len(self._channels) > 1:
            self._keep(self._weights > self._weights.min())
            self._settle()

    def _keep(self, which: BoolArray) -> None:
        self._channels = [channel for channel, kept in zip(self._channels, which, strict=True) if kept]
        self._told, self._weights = self._told[which], self._weights[which]
        self._weights = self._weights / self._weights.sum()

    def _settle(self) -> None:
        """Weights of least cost, by multiplicative steps (Silvey, Titterington and Torgersen 1978)."""
        for _ in range(_ROUNDS):
            gains = self._told @ self._pair_slopes
            weights = self._weights * np.sqrt(gains + np.finfo(np.float64).tiny)  # twins gain nothing
            weights /= weights.sum()
            change = np.abs(weights - self._weights).max()
            self._weights = weights
            if change < _SETTLED:
                break
