"""The best channel that is not adaptive, for the candidates at hand."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels import extremal
from ldp_gym.channels.base import Channel
from ldp_gym.channels.scores import quadratic_losses
from ldp_gym.channels.two_level import log_mixture
from ldp_gym.core.arrays import FloatArray, IntArray, Messages

MOST_LABELS = 4096
"""For how many labels a channel is designed at most."""

_DIGITS = 12
"""To how many digits a table is designed for: the last bit must not lead to another design."""


class Designed(Channel):
    """Names a set of labels that probably holds the label; the sets are optimised for the class.

    A message is the number of a set of labels, ``e^eps`` times likelier from the labels in the set. Which
    sets there are, and how likely each is, is the result of an optimization that tells every pair of
    hypotheses apart as fast as it is worth (:mod:`ldp_gym.channels.extremal`). It is made when a table of
    candidates is first seen, in about a second, and kept. So it is for constant classes and for finite pools
    of contexts; others are refused. Use it where messages may not depend on earlier ones.

    :meth:`design` says how far from the best it may be. A set may have several numbers: how many numbers
    there are is fixed by K and M, so that the message space is known before the candidates.

    Privacy: a set has one probability from the labels that are in it and ``e^-eps`` times that from others.

    The base measure of :meth:`log_density` counts numbers.
    """

    most_tables: ClassVar[int | None] = 64
    num_uniforms = 1

    def __init__(
        self,
        num_hypotheses: int,
        num_labels: int,
        horizon: int,
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
    ) -> None:
        super().__init__(num_hypotheses, num_labels, horizon, epsilon=epsilon, delta=delta)
        if self.num_labels > MOST_LABELS:
            raise ValueError(
                f"'designed' weighs sets of labels, of {MOST_LABELS:,} labels at most; got {num_labels:,}. "
                f"'split' and 'wheel' do not depend on the number of labels"
            )

    @property
    def num_messages(self) -> int:
        """How many numbers there are."""
        return 128 + self.num_labels // 2

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """The numbers of the sets."""
        return gym.spaces.Discrete(self.num_messages)

    def design(self, candidates: FloatArray) -> extremal.Design:
        """The design for candidates ``(K, M)``: its sets and masses, and its duality gap."""
        return _design(_key(np.round(candidates, _DIGITS)), self.epsilon, self.horizon, self.num_messages)

    # -- One plan per table ---------------------------------------------------------------------------

    def _plans(self, candidates: FloatArray) -> tuple[list[_Plan], IntArray]:
        """The plans of all tables among the candidates, and the number of each one's plan, ``(...)``."""
        tables = candidates.reshape(-1, *candidates.shape[-2:])
        # A sum with random weights tells tables apart, without comparing all with all.
        weights = np.random.default_rng(0).standard_normal(tables.shape[1:])
        marks = np.round(np.einsum("nkm,km->n", tables, weights), _DIGITS - 3)
        _, first, which = np.unique(marks, return_index=True, return_inverse=True)
        plans = [_plan(_key(tables[i]), self.epsilon, self.horizon, self.num_messages) for i in first]
        return plans, which.reshape(candidates.shape[:-2])

    def _look_up(self, messages: Messages, candidates: FloatArray, field: str) -> FloatArray:
        """What the plans say in some field ``(N, ...)`` about messages."""
        plans, which = self._plans(candidates)
        return np.stack([getattr(plan, field) for plan in plans])[which, np.asarray(messages)]

    # -- The channel ----------------------------------------------------------------------------------

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        plans, which = self._plans(candidates)
        cumulative = np.stack([plan.cumulative for plan in plans])
        uniforms = uniforms[..., 0]
        which, labels = np.broadcast_arrays(which, np.asarray(labels), subok=False)
        # Bisection: the first number at which the label's distribution function exceeds the uniform.
        below = np.zeros(np.broadcast_shapes(labels.shape, uniforms.shape), dtype=np.int64)
        step = 1 << (self.num_messages - 1).bit_length()
        while step := step >> 1:
            beyond = below + step
            inside = beyond < self.num_messages
            passed = cumulative[which, labels, np.where(inside, beyond, 0) - 1] <= uniforms
            below = np.where(inside & passed, beyond, below)
        return below

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self._look_up(messages, candidates, "sets")

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self._look_up(messages, candidates, "log_density")

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self._look_up(messages, candidates, "log_likelihood")

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return self._look_up(messages, candidates, "losses")


class _Key(NamedTuple):
    """A table of candidates, by its bytes."""

    num_hypotheses: int
    num_labels: int
    data: bytes

    @property
    def table(self) -> FloatArray:
        return np.frombuffer(self.data).reshape(self.num_hypotheses, self.num_labels)


class _Plan(NamedTuple):
    """All that the channel says at one table, by message.

    Attributes:
        sets: which labels are in the set of each number, ones and zeros, ``(N, M)``.
        cumulative: the distribution functions of the messages from each label, ``(M, N)``.
        log_density: ``(N, M)``.
        log_likelihood: ``(N, K)``.
        losses: ``(N, K)``.
    """

    sets: FloatArray
    cumulative: FloatArray
    log_density: FloatArray
    log_likelihood: FloatArray
    losses: FloatArray


def _key(table: FloatArray) -> _Key:
    num_hypotheses, num_labels = table.shape
    return _Key(num_hypotheses, num_labels, (table + 0.0).tobytes())  # no negative zero


@lru_cache(maxsize=128)
def _design(key: _Key, epsilon: float, horizon: int, num_messages: int) -> extremal.Design:
    return extremal.design(key.table, epsilon, horizon, num_messages)


@lru_cache(maxsize=128)
def _plan(key: _Key, epsilon: float, horizon: int, num_messages: int) -> _Plan:
    """Design the channel for a table, and work out what it says."""
    table = key.table
    design = _design(_key(np.round(table, _DIGITS)), epsilon, horizon, num_messages)
    family = design.family.scaled(math.exp(-epsilon))
    numbers = np.arange(num_messages) % len(family.masses)  # a set has one number or more
    copies = np.bincount(numbers)
    sets, masses = family.sets[numbers], (family.masses / copies)[numbers]
    chances = np.einsum("nm,km->nk", sets, table)
    log_masses = np.log(masses)[:, None]
    log_density = log_mixture(sets, log_masses, epsilon)
    cumulative = np.cumsum(np.exp(log_density), axis=0).T
    squares = np.einsum("n,nk->k", masses, np.square(chances))
    return _Plan(
        sets.astype(np.float64),
        cumulative / cumulative[:, -1:],
        log_density,
        log_mixture(chances, log_masses, epsilon),
        quadratic_losses(chances, squares, epsilon),
    )
