"""The few pieces of HTML that the report is made of. What is not HTML already is escaped here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Generic, TypeVar

Row = TypeVar("Row")

_VOID = {"meta"}


class Html(str):
    """Text that is HTML already, and goes into a page as it is."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | None) -> Html:
    """An element. Children that are not :class:`Html`, and attributes, are escaped; None leaves one out.

    Example:
        >>> print(tag("p", "a < b, ", tag("em", "say & mean"), class_="note", data_value="1"))
        <p class="note" data-value="1">a &lt; b, <em>say &amp; mean</em></p>
    """
    settings = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{settings}>")
    return Html(f"<{name}{settings}>{join(children)}</{name}>")


def join(children: Iterable[str]) -> Html:
    """One after the other, escaped where they are not HTML."""
    return Html("".join(child if isinstance(child, Html) else escape(child) for child in children))


@dataclass(frozen=True)
class Value:
    """What a table shows in a cell.

    Attributes:
        text: as it is read; empty where there is nothing to say.
        number: as it is sorted, where it is a number.
        style: of its own, by the name of a CSS class.
        about: what it means, for those who ask.
    """

    text: str = ""
    number: float | None = None
    style: str | None = None
    about: str | None = None


NOTHING = Value()


def count(number: int) -> Value:
    """A whole number."""
    return Value(f"{number:,}", number)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table.

    Attributes:
        title: its header.
        value: what it shows of a row.
        about: what it means, for those who ask.
        numeric: whether its cells stand flush right, as numbers do.
        common: whether it is said once, above the table, where all rows agree.
    """

    title: str
    value: Callable[[Row], Value]
    about: str = ""
    numeric: bool = False
    common: bool = False


def layout(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> tuple[str, dict[Column[Row], list[Value]]]:
    """What all rows of a table share, in words, and the values of the columns that are left to show.

    A column that says nothing in any row is left out.
    """
    shared, shown = [], {}
    for column in columns:
        values = [column.value(row) for row in rows]
        if column.common and len(set(values)) == 1:
            shared += [f"{column.title}: {values[0].text}"] if values[0].text else []
        elif any(value.text for value in values):
            shown[column] = values
    return f"In every row: {'; '.join(shared)}." if shared else "", shown


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], *, label: str, identifier: str) -> Html:
    """A table that a click on a header sorts, below what all its rows share."""
    shared, shown = layout(columns, rows)
    head = join(
        tag(
            "th",
            tag("button", column.title, type="button", title=column.about or None),
            scope="col",
            aria_sort="none",
            class_="number" if column.numeric else None,
        )
        for column in shown
    )
    body = join(
        tag("tr", *(_cell(column, values[i]) for column, values in shown.items())) for i in range(len(rows))
    )
    return join(
        [
            tag("p", shared, class_="shared") if shared else Html(),
            tag(
                "div",
                tag(
                    "table",
                    tag("thead", tag("tr", head)),
                    tag("tbody", body),
                    id=identifier,
                    class_="sortable",
                ),
                class_="scroll",
                role="region",
                tabindex="0",
                aria_label=label,
            ),
        ]
    )


def _cell(column: Column[Row], value: Value) -> Html:
    style = " ".join(name for name in ("number" if column.numeric else "", value.style) if name)
    number = None if value.number is None else repr(float(value.number))
    return tag("td", value.text, class_=style or None, data_value=number, title=value.about)


def picture(svg: str, *, label: str, prefix: str) -> Html:
    """An SVG file's drawing, inside the page. Its ids get a prefix: those of several drawings must differ."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", drawing)
    return Html(drawing.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1))


def whole_page(title: str, *body: str) -> Html:
    """A whole page that needs nothing but itself."""
    package = files("ldp_gym.bench")
    style, script = (Html(package.joinpath(name).read_text("utf-8")) for name in ("report.css", "report.js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", style),
    )
    return Html(
        f"<!DOCTYPE html>\n{tag('html', head, tag('body', *body, tag('script', script)), lang='en')}\n"
    )


def listing(items: Iterable[str]) -> Html:
    """An unordered list."""
    return tag("ul", *(tag("li", item) for item in items))
