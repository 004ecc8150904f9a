"""The answer of ``select``: in words, as a data frame and as a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.selection.models import Log
from ldp_gym.selection.plan import Plan

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Row = tuple[str, float, str]
"""Channel, eps and learner."""

SUFFICIENT = 0.95
"""Share of surveys that must find a best model."""

FEWEST_USERS = 30
"""Size of a log below which it says too little about the users to come for a recommendation."""

_POPULATIONS = 1000
"""Populations drawn from the log, to see which model is the best of each."""


@dataclass(frozen=True)
class Selection:
    """Answer of :func:`ldp_gym.select`; ``print`` shows it in words.

    Attributes:
        frame: a data frame with a row per ``channel``, ``epsilon`` and ``learner``: ``found``, the share of
            ``runs`` runs with ``users`` users that found a model within the tolerance, and its lower and
            upper end at 95% confidence each (``found_low``, ``found_high``); ``users_needed``, the users from
            which on the lower end stays at 95% or more (infinite if more than ``users``);
            ``users_estimated`` and ``users_low``, the same of the share itself and of its upper end;
            ``misled``, a worse model that the learner prefers, or ""; ``confirmed``, True if new runs were
            played.
        losses: log-loss per user of every model on the log, by name.
        gap: log-loss per user of the next model beyond the best one's.
        gap_error: standard error of the gap, from paired differences.
        best_share: share of the populations that fit the log in which each model is the best, by name.
        recommended: confirmed row of ``frame`` with the least eps, then about the fewest users; or None.
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
        """Name of the model with the least log-loss on the log."""
        return min(self.losses, key=lambda name: self.losses[name])

    def __str__(self) -> str:
        warned = [f"Warning: {text}" for text in self.warnings]
        title = "\nShare of runs that found it, and users for 95% of the runs (*: of new runs):"
        return "\n".join([*self.sentences, *warned, title, _table(self.frame)])

    def save_figure(self, path: Any) -> None:
        """Draw ``found`` and ``users_estimated`` against eps, a column per learner, into a file."""
        with extra("bench", "a figure"):
            from matplotlib.figure import Figure
        learners, epsilons = self.frame["learner"].unique(), sorted(self.frame["epsilon"].unique())
        figure = Figure(figsize=(2.8 * len(learners) + 2.0, 5.0), layout="constrained")
        axes = figure.subplots(2, len(learners), sharex=True, sharey="row", squeeze=False)
        for (above, below), learner in zip(axes.T, learners, strict=True):
            for i, channel in enumerate(self.frame["channel"].unique()):
                rows = self.frame[(self.frame["learner"] == learner) & (self.frame["channel"] == channel)]
                above.plot("epsilon", "found", f".-C{i}", data=rows, label=channel)
                below.plot("epsilon", "users_estimated", f"o-C{i}", data=rows, lw=1, ms=4)
            above.axhline(SUFFICIENT, color="0.7", lw=0.8)
            above.set(title=learner, xscale="log", ylim=(-0.03, 1.03))
            below.set(xlabel="eps", yscale="log")
            below.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            below.minorticks_off()
        axes[0, 0].set_ylabel("share that found it")
        axes[1, 0].set_ylabel("users for 95%")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
        figure.savefig(path, dpi=120)


def users_from_on(rounds: IntArray, shares: FloatArray) -> float:
    """Users from which on the shares stay at 95%, interpolated on a log scale; infinite if they do not.

    Of lower ends it is a fixed-sequence test: from the most users downwards, each number is tested at the
    same error, up to the first one that fails. No correction for many numbers is needed.

    Example:
        >>> users_from_on(np.array([10, 100, 1000]), np.array([0.99, 0.90, 1.0]))
        317
    """
    short = np.flatnonzero(shares < SUFFICIENT)
    if not short.size:
        return int(rounds[0])
    if short[-1] == len(shares) - 1:
        return math.inf
    ends = slice(short[-1], short[-1] + 2)
    return math.ceil(np.exp(np.interp(SUFFICIENT, shares[ends], np.log(rounds[ends]))))


def write_answer(
    log: Log,
    tolerance: float,
    seed: int,
    found: Mapping[Row, Mapping[str, Any]],
    chosen: Row | None,
    plan: Plan | None,
    notes: Sequence[str],
    batches: tuple[int, float] | None,
) -> Selection:
    """The answer from the log, the columns of all rows, and the row that is confirmed.

    ``notes`` are about channels; ``batches`` are a size of batches and the users estimated with these.
    """
    from pandas import DataFrame

    names = ("channel", "epsilon", "learner")
    frame = DataFrame([dict(zip(names, row, strict=True)) | dict(columns) for row, columns in found.items()])
    losses, users, mean = log.losses, len(log.labels), log.losses.mean(axis=0)
    best, second = np.argsort(mean, kind="stable")[:2]
    paired = losses[:, second] - losses[:, best]
    gap, error = float(paired.mean()), float(paired.std(ddof=1)) / math.sqrt(users)
    rng = np.random.default_rng(seed)
    winners = [int((rng.exponential(size=users) @ losses).argmin()) for _ in range(_POPULATIONS)]
    shares = (np.bincount(winners, minlength=len(mean)) / _POPULATIONS).tolist()
    often = sorted(((s, n) for s, n in zip(shares, log.names, strict=True) if s >= 0.005), reverse=True)
    said = [
        f"The best of {len(mean)} models on this log of {users:,} users is {log.names[best]!r}, with "
        f"{mean[best]:.3f} nats of log-loss per user; the next, {log.names[second]!r}, has {gap:.3f} ± "
        f"{error:.3f} more. Of the populations that fit the log, "
        f"{', '.join(f'{name!r} is the best of {share:.0%}' for share, name in often)}."
    ]
    if gap <= 1.96 * error:
        needed = math.inf if gap <= 0.0 else math.ceil(users * (1.96 * error / gap) ** 2)
        more = f"with about {needed:,} users it" if math.isfinite(needed) else "no log"
        said.append(f"This log cannot tell {log.names[best]!r} from {log.names[second]!r}; {more} would.")
    near = [repr(log.names[j]) for j in np.flatnonzero(mean <= mean[best] + tolerance) if j != best]
    level = f"; on this log {', '.join(near)} would do as well" if near else ""
    said.append(f"Found means: within {tolerance:.2g} nats per user of the best of its population{level}.")
    recommended = None if chosen is None else frame.iloc[list(found).index(chosen)]
    return Selection(
        frame=frame,
        losses=dict(zip(log.names, mean.tolist(), strict=True)),
        gap=gap,
        gap_error=error,
        best_share=dict(zip(log.names, shares, strict=True)),
        recommended=recommended,
        plan=plan,
        sentences=[*said, *log.notes, *notes, *_advice(frame, recommended, batches, users)],
        warnings=[*_drift(log, tolerance), *_misled(frame)],
    )


def _advice(
    frame: DataFrame, row: Series[Any] | None, batches: tuple[int, float] | None, users: int
) -> list[str]:
    """The recommended row in words, rows that are level with it, and the cost of batches."""
    most = frame["users"].max()
    if users < FEWEST_USERS:
        return [f"No recommendation: {users} users say too little of others; give {FEWEST_USERS} or more."]
    if row is None:
        best = frame.loc[frame["found"].idxmax()]
        return [
            f"No recommendation: no choice is confirmed to find it in 95% of surveys of {most:,} users. With "
            f"{best['users']:,} {_name(best)} did in {best['found']:.0%} of {best['runs']} runs. Ask more "
            f"users, or allow a larger eps or tolerance."
        ]
    said = [
        f"Recommended, as the least eps: {_name(row)}, with {row['users_needed']:,.0f} users. Then at least "
        f"95% of surveys find it, with 95% confidence; of {row['runs']} new runs 95% did with "
        f"{row['users_estimated']:,.0f} users, {row['found']:.0%} with {row['users']:,}."
    ]
    others = frame[(frame["epsilon"] <= row["epsilon"]) & (frame.index != row.name)]
    beyond = row["users_needed"] ** 2 / row["users_low"]  # its interval, moved up by its width, ends there
    limit = np.where(others["epsilon"] < row["epsilon"], most, beyond)
    names = [_name(other) for _, other in others[others["users_low"] <= limit].iterrows()]
    if beyond > most:
        names.append("a larger eps")
    if names:
        more = f"; and {len(names) - 3} more" if len(names) > 3 else ""
        said.append(f"It is a tie: with another seed it may be {'; '.join(names[:3])}{more}.")
    if batches:
        many = f"{batches[1]:,.0f}" if math.isfinite(batches[1]) else "too many"
        alone = frame[[not CHANNELS.class_of(name).adaptive for name in frame["channel"]]]
        alone = alone[np.isfinite(alone["users_estimated"])].sort_values(["epsilon", "users_estimated"])
        instead = "nothing else did" if alone.empty else _name(alone.iloc[0])
        said.append(
            f"There users wait for earlier answers; in batches of {batches[0]} 95% of the runs take {many} "
            f"users. Without waiting: {instead}."
        )
    return said


def _drift(log: Log, tolerance: float) -> list[str]:
    """A warning if another model is the best in the second half of the log, by more than chance."""
    middle = len(log.labels) // 2
    early, late = log.losses[:middle], log.losses[middle:]
    first, last = int(early.mean(axis=0).argmin()), int(late.mean(axis=0).argmin())
    before, after = (part[:, first] - part[:, last] for part in (early, late))
    if middle < 2 or after.mean() <= tolerance:
        return []
    error = math.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after))
    if after.mean() - before.mean() <= 3.0 * error:
        return []
    return [
        f"the log drifts: {log.names[first]!r} is the best of its first half, {log.names[last]!r} of its "
        f'second. Take a recent log, or order="given" if the users to come drift like these.'
    ]


def _misled(frame: DataFrame) -> list[str]:
    """A warning for every learner that comes to prefer a worse model."""
    said = []
    for (learner, model), rows in frame[frame["misled"] != ""].groupby(["learner", "misled"], sort=False):
        levels = rows["epsilon"].map("{:g}".format).groupby(rows["channel"], sort=False).agg(", ".join)
        where = "; ".join(f"{channel} at eps = {level}" for channel, level in levels.items())
        said.append(
            f"{learner} comes to prefer {model!r} ({where}): no model is right, and the one whose "
            f"messages fit best need not have the least log-loss."
        )
    return said


def _name(row: Any) -> str:
    return f"{row['channel']} at eps = {row['epsilon']:g}, read by {row['learner']}"


def _table(frame: DataFrame) -> str:
    """Learners and channels against eps, as text."""

    def show(row: Any) -> str:
        users = row["users_estimated"]
        many = f"{users:,.0f}" if np.isfinite(users) else f">{row['users']:,}"
        return f"{row['found']:.0%} {many:>6}{'*' if row['confirmed'] else ''}"

    shown = frame.assign(shown=frame.apply(show, axis=1))
    wide = shown.pivot(index=["learner", "channel"], columns="epsilon", values="shown").fillna("")
    return wide.rename(columns="eps = {:g}".format).reset_index().to_string(index=False)
