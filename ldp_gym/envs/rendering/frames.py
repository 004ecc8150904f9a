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


class Screen:
    """Screen of one of Gymnasium's render modes: ``"ansi"``, text; ``"rgb_array"``; ``"human"``, a window."""

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


def bar_starts(length: int, most: int) -> IntArray:
    """First indices of groups of equal size, when ``length`` bars have to fit into ``most``."""
    return np.linspace(0, length, min(length, most), endpoint=False).astype(np.int64)


def label_masses(data: FrameData, most: int) -> dict[str, FloatArray]:
    """Bars of the labels: of the truth, and of the prediction if there is one.

    Labels that do not fit are put into groups, by falling probability.
    """
    rows = {"truth": data.distribution}
    if data.prediction is not None:
        rows["prediction"] = data.prediction
    order = _label_order(data, most)
    starts = bar_starts(len(order), most)
    return {name: np.add.reduceat(row[order], starts) for name, row in rows.items()}


def asked_labels(data: FrameData, most: int) -> FloatArray:
    """Share of each bar's labels that the question asks about; no bars if there is no question."""
    if data.question is None:
        return np.zeros(0)
    order = _label_order(data, most)
    starts = bar_starts(len(order), most)
    sizes = np.diff(starts, append=len(order))
    return np.add.reduceat(data.question[order], starts) / sizes


def _label_order(data: FrameData, most: int) -> IntArray:
    """Labels in the order of their bars: by falling probability if they are put into groups."""
    if len(data.distribution) <= most:
        return np.arange(len(data.distribution))
    return np.argsort(-data.distribution, kind="stable")


def message_text(data: FrameData) -> str:
    """A message in a few words."""
    if data.message is None:
        return "none yet"
    if data.answer is not None:
        return "yes" if data.answer else "no"
    if data.message.ndim == 0:
        return f"report {int(data.message):,}"
    nonzero = np.flatnonzero(data.message)
    if len(nonzero) == 1:
        return f"{data.message[nonzero[0]]:.3g} at {nonzero[0]}"
    if data.message.dtype == np.int8:
        return f"a set of {len(nonzero):,} out of {len(data.message):,}"
    above = " ".join(map(str, np.flatnonzero(data.message > 0.0)))
    below = " ".join(map(str, np.flatnonzero(data.message < 0.0)))
    if above and below and np.abs(data.message).max() == 1.0 and len(nonzero) <= 16:
        return f"hypotheses {above} rather than {below}"
    return f"{len(data.message):,} numbers, {data.message.min():.3g} to {data.message.max():.3g}"


def _labels_text(data: FrameData, most: int) -> str:
    labels = len(data.distribution)
    if labels <= most:
        return f"{labels} labels"
    return f"{labels:,} labels in {most} groups, likeliest first"


def draw_text(data: FrameData) -> str:
    """A frame in a few lines for the terminal."""
    masses = label_masses(data, _TEXT_BARS)
    top = max(row.max() for row in masses.values())
    lines = [
        data.title,
        f"round {data.played:,} of {data.horizon:,}; {_labels_text(data, _TEXT_BARS)}",
    ]
    lines += [f"{name:12s}{_spark(row, top)}" for name, row in masses.items()]
    beliefs = {"posterior": data.posterior}
    if data.weights is not None:
        beliefs["weights"] = data.weights
    starts = bar_starts(len(data.posterior), _TEXT_BARS)
    for name, belief in beliefs.items():
        note = "the truth is outside the class"
        if data.truth >= 0:
            note = f"{belief[data.truth]:.3f} on the truth, hypothesis {data.truth}"
        lines.append(f"{name:12s}{_spark(np.add.reduceat(belief, starts), 1.0)}  {note}")
    if data.question is None:
        lines.append(f"{'message':12s}{message_text(data)}")
    else:
        asked = asked_labels(data, _TEXT_BARS)
        lines.append(f"{'question':12s}{_spark(asked, 1.0)}  is your label one of these?")
        lines.append(f"{'answer':12s}{message_text(data)}")
    if data.played:
        totals = f"{data.losses[-1]:.3f} nats, the uniform mixture's {data.uniform[-1]:.3f}"
        lines.append(f"{'total KL':12s}{totals}")
    return "\n".join(lines) + "\n"


def _spark(values: FloatArray, top: float) -> str:
    """Bars of text, eight steps high; a value above zero has at least one step."""
    steps = np.ceil(np.clip(values / top, 0.0, 1.0) * 8.0 - 1e-9).astype(int)
    return "".join(_BLOCKS[step] for step in steps)


class Painter:
    """Draws frames as pictures; it needs no display."""

    def __init__(self) -> None:
        self._pygame = load_pygame()
        self._fonts = {size: self._pygame.font.Font(None, size) for size in (20, 22, 26)}

    def frame(self, data: FrameData) -> Frame:
        """The picture as an array ``(height, width, 3)``."""
        return np.ascontiguousarray(
            self._pygame.surfarray.array3d(self.surface(data)).transpose(1, 0, 2)
        )

    def surface(self, data: FrameData) -> pygame.Surface:
        """The picture as a pygame surface."""
        self._canvas = self._pygame.Surface((WIDTH, HEIGHT))
        self._canvas.fill(_PAPER)
        self._write(data.title, (24, 16), size=26)
        self._write(
            f"round {data.played:,} of {data.horizon:,}", (WIDTH - 24, 16), size=26, right=True
        )
        words = f"message: {message_text(data)}"
        if data.question is not None:
            words = f"is your label one of the marked? {message_text(data)}"
        self._write(words, (WIDTH - 24, 44), right=True)
        self._labels(data, self._pygame.Rect(70, 84, WIDTH - 94, 216))
        self._beliefs(data, self._pygame.Rect(70, 386, 380, 176))
        self._losses(data, self._pygame.Rect(530, 386, 406, 176))
        return self._canvas

    def _labels(self, data: FrameData, box: pygame.Rect) -> None:
        masses = label_masses(data, _WIDE_BARS)
        top = _round_up(max(float(row.max()) for row in masses.values()))
        self._axes(box, top)
        styles = {"truth": (TRUTH, 0.86), "prediction": (LEARNER, 0.36)}
        for name, row in masses.items():
            self._bars(box, row / top, *styles[name])
        legend = [(name, colour) for name, (colour, _) in styles.items()]
        self._caption(box, _labels_text(data, _WIDE_BARS), legend)
        below = self._pygame.Rect(box.left, box.bottom + 2, box.width, _MARK_HEIGHT)
        self._bars(below, asked_labels(data, _WIDE_BARS), MARK, 0.86)
        self._ticks_below(box, len(data.distribution), _WIDE_BARS)

    def _beliefs(self, data: FrameData, box: pygame.Rect) -> None:
        num_hypotheses = len(data.posterior)
        starts = bar_starts(num_hypotheses, _NARROW_BARS)
        self._axes(box, 1.0)
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

    def _losses(self, data: FrameData, box: pygame.Rect) -> None:
        curves = [("prediction", data.losses, LEARNER), ("uniform mixture", data.uniform, _PUBLIC)]
        finite = [curve[np.isfinite(curve)] for _, curve, _ in curves]
        top = _round_up(max((float(curve.max()) for curve in finite if len(curve)), default=1.0))
        self._axes(box, top)
        across = max(data.played, 1)
        for (_, _, colour), curve in zip(curves, finite, strict=True):
            rounds = np.unique(np.linspace(0, len(curve), 256).astype(np.int64))
            heights = np.append(0.0, curve)[rounds]
            xs = box.left + rounds / across * box.width
            ys = box.bottom - heights / top * box.height
            if len(rounds) > 1:
                points = list(zip(xs.tolist(), ys.tolist(), strict=True))
                self._pygame.draw.lines(self._canvas, colour, False, points, 3)
        legend = []
        for name, curve, colour in curves:
            total = f" {curve[-1]:,.1f}" if data.played else ""
            legend.append((name + total, colour))
        self._caption(box, f"total KL in nats after {data.played:,} rounds", legend)
        self._write("0", (box.left, box.bottom + 6), colour=_FAINT)
        self._write(f"{across:,}", (box.right, box.bottom + 6), colour=_FAINT, right=True)

    def _write(
        self,
        words: str,
        at: tuple[float, float],
        size: int = 20,
        colour: Colour = _INK,
        right: bool = False,
    ) -> int:
        """Write from an upper left corner, or to an upper right one; returns the width."""
        image = self._fonts[size].render(words, True, colour)
        self._canvas.blit(image, (at[0] - image.get_width() if right else at[0], at[1]))
        return image.get_width()

    def _caption(self, box: pygame.Rect, words: str, legend: list[tuple[str, Colour]]) -> None:
        wide = box.width > 600
        self._write(words, (box.left, box.top - (26 if wide else 44)), size=22)
        x = box.left + (box.width - 190 if wide else 0)
        for name, colour in legend:
            self._pygame.draw.rect(self._canvas, colour, (x, box.top - 20, 11, 11))
            x += 28 + self._write(name, (x + 16, box.top - 22), colour=_FAINT)

    def _axes(self, box: pygame.Rect, top: float) -> None:
        """Lines and numbers at 0, the middle and the top of a panel."""
        for share in (0.0, 0.5, 1.0):
            y = box.bottom - box.height * share
            colour = _FAINT if share == 0.0 else _GRID
            self._pygame.draw.line(self._canvas, colour, (box.left, y), (box.right, y))
            self._write(f"{share * top:.3g}", (box.left - 8, y - 7), colour=_FAINT, right=True)

    def _ticks_below(self, box: pygame.Rect, count: int, most: int) -> None:
        """Number the bars where there is room; groups have no numbers."""
        if count > most:
            return
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if box.width * step >= 30 * count)
        for i in range(0, count, step):
            x = box.left + (i + 0.5) * box.width / count
            self._write(
                str(i), (x - self._fonts[20].size(str(i))[0] / 2, box.bottom + 14), colour=_FAINT
            )

    def _bars(self, box: pygame.Rect, heights: FloatArray, colour: Colour, width: float) -> None:
        """Bars of the given heights, as shares of the panel's; ``width`` is a share of a bar's room."""
        slot = box.width / max(len(heights), 1)
        for i, height in enumerate(np.rint(heights * box.height).astype(int).tolist()):
            left = round(box.left + (i + (1.0 - width) / 2.0) * slot)
            right = max(left + 1, round(box.left + (i + (1.0 + width) / 2.0) * slot))
            self._pygame.draw.rect(
                self._canvas, colour, (left, box.bottom - height, right - left, height)
            )


def _round_up(value: float) -> float:
    """Round up to one of 1, 1.2, 1.5, 2, 2.5, ... times a power of ten."""
    if not value > 0.0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    steps = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
    return float(unit * next(step for step in steps if step * unit >= value * (1 - 1e-9)))
