"""Frames as text and as pictures, and the window that shows them."""

from __future__ import annotations

import os
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

WIDTH, HEIGHT = 960, 600
"""Size of a picture, in pixels."""

_TEXT_BARS, _WIDE_BARS, _NARROW_BARS = 64, 120, 64
"""Largest number of bars in a line of text, in the panel of labels, and in a smaller panel."""

_BLOCKS = " ▁▂▃▄▅▆▇█"

_PAPER, _INK, _FAINT, _GRID = (255, 255, 255), (40, 40, 40), (125, 125, 125), (225, 225, 225)
TRUTH, LEARNER, _PUBLIC = (120, 178, 217), (203, 75, 0), (150, 150, 150)


class Screen:
    """Shows one frame after the other, in one of Gymnasium's render modes.

    Args:
        mode: ``"ansi"`` for text, ``"rgb_array"`` for a picture, ``"human"`` for a window.
        frames_per_second: highest frame rate of a window.
    """

    def __init__(self, mode: str, frames_per_second: int) -> None:
        self._settings = (mode, frames_per_second)
        self._painter = None if mode == "ansi" else Painter()
        self._window: pygame.Surface | None = None
        if mode == "human":
            pygame = load_pygame()
            pygame.display.init()
            pygame.display.set_caption("LDPDist-v0")
            self._window = pygame.display.set_mode((WIDTH, HEIGHT))
            self._clock = pygame.time.Clock()

    def __reduce__(self) -> tuple[type[Screen], tuple[str, int]]:
        """Copy by making a new screen: pygame's objects cannot be copied."""
        return Screen, self._settings

    def show(self, data: FrameData) -> Frame | str | None:
        """The frame as text or as a picture, or None when it is in the window."""
        if self._painter is None:
            return draw_text(data)
        if self._window is None:
            return self._painter.frame(data)
        pygame = load_pygame()
        self._window.blit(self._painter.surface(data), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._settings[1])
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


# -- Bars and words, shared by text and pictures ------------------------------------------------------------


def bar_starts(length: int, most: int) -> IntArray:
    """First indices of groups of equal size, when ``length`` bars have to fit into ``most``."""
    return np.linspace(0, length, min(length, most), endpoint=False).astype(np.int64)


def _label_order(data: FrameData, most: int) -> IntArray:
    """Order of the labels' bars: as they come if they fit, else by falling probability."""
    labels = len(data.distribution)
    return np.arange(labels) if labels <= most else np.argsort(-data.distribution, kind="stable")


def label_masses(data: FrameData, most: int) -> dict[str, FloatArray]:
    """Bars of the labels: of the truth, and of the prediction if there is one."""
    order, starts = _label_order(data, most), bar_starts(len(data.distribution), most)
    rows = {"truth": data.distribution}
    if data.prediction is not None:
        rows["prediction"] = data.prediction
    return {name: np.add.reduceat(row[order], starts) for name, row in rows.items()}


def message_bars(data: FrameData, most: int) -> FloatArray | None:
    """Bars of a message with several numbers: means of groups where there are too many."""
    if data.message is None or data.message.ndim == 0:
        return None
    values = data.message.astype(np.float64)
    if len(values) == len(data.distribution):  # one number per label
        values = values[_label_order(data, most)]
    starts = bar_starts(len(values), most)
    return np.add.reduceat(values, starts) / np.diff(starts, append=len(values))


def message_text(data: FrameData) -> str:
    """A message in a few words."""
    if data.message is None:
        return "none yet"
    if data.message.ndim == 0:
        return f"report {int(data.message):,}"
    told = np.flatnonzero(data.message)
    if len(told) == 1:
        return f"{data.message[told[0]]:.3g} at {told[0]}"
    if data.message.dtype == np.int8:
        return f"a set of {len(told):,} out of {len(data.message):,}"
    return f"{len(data.message):,} numbers, {data.message.min():.3g} to {data.message.max():.3g}"


def _labels_text(data: FrameData, most: int) -> str:
    labels = len(data.distribution)
    if labels <= most:
        return f"{labels} labels"
    return f"{labels:,} labels in {most} groups, the truth's likeliest first; square-root scale"


def _scale_power(data: FrameData, most: int) -> float:
    """Exponent of the scale: groups span many magnitudes, and a square root shows both ends."""
    return 1.0 if len(data.distribution) <= most else 0.5


# -- Text -----------------------------------------------------------------------------------------------


def draw_text(data: FrameData) -> str:
    """A frame in a few lines for the terminal."""
    power = _scale_power(data, _TEXT_BARS)
    heights = {name: row**power for name, row in label_masses(data, _TEXT_BARS).items()}
    top = max(row.max() for row in heights.values())
    lines = [data.title, f"round {data.played:,} of {data.horizon:,}; {_labels_text(data, _TEXT_BARS)}"]
    lines += [f"{name:12s}{_spark(row, top)}" for name, row in heights.items()]
    beliefs = {"posterior": data.posterior} | ({} if data.weights is None else {"weights": data.weights})
    starts = bar_starts(len(data.posterior), _TEXT_BARS)
    for name, belief in beliefs.items():
        note = "the truth is outside the class"
        if data.truth >= 0:
            note = f"{belief[data.truth]:.3f} on the truth, hypothesis {data.truth}"
        lines.append(f"{name:12s}{_spark(np.add.reduceat(belief, starts), 1.0)}  {note}")
    bars, marks = message_bars(data, _TEXT_BARS), ""
    if bars is not None:
        low = min(0.0, float(bars.min()))
        marks = _spark(bars - low, max(float(bars.max()) - low, 1e-300)) + "  "
    lines.append(f"{'message':12s}{marks}{message_text(data)}")
    if data.played:
        lines.append(
            f"{'total KL':12s}{data.losses[-1]:.3f} nats, the uniform mixture's {data.uniform[-1]:.3f}"
        )
    return "\n".join(lines) + "\n"


def _spark(values: FloatArray, top: float) -> str:
    """Bars of text, eight steps high; a value above zero has at least one step."""
    steps = np.ceil(np.clip(values / top, 0.0, 1.0) * 8.0 - 1e-9).astype(int)
    return "".join(_BLOCKS[step] for step in steps)


# -- Pictures -------------------------------------------------------------------------------------------


class Painter:
    """Draws frames as pictures; it needs no display."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        self._fonts = {size: self._pygame.font.Font(None, size) for size in (20, 22, 26)}

    def frame(self, data: FrameData) -> Frame:
        """The picture as an array ``(height, width, 3)``."""
        return np.ascontiguousarray(self._pygame.surfarray.array3d(self.surface(data)).transpose(1, 0, 2))

    def surface(self, data: FrameData) -> pygame.Surface:
        """The picture as a pygame surface."""
        self._canvas = self._pygame.Surface((WIDTH, HEIGHT))
        self._canvas.fill(_PAPER)
        self._write(data.title, (24, 16), size=26)
        self._write(f"round {data.played:,} of {data.horizon:,}", (WIDTH - 24, 16), size=26, right=True)
        self._labels(data, self._pygame.Rect(70, 84, WIDTH - 94, 216))
        self._beliefs(data, self._pygame.Rect(70, 386, 246, 176))
        self._message(data, self._pygame.Rect(372, 386, 216, 176))
        self._losses(data, self._pygame.Rect(650, 386, 286, 176))
        return self._canvas

    def _labels(self, data: FrameData, box: pygame.Rect) -> None:
        masses, power = label_masses(data, _WIDE_BARS), _scale_power(data, _WIDE_BARS)
        top = _round_up(max(float(row.max()) for row in masses.values()))
        self._axes(box, [top * share ** (1 / power) for share in (0.0, 0.5, 1.0)], 0.0, top, power)
        styles = {"truth": (TRUTH, 0.86), "prediction": (LEARNER, 0.36)}
        for name, row in masses.items():
            self._bars(box, (row / top) ** power, *styles[name])
        legend = [(name, colour) for name, (colour, _) in styles.items()]
        self._caption(box, _labels_text(data, _WIDE_BARS), legend)
        self._ticks_below(box, len(data.distribution), _WIDE_BARS)

    def _beliefs(self, data: FrameData, box: pygame.Rect) -> None:
        num_hypotheses = len(data.posterior)
        starts = bar_starts(num_hypotheses, _NARROW_BARS)
        self._axes(box, [0.0, 0.5, 1.0], 0.0, 1.0)
        legend = [("public posterior", _PUBLIC)]
        self._bars(box, np.add.reduceat(data.posterior, starts), _PUBLIC, 0.86)
        if data.weights is not None:
            self._bars(box, np.add.reduceat(data.weights, starts), LEARNER, 0.36)
            legend.append(("learner's", LEARNER))
        truth = data.truth if data.truth >= 0 else "outside"
        self._caption(box, f"{num_hypotheses:,} hypotheses, truth: {truth}", legend)
        self._ticks_below(box, num_hypotheses, _NARROW_BARS)
        if data.truth >= 0:  # a triangle below the truth
            slot = int(np.searchsorted(starts, data.truth, side="right")) - 1
            x, y = box.left + (slot + 0.5) * box.width / len(starts), box.bottom + 3
            self._pygame.draw.polygon(self._canvas, TRUTH, [(x, y), (x - 6, y + 9), (x + 6, y + 9)])

    def _message(self, data: FrameData, box: pygame.Rect) -> None:
        self._caption(box, "message: " + message_text(data), [])
        bars = message_bars(data, _NARROW_BARS)
        if data.message is None or bars is None:
            return
        low, high = min(0.0, float(bars.min())), max(0.0, float(bars.max()))
        low = -_round_up(-low) if low < 0.0 else 0.0
        high = _round_up(high) if high > 0.0 or low == 0.0 else 0.0  # zeros are a message too
        self._axes(box, sorted({low, 0.0, high}), low, high)
        self._bars(box, bars, _INK, 0.7, (low, high))
        self._ticks_below(box, len(data.message), _NARROW_BARS)

    def _losses(self, data: FrameData, box: pygame.Rect) -> None:
        curves = [("prediction", data.losses, LEARNER), ("uniform mixture", data.uniform, _PUBLIC)]
        finite = [curve[np.isfinite(curve)] for _, curve, _ in curves]
        top = _round_up(max((float(curve.max()) for curve in finite if len(curve)), default=1.0))
        self._axes(box, [0.0, top / 2, top], 0.0, top)
        across = max(data.played, 1)
        for (_, _, colour), curve in zip(curves, finite, strict=True):
            kept = np.unique(np.linspace(0, len(curve), 256).astype(np.int64))
            heights = np.append(0.0, curve)[kept]
            points = [
                (box.left + t / across * box.width, box.bottom - height / top * box.height)
                for t, height in zip(kept.tolist(), heights.tolist(), strict=True)
            ]
            if len(points) > 1:
                self._pygame.draw.lines(self._canvas, colour, False, points, 3)
        totals = [f" {curve[-1]:,.1f}" if data.played else "" for _, curve, _ in curves]
        legend = [(name + total, colour) for (name, _, colour), total in zip(curves, totals, strict=True)]
        self._caption(box, f"total KL in nats after {data.played:,} rounds", legend)
        self._write("0", (box.left, box.bottom + 6), colour=_FAINT)
        self._write(f"{across:,}", (box.right, box.bottom + 6), colour=_FAINT, right=True)

    def _write(
        self, words: str, at: tuple[float, float], size: int = 20, colour: Colour = _INK, right: bool = False
    ) -> int:
        """Write from an upper left corner, or to an upper right one; returns the width."""
        image = self._fonts[size].render(words, True, colour)
        self._canvas.blit(image, (at[0] - image.get_width() if right else at[0], at[1]))
        return image.get_width()

    def _caption(self, box: pygame.Rect, words: str, legend: list[tuple[str, Colour]]) -> None:
        """A panel's heading, and its legend."""
        wide = box.width > 600
        self._write(words, (box.left, box.top - (26 if wide else 44)), size=22)
        x = box.left + (box.width - 190 if wide else 0)
        for name, colour in legend:
            self._pygame.draw.rect(self._canvas, colour, (x, box.top - 20, 11, 11))
            x += 28 + self._write(name, (x + 16, box.top - 22), colour=_FAINT)

    def _axes(
        self, box: pygame.Rect, ticks: list[float], low: float, high: float, power: float = 1.0
    ) -> None:
        for tick in ticks:
            y = box.top + box.height * (1.0 - ((tick - low) / (high - low)) ** power)
            colour = _FAINT if tick == 0.0 else _GRID
            self._pygame.draw.line(self._canvas, colour, (box.left, y), (box.right, y))
            self._write(f"{tick:.3g}", (box.left - 8, y - 7), colour=_FAINT, right=True)

    def _ticks_below(self, box: pygame.Rect, count: int, most: int) -> None:
        """Number the bars where there is room; groups have no numbers."""
        if count > most:
            return
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if box.width * step >= 30 * count)
        for i in range(0, count, step):
            x = box.left + (i + 0.5) * box.width / count
            width = self._fonts[20].size(str(i))[0]
            self._write(str(i), (x - width / 2, box.bottom + 14), colour=_FAINT)

    def _bars(
        self,
        box: pygame.Rect,
        heights: FloatArray,
        colour: Colour,
        width: float,
        limits: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        low, high = limits
        slot, unit = box.width / len(heights), box.height / (high - low)
        zero = box.bottom + low * unit
        for i, height in enumerate((heights * unit).tolist()):
            left = round(box.left + (i + (1.0 - width) / 2.0) * slot)
            right = max(left + 1, round(box.left + (i + (1.0 + width) / 2.0) * slot))
            top, bottom = sorted((round(zero - height), round(zero)))
            if height != 0.0:
                self._pygame.draw.rect(self._canvas, colour, (left, top, right - left, max(bottom - top, 1)))


def _round_up(value: float) -> float:
    """Next of 1, 1.2, 1.5, 2, 2.5, ... times a power of ten."""
    if not value > 0.0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(unit * next(step for step in steps if step * unit >= value * (1 - 1e-9)))
