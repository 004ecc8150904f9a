"""Frames as pictures."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.envs.rendering.history import FrameData
from ldp_gym.envs.rendering.summary import (
    bar_starts,
    label_masses,
    labels_text,
    message_bars,
    message_text,
    scale_power,
)

if TYPE_CHECKING:
    import pygame

Frame = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]

WIDTH, HEIGHT = 960, 600
"""Of a frame, in pixels."""

_BARS, _FEWER_BARS = 120, 64
"""How many bars the labels' panel has room for, and a smaller one."""

_PAPER, _INK, _FAINT, _GRID = (255, 255, 255), (40, 40, 40), (125, 125, 125), (225, 225, 225)
TRUTH, LEARNER, _PUBLIC = (120, 178, 217), (203, 75, 0), (150, 150, 150)


def load_pygame() -> ModuleType:
    """The module pygame, or an error that says how to install it."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with extra("render", 'drawing (all but render_mode="ansi")'):
        import pygame
    pygame.font.init()
    return pygame


class Painter:
    """Draws frames. It needs no screen; :class:`Window` does."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        self._fonts = {size: self._pygame.font.Font(None, size) for size in (20, 22, 26)}

    def frame(self, data: FrameData) -> Frame:
        """The picture as Gymnasium has them, ``(height, width, 3)``."""
        return np.ascontiguousarray(self._pygame.surfarray.array3d(self.surface(data)).transpose(1, 0, 2))

    def surface(self, data: FrameData) -> pygame.Surface:
        """The picture as pygame has them."""
        self._canvas = self._pygame.Surface((WIDTH, HEIGHT))
        self._canvas.fill(_PAPER)
        self._write(data.title, (24, 16), size=26)
        self._write(f"round {data.played:,} of {data.horizon:,}", (WIDTH - 24, 16), size=26, right=True)
        self._labels(data, self._pygame.Rect(70, 84, WIDTH - 94, 216))
        self._beliefs(data, self._pygame.Rect(70, 386, 246, 176))
        self._message(data, self._pygame.Rect(372, 386, 216, 176))
        self._losses(data, self._pygame.Rect(650, 386, 286, 176))
        return self._canvas

    # -- The four panels ------------------------------------------------------------------------------

    def _labels(self, data: FrameData, box: pygame.Rect) -> None:
        masses, power = label_masses(data, _BARS), scale_power(data, _BARS)
        top = _round_up(max(float(row.max()) for row in masses.values()))
        self._axes(box, [top * share ** (1 / power) for share in (0.0, 0.5, 1.0)], 0.0, top, power)
        styles = {"truth": (TRUTH, 0.86), "prediction": (LEARNER, 0.36)}
        for name, row in masses.items():
            self._bars(box, (row / top) ** power, *styles[name])
        self._caption(box, labels_text(data, _BARS), [(name, colour) for name, (colour, _) in styles.items()])
        self._ticks_below(box, len(data.distribution), _BARS)

    def _beliefs(self, data: FrameData, box: pygame.Rect) -> None:
        num_hypotheses = len(data.posterior)
        starts = bar_starts(num_hypotheses, _FEWER_BARS)
        self._axes(box, [0.0, 0.5, 1.0], 0.0, 1.0)
        names = [("public posterior", _PUBLIC)]
        self._bars(box, np.add.reduceat(data.posterior, starts), _PUBLIC, 0.86)
        if data.weights is not None:
            self._bars(box, np.add.reduceat(data.weights, starts), LEARNER, 0.36)
            names.append(("learner's", LEARNER))
        truth = data.truth if data.truth >= 0 else "no member"
        self._caption(box, f"{num_hypotheses:,} hypotheses, truth: {truth}", names)
        self._ticks_below(box, num_hypotheses, _FEWER_BARS)
        if data.truth < 0:
            return
        # A triangle below the truth.
        slot = int(np.searchsorted(starts, data.truth, side="right")) - 1
        x, y = box.left + (slot + 0.5) * box.width / len(starts), box.bottom + 3
        self._pygame.draw.polygon(self._canvas, TRUTH, [(x, y), (x - 6, y + 9), (x + 6, y + 9)])

    def _message(self, data: FrameData, box: pygame.Rect) -> None:
        self._caption(box, "message: " + message_text(data), [])
        bars = message_bars(data, _FEWER_BARS)
        if data.message is None or bars is None:
            return
        low, high = min(0.0, float(bars.min())), max(0.0, float(bars.max()))
        low = -_round_up(-low) if low < 0.0 else 0.0
        high = _round_up(high) if high > 0.0 or low == 0.0 else 0.0  # zeros are a message too
        self._axes(box, sorted({low, 0.0, high}), low, high)
        self._bars(box, bars, _INK, 0.7, low, high)
        self._ticks_below(box, len(data.message), _FEWER_BARS)

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
        names = [(name + total, colour) for (name, _, colour), total in zip(curves, totals, strict=True)]
        self._caption(box, f"total KL in nats after {data.played:,} rounds", names)
        self._write("0", (box.left, box.bottom + 6), colour=_FAINT)
        self._write(f"{across:,}", (box.right, box.bottom + 6), colour=_FAINT, right=True)

    # -- Strokes --------------------------------------------------------------------------------------

    def _write(
        self,
        words: str,
        at: tuple[float, float],
        *,
        size: int = 20,
        colour: Colour = _INK,
        right: bool = False,
    ) -> int:
        """Write at a corner, the upper left or the upper right; returns how wide it came out."""
        image = self._fonts[size].render(words, True, colour)
        self._canvas.blit(image, (at[0] - image.get_width() if right else at[0], at[1]))
        return image.get_width()

    def _caption(self, box: pygame.Rect, words: str, names: list[tuple[str, Colour]]) -> None:
        """A panel's heading, and below it what its colours stand for."""
        wide = box.width > 600
        self._write(words, (box.left, box.top - (26 if wide else 44)), size=22)
        x = box.left + (box.width - 190 if wide else 0)
        for name, colour in names:
            self._pygame.draw.rect(self._canvas, colour, (x, box.top - 20, 11, 11))
            x += 28 + self._write(name, (x + 16, box.top - 22), colour=_FAINT)

    def _axes(
        self, box: pygame.Rect, ticks: list[float], low: float, high: float, power: float = 1.0
    ) -> None:
        for tick in ticks:
            y = box.top + box.height * (1.0 - ((tick - low) / (high - low)) ** power)
            self._pygame.draw.line(
                self._canvas, _FAINT if tick == 0.0 else _GRID, (box.left, y), (box.right, y)
            )
            self._write(f"{tick:.3g}", (box.left - 8, y - 7), colour=_FAINT, right=True)

    def _ticks_below(self, box: pygame.Rect, count: int, most: int) -> None:
        """Number the bars, as many of them as there is room for; groups have no numbers."""
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
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        slot, unit = box.width / len(heights), box.height / (high - low)
        zero = box.bottom + low * unit
        for i, height in enumerate((heights * unit).tolist()):
            left = round(box.left + (i + (1.0 - width) / 2.0) * slot)
            right = max(left + 1, round(box.left + (i + (1.0 + width) / 2.0) * slot))
            top, bottom = sorted((round(zero - height), round(zero)))
            if height != 0.0:
                self._pygame.draw.rect(self._canvas, colour, (left, top, right - left, max(bottom - top, 1)))


def _round_up(value: float) -> float:
    """The next of 1, 1.2, 1.5, 2, 2.5, ... times a power of ten."""
    if not value > 0.0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(unit * next(step for step in steps if step * unit >= value * (1 - 1e-9)))
