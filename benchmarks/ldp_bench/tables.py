"""Tables of results as data frames of text, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
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


def _learner(row: Row) -> str:
    """Learner, with its options in parentheses."""
    if row["options"]:
        return f"{row['learner']} ({row['options']})"
    return str(row["learner"])


def _risk(row: Row) -> str:
    """Risk with its interval, in bold if it is the best of its game."""
    text = str(row["risk"])
    if row["best"]:
        return Best(text)
    return text


def _short_risk(row: Row) -> str:
    """Risk with half the length of its interval, in bold if it is the best of its game."""
    text = row["risk"].short
    if row["best"]:
        return Best(text)
    return str(text)


def _privacy(row: Row) -> str:
    """Privacy promise of the channel: eps, and delta if it is not 0."""
    if math.isinf(row["epsilon"]):
        return "none"
    promise = f"ε = {row['epsilon']:g}"
    if row["delta"]:
        promise += f", δ = {row['delta']:g}"
    return promise


def _over_bayes(row: Row) -> str:
    """Difference to Bayes, "level" if it may be 0; empty for Bayes and where nothing is compared."""
    gap: Estimate = row["over_bayes"]
    if row["learner"] == "bayes" or math.isnan(gap.value):
        return ""
    if row["best"]:
        return f"{gap}, level"
    if gap.contains(0.0) and gap.known:
        return f"{gap}, too few to tell"
    return str(gap)


def _regret(row: Row) -> str:
    """Regret, for a truth outside the class; empty for a member, whose regret is the risk."""
    if row["member"] or math.isnan(row["regret"].value):
        return ""
    return str(row["regret"].short)


def _number(key: str, form: str) -> Callable[[Row], str]:
    """Make a function that formats the number of a row in the column ``key``; NaN is left empty."""

    def format_number(row: Row) -> str:
        """Format the number of a row; empty if it is NaN."""
        if math.isnan(row[key]):
            return ""
        return format(row[key], form)

    return format_number


LEADERBOARD: dict[str, tuple[Callable[[Row], str], str]] = {
    "Game": (
        lambda row: row["game"],
        "class of hypotheses, and every rule that is not the default",
    ),
    "T": (_number("T", ",.0f"), "number of rounds"),
    "Privacy": (_privacy, "promise of the channel"),
    "Channel": (lambda row: row["channel"], "how users privatize"),
    "Learner": (_learner, "who predicts"),
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
"""Columns that stand in a sentence above the table, if all rows agree."""


def leaderboard(results: Results) -> tuple[str, DataFrame]:
    """Sentence about the columns on which all rows agree, and a table of the other columns.

    Columns without any text are left out.
    """
    from pandas import DataFrame

    texts = {}
    for title, (text_of, _) in LEADERBOARD.items():
        texts[title] = [text_of(row) for row in results.rows]
    table = DataFrame(texts, dtype=object)  # text of the class Best stays in that class

    shared = [title for title in _SHARED if table[title].nunique() == 1 and table[title].iloc[0]]
    empty = [title for title in table if (table[title] == "").all()]
    others = table.drop(columns=[*shared, *empty])
    if not shared:
        return "", others
    facts = "; ".join(f"{title}: {table[title].iloc[0]}" for title in shared)
    return f"In every row: {facts}.", others


def grid(results: Results) -> DataFrame | None:
    """Table of risks, with a row per channel and a column per learner.

    None if a learner has several risks on a channel, or if there is only one channel or learner.
    """
    from pandas import DataFrame

    risks = {(row["channel"], row["learner"]): _short_risk(row) for row in results.rows}
    channels = results.channels
    learners = results.learners
    has_several_risks = len(risks) < len(results.rows)
    if has_several_risks or min(len(channels), len(learners)) < 2:
        return None
    columns = {"Channel": channels}
    for learner in learners:
        columns[learner] = [risks.get((channel, learner), "-") for channel in channels]
    return DataFrame(columns, dtype=object)


def to_text(table: DataFrame, width: int) -> str:
    """Format a table for a terminal of ``width`` characters; a star marks text that is bold on a page.

    A table that is too wide is cut into blocks of columns, one below the other, each with the first column.
    """
    first, *others = [_to_lines(name, table[name]) for name in table]
    blocks = [[first]]
    for column in others:
        widths = [len(lines[0]) for lines in [*blocks[-1], column]]
        spaces_between = len(widths) - 1
        if sum(widths) + spaces_between > width:
            blocks.append([first])
        blocks[-1].append(column)

    texts = []
    for block in blocks:
        lines = [" ".join(row) for row in zip(*block, strict=True)]
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def _to_lines(title: str, texts: Iterable[str]) -> list[str]:
    """Lines of a column, its title first, all of one length."""
    lines = [title]
    for text in texts:
        line = printable(text)
        if isinstance(text, Best):
            line += "*"
        lines.append(line)
    width = max(map(len, lines))
    return [line.rjust(width) for line in lines]
