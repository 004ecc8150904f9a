"""Style of the figures, and the three kinds that suites share: lines, rows and rankings of channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ldp_bench.experiment import Experiment
from ldp_bench.results import Results
from ldp_gym import statistics
from ldp_gym.core.files import replacing
from ldp_gym.statistics import Estimate

if TYPE_CHECKING:  # imported where it draws: playing does not need it
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "figure.labelsize": 9,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "text.parse_math": False,  # a "$" in a name is a dollar
    "svg.fonttype": "path",  # the same letters on every machine
    "svg.hashsalt": "ldp_gym",  # and the same file for the same figure
}

_COLOURS = {
    "uniform": "#8c8c8c", "wma": "#c44e52", "exp3": "#dd8452", "centred-exp3": "#937860",
    "centred-exp3 on laplace-vector": "#da8bc3", "mle": "#8172b3", "bayes": "#1a1a1a",
    "amortized": "#c2289b", "randomized-response": "#c44e52", "subset-selection": "#dd8452",
    "laplace-single": "#4c72b0", "half-space": "#1f5fa8", "challenge": "#c2571a",
    "vote": "#8172b3", "split": "#55a868", "wheel": "#64b5cd",
}  # fmt: skip
_OTHERS = (
    "#17a2b8",
    "#b5a000",
    "#d6278a",
    "#1b2a49",
    "#6b8e23",
    "#7a3e00",
    "#ff9da7",
    "#00695c",
    "#5d6d7e",
)
"""Colours of learners and channels that have no fixed colour, by position."""

Panels = dict[str, dict[str, dict[str, Estimate]]]
"""Estimates by the panel's title, by series and by row."""


@dataclass(frozen=True)
class Line:
    """A line of a figure: estimates along x ("-", or a marker alone), or a curve (":" or "--")."""

    label: str
    x: Sequence[float]
    y: Sequence[Estimate]
    colour: str
    style: str = "-"


def in_style(draw: Callable[[Results], Figure], results: Results) -> Figure:
    """Call ``draw`` on the results in this style."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        return draw(results)


def save_figure(drawing: Figure, path: Path) -> str:
    """Save a figure as ``path.svg`` and ``path.png``; return the SVG."""
    from matplotlib import rc_context

    svg = path.with_suffix(".svg")
    # The same figure is the same file: no date, and no version of what drew it.
    nothing: Any = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context(STYLE):
        with replacing(svg) as part:
            drawing.savefig(part, metadata=nothing)
        drawing.set_layout_engine("none")  # the layout is made once
        with replacing(path.with_suffix(".png")) as part:
            drawing.savefig(part, dpi=200)
    return svg.read_text("utf-8")


def new_figure(
    columns: int = 1, *, width: float, height: float, **options: Any
) -> tuple[Figure, Any]:
    """Make a figure and its axes, side by side, an array of shape ``(1, columns)``."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width * columns, height), layout="constrained")
    return drawing, drawing.subplots(1, columns, squeeze=False, **options)


def colour(name: str, position: int = 0) -> str:
    """Colour of a learner or channel; anything else gets one by its position."""
    return _COLOURS.get(name, _OTHERS[position % len(_OTHERS)])


def pair_colour(learner: str, channel: str, position: int) -> str:
    """Colour of a learner on a channel: the learner's on the paper's channels, else the channel's."""
    if channel in ("laplace-single", "laplace-vector"):
        return _COLOURS.get(f"{learner} on {channel}", colour(learner, position))
    return colour(channel if learner == "bayes" else "", position)


# -- Lines against an axis ----------------------------------------------------------------------------------


def draw_lines(lines: Sequence[Line], xlabel: str, ylabel: str = "total KL (nats)") -> Figure:
    """Draw lines with 95% intervals on logarithmic axes, and a legend at the right."""
    drawing, ((panel,),) = new_figure(width=7.6, height=4.0)
    for i, line in enumerate(lines):
        draw_line(panel, line, i - (len(lines) - 1) / 2.0)
    panel.set(xlabel=xlabel, ylabel=ylabel)
    set_log_scale(panel, "x", sorted({at for line in lines for at in line.x}))
    set_log_scale(panel, "y")
    add_legend(drawing)
    return drawing


def draw_line(panel: Axes, line: Line, place: float) -> None:
    """Draw a line; it is moved a little, so that lines do not hide each other."""
    points = line.style not in (":", "--")
    x = np.asarray(line.x, dtype=np.float64)
    if points and len(x) > 1:
        x = x * (x.max() / x.min()) ** (0.008 * place)
    values = [estimate.value for estimate in line.y]
    panel.plot(
        x, values, "o-" if line.style == "-" else line.style, label=line.label, color=line.colour
    )
    bounded = [(at, e.low, e.high) for at, e in zip(x, line.y, strict=True) if points and e.known]
    if bounded:
        panel.vlines(*np.transpose(bounded), color=line.colour, linewidth=1)


def pair_lines(results: Results, position: Callable[[Experiment], float]) -> list[Line]:
    """Make a line of risks for each learner and channel, with its slope, and a dotted one of its bound."""
    lines = []
    for i, (learner, channel) in enumerate(results.pairs):
        line, hue = results.line(learner, channel, position), pair_colour(learner, channel, i)
        x, y = [position(r.experiment) for r in line], [r.totals for r in line]
        label = f"{learner} on {channel}"
        if len(line) > 1:
            slope = statistics.slope(x, y)
            label += f"\nslope {slope.value:z.2f}" + (f" ± {slope.half:.2f}" if slope.known else "")
        lines.append(Line(label, x, [*map(statistics.mean, y)], hue))
        bounds = [r.bound for r in line]
        if len(line) > 1 and np.isfinite(bounds).all():
            lines.append(Line("bound", x, [*map(Estimate, bounds)], hue, ":"))
    return lines


# -- One row per channel, learner or game -------------------------------------------------------------------


def draw_rows(
    panels: Panels,
    *,
    xlabel: str,
    reference: float | None = None,
    scale: Literal["log", "symlog", "linear"] = "log",
) -> Figure:
    """Draw a row per name with a dot and 95% interval for each series; the first one decides the order.

    ``reference`` is a dotted vertical line. Negative quantities need the scale "symlog" or "linear".
    """
    names = list(
        dict.fromkeys(row for panel in panels.values() for rows in panel.values() for row in rows)
    )
    series = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    height = 1.1 + len(names) * max(0.27, 0.05 * len(series))
    width = 5.6 if len(panels) == 1 else max(2.5, 7.6 / len(panels))
    drawing, axes = new_figure(len(panels), width=width, height=height, sharey=True)
    for panel, (title, by_series) in zip(axes.flat, panels.items(), strict=True):
        for label, estimates in by_series.items():
            i = series.index(label)
            hue = colour(label.partition(" (")[0] or "bayes", i)
            shift = 0.7 * ((i + 0.5) / len(series) - 0.5)
            places = np.array([len(names) - 1 - names.index(row) - shift for row in estimates])
            panel.plot([e.value for e in estimates.values()], places, "o", color=hue, label=label)
            low, high = (
                np.array([getattr(e, end) for e in estimates.values()]) for end in ("low", "high")
            )
            known = np.array([e.known for e in estimates.values()])
            if known.any():
                panel.hlines(places[known], low[known], high[known], color=hue, linewidth=1)
        if reference is not None:
            panel.axvline(reference, color="black", linestyle=":")
        panel.set_title(title)
        if scale == "log":
            set_log_scale(panel, "x")
        elif scale == "symlog":
            panel.set_xscale("symlog", linthresh=100.0)
    axes[0, 0].set_yticks(range(len(names)), names[::-1])
    axes[0, 0].set_ylim(-0.7, len(names) - 0.3)
    drawing.supxlabel(xlabel)
    if len(series) > 1:
        add_legend(drawing, above=len(panels) == 1)
    return drawing


# -- Legends and axes ---------------------------------------------------------------------------------------


def add_legend(drawing: Figure, above: bool = False) -> None:
    """Add one legend for all panels, at the right of them or above: it never covers the data."""
    named = {
        name: handle
        for panel in drawing.axes
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    if above:
        drawing.legend(named.values(), named.keys(), loc="outside upper center", ncols=4)
        return
    lines = sum(1 + name.count("\n") for name in named)
    drawing.set_figheight(max(drawing.get_figheight(), 0.3 + 0.135 * lines + 0.06 * len(named)))
    drawing.legend(named.values(), named.keys(), loc="outside right center")


def set_log_scale(
    axes: Axes, which: Literal["x", "y"], ticks: Sequence[float] | None = None
) -> None:
    """Make an axis logarithmic, with plain numbers at the ticks or at decades; call it when all is drawn."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    if ticks is not None:
        axis.set_major_locator(FixedLocator(list(ticks)))
    elif high < 100.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.set_minor_locator(NullLocator())  # hundreds of small ticks would take most of the time
