"""Frames as text and as pictures, and the window that shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.errors import extra
from ldp_gym.envs.rendering.history import FrameData

if TYPE_CHECKING:
    import pygame

Frame = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]
Legend = list[tuple[str, Colour]]

WIDTH, HEIGHT = 960, 600
"""Size of a picture, in pixels."""

_TEXT_BARS = 64
"""Largest number of bars in a line of text."""

_WIDE_BARS = 120
"""Largest number of bars in the panel of labels."""

_NARROW_BARS = 64
"""Largest number of bars in a smaller panel."""

_BLOCKS = " ▁▂▃▄▅▆▇█"
"""Bars of text, from empty to full."""

_PAPER = (255, 255, 255)
"""Colour of the background."""

_INK = (40, 40, 40)
"""Colour of text."""

_FAINT = (125, 125, 125)
"""Colour of numbers at axes and of legends."""

_GRID = (225, 225, 225)
"""Colour of the lines behind bars and curves."""

TRUTH = (120, 178, 217)
"""Colour of the truth."""

LEARNER = (203, 75, 0)
"""Colour of the prediction and of the learner's weights."""

_PUBLIC = (150, 150, 150)
"""Colour of the public posterior and of the uniform mixture."""

MARK = (60, 140, 70)
"""Colour of the marks below labels that a question asks about."""

_MARK_HEIGHT = 9
"""Height of these marks, in pixels."""

_MARGIN = 24
"""Distance of texts from the left and the right edge of a picture, in pixels."""

_SMALL = 20
"""Size of the font of numbers and legends, in pixels."""

_MEDIUM = 22
"""Size of the font of captions, in pixels."""

_LARGE = 26
"""Size of the font of the title, in pixels."""

_WIDE = 0.86
"""Width of the truth's bars and of the posterior's, as a share of a bar's room."""

_NARROW = 0.36
"""Width of the learner's bars, which stand before the wide ones, as a share of a bar's room."""

_CURVE_POINTS = 256
"""Largest number of points of a curve."""


class Screen:
    """Screen of one of Gymnasium's render modes: ``"ansi"``, text; ``"rgb_array"``; ``"human"``, a window."""

    def __init__(self, mode: str, frames_per_second: int) -> None:
        self._mode = mode
        self._frames_per_second = frames_per_second
        self._painter: Painter | None = None
        if mode != "ansi":
            self._painter = Painter()
        self._window: pygame.Surface | None = None
        if mode == "human":
            pygame = load_pygame()
            pygame.display.init()
            pygame.display.set_caption("LDPDist-v0")
            self._window = pygame.display.set_mode((WIDTH, HEIGHT))
            self._clock = pygame.time.Clock()

    def __reduce__(self) -> tuple[type[Screen], tuple[str, int]]:
        """Copy by making a new screen: pygame's objects cannot be copied."""
        return Screen, (self._mode, self._frames_per_second)

    def show(self, data: FrameData) -> Frame | str | None:
        """Show a frame: return it as text or as a picture, or draw it in the window and return None."""
        if self._painter is None:
            return draw_text(data)
        if self._window is None:
            return self._painter.frame(data)

        pygame = load_pygame()
        self._window.blit(self._painter.surface(data), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._frames_per_second)  # wait for the next frame's time
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            load_pygame().display.quit()


def load_pygame() -> ModuleType:
    """Import pygame, or raise an error that says how to install it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with extra("render", 'drawing (all but render_mode="ansi")'):
        import pygame
    pygame.font.init()
    return pygame


def bar_starts(length: int, most: int) -> IntArray:
    """Index of the first value in each bar, when ``length`` values have to fit into ``most`` bars.

    Bars stand for groups of nearly the same size, or for one value each if there is room.
    """
    num_bars = min(length, most)
    return np.linspace(0, length, num_bars, endpoint=False).astype(np.int64)


def label_masses(data: FrameData, most: int) -> dict[str, FloatArray]:
    """Probability of each bar's labels, by name: under the truth, and in the prediction if there is one.

    With more than ``most`` labels, labels of similar probability share a bar; the likeliest come first.
    """
    rows = {"truth": data.distribution}
    if data.prediction is not None:
        rows["prediction"] = data.prediction
    order = _label_order(data, most)
    starts = bar_starts(len(order), most)
    return {name: np.add.reduceat(row[order], starts) for name, row in rows.items()}


def asked_labels(data: FrameData, most: int) -> FloatArray:
    """Share of each bar's labels that the question asks about, at most ``most`` bars; empty without one."""
    if data.question is None:
        return np.zeros(0)
    order = _label_order(data, most)
    starts = bar_starts(len(order), most)
    sizes = np.diff(starts, append=len(order))
    return np.add.reduceat(data.question[order], starts) / sizes


def _label_order(data: FrameData, most: int) -> IntArray:
    """Labels in the order of their bars: by falling probability if there are more than ``most``."""
    num_labels = len(data.distribution)
    if num_labels <= most:
        return np.arange(num_labels)
    return np.argsort(-data.distribution, kind="stable")


def message_text(data: FrameData) -> str:
    """Describe the last message in a few words."""
    message = data.message
    if message is None:
        return "none yet"
    if data.answer is not None:
        return "yes" if data.answer else "no"
    if message.ndim == 0:
        return f"report {int(message):,}"

    nonzero = np.flatnonzero(message)
    if len(nonzero) == 1:
        index = nonzero[0]
        return f"{message[index]:.3g} at {index}"
    if message.dtype == np.int8:  # the type of sets of labels
        return f"a set of {len(nonzero):,} out of {len(message):,}"

    positive = np.flatnonzero(message > 0.0)
    negative = np.flatnonzero(message < 0.0)
    compares_hypotheses = (
        len(positive) > 0
        and len(negative) > 0
        and np.abs(message).max() == 1.0
        and len(nonzero) <= 16  # more would not fit into the line
    )
    if compares_hypotheses:
        preferred = " ".join(map(str, positive))
        others = " ".join(map(str, negative))
        return f"hypotheses {preferred} rather than {others}"
    return f"{len(message):,} numbers, {message.min():.3g} to {message.max():.3g}"


def _labels_text(data: FrameData, most: int) -> str:
    """Number of labels, and of their groups if there are more than ``most``, in words."""
    num_labels = len(data.distribution)
    if num_labels <= most:
        return f"{num_labels} labels"
    return f"{num_labels:,} labels in {most} groups, likeliest first"


def draw_text(data: FrameData) -> str:
    """Draw a frame as a few lines of text for the terminal."""
    lines = [
        data.title,
        f"round {data.played:,} of {data.horizon:,}; {_labels_text(data, _TEXT_BARS)}",
        *_label_lines(data),
        *_belief_lines(data),
        *_message_lines(data),
    ]
    if data.played:
        totals = f"{data.losses[-1]:.3f} nats, the uniform mixture's {data.uniform[-1]:.3f}"
        lines.append(_text_row("total KL", totals))
    return "\n".join(lines) + "\n"


def _text_row(name: str, words: str) -> str:
    """Line of text with a name in a column of its own."""
    return f"{name:12s}{words}"


def _label_lines(data: FrameData) -> list[str]:
    """Lines of text with the labels' probabilities, as bars."""
    masses = label_masses(data, _TEXT_BARS)
    top = max(row.max() for row in masses.values())
    return [_text_row(name, _spark(row, top)) for name, row in masses.items()]


def _belief_lines(data: FrameData) -> list[str]:
    """Lines of text with the public posterior and the learner's weights, as bars."""
    beliefs = {"posterior": data.posterior}
    if data.weights is not None:
        beliefs["weights"] = data.weights

    lines = []
    starts = bar_starts(len(data.posterior), _TEXT_BARS)
    for name, belief in beliefs.items():
        if data.truth >= 0:
            note = f"{belief[data.truth]:.3f} on the truth, hypothesis {data.truth}"
        else:
            note = "the truth is outside the class"
        bars = _spark(np.add.reduceat(belief, starts), top=1.0)
        lines.append(_text_row(name, f"{bars}  {note}"))
    return lines


def _message_lines(data: FrameData) -> list[str]:
    """Lines of text with the message, or with the question and its answer."""
    if data.question is None:
        return [_text_row("message", message_text(data))]
    asked = _spark(asked_labels(data, _TEXT_BARS), top=1.0)
    return [
        _text_row("question", f"{asked}  is your label one of these?"),
        _text_row("answer", message_text(data)),
    ]


def _spark(values: FloatArray, top: float) -> str:
    """Bars of text, eight steps high at the value ``top``; a value above zero has at least one step."""
    heights = np.clip(values / top, 0.0, 1.0) * 8.0
    steps = np.ceil(heights - 1e-9).astype(int)  # rounding does not add a step
    return "".join(_BLOCKS[step] for step in steps)


@dataclass(frozen=True)
class Curve:
    """Cumulative losses of one prediction, for a panel."""

    name: str
    totals: FloatArray  # (rounds,)
    colour: Colour

    @property
    def finite(self) -> FloatArray:
        """The totals that are finite: from the first infinite one on there is nothing to draw."""
        return self.totals[np.isfinite(self.totals)]

    @property
    def maximum(self) -> float | None:
        """Largest finite total; None if there is none."""
        if len(self.finite) == 0:
            return None
        return float(self.finite.max())


class Painter:
    """Draws frames as pictures; it needs no display."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        sizes = (_SMALL, _MEDIUM, _LARGE)
        self._fonts = {size: self._pygame.font.Font(None, size) for size in sizes}

    def frame(self, data: FrameData) -> Frame:
        """The picture as an array ``(height, width, 3)``."""
        pixels = self._pygame.surfarray.array3d(self.surface(data))  # (width, height, 3)
        return np.ascontiguousarray(pixels.transpose(1, 0, 2))

    def surface(self, data: FrameData) -> pygame.Surface:
        """The picture as a pygame surface: a title, and panels of labels, hypotheses and losses."""
        self._canvas = self._pygame.Surface((WIDTH, HEIGHT))
        self._canvas.fill(_PAPER)

        right_edge = WIDTH - _MARGIN
        self._write(data.title, (_MARGIN, 16), size=_LARGE)
        rounds = f"round {data.played:,} of {data.horizon:,}"
        self._write(rounds, (right_edge, 16), size=_LARGE, right=True)
        if data.question is None:
            words = f"message: {message_text(data)}"
        else:
            words = f"is your label one of the marked? {message_text(data)}"
        self._write(words, (right_edge, 44), right=True)

        # Left, top, width and height in pixels.
        self._labels(data, self._pygame.Rect(70, 84, right_edge - 70, 216))
        self._beliefs(data, self._pygame.Rect(70, 386, 380, 176))
        self._losses(data, self._pygame.Rect(530, 386, right_edge - 530, 176))
        return self._canvas

    def _labels(self, data: FrameData, box: pygame.Rect) -> None:
        """Draw the panel of labels: bars of their probabilities, and marks below those asked about."""
        masses = label_masses(data, _WIDE_BARS)
        top = _round_up(max(float(row.max()) for row in masses.values()))
        self._axes(box, top)
        self._bars(box, masses["truth"] / top, TRUTH, _WIDE)
        if "prediction" in masses:
            self._bars(box, masses["prediction"] / top, LEARNER, _NARROW)
        legend = [("truth", TRUTH), ("prediction", LEARNER)]
        self._caption_wide(box, _labels_text(data, _WIDE_BARS), legend)

        below = self._pygame.Rect(box.left, box.bottom + 2, box.width, _MARK_HEIGHT)
        self._bars(below, asked_labels(data, _WIDE_BARS), MARK, _WIDE)
        self._ticks_below(box, len(data.distribution), _WIDE_BARS)

    def _beliefs(self, data: FrameData, box: pygame.Rect) -> None:
        """Draw the panel of hypotheses: bars of the posterior and of the weights, and a mark at the truth."""
        num_hypotheses = len(data.posterior)
        starts = bar_starts(num_hypotheses, _NARROW_BARS)
        self._axes(box, 1.0)
        legend = [("public posterior", _PUBLIC)]
        self._bars(box, np.add.reduceat(data.posterior, starts), _PUBLIC, _WIDE)
        if data.weights is not None:
            self._bars(box, np.add.reduceat(data.weights, starts), LEARNER, _NARROW)
            legend.append(("learner's", LEARNER))

        truth = str(data.truth)
        if data.truth < 0:
            truth = "outside"
        self._caption_narrow(box, f"{num_hypotheses:,} hypotheses, truth: {truth}", legend)
        self._ticks_below(box, num_hypotheses, _NARROW_BARS)
        if data.truth >= 0:
            bar_of_truth = int(np.searchsorted(starts, data.truth, side="right")) - 1
            self._triangle_below(box, bar_of_truth, len(starts))

    def _triangle_below(self, box: pygame.Rect, bar: int, num_bars: int) -> None:
        """Mark the truth by a triangle below its bar."""
        x = box.left + (bar + 0.5) * box.width / num_bars
        y = box.bottom + 3
        corners = [(x, y), (x - 6, y + 9), (x + 6, y + 9)]
        self._pygame.draw.polygon(self._canvas, TRUTH, corners)

    def _losses(self, data: FrameData, box: pygame.Rect) -> None:
        """Draw the panel of losses: curves of the total KL of the prediction and the uniform mixture."""
        curves = [
            Curve("prediction", data.losses, LEARNER),
            Curve("uniform mixture", data.uniform, _PUBLIC),
        ]
        maxima = [curve.maximum for curve in curves if curve.maximum is not None]
        top = _round_up(max(maxima, default=1.0))
        num_rounds = max(data.played, 1)
        self._axes(box, top)
        for curve in curves:
            self._curve(box, curve, num_rounds, top)

        legend = []
        for curve in curves:
            words = curve.name
            if data.played:
                words += f" {curve.totals[-1]:,.1f}"
            legend.append((words, curve.colour))
        self._caption_narrow(box, f"total KL in nats after {data.played:,} rounds", legend)
        self._write("0", (box.left, box.bottom + 6), colour=_FAINT)
        self._write(f"{num_rounds:,}", (box.right, box.bottom + 6), colour=_FAINT, right=True)

    def _curve(self, box: pygame.Rect, curve: Curve, num_rounds: int, top: float) -> None:
        """Draw a curve, which begins at 0, in a panel of so many rounds and of the height ``top``."""
        totals = np.append(0.0, curve.finite)
        shown = np.linspace(0, len(curve.finite), _CURVE_POINTS).astype(np.int64)
        rounds = np.unique(shown)
        if len(rounds) == 1:  # a line needs two points
            return
        xs = box.left + rounds / num_rounds * box.width
        ys = box.bottom - totals[rounds] / top * box.height
        points = list(zip(xs.tolist(), ys.tolist(), strict=True))
        self._pygame.draw.lines(self._canvas, curve.colour, closed=False, points=points, width=3)

    def _write(
        self,
        words: str,
        at: tuple[float, float],
        size: int = 20,
        colour: Colour = _INK,
        right: bool = False,
    ) -> int:
        """Write words from their upper left corner, or to their upper right one; return their width."""
        image = self._fonts[size].render(words, True, colour)  # True: smooth edges
        x, y = at
        width = image.get_width()
        if right:
            x -= width
        self._canvas.blit(image, (x, y))
        return width

    def _caption_wide(self, box: pygame.Rect, words: str, legend: Legend) -> None:
        """Write a caption above a wide panel, and its legend to the right in the same line."""
        self._write(words, (box.left, box.top - 26), size=_MEDIUM)
        self._legend(box.right - 190, box.top, legend)

    def _caption_narrow(self, box: pygame.Rect, words: str, legend: Legend) -> None:
        """Write a caption above a narrow panel, and its legend in a second line."""
        self._write(words, (box.left, box.top - 44), size=_MEDIUM)
        self._legend(box.left, box.top, legend)

    def _legend(self, x: float, top_of_panel: float, legend: Legend) -> None:
        """Draw a legend above a panel from x on: a square of each colour, and its name."""
        for name, colour in legend:
            self._pygame.draw.rect(self._canvas, colour, (x, top_of_panel - 20, 11, 11))
            width = self._write(name, (x + 16, top_of_panel - 22), colour=_FAINT)
            x += 16 + width + 12

    def _axes(self, box: pygame.Rect, top: float) -> None:
        """Draw lines and numbers at 0, the middle and the top of a panel, whose top is this value."""
        for share in (0.0, 0.5, 1.0):
            y = box.bottom - box.height * share
            colour = _GRID
            if share == 0.0:
                colour = _FAINT
            self._pygame.draw.line(self._canvas, colour, (box.left, y), (box.right, y))
            self._write(f"{share * top:.3g}", (box.left - 8, y - 7), colour=_FAINT, right=True)

    def _ticks_below(self, box: pygame.Rect, count: int, most: int) -> None:
        """Write the numbers of bars below a panel, every bar's if there is room.

        Args:
            box: the panel.
            count: number of values; more than ``most`` share bars, which have no numbers.
            most: largest number of bars.
        """
        if count > most:
            return
        room = 30  # pixels for a number
        steps = (1, 2, 5, 10, 20, 50, 100)
        step = next(step for step in steps if box.width * step >= room * count)
        for i in range(0, count, step):
            middle = box.left + (i + 0.5) * box.width / count
            width, _ = self._fonts[_SMALL].size(str(i))
            self._write(str(i), (middle - width / 2, box.bottom + 14), colour=_FAINT)

    def _bars(self, box: pygame.Rect, heights: FloatArray, colour: Colour, width: float) -> None:
        """Draw bars side by side.

        Args:
            box: the panel, whose bottom they stand on.
            heights: shares of the panel's height, one for each bar.
            colour: their colour.
            width: share of a bar's room that it fills.
        """
        room = box.width / max(len(heights), 1)
        heights_in_pixels = np.rint(heights * box.height).astype(int).tolist()
        for i, height in enumerate(heights_in_pixels):
            left = round(box.left + (i + (1.0 - width) / 2.0) * room)
            right = round(box.left + (i + (1.0 + width) / 2.0) * room)
            at_least_one = max(right - left, 1)
            rect = (left, box.bottom - height, at_least_one, height)
            self._pygame.draw.rect(self._canvas, colour, rect)


def _round_up(value: float) -> float:
    """Round up to one of 1, 1.2, 1.5, 2, 2.5, ... times a power of ten; 1 for what is not positive."""
    if not value > 0.0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    lower_limit = value * (1 - 1e-9)  # a value that is round up to rounding errors stays
    steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    factor = next(step for step in steps if step * unit >= lower_limit)
    return float(unit * factor)
