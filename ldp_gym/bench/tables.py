"""Tables of results as data frames of text, for a terminal (rich) and for a page (HTML)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ldp_gym.bench.results import Results
from ldp_gym.core.errors import printable
from ldp_gym.statistics import Estimate

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console


Row = Mapping[str, Any]
"""Row of :attr:`Results.rows`."""


class Best(str):
    """Text that is set in bold: the least risk of its game, or one that is level with it."""

    __slots__ = ()


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
    return f"{gap}, level" if gap.contains(0.0) and gap.known else str(gap)


def _number(key: str, form: str) -> Callable[[Row], str]:
    return lambda row: "" if math.isnan(row[key]) else format(row[key], form)


LEADERBOARD: dict[str, tuple[Callable[[Row], str], str]] = {
    "Game": (lambda row: row["game"], "class of hypotheses, and every rule that is not the default"),
    "T": (_number("T", ",.0f"), "number of rounds"),
    "Privacy": (_privacy, "promise of the channel"),
    "Channel": (lambda row: row["channel"], "how users privatize"),
    "Learner": (lambda row: row["learner"] + (f" ({o})" if (o := row["options"]) else ""), "who predicts"),
    "Risk": (_risk, "mean total KL in nats, 95% interval; bold: Bayes and what is level, else the least"),
    "Worst truth": (_number("worst_truth", ".0f"), "the truth of the largest risk, which the row shows"),
    "TV per round": (_number("tv", ".4f"), "mean total variation from the truth"),
    "Regret": (
        lambda row: "" if row["member"] or math.isnan(row["regret"].value) else row["regret"].short,
        "risk less that of the best hypothesis in hindsight, where the truth is outside the class",
    ),
    "Score": (
        _number("score", "z.3f"),
        "(uniform - risk) / (uniform - Bayes), on the same episodes; blank where Bayes barely learns",
    ),
    "Over Bayes": (
        _over_bayes,
        "paired difference of the risks, 95% intervals that hold together in a game; level: it holds 0",
    ),
    "Over floor": (
        _number("over_floor", ".1f"),
        "risk over class_floor, below which no private channel and learner is; an estimate with contexts",
    ),
    "Bound": (
        lambda row: "" if math.isnan(row["bound"]) else Estimate(row["bound"]).short,
        "promise of a theorem; log K for Bayes without privacy",
    ),
    "Episodes": (_number("episodes", ",.0f"), "number of episodes"),
    "Seconds": (_number("seconds", ".2f"), "computing time"),
}
"""Text and meaning of each column of a leaderboard."""

_SHARED = ("Game", "T", "Privacy", "Episodes")
"""Columns that are left out of a table, and said once above it, where all rows agree."""


def leaderboard(results: Results) -> tuple[str, DataFrame]:
    """Columns on which all rows agree, in words, and a table of the other columns that have some text."""
    from pandas import DataFrame

    rows = results.rows
    texts = {title: [text(row) for row in rows] for title, (text, _) in LEADERBOARD.items()}
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
    columns = {learner: [cells.get((channel, learner), "-") for channel in channels] for learner in learners}
    return DataFrame({"Channel": channels, **columns}, dtype=object)


def to_html(table: DataFrame, identifier: str) -> str:
    """A table as HTML that a click on a header sorts; every text is escaped."""
    from markupsafe import Markup, escape
    from pandas import option_context

    def cell(value: object) -> str:
        return Markup("<b>{}</b>").format(value) if isinstance(value, Best) else escape(value)

    shown, options = table.map(cell).rename(columns=escape), {"classes": "sortable", "table_id": identifier}
    with option_context("display.max_colwidth", None):
        return Markup(shown.to_html(escape=False, index=False, border=0, justify="left", **options))


def print_table(console: Console, title: str, table: DataFrame) -> None:
    """Print a table; where it is wider than the terminal, some columns at a time next to the first one."""
    from rich.table import Table
    from rich.text import Text

    first, *others = table.columns
    width = {name: max(len(name), *map(len, table[name])) + 1 for name in table}
    blocks = [[first]]
    for name in others:
        if len(blocks[-1]) > 1 and sum(width[known] for known in [*blocks[-1], name]) > console.width + 1:
            blocks.append([first])
        blocks[-1].append(name)
    console.print(Text(title), highlight=False)
    for block in blocks:
        shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        for name in block:
            numeric = all(text[:1] in "0123456789-[" for text in table[name])
            shown.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
        for row in table[block].itertuples(index=False):
            shown.add_row(*(Text(printable(text), "bold" if isinstance(text, Best) else "") for text in row))
        console.print(shown, "", sep="\n", highlight=False)
