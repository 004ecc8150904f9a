"""Style of the figures, and the three kinds that suites share: lines, rows and rankings of channels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ldp_bench.experiment import Experiment
from ldp_bench.results import Results
from ldp_gym import statistics
from ldp_gym.core.arrays import FloatArray
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

_DOTS_PER_INCH = 200
"""Resolution of the PNG files."""

_SHIFT = 0.008
"""Shift of neighbouring lines, as an exponent of the ratio of the ends of the x axis."""

Panels = dict[str, dict[str, dict[str, Estimate]]]
"""Estimates by the panel's title, by series and by row."""


@dataclass(frozen=True)
class Line:
    """A line of a figure, with the same number of values along both axes.

    Attributes:
        label: name in the legend.
        x: positions.
        y: estimates at these positions.
        colour: colour of the line and of its intervals.
        style: "-" for estimates joined by lines, a marker such as "s" for estimates alone; ":" or "--" for a
            curve without intervals, such as a bound.
    """

    label: str
    x: Sequence[float]
    y: Sequence[Estimate]
    colour: str
    style: str = "-"

    @property
    def is_curve(self) -> bool:
        """True if the values are a formula's, without intervals."""
        return self.style in (":", "--")


def in_style(draw: Callable[[Results], Figure], results: Results) -> Figure:
    """Draw a figure of results with the function ``draw``, in the style of this module."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        return draw(results)


def save_figure(drawing: Figure, path: Path) -> str:
    """Save a figure as ``path.svg`` and ``path.png``; return the SVG."""
    from matplotlib import rc_context

    svg = path.with_suffix(".svg")
    # The same figure is the same file: no date, and no version of what drew it.
    without_metadata: Any = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context(STYLE):
        with replacing(svg) as part:
            drawing.savefig(part, metadata=without_metadata)
        drawing.set_layout_engine("none")  # the layout is made once
        with replacing(path.with_suffix(".png")) as part:
            drawing.savefig(part, dpi=_DOTS_PER_INCH)
    return svg.read_text("utf-8")


def new_figure(
    columns: int = 1, *, width: float, height: float, **options: Any
) -> tuple[Figure, Any]:
    """Make a figure and its axes, side by side, an array of shape ``(1, columns)``.

    Args:
        columns: number of axes.
        width: width of one of them, in inches.
        height: height of the figure, in inches.
        **options: as in ``matplotlib.figure.Figure.subplots``.
    """
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
    if learner == "bayes":
        return colour(channel, position)
    return colour("", position)  # the channel's colour is that of Bayes


# -- Lines against an axis ----------------------------------------------------------------------------------


def draw_lines(lines: Sequence[Line], xlabel: str, ylabel: str = "total KL (nats)") -> Figure:
    """Draw lines with 95% intervals on logarithmic axes, and a legend at the right."""
    drawing, axes = new_figure(width=7.6, height=4.0)  # inches
    panel = axes[0, 0]
    middle = (len(lines) - 1) / 2.0
    for i, line in enumerate(lines):
        draw_line(panel, line, i - middle)
    panel.set(xlabel=xlabel, ylabel=ylabel)
    positions = set(chain.from_iterable(line.x for line in lines))
    set_log_scale(panel, "x", sorted(positions))
    set_log_scale(panel, "y")
    add_legend(drawing)
    return drawing


def draw_line(panel: Axes, line: Line, place: float) -> None:
    """Draw a line and the 95% intervals of its estimates.

    Args:
        panel: axes, of which the x axis is to be logarithmic.
        line: the line.
        place: rank of the line, 0 in the middle. Estimates are shifted by it along x, so that the intervals
            of two lines do not hide each other; curves are not.
    """
    values = [estimate.value for estimate in line.y]
    x = np.asarray(line.x, dtype=np.float64)
    if line.is_curve:
        panel.plot(x, values, line.style, label=line.label, color=line.colour)
        return

    if len(x) > 1:
        x = x * (x.max() / x.min()) ** (_SHIFT * place)
    style = line.style
    if style == "-":
        style = "o-"
    panel.plot(x, values, style, label=line.label, color=line.colour)
    _draw_intervals(panel.vlines, x, line.y, line.colour)


def _draw_intervals(
    draw: Callable[..., Any],
    positions: FloatArray,
    estimates: Iterable[Estimate],
    hue: str,
) -> None:
    """Draw the 95% intervals of estimates that have one.

    Args:
        draw: ``vlines`` or ``hlines`` of axes.
        positions: positions of the estimates on the other axis.
        estimates: the estimates.
        hue: colour of the intervals.
    """
    known = [
        (position, estimate.low, estimate.high)
        for position, estimate in zip(positions, estimates, strict=True)
        if estimate.known
    ]
    if known:
        at, low, high = np.transpose(known)
        draw(at, low, high, color=hue, linewidth=1)


def pair_lines(results: Results, position: Callable[[Experiment], float]) -> list[Line]:
    """Make the lines of each learner on each channel: its risks, and a dotted line of their bounds.

    The label of the risks states their slope. Bounds have a line only if a theorem covers all of them.

    Args:
        results: results of the suite.
        position: place of an experiment on the x axis.
    """
    lines = []
    for i, (learner, channel) in enumerate(results.pairs):
        hue = pair_colour(learner, channel, i)
        points = results.line(learner, channel, position)
        x = [position(point.experiment) for point in points]
        totals = [point.totals for point in points]
        risks = [statistics.mean(episodes) for episodes in totals]
        label = f"{learner} on {channel}"
        if len(points) < 2:  # no slope; none at all if every truth was played
            lines.append(Line(label, x, risks, hue))
            continue

        slope = statistics.slope(x, totals)
        lines.append(Line(f"{label}\n{_describe_slope(slope)}", x, risks, hue))
        bounds = [point.bound for point in points]
        if np.isfinite(bounds).all():
            exact = [Estimate(bound) for bound in bounds]
            lines.append(Line("bound", x, exact, hue, style=":"))
    return lines


def _describe_slope(slope: Estimate) -> str:
    """Slope in words, with half the length of its interval if that is known; never as -0.00."""
    if slope.known:
        return f"slope {slope.value:z.2f} ± {slope.half:.2f}"
    return f"slope {slope.value:z.2f}"


# -- One row per channel, learner or game -------------------------------------------------------------------


def draw_rows(
    panels: Panels,
    *,
    xlabel: str,
    reference: float | None = None,
    scale: Literal["log", "symlog", "linear"] = "log",
) -> Figure:
    """Draw a row per name, with a dot and a 95% interval for each series.

    Args:
        panels: estimates by the panel's title, by series and by the row's name. Rows stand in the order in
            which the names come first.
        xlabel: label of the x axis.
        reference: position of a dotted vertical line.
        scale: scale of the x axis; negative quantities need "symlog" or "linear".
    """
    names = _in_order(rows for by_series in panels.values() for rows in by_series.values())
    series = _in_order(panels.values())
    drawing, axes = _new_rows_figure(len(panels), len(names), len(series))

    # Rows are numbered from the bottom, and the first name stands at the top.
    heights = {name: len(names) - 1 - i for i, name in enumerate(names)}
    for panel, (title, by_series) in zip(axes.flat, panels.items(), strict=True):
        for label, estimates in by_series.items():
            i = series.index(label)
            learner, _, _ = label.partition(" (")
            hue = colour(learner or "bayes", i)
            # The series of a row stand below each other in 70% of its height.
            shift = 0.7 * ((i + 0.5) / len(series) - 0.5)
            y = np.array([heights[name] - shift for name in estimates])
            values = [estimate.value for estimate in estimates.values()]
            panel.plot(values, y, "o", color=hue, label=label)
            _draw_intervals(panel.hlines, y, estimates.values(), hue)
        if reference is not None:
            panel.axvline(reference, color="black", linestyle=":")
        panel.set_title(title)
        if scale == "log":
            set_log_scale(panel, "x")
        elif scale == "symlog":
            panel.set_xscale("symlog", linthresh=100.0)

    first_panel = axes[0, 0]
    first_panel.set_yticks(range(len(names)), names[::-1])
    first_panel.set_ylim(-0.7, len(names) - 0.3)  # a little space below and above the dots
    drawing.supxlabel(xlabel)
    if len(series) > 1:
        add_legend(drawing, above=len(panels) == 1)
    return drawing


def _in_order(groups: Iterable[Iterable[str]]) -> list[str]:
    """All names in the groups, once each, in the order in which they come first."""
    return list(dict.fromkeys(chain.from_iterable(groups)))


def _new_rows_figure(num_panels: int, num_rows: int, num_series: int) -> tuple[Figure, Any]:
    """Make a figure for rows, and its axes; sizes are in inches."""
    row_height = max(0.27, 0.05 * num_series)
    height = 1.1 + num_rows * row_height
    width = 5.6
    if num_panels > 1:
        width = max(2.5, 7.6 / num_panels)
    return new_figure(num_panels, width=width, height=height, sharey=True)


# -- Legends and axes ---------------------------------------------------------------------------------------


def add_legend(drawing: Figure, above: bool = False) -> None:
    """Add one legend for all panels, at the right of them or above: it never covers the data."""
    handles_by_name: dict[str, Any] = {}
    for panel in drawing.axes:
        handles, names = panel.get_legend_handles_labels()
        handles_by_name.update(zip(names, handles, strict=True))
    entries = handles_by_name.values(), handles_by_name.keys()
    if above:
        drawing.legend(*entries, loc="outside upper center", ncols=4)
        return

    # At the right the figure must be as high as the legend, in inches: its lines and the gaps between.
    num_lines = sum(1 + name.count("\n") for name in handles_by_name)
    legend_height = 0.3 + 0.135 * num_lines + 0.06 * len(handles_by_name)
    drawing.set_figheight(max(drawing.get_figheight(), legend_height))
    drawing.legend(*entries, loc="outside right center")


def set_log_scale(
    axes: Axes, which: Literal["x", "y"], ticks: Sequence[float] | None = None
) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks; call it when all is drawn.

    Without ``ticks`` these are the powers of 10, and on an axis of less than two powers also their multiples
    by 2 and 5.
    """
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = {"x": axes.xaxis, "y": axes.yaxis}[which]
    low, high = axis.get_view_interval()
    if ticks is not None:
        axis.set_major_locator(FixedLocator(list(ticks)))
    elif high < 100.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axis.set_minor_locator(NullLocator())  # hundreds of small ticks would take most of the time
