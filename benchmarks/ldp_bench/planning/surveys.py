"""Simulated surveys: users answer until few enough models are left.

All surveys of a plan share their random numbers. Run r has the same contexts and the same draws of labels
under every truth and on every channel, and the same private coins under every truth, so that differences
between channels are not drowned by luck.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.core.sampling import categorical, cumulative, inverse, open_uniforms
from ldp_gym.engine.posterior import PublicPosterior, finite, send_adaptively

_FIRST_BLOCK = 32
"""Number of users in the first block of rounds."""

_GROWTH = 4
"""A block is this many times shorter than all rounds before it."""

_LONGEST_BLOCK = 4096
"""Largest number of users in a block."""

_NUMBERS_AT_ONCE = 2**20
"""Size of the arrays, in numbers, that are worked on together: 8 MB."""

_FEW_PER_ROW = 8
"""Messages per row of X from which the messages of a row are read together."""

_CONTEXTS, _COINS = 0, 1
"""Spawn keys of the two streams of a run: contexts and labels; the coins of a channel."""


def runs_together(channel: Channel, num_truths: int, table_size: int, num_runs: int) -> int:
    """Number of runs that one :class:`Surveys` should hold, for predictions of ``table_size`` numbers.

    Users of an adaptive channel answer in turn. A round of all its surveys should fit into the cache.
    """
    if not channel.adaptive:
        return num_runs
    return max(1, min(num_runs, _NUMBERS_AT_ONCE // (num_truths * table_size)))


def next_block(users: int, most_users: int) -> int:
    """Users asked when the next block ends: the same ends for every channel.

    Example:
        >>> next_block(0, 1000), next_block(32, 1000), next_block(400, 1000), next_block(900, 1000)
        (32, 64, 500, 1000)
    """
    length = min(max(_FIRST_BLOCK, users // _GROWTH), _LONGEST_BLOCK)
    return min(users + length, most_users)


class Outcomes(NamedTuple):
    """Ends of surveys, with the axes truths and runs.

    Attributes:
        users: number of users when the survey ended, ``(truths, runs)``; inf if it has not.
        left: models that were left then, ``(truths, runs, K)``; those left now if it has not ended.
        asked: number of users up to which the surveys were played.
    """

    users: FloatArray
    left: BoolArray
    asked: int


class SquaredRatios(NamedTuple):
    """Squared log-likelihood ratios of all messages so far, of each truth against each model.

    Attributes:
        sums: sums over the surveys under way, ``(truths, K)``.
        counts: number of these surveys, ``(truths,)``.
    """

    sums: FloatArray
    counts: IntArray


@dataclass
class Surveys:
    """Surveys under way on one channel: every truth in every run.

    Args:
        channel: the channel.
        table: file of the models' predictions ``(n, K, M)``, written by ``numpy.save``.
        truths: laws of the labels as weights ``(truths, K + 1)`` of the K models and, last, of the uniform
            distribution.
        runs: numbers of the runs, which decide their random numbers.
        alpha: error of the confidence sets.
        alike: pairs of models that need not be told apart, ``(K, K)``.
        batch: number of users who answer under one public posterior.
        seed: seed of all runs.
    """

    channel: Channel
    table: Path
    truths: FloatArray
    runs: IntArray
    alpha: float
    alike: BoolArray
    batch: int
    seed: int
    asked: int = 0
    _truth: IntArray = field(init=False)
    _run: IntArray = field(init=False)
    _totals: FloatArray = field(init=False)
    _dropped: FloatArray = field(init=False)
    _ended: FloatArray = field(init=False)
    _posterior: PublicPosterior | None = field(init=False)

    def __post_init__(self) -> None:
        """Start all surveys: no user has been asked, and no model is dropped."""
        num_truths = len(self.truths)
        num_models = self.channel.num_hypotheses
        # The surveys that have not ended: index of the truth, and index of the run.
        self._truth = np.tile(np.arange(num_truths), len(self.runs))
        self._run = np.repeat(np.arange(len(self.runs)), num_truths)
        self._totals = np.zeros((len(self._truth), num_models))
        # Number of users after which each model was dropped, in all surveys.
        self._dropped = np.full((num_truths, len(self.runs), num_models), np.inf)
        # Number of users when each survey ended.
        self._ended = np.full((num_truths, len(self.runs)), np.inf)
        self._posterior = None
        if self.channel.adaptive:
            self._posterior = PublicPosterior(
                num_models,
                (len(self._truth),),
                rate=self.channel.posterior_rate,
                share=self.channel.posterior_share,
                batch=self.batch,
            )

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes of all surveys so far."""
        until = np.where(np.isfinite(self._ended), self._ended, self.asked)
        left = self._dropped > until[..., None]
        return Outcomes(self._ended, left, self.asked)

    @property
    def under_way(self) -> int:
        """Number of surveys that have not ended."""
        return len(self._truth)

    def play(self, stop: int) -> Surveys:
        """Ask the users up to number ``stop`` in every survey that has not ended; return self."""
        if not self.under_way:
            return self
        length = stop - self.asked
        for group in self._groups(length):
            self._play_group(group, length)
        self.asked = stop
        users = users_until_decided(self._dropped[self._truth, self._run], self.alike)
        self._ended[self._truth, self._run] = users
        going_on = np.isinf(users)
        self._truth = self._truth[going_on]
        self._run = self._run[going_on]
        self._totals = self._totals[going_on]
        if self._posterior is not None:
            self._posterior.keep(going_on)
        return self

    @property
    def squared_ratios(self) -> SquaredRatios:
        """Squared log-likelihood ratios of each truth against each model, in the surveys under way.

        The truths must be models: a mixture of them has no log-likelihood here.
        """
        true_model = self.truths[self._truth].argmax(axis=1)
        of_truth = np.take_along_axis(self._totals, true_model[:, None], axis=1)
        sums = np.zeros((len(self.truths), self.channel.num_hypotheses))
        np.add.at(sums, self._truth, np.square(of_truth - self._totals))
        counts = np.bincount(self._truth, minlength=len(self.truths))
        return SquaredRatios(sums, counts)

    def abandon(self, truths: BoolArray) -> None:
        """Play no more surveys of some truths, a mask ``(truths,)``."""
        kept = ~truths[self._truth]
        self._truth = self._truth[kept]
        self._run = self._run[kept]
        self._totals = self._totals[kept]
        if self._posterior is not None:
            self._posterior.keep(kept)

    def _groups(self, length: int) -> Iterator[slice]:
        """Yield surveys of whole runs that are played together, as slices."""
        if self._posterior is not None:  # one posterior serves all of them
            yield slice(0, len(self._run))
            return
        numbers = self.channel.num_uniforms + len(self.truths) * self.channel.num_hypotheses
        together = max(1, 4 * _NUMBERS_AT_ONCE // (length * numbers))
        _, starts = np.unique(self._run, return_index=True)
        edges = [*starts[::together].tolist(), len(self._run)]
        for start, end in pairwise(edges):
            yield slice(start, end)

    def _play_group(self, group: slice, length: int) -> None:
        """Ask ``length`` users in each survey of a group, and note which models are then dropped."""
        table = _load(self.table)
        runs, run = np.unique(self._run[group], return_inverse=True)
        truth = self._truth[group]

        contexts, labels = self._draw_users(runs, run, truth, length, table)
        rngs = [self._generator(i, _COINS) for i in runs]
        coins = open_uniforms(rngs, (length, self.channel.num_uniforms))
        if self._posterior is None:
            log_likelihoods = self._read(contexts, labels, coins, run, table)
        else:
            log_likelihoods = self._read_adaptively(contexts, labels, coins, run, table)

        path = np.cumsum(finite(log_likelihoods), axis=1)
        path += self._totals[group][:, None]
        self._totals[group] = path[:, -1]
        first = first_dropped(path, self.alpha)
        before = self._dropped[truth, self._run[group]]
        self._dropped[truth, self._run[group]] = np.minimum(before, self.asked + 1 + first)

    def _generator(self, run: int, purpose: int) -> np.random.Generator:
        """Generator of a run's next block, for contexts and labels or for the coins."""
        number = int(self.runs[run])
        return np.random.default_rng([self.seed, number, self.asked, purpose])

    def _draw_users(
        self, runs: IntArray, run: IntArray, truth: IntArray, length: int, table: FloatArray
    ) -> tuple[IntArray, IntArray]:
        """Draw rows of X, ``(runs, length)``, and labels ``(surveys, length)``."""
        rngs = [self._generator(i, _CONTEXTS) for i in runs]
        of_context, of_member, of_label = np.moveaxis(open_uniforms(rngs, (length, 3)), -1, 0)
        contexts = (of_context * len(table)).astype(np.int64)
        members = categorical(self.truths[truth][:, None], of_member[run])
        return contexts, draw_labels(table, contexts[run], members, of_label[run])

    def _read(
        self,
        contexts: IntArray,
        labels: IntArray,
        coins: FloatArray,
        run: IntArray,
        table: FloatArray,
    ) -> FloatArray:
        """Let all users answer at once; return the log-likelihoods ``(surveys, length, K)`` of the messages.

        Args:
            contexts: rows of X, ``(runs, length)``.
            labels: users' labels, ``(surveys, length)``.
            coins: uniform random numbers of the channel, ``(runs, length, coins)``.
            run: index of each survey's run, ``(surveys,)``.
            table: predictions ``(n, K, M)`` at the rows of X.
        """
        num_models, num_labels = table.shape[1:]
        rows = contexts[run].ravel()
        flat_labels = labels.ravel()
        survey, user = np.divmod(np.arange(rows.size), labels.shape[1])
        log_likelihoods = np.empty((rows.size, num_models))
        at_once = max(1, _NUMBERS_AT_ONCE // (num_labels + coins.shape[-1] + num_models))
        for row, which in _users_by_row(rows, len(table), at_once, num_models * num_labels):
            if row is None:
                here = table[rows[which]]
            else:
                here = table[row]
            uniforms = coins[run[survey[which]], user[which]]
            messages = self.channel.encode(flat_labels[which], here, uniforms)
            log_likelihoods[which] = self.channel.log_likelihood(messages, here)
        return log_likelihoods.reshape(*labels.shape, num_models)

    def _read_adaptively(
        self,
        contexts: IntArray,
        labels: IntArray,
        coins: FloatArray,
        run: IntArray,
        table: FloatArray,
    ) -> FloatArray:
        """Let users answer an adaptive channel in turn; return log-likelihoods ``(surveys, length, K)``.

        The public posterior advances with the messages.

        Args:
            contexts: rows of X, ``(runs, length)``.
            labels: users' labels, ``(surveys, length)``.
            coins: uniform random numbers of the channel, ``(runs, length, coins)``.
            run: index of each survey's run, ``(surveys,)``.
            table: predictions ``(n, K, M)`` at the rows of X.
        """
        posterior = self._posterior
        assert posterior is not None
        constant = len(table) == 1
        size = 1  # numbers per round of a survey: constant candidates are shared
        if not constant:
            size = table[0].size
        # As many rounds at a time as keep the candidates of all surveys small.
        rounds = max(1, _NUMBERS_AT_ONCE // (len(labels) * size))
        parts = []
        for start in range(0, labels.shape[1], rounds):
            now = slice(start, start + rounds)
            if constant:
                here = table[0]
            else:
                here = table[contexts[run, now]]
            uniforms = coins[run, now]
            _, part = send_adaptively(self.channel, posterior, labels[:, now], here, uniforms)
            parts.append(part)
        return np.concatenate(parts, axis=1)


def users_until_decided(dropped: FloatArray, alike: BoolArray) -> FloatArray:
    """Number of users ``(...)`` until all models left are alike, or none is; inf if that is not so yet.

    Args:
        dropped: number of users after which each model was dropped, ``(..., K)``; inf if it was not.
        alike: pairs of models that need not be told apart, ``(K, K)``.

    Example:
        The second and third model are alike, and it takes 7 users to drop the first:

        >>> alike = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=bool)
        >>> float(users_until_decided(np.array([7.0, np.inf, np.inf]), alike))
        7.0
    """
    num_models = len(alike)
    if not (alike & ~np.eye(num_models, dtype=np.bool_)).any():
        # All but one must go: the second-largest number.
        ordered = np.sort(dropped, axis=-1)
        last_but_one: FloatArray = ordered[..., -2]
        return last_but_one

    # Of a pair that differs, one model must go.
    first, second = np.nonzero(np.triu(~alike, 1))
    decided = np.minimum(dropped[..., first], dropped[..., second])
    return decided.max(axis=-1, initial=0.0)


def first_dropped(log_likelihoods: FloatArray, alpha: float) -> FloatArray:
    """First round ``(..., K)`` after which each model is dropped; inf if it is not.

    A model is dropped when its posterior weight under a uniform prior is at most ``alpha / K``, as in
    ``ldp_agents.Bayes.confidence_set``.

    Args:
        log_likelihoods: of all messages up to each round, ``(..., rounds, K)``.
        alpha: error of the confidence sets.
    """
    num_models = log_likelihoods.shape[-1]
    largest = log_likelihoods.max(axis=-1, keepdims=True)
    relative = log_likelihoods - largest
    log_total = np.log(np.exp(relative).sum(axis=-1, keepdims=True))
    drops = relative - log_total <= math.log(alpha / num_models)
    return np.where(drops.any(axis=-2), drops.argmax(axis=-2), np.inf)


def draw_labels(
    table: FloatArray, rows: IntArray, members: IntArray, uniforms: FloatArray
) -> IntArray:
    """Draw users' labels from the models ``members`` at rows of a table ``(n, K, M)``.

    Member K stands for the uniform distribution. All arguments but the table have one shape.
    """
    num_models, num_labels = table.shape[1:]
    labels = np.empty(rows.shape, dtype=np.int64)
    flat_rows = rows.ravel()
    flat_members = members.ravel()
    flat_uniforms = uniforms.ravel()
    flat_labels = labels.ravel()  # a view: what is written here is in `labels`
    at_once = max(1, _NUMBERS_AT_ONCE // num_labels)
    for row, which in _users_by_row(flat_rows, len(table), at_once, num_models * num_labels):
        member = np.minimum(flat_members[which], num_models - 1)
        laws = _laws(table, flat_rows[which], row, member)
        flat_labels[which] = inverse(laws, flat_uniforms[which])
    is_uniform = flat_members == num_models
    flat_labels[is_uniform] = (flat_uniforms[is_uniform] * num_labels).astype(np.int64)
    return labels


def _laws(table: FloatArray, rows: IntArray, row: int | None, members: IntArray) -> FloatArray:
    """Distribution functions ``(users, M)`` of members at users' rows, or at their common row."""
    if row is None:
        return cumulative(table[rows, members])
    return cumulative(table[row])[members]


def _users_by_row(
    rows: IntArray, num_rows: int, at_once: int, table_size: int
) -> Iterator[tuple[int | None, IntArray]]:
    """Yield users that are worked on together: their common row of X, and their indices.

    Where few users share a row they are taken as they come, and the row is None.
    """
    if num_rows > 1 and len(rows) < _FEW_PER_ROW * num_rows:
        at_once = max(1, min(at_once, _NUMBERS_AT_ONCE // table_size))
        for start in range(0, len(rows), at_once):
            yield None, np.arange(start, min(start + at_once, len(rows)))
        return
    order = np.argsort(rows, kind="stable")
    edges = np.searchsorted(rows[order], np.arange(num_rows + 1))
    for row in range(num_rows):
        for start in range(int(edges[row]), int(edges[row + 1]), at_once):
            yield row, order[start : min(start + at_once, int(edges[row + 1]))]


@lru_cache(maxsize=1)
def _load(path: Path) -> FloatArray:
    """Table of a file, which processes share in memory."""
    table: FloatArray = np.asarray(np.load(path, mmap_mode="r"))
    return table
