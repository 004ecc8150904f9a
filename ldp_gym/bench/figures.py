"""The look of the figures, and the few kinds of drawing that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from ldp_gym.bench import statistics
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.results import Results
from ldp_gym.bench.statistics import Estimate
from ldp_gym.core.files import replacing

if TYPE_CHECKING:  # imported where it draws: playing does not need it
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
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
    "svg.fonttype": "path",  # the same letters on every machine
    "svg.hashsalt": "ldp_gym",  # and the same file for the same figure
}

_COLOURS = {
    "uniform": "#8c8c8c",
    "wma": "#c44e52",
    "exp3": "#dd8452",
    "centred-exp3": "#937860",
    "centred-exp3 on laplace-vector": "#da8bc3",
    "mle": "#8172b3",
    "bayes": "#1a1a1a",
    "amortized": "#c2289b",
    "randomized-response": "#c44e52",
    "subset-selection": "#dd8452",
    "laplace-single": "#4c72b0",
    "vote": "#8172b3",
    "split": "#55a868",
    "wheel": "#64b5cd",
}
_OTHERS = [
    "#17a2b8",
    "#b5a000",
    "#d6278a",
    "#1b2a49",
    "#6b8e23",
    "#7a3e00",
    "#ff9da7",
    "#00695c",
    "#9c27b0",
    "#5d6d7e",
]


def in_style(draw: Callable[[Results], Figure], results: Results) -> Figure:
    """What ``draw`` draws of the results, in this style."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        return draw(results)


def save(drawing: Figure, path: Path) -> str:
    """Save a figure as ``path.svg`` and ``path.png``; returns the SVG."""
    from matplotlib import rc_context

    svg = path.with_suffix(".svg")
    # The same figure is the same file: no date, and no version of what drew it.
    nothing: Any = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context(STYLE):
        with replacing(svg) as part:
            drawing.savefig(part, metadata=nothing)
        drawing.set_layout_engine("none")  # it is laid out: once is enough
        with replacing(path.with_suffix(".png")) as part:
            drawing.savefig(part, dpi=200)
    return svg.read_text("utf-8")


def new_figure(
    columns: int = 1, rows: int = 1, *, width: float = 3.6, height: float = 2.9, **options: Any
) -> tuple[Figure, Any]:
    """A figure and its axes, ``(rows, columns)`` of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(rows, columns, squeeze=False, **options)


def colour(name: str, position: int = 0) -> str:
    """A learner's or channel's own colour; anything else gets one by its position."""
    return _COLOURS.get(name, _OTHERS[position % len(_OTHERS)])


def pair_colour(learner: str, channel: str, position: int) -> str:
    """The colour of a learner on a channel: the learner's own on the paper's, unless it plays on both."""
    if channel in ("laplace-single", "laplace-vector"):
        return _COLOURS.get(f"{learner} on {channel}", colour(learner, position))
    return colour(channel if learner == "bayes" else "", position)


def add_legend(drawing: Figure) -> None:
    """One legend for all of a figure's panels, beside them: it never lies on the data."""
    named = {
        name: handle
        for panel in drawing.axes
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    lines = sum(1 + name.count("\n") for name in named)
    # A figure with many additions grows, so that the legend has room beside it.
    drawing.set_figheight(max(drawing.get_figheight(), 0.3 + 0.135 * lines + 0.06 * len(named)))
    drawing.legend(named.values(), named.keys(), loc="outside right center")


def label_ends(axes: Axes) -> None:
    """Write each line's name beside its end, in its colour and apart from the others; call it last."""
    ends = sorted(
        (float(np.asarray(line.get_ydata())[-1]), str(line.get_label()), line.get_color())
        for line in axes.get_lines()
        if len(np.asarray(line.get_ydata()))
    )
    to_fraction = axes.transData + axes.transAxes.inverted()
    heights = [to_fraction.transform((1.0, end))[1] for end, _, _ in ends]
    for (_, name, hue), height in zip(ends, _spread(heights, 0.085), strict=True):
        axes.annotate(
            name,
            (1.0, height),
            (4, 0),
            "axes fraction",
            "offset points",
            color=hue,
            va="center",
            fontsize=7.5,
        )


def _spread(heights: Sequence[float], gap: float) -> npt.NDArray[np.float64]:
    """Sorted heights, moved as little as possible until they are a gap apart (least squares)."""
    steps = gap * np.arange(len(heights))
    return np.asarray(isotonic_regression(heights - steps).x) + steps


def set_log_scale(axes: Axes, which: Literal["x", "y"], ticks: Sequence[float] | None = None) -> None:
    """A logarithmic axis with numbers that are read at a glance; call it when all is drawn.

    Args:
        axes: the panel.
        which: of its axes.
        ticks: where there is something to mark; else decades, and parts of them if they are few.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    if ticks is not None:
        axis.set_major_locator(FixedLocator(list(ticks)))
    elif high < 100.0 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_locator(NullLocator())  # hundreds of small ticks would take most of the time


def _plain(value: float, _: object = None) -> str:
    if 1e-3 <= value < 1e5:
        return f"{value:,.6g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**exponent)
    return f"$10^{{{exponent}}}$" if factor == 1 else f"${factor}\\cdot 10^{{{exponent}}}$"


def shift_apart(x: Sequence[float], position: int, count: int) -> list[float]:
    """Positions on a logarithmic axis, moved a little: one of ``count`` series must not hide another."""
    step = (max(x) / min(x)) ** 0.01 if x else 1.0
    return [at * step ** (position - (count - 1) / 2.0) for at in x]


def slope_label(slope: Estimate) -> str:
    """A fitted slope, for a legend.

    Example:
        >>> slope_label(Estimate(0.5, 0.4, 0.6))
        'slope 0.50 ± 0.10'
    """
    known = math.isfinite(slope.low)
    return f"slope {slope.value:z.2f}" + (f" ± {slope.half:.2f}" if known else "")


def draw_band(axes: Axes, x: npt.ArrayLike, samples: npt.NDArray[Any], label: str, hue: str) -> None:
    """The mean of samples ``(episodes, n)`` along x, with its interval as a band."""
    means = [statistics.mean(column) for column in samples.T if np.isfinite(column).all()]
    x = np.asarray(x)[: len(means)]  # sums that are infinite from some point on end there
    axes.plot(x, [mean.value for mean in means], label=label, color=hue)
    if len(samples) > 1:
        low, high = [mean.low for mean in means], [mean.high for mean in means]
        axes.fill_between(x, low, high, color=hue, alpha=0.15, linewidth=0)


def draw_points(
    axes: Axes, x: Sequence[float], estimates: Sequence[Estimate], label: str, hue: str, **style: Any
) -> None:
    """Estimates along x, joined by a line, with their intervals."""
    values = [estimate.value for estimate in estimates]
    axes.plot(x, values, marker="o", label=label, color=hue, **style)
    bounded = _bounded(x, estimates)
    if bounded.size:
        axes.vlines(*bounded, color=hue, linewidth=1)


def _bounded(places: Iterable[float], estimates: Iterable[Estimate | None]) -> npt.NDArray[np.float64]:
    """Where the estimates that have an interval stand, and its two ends: ``(3, n)``."""
    pairs = zip(places, estimates, strict=True)
    known = [(place, e.low, e.high) for place, e in pairs if e is not None and np.isfinite(e.low)]
    return np.reshape(np.asarray(known, dtype=np.float64), (-1, 3)).T


def draw_lines(axes: Axes, results: Results, position: Callable[[Experiment], float]) -> None:
    """The risk of each learner on each channel along a quantity, with its slope in the legend."""
    for i, (learner, channel) in enumerate(results.pairs):
        line = results.line(learner, channel, position)
        x, label = [position(r.experiment) for r in line], f"{learner} on {channel}"
        if len(line) > 1:
            label += f"\n{slope_label(statistics.slope(x, [r.totals for r in line]))}"
        beside, hue = shift_apart(x, i, len(results.pairs)), pair_colour(learner, channel, i)
        draw_points(axes, beside, [r.risk for r in line], label, hue)
    axes.set_ylabel("total KL (nats)")


def draw_dots(
    axes: Axes, names: Sequence[str], estimates: Sequence[Estimate | None], hue: str, reference: float
) -> None:
    """Estimates by name with their intervals, the first on top, and a reference to compare them with."""
    places = np.arange(len(names))[::-1]
    known = [(place, e) for place, e in zip(places, estimates, strict=True) if e is not None]
    axes.plot([e.value for _, e in known], [place for place, _ in known], "o", color=hue)
    axes.hlines(*_bounded(places, estimates), color=hue, linewidth=1)
    axes.axvline(reference, color="black", linestyle=":")
    axes.set_yticks(places, names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    set_log_scale(axes, "x")
