"""The answer of ``select``: in words and as a data frame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_bench.selection.models import Log
from ldp_bench.selection.plan import Plan
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from pandas import DataFrame, Series


class Row(NamedTuple):
    """A choice for a survey."""

    channel: str
    epsilon: float
    learner: str

    def __str__(self) -> str:
        return f"{self.channel} at eps = {self.epsilon:g}, read by {self.learner}"


Found = Mapping[Row, Mapping[str, Any]]
"""Columns of :attr:`Selection.frame` by row."""

SUFFICIENT = 0.95
"""Share of surveys that must find a best model."""

FEWEST_USERS = 30
"""Size of a log below which it says too little about future users for a recommendation."""

_WIDTH = 84
"""Columns of the printed answer."""


@dataclass(frozen=True)
class Selection:
    """Answer of :func:`ldp_bench.select`; ``print`` shows it in words.

    Attributes:
        frame: a data frame with a row per ``channel``, ``epsilon`` and ``learner``: ``found``, the share of
            ``runs`` runs with ``users`` users that found a model within the tolerance; ``chance``, that of a
            random pick; ``users_needed``, the users from which on ``found`` stays at 95% or more, and the
            ends of its 90% interval, ``users_low`` and ``users_high`` (infinite if more than ``users``);
            ``misled``, a worse model that the learner prefers, or ""; ``confirmed``, True if played again.
        losses: log-loss per user of every model on the log, by name.
        gap: log-loss per user of the second-best model minus the best one's.
        gap_error: standard error of the gap, from paired differences.
        best_share: share of the populations that fit the log in which each model is the best, by name.
        recommended: confirmed row of ``frame`` with the smallest eps, then about the fewest users; or None.
        plan: the recommended survey, or None.
        sentences: the answer, without warnings and table.
        warnings: sentences on drift, and on learners that prefer another model.
    """

    frame: DataFrame
    losses: Mapping[str, float]
    gap: float
    gap_error: float
    best_share: Mapping[str, float]
    recommended: Series[Any] | None
    plan: Plan | None
    sentences: Sequence[str]
    warnings: Sequence[str]

    @property
    def best(self) -> str:
        """Name of the model with the smallest log-loss on the log."""
        return min(self.losses, key=lambda name: self.losses[name])

    def __str__(self) -> str:
        said = [*self.sentences, *(f"Warning: {text}" for text in self.warnings)]
        said = [fill(text, _WIDTH, break_on_hyphens=False) for text in said]
        title = "\nShare of runs that succeeded, and users for 95% of runs (*: from new runs):"
        return "\n".join([*said, title, _table(self.frame)])


def users_from_on(rounds: IntArray, shares: FloatArray) -> float:
    """Least users from which the shares stay at 95%, interpolated on a log scale; infinite if they do not.

    Of lower ends it is a fixed-sequence test: from the most users downwards, each number is tested at the
    same error, up to the first one that fails. No correction for many numbers is needed.
    """
    short = np.flatnonzero(shares < SUFFICIENT)
    if not short.size:
        return int(rounds[0])
    if short[-1] == len(shares) - 1:
        return math.inf
    ends = slice(short[-1], short[-1] + 2)
    return math.ceil(np.exp(np.interp(SUFFICIENT, shares[ends], np.log(rounds[ends]))))


def describe_log(
    log: Log, tolerance: float, default: str, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Facts of the log itself: attributes of a :class:`Selection`, and sentences.

    ``default`` says how the tolerance was chosen, if not by the user.
    """
    losses, users, mean = log.losses, len(log.labels), log.losses.mean(axis=0)
    best, second = np.argsort(mean, kind="stable")[:2]
    paired = losses[:, second] - losses[:, best]
    gap, error = max(0.0, float(paired.mean())), float(paired.std(ddof=1)) / math.sqrt(users)
    rng = np.random.default_rng(seed)
    winners = [int((rng.exponential(size=users) @ losses).argmin()) for _ in range(1000)]
    shares = np.bincount(winners, minlength=len(mean)) / len(winners)
    often = [
        f"{log.names[j]!r} in {shares[j]:.0%}" for j in np.argsort(-shares) if shares[j] >= 0.005
    ]
    near = [repr(log.names[j]) for j in np.flatnonzero(mean <= mean[best] + tolerance) if j != best]
    said = [
        f"The best of {len(mean)} models on this log of {users:,} users is {log.names[best]!r}: its log-loss "
        f"is {mean[best]:.3f} nats per user. The next, {log.names[second]!r}, is {gap:.3f} ± {error:.3f} "
        f"worse. Best in populations that fit this log: {_few(often)}."
    ]
    if gap <= 1.96 * error:
        enough = (
            gap > 1e-6 * error
            and f"a log of about {users * (1.96 * error / gap) ** 2:,.0f} users could"
        )
        more = enough or "nor could a larger one"
        said.append(f"This log cannot tell {log.names[best]!r} from {log.names[second]!r}; {more}.")
    also = f" On this log, {_few(near)} would do as well." if near else ""
    rule = f"A survey succeeds if it picks a model within {tolerance:.2g} nats per user of the best"
    by_name = [dict(zip(log.names, values.tolist(), strict=True)) for values in (mean, shares)]
    facts = {"losses": by_name[0], "best_share": by_name[1], "gap": gap, "gap_error": error}
    return facts, [*said, f"{rule}{default}.{also}", *log.notes]


def advise(
    found: Found, chosen: Row | None, batches: tuple[int, float] | None, users: int
) -> list[str]:
    """The recommended row in words, rows that are level with it, and the users needed with larger batches."""
    if users < FEWEST_USERS:
        return [
            f"No recommendation: {users} users say too little about others. Give {FEWEST_USERS} or more."
        ]
    most = max(columns["users"] for columns in found.values())
    if chosen is None:
        best = max(found, key=lambda row: found[row]["found"])
        if (chance := found[best]["chance"]) >= SUFFICIENT:
            text = (
                f"No recommendation: a model picked at random succeeds in {chance:.0%} of the runs."
            )
            return [f"{text} To tell the models apart, pass a smaller tolerance."]
        return [
            f"No recommendation: no choice is confirmed to succeed in 95% of surveys. The best, {best}, "
            f"succeeded in {found[best]['found']:.0%} of {found[best]['runs']:,} runs with "
            f"{found[best]['users']:,} users (90% interval from {found[best]['found_low']:.1%}). Use a "
            "larger log, ask more users, or allow a larger eps or tolerance."
        ]
    needed, low, high = (
        found[chosen][name] for name in ("users_needed", "users_low", "users_high")
    )
    said = [
        f"Recommended: ask {needed:,} users (90% interval {low:,} to {high:,}) through the channel "
        f"{chosen.channel!r} at eps = {chosen.epsilon:g}; the learner {chosen.learner!r} reads the messages. "
        f"No smaller eps was confirmed. From {needed:,} users on, 95% or more of {found[chosen]['runs']:,} "
        f"new runs succeeded."
    ]
    beyond = high**2 / low  # its interval, moved up by its width, ends there
    rivals = [row for row in found if row != chosen and row.epsilon <= chosen.epsilon]
    limits = [beyond if row.epsilon == chosen.epsilon else most for row in rivals]
    level = [
        str(row) for row, n in zip(rivals, limits, strict=True) if found[row]["users_low"] <= n
    ]
    if beyond > most:
        level.append(
            "a larger eps" if any(row.epsilon > chosen.epsilon for row in found) else "none"
        )
    if level:
        said.append(f"It is a tie: another seed may recommend {_few(level, '; ')}.")
    if batches:
        many = f"{batches[1]:,}" if math.isfinite(batches[1]) else "too many"
        alone = [row for row in found if not CHANNELS.class_of(row.channel).adaptive]
        alone = [row for row in alone if math.isfinite(found[row]["users_needed"])]
        instead = min(
            alone, key=lambda row: (row.epsilon, found[row]["users_needed"]), default="none works"
        )
        said.append(
            f"On this channel users wait for earlier answers. In batches of {batches[0]} users, {many} users "
            f"are needed. Best choice without waiting: {instead}."
        )
    return said


def warn_of_drift(log: Log, tolerance: float) -> list[str]:
    """A warning if another model is the best in the second half of the log, by more than chance."""
    middle = len(log.labels) // 2
    halves = log.losses[:middle], log.losses[middle:]
    first, last = (int(half.mean(axis=0).argmin()) for half in halves)
    before, after = (half[:, first] - half[:, last] for half in halves)
    quiet, change = (
        len(log.labels) < FEWEST_USERS or after.mean() <= tolerance,
        after.mean() - before.mean(),
    )
    if quiet or change <= 3.0 * math.sqrt(
        sum(half.var(ddof=1) / len(half) for half in (before, after))
    ):
        return []
    return [
        f"the log drifts. {log.names[first]!r} is the best in its first half, {log.names[last]!r} in its "
        f'second. Use a recent log, or set order to "given" if the users to come will drift in the same way.'
    ]


def warn_of_learners(found: Found) -> list[str]:
    """A warning for every learner that comes to prefer a worse model."""
    where: dict[tuple[str, str], list[str]] = {}
    for row in (row for row in found if found[row]["misled"]):
        games = where.setdefault((row.learner, found[row]["misled"]), [])
        games.append(f"{row.channel} at eps = {row.epsilon:g}")
    return [
        f"{learner} comes to prefer {model!r} ({_few(games)}). No model is exactly right, and then {learner} "
        f"need not prefer the one with the smallest log-loss."
        for (learner, model), games in where.items()
    ]


def _few(names: Sequence[str], between: str = ", ") -> str:
    """The first three names, and how many more there are."""
    return between.join([*names[:3], *([f"and {len(names) - 3} more"] if len(names) > 3 else [])])


def _table(frame: DataFrame) -> str:
    """Learners and channels against eps, as text."""

    def show(row: Any) -> str:
        many = f"{row['users_needed']:,.0f}".replace("inf", f">{row['users']:,}")
        return f"{row['found']:.0%} {many:>6}{'*' if row['confirmed'] else ' '}"

    shown = frame.assign(shown=frame.apply(show, axis=1))
    wide = shown.pivot(index=["learner", "channel"], columns="epsilon", values="shown").fillna("")
    names, cells = (
        shown[list(columns)].map(len).max().sum() for columns in (Row._fields[::2], ["shown"])
    )
    step = max(1, (_WIDTH - names - 1) // (cells + 1))
    parts = [wide.iloc[:, i : i + step] for i in range(0, wide.shape[1], step)]
    texts = [
        part.rename(columns="eps = {:g} ".format).reset_index().to_string(index=False)
        for part in parts
    ]
    return "\n".join(line.rstrip() for line in "\n\n".join(texts).splitlines())
