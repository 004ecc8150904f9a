"""Tables of results as data frames of text, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ldp_bench.results import Results
from ldp_gym.core.errors import printable
from ldp_gym.statistics import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame


Row = Mapping[str, Any]
"""Row of :attr:`Results.rows`."""


class Best(str):
    """Text that is set in bold: the least risk of its game, or one that is level with it."""

    bold = True


def _risk(row: Row, form: Callable[[Estimate], str] = str) -> str:
    text = form(row["risk"])
    return Best(text) if row["best"] else text


def _privacy(row: Row) -> str:
    delta = f", δ = {row['delta']:g}" if row["delta"] else ""
    return "none" if math.isinf(row["epsilon"]) else f"ε = {row['epsilon']:g}{delta}"


def _over_bayes(row: Row) -> str:
    gap: Estimate = row["over_bayes"]
    if row["learner"] == "bayes" or math.isnan(gap.value):
        return ""
    if row["best"]:
        return f"{gap}, level"
    if gap.contains(0.0) and gap.known:
        return f"{gap}, too few to tell"
    return str(gap)


def _regret(row: Row) -> str:
    return "" if row["member"] or math.isnan(row["regret"].value) else row["regret"].short


def _number(key: str, form: str) -> Callable[[Row], str]:
    return lambda row: "" if math.isnan(row[key]) else format(row[key], form)


LEADERBOARD: dict[str, tuple[Callable[[Row], str], str]] = {
    "Game": (
        lambda row: row["game"],
        "class of hypotheses, and every rule that is not the default",
    ),
    "T": (_number("T", ",.0f"), "number of rounds"),
    "Privacy": (_privacy, "promise of the channel"),
    "Channel": (lambda row: row["channel"], "how users privatize"),
    "Learner": (
        lambda row: row["learner"] + (f" ({o})" if (o := row["options"]) else ""),
        "who predicts",
    ),
    "Risk": (
        _risk,
        "mean total KL in nats, 95% interval; bold: Bayes and what is level, else the least",
    ),
    "Worst truth": (
        _number("worst_truth", ".0f"),
        "the truth of the largest risk, which the row shows",
    ),
    "TV per round": (_number("tv", ".4f"), "mean total variation from the truth"),
    "Regret": (
        _regret,
        "risk less that of the best hypothesis in hindsight, for a truth outside the class",
    ),
    "Score": (
        _number("score", "z.3f"),
        "0 is uniform, 1 is Bayes; blank where Bayes barely learns",
    ),
    "Over Bayes": (
        _over_bayes,
        "paired difference, intervals that hold together; level: it may be 0, and is at most a quarter of "
        "Bayes' risk; too few to tell: it may be 0, or more",
    ),
    "Over floor": (
        _number("over_floor", ".1f"),
        "risk over class_floor, which no private system is below",
    ),
    "Bound": (_number("bound", ",.4g"), "promise of a theorem; log K for Bayes without privacy"),
    "Episodes": (_number("episodes", ",.0f"), "number of episodes"),
    "Seconds": (_number("seconds", ".2f"), "computing time"),
}
"""Text and meaning of each column of a leaderboard."""

_SHARED = ("Game", "T", "Privacy", "Episodes")
"""Columns that are left out of a table, and said once above it, where all rows agree."""


def leaderboard(results: Results) -> tuple[str, DataFrame]:
    """Columns on which all rows agree, in words, and a table of the other columns that have some text."""
    from pandas import DataFrame

    texts = {title: [text(row) for row in results.rows] for title, (text, _) in LEADERBOARD.items()}
    table = DataFrame(texts, dtype=object)  # which keeps what is in bold
    same = [title for title in _SHARED if table[title].nunique() == 1 and table[title].iloc[0]]
    shared = "; ".join(f"{title}: {table[title].iloc[0]}" for title in same)
    empty = [title for title in table if (table[title] == "").all()]
    return f"In every row: {shared}." if same else "", table.drop(columns=[*same, *empty])


def grid(results: Results) -> DataFrame | None:
    """Risks of learners, one per column, on channels, one per row; None where a place has several risks."""
    from pandas import DataFrame

    rows = results.rows
    cells = {(row["channel"], row["learner"]): _risk(row, lambda risk: risk.short) for row in rows}
    channels, learners = results.channels, results.learners
    if len(cells) < len(rows) or min(len(channels), len(learners)) < 2:
        return None
    columns = {
        learner: [cells.get((channel, learner), "-") for channel in channels]
        for learner in learners
    }
    return DataFrame({"Channel": channels, **columns}, dtype=object)


def to_text(table: DataFrame, width: int) -> str:
    """A table as text; a star marks what is bold on a page, and wide ones are cut into blocks of columns."""
    columns = [
        [name, *(printable(t) + "*" * isinstance(t, Best) for t in table[name])] for name in table
    ]
    first, *others = [[text.rjust(max(map(len, column))) for text in column] for column in columns]
    blocks = [[first]]
    for column in others:
        if sum(len(known[0]) + 1 for known in (*blocks[-1], column)) > width + 1:
            blocks.append([first])
        blocks[-1].append(column)
    lines = [[" ".join(row) for row in zip(*block, strict=True)] for block in blocks]
    return "\n\n".join("\n".join(some) for some in lines)
