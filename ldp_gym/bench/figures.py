"""The look of the figures, and the few kinds of drawing that they share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ldp_gym.bench.statistics import Estimate

if TYPE_CHECKING:
    from ldp_gym.bench.results import Results
    from ldp_gym.bench.suites import Suite

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
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
    "centred-wma": "#da8bc3",
    "mle": "#8172b3",
    "bayes": "#4c72b0",
    "ppo": "#55a868",
    "amortized": "#2a9d8f",
}
_OTHERS = ["#55a868", "#64b5cd", "#ccb974", "#4c72b0", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#dd8452"]


def drawn(suite: Suite, results: Results) -> Figure:
    """A suite's figure, in this style."""
    with rc_context(STYLE):
        return suite.draw(results)


def save(drawing: Figure, path: Path) -> str:
    """Save a figure as ``path.svg`` and ``path.png``; returns the SVG."""
    svg = path.with_suffix(".svg")
    # The same figure is the same file: no date, and no version of what drew it.
    nothing: Any = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context(STYLE):
        drawing.savefig(svg, metadata=nothing)
        drawing.set_layout_engine("none")  # it is laid out: once is enough
        drawing.savefig(path.with_suffix(".png"), dpi=200)
    return svg.read_text("utf-8")


def figure(
    columns: int = 1, rows: int = 1, *, width: float = 3.6, height: float = 2.9, **options: Any
) -> tuple[Figure, Any]:
    """A figure and its axes, ``(rows, columns)`` of them."""
    drawing = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(drawing)
    return drawing, drawing.subplots(rows, columns, squeeze=False, **options)


def colour(name: str, position: int = 0) -> str:
    """A learner's own colour; anything else gets one by its position."""
    return _COLOURS.get(name, _OTHERS[position % len(_OTHERS)])


def band(axes: Axes, x: npt.ArrayLike, samples: npt.NDArray[Any], label: str, hue: str) -> None:
    """The mean of samples ``(episodes, n)`` along x, with its 95% interval as a band."""
    mean = samples.mean(axis=0)
    axes.plot(x, mean, label=label, color=hue)
    if len(samples) > 1:
        half = 1.96 * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
        axes.fill_between(
            np.asarray(x), np.maximum(mean - half, 1e-9), mean + half, color=hue, alpha=0.2, linewidth=0
        )


def points(
    axes: Axes, x: Sequence[float], estimates: Sequence[Estimate], label: str, hue: str, **style: Any
) -> None:
    """Estimates along x, joined by a line, with their intervals."""
    values = [estimate.value for estimate in estimates]
    axes.plot(x, values, marker="o", label=label, color=hue, **style)
    known = [(at, e) for at, e in zip(x, estimates, strict=True) if np.isfinite(e.low)]
    if known:
        axes.vlines(
            [at for at, _ in known],
            [e.low for _, e in known],
            [e.high for _, e in known],
            color=hue,
            linewidth=1,
        )


def bars(axes: Axes, names: Sequence[str], estimates: Sequence[Estimate], hue: str) -> None:
    """Estimates as horizontal bars with their intervals, the first on top."""
    places = np.arange(len(names))[::-1]
    axes.barh(places, [estimate.value for estimate in estimates], color=hue, alpha=0.85, height=0.7)
    axes.hlines(places, [e.low for e in estimates], [e.high for e in estimates], color="black", linewidth=1)
    axes.set_yticks(places, names)
    axes.grid(axis="y", visible=False)
