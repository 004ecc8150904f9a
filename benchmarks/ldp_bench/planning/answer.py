"""The answer of ``plan``: a data frame, the recommended channel, and both in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_bench.planning.models import Prediction
from ldp_bench.planning.record import Plan
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core.arrays import BoolArray, FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.statistics import CONFIDENCE, Estimate, largest_share, least_share

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from ldp_bench.planning.search import Settings

_WIDTH = 84
"""Columns of the printed answer."""

SURE = 0.95
"""Share of surveys that end within the stated number of users."""


class Row(NamedTuple):
    """Surveys of one channel under one truth; the columns of :attr:`Planned.frame`."""

    epsilon: float
    channel: str
    truth: str
    users_median: float
    users_95: float
    named_wrongly: float
    users_median_low: float
    users_median_high: float
    users_95_low: float
    users_95_high: float
    named_wrongly_low: float
    named_wrongly_high: float
    none_left: float
    runs: int
    confirmed: bool


def quantile(values: FloatArray, share: float) -> Estimate:
    """Quantile of values ``(n,)``, some perhaps infinite, with a 95% interval that needs no assumption.

    The value is the smallest that at least a ``share`` of the values do not exceed. The ends of the interval
    are order statistics: of n values, a binomial number lie below the quantile.

    Example:
        >>> quantile(np.arange(1.0, 101.0), 0.5)
        Estimate(value=50.0, low=40.0, high=61.0, unseen=0.0)
        >>> quantile(np.array([3.0, np.inf]), 0.95)
        Estimate(value=inf, low=3.0, high=inf, unseen=0.0)
    """
    from scipy.stats import binom

    ordered = np.append(np.sort(values), np.inf)
    count = len(values)
    tail = (1.0 - CONFIDENCE) / 2.0
    # Ranks count from 1. A product such as 0.95 * 100 may be a rounding error above a whole number.
    rank = math.ceil(share * count - 1e-9)
    below = max(int(binom.ppf(tail, count, share)), 1)
    above = int(binom.ppf(1.0 - tail, count, share)) + 1
    return Estimate(float(ordered[rank - 1]), float(ordered[below - 1]), float(ordered[above - 1]))


def share(hits: int, count: int) -> Estimate:
    """Share of hits, with its 95% interval (Clopper and Pearson).

    Example:
        >>> print(share(0, 100))
        0.000 [0.000, 0.036]
    """
    tail = (1.0 - CONFIDENCE) / 2.0
    low = float(least_share(hits, count, tail))
    high = float(largest_share(hits, count, tail))
    return Estimate(hits / count, low, high)


def needed_information(alpha: float) -> float:
    """KL divergence, in nats, that all messages together need so that 95% of surveys can end.

    Under truth k, with probability at least ``0.95 - alpha`` a survey has dropped a rival j and kept k; under
    truth j that happens with probability at most alpha. By the data-processing inequality the laws of all
    messages under k and j are at least ``kl(0.95 - alpha, alpha)`` apart, the divergence of two coins.

    Example:
        >>> round(needed_information(0.05), 3)
        2.376
    """
    kept = SURE - alpha
    if kept <= alpha:
        return 0.0
    return kept * math.log(kept / alpha) + (1.0 - kept) * math.log((1.0 - kept) / (1.0 - alpha))


def least_users(
    divergence: FloatArray, alike: BoolArray, epsilon: float, alpha: float
) -> FloatArray:
    """Lower bound ``(K,)`` on the users in which 95% of surveys under each truth end, on any channel.

    A private message keeps at most a share ``tanh(eps/2)^2`` of a KL divergence (Asoodeh and Zhang 2022), so
    ``n tanh(eps/2)^2 KL(f_k, f_j)`` must reach :func:`needed_information` for every rival j of truth k.

    Args:
        divergence: ``KL(f_k, f_j)`` on average over the contexts, ``(K, K)``.
        alike: pairs of models that need not be told apart, ``(K, K)``.
        epsilon: privacy level.
        alpha: error of the confidence sets.

    Example:
        >>> differ = ~np.eye(2, dtype=bool)
        >>> least_users(differ * 1e-4, ~differ, 1.0, 0.05).round().tolist()
        [111270.0, 111270.0]
    """
    nearest = np.where(alike, np.inf, divergence).min(axis=1)
    return needed_information(alpha) / (math.tanh(epsilon / 2.0) ** 2 * nearest)


@dataclass(frozen=True)
class Planned:
    """Answer of :func:`ldp_bench.plan`; ``print`` shows it in words.

    Attributes:
        frame: a data frame with a row per ``epsilon``, ``channel`` and ``truth``: ``users_median`` and
            ``users_95``, the users within which half and 95% of the surveys ended (inf if more than
            ``most_users``; NaN for a channel that was stopped because another one needs less than half);
            ``named_wrongly``, the share that dropped the truth and named another model, at most alpha by
            theorem; the ends of 95% intervals of these three (``..._low``, ``..._high``); ``none_left``, the
            share that ruled out all models; the number of ``runs``; ``confirmed``, True for new runs of the
            recommended channel.
        recommended: a Series with ``channel``, ``epsilon``, ``users`` (the largest ``users_95`` over the
            truths), ``worst_truth``, and ``users_average``, the mean of ``users_median`` over the truths;
            at the smallest eps that has an answer. None if there is none within ``most_users``.
        recommendations: a data frame of such rows, one per eps that has an answer.
        plan: the recommended survey, or None.
        plans: the recommended survey at each eps that has one.
        stress: a data frame of surveys whose truth is not a model. Nothing is promised about these.
        notes: sentences about the models and channels.
        sentences: the answer, without tables.
    """

    frame: DataFrame
    recommended: Series[Any] | None
    recommendations: DataFrame
    plan: Plan | None
    plans: Mapping[float, Plan]
    stress: DataFrame
    notes: Sequence[str]
    sentences: Sequence[str]

    @classmethod
    def of(
        cls,
        prediction: Prediction,
        settings: Settings,
        rows: Sequence[Row],
        best: Mapping[float, Sequence[Row]],
        plans: Mapping[float, Plan],
        stress: Sequence[Mapping[str, Any]],
        notes: Sequence[str],
        alike: BoolArray,
    ) -> Planned:
        """Put the answer together.

        Args:
            prediction: the models' predictions.
            settings: arguments of the plan.
            rows: rows of :attr:`frame`.
            best: rows of the recommended channel, one per truth, by eps.
            plans: recommended surveys by eps.
            stress: rows of :attr:`stress`.
            notes: sentences about the models and channels.
            alike: pairs of models that need not be told apart, ``(K, K)``.
        """
        with extra("bench", "ldp_bench.plan"):
            from pandas import DataFrame
        columns = ["channel", "epsilon", "users", "worst_truth", "users_average"]
        recommendations = DataFrame(
            [_recommendation(best[level]) for level in sorted(best)], columns=columns
        )
        recommended = None
        if not recommendations.empty:
            recommended = recommendations.iloc[0]  # at the smallest eps
        plan = None
        if plans:
            plan = plans[min(plans)]
        return cls(
            frame=DataFrame(list(rows), columns=list(Row._fields)),
            recommended=recommended,
            recommendations=recommendations,
            plan=plan,
            plans=plans,
            stress=DataFrame(list(stress)),
            notes=notes,
            sentences=_sentences(prediction, settings, rows, best, alike),
        )

    def __str__(self) -> str:
        """Write the answer: its sentences, then its tables, for a terminal."""
        paragraphs = [*self.notes, *self.sentences]
        lines = [fill(text, _WIDTH, break_on_hyphens=False) for text in paragraphs]
        if not self.frame.empty:
            lines.append("\nUsers for 95% of the surveys under the slowest truth (*: recommended):")
            lines.append(self._channel_table())
        if self.recommended is not None:
            lines.append(
                f"\nUsers by truth, {self.recommended['channel']} at eps = "
                f"{self.recommended['epsilon']:g}, with 95% intervals:"
            )
            lines.append(self._truth_table())
            lines.append(
                "\nStress, which promises nothing: surveys whose truth is none of the models."
            )
            lines.append(self._stress_table())
        return "\n".join(lines)

    def _channel_table(self) -> str:
        """Table of users for the slowest truth: a row per channel, a column per eps, * if recommended."""
        recommended = {(row.channel, row.epsilon) for row in self.recommendations.itertuples()}
        cells: dict[str, dict[str, str]] = {}
        for (channel, epsilon), rows in self.frame.groupby(["channel", "epsilon"], sort=False):
            mark = " "
            if (channel, epsilon) in recommended:
                mark = "*"
            column = cells.setdefault(f"eps = {epsilon:g}", {})
            column[channel] = _slowest(rows) + mark
        from pandas import DataFrame

        table = DataFrame(cells).fillna("").rename_axis("channel").reset_index()
        return _text(table)

    def _truth_table(self) -> str:
        """Table of the recommended channel at the smallest eps, with a row per truth."""
        assert self.recommended is not None
        chosen = self.frame[
            (self.frame["channel"] == self.recommended["channel"])
            & (self.frame["epsilon"] == self.recommended["epsilon"])
        ]
        from pandas import DataFrame

        rows = [
            {
                "truth": row.truth,
                "half end by": _interval(row, "users_median"),
                "95% end by": _interval(row, "users_95"),
                "named wrongly": f"{row.named_wrongly:.1%}",
                "none left": f"{row.none_left:.1%}",
            }
            for row in chosen.itertuples()
        ]
        return _text(DataFrame(rows))

    def _stress_table(self) -> str:
        """Table of the surveys whose truth is not a model, with their ends in percent."""
        shares = ["named_it", "named_another", "none_left", "undecided"]
        table = self.stress[["stress", "truth", *shares]].copy()
        for name in shares:
            table[name] = table[name].map("{:.0%}".format)
        return _text(table.rename(columns=lambda name: name.replace("_", " ")))


def _recommendation(rows: Sequence[Row]) -> dict[str, Any]:
    """Row of :attr:`Planned.recommendations` from the rows of a channel at one eps, one per truth."""
    slowest = max(rows, key=lambda row: row.users_95)
    return {
        "channel": slowest.channel,
        "epsilon": slowest.epsilon,
        "users": int(slowest.users_95),
        "worst_truth": slowest.truth,
        "users_average": float(np.mean([row.users_median for row in rows])),
    }


def _sentences(
    prediction: Prediction,
    settings: Settings,
    rows: Sequence[Row],
    best: Mapping[float, Sequence[Row]],
    alike: BoolArray,
) -> list[str]:
    """Sentences of the answer: one or more for each eps, and what is guaranteed.

    Args:
        prediction: the models' predictions.
        settings: arguments of the plan.
        rows: all rows of the answer.
        best: rows of the recommended channel, one per truth, by eps.
        alike: pairs of models that need not be told apart, ``(K, K)``.
    """
    if alike.all():
        return [
            f"All {len(prediction.names)} models predict alike, up to the tolerance: there is nothing to "
            f"tell apart, and no survey is needed."
        ]
    sentences = []
    for level in sorted({row.epsilon for row in rows}):
        if level not in best:
            sentences.append(
                f"At eps = {level:g} no channel tells all models apart within {settings.most_users:,} "
                f"users. Allow more users, a larger eps or a larger tolerance, or leave a model out."
            )
        else:
            sentences.append(_recommend(level, best[level], settings.batch))
    if best:
        sentences.append(
            f"A model that is right is dropped with probability at most {settings.alpha:.3g}, however often "
            f"one looks. Not covered: users whose labels follow none of the models."
        )
    return sentences


def _recommend(epsilon: float, rows: Sequence[Row], batch: int) -> str:
    """Sentences that recommend a channel at one eps, from its rows, one per truth."""
    chosen = _recommendation(rows)
    slowest = max(rows, key=lambda row: row.users_95)
    interval = _range(slowest.users_95_low, slowest.users_95_high)
    text = (
        f"Recommended at eps = {epsilon:g}: plan for {chosen['users']:,} users ({interval}) on the "
        f"channel {chosen['channel']!r}. By then 95% of the surveys end, whichever model is right; "
        f"{chosen['worst_truth']!r} takes longest. On average over the models, half of the surveys end "
        f"by {chosen['users_average']:,.0f} users."
    )
    if CHANNELS.class_of(chosen["channel"]).adaptive:
        text += (
            f" Here users answer in turn, {batch} at a time: every channel without waiting "
            f"needs over 25% more."
        )
    return text


def _slowest(rows: DataFrame) -> str:
    """Largest number of users over the truths: of rows of one channel and eps, one per truth.

    "too many" if a truth needs more than are allowed; a lower bound if play was stopped before it was known.
    """
    users = rows["users_95"]
    if np.isinf(users).any():
        return "too many"
    if users.isna().any():
        lower_bounds = rows.loc[users.isna(), "users_95_low"]
        return f"> {lower_bounds.max():,.0f}"
    return f"{users.max():,.0f}"


def _interval(row: Any, name: str) -> str:
    """Number in a column of a row with its interval, such as "120 [100, 150]"; "?" for an open end."""
    value = getattr(row, name)
    low = getattr(row, f"{name}_low")
    high = getattr(row, f"{name}_high")
    end = "?"
    if math.isfinite(high):
        end = f"{high:,.0f}"
    return f"{value:,.0f} [{low:,.0f}, {end}]"


def _range(low: float, high: float) -> str:
    """Write an interval of users in words, perhaps without an upper end."""
    if math.isinf(high):
        return f"95% interval from {low:,.0f}"
    return f"95% interval {low:,.0f} to {high:,.0f}"


def _text(table: DataFrame) -> str:
    """Write a table as text, without its index and without spaces at the ends of lines."""
    lines = table.to_string(index=False).splitlines()
    return "\n".join(line.rstrip() for line in lines)
