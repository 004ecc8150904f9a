"""Draw a frame: a :class:`~ldp_gym.spectator.Scene` as text, as a picture, or in a window.

Above, the truth's distribution against the prediction, over the labels; below, the weights of the
hypotheses, the last message, and the cumulative KL beside that of the uniform mixture, which never learns.
Where there are more labels than room, they are put in order of the truth's probability and drawn in groups.

A frame shows the hidden truth. It is for the person watching: an agent that learns from frames plays
another game.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from ldp_gym.arrays import FloatArray, IntArray
from ldp_gym.spectator import Scene

if TYPE_CHECKING:
    import pygame

Frame = npt.NDArray[np.uint8]

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ACROSS = 64
"""How many bars a line of text has room for."""


# -- What both have in common -------------------------------------------------------------------------


def _groups(length: int, most: int) -> IntArray:
    """Where groups of equal size begin, when ``length`` bars have to fit into ``most``."""
    return np.linspace(0, length, min(length, most), endpoint=False).astype(np.int64)


def _ordered(scene: Scene, most: int) -> IntArray:
    """The order in which labels are drawn: as they come if they fit, else the truth's likeliest first."""
    labels = len(scene.distribution)
    return np.arange(labels) if labels <= most else np.argsort(-scene.distribution, kind="stable")


def _message_bars(scene: Scene, most: int) -> FloatArray | None:
    """A message with several numbers, as bars: the means of groups where there are too many of them."""
    if scene.message is None or scene.message.ndim == 0:
        return None
    values = scene.message.astype(np.float64)
    if len(values) == len(scene.distribution):  # it speaks of labels
        values = values[_ordered(scene, most)]
    starts = _groups(len(values), most)
    means: FloatArray = np.add.reduceat(values, starts) / np.diff(starts, append=len(values))
    return means


def _message_text(scene: Scene) -> str:
    """A message in a few words."""
    if scene.message is None:
        return "none yet"
    if scene.message.ndim == 0:
        return f"report {int(scene.message):,}"
    told = np.flatnonzero(scene.message)
    if len(told) == 1:
        return f"{scene.message[told[0]]:.3g} at {told[0]}"
    if scene.message.dtype == np.int8:
        return f"a set of {len(told):,} out of {len(scene.message):,}"
    return f"{len(scene.message):,} numbers, {scene.message.min():.3g} to {scene.message.max():.3g}"


def _labels_text(scene: Scene, most: int) -> str:
    labels = len(scene.distribution)
    if labels <= most:
        return f"{labels} labels"
    return f"{labels:,} labels in {most} groups, the truth's likeliest first; square-root scale"


def _power(scene: Scene, most: int) -> float:
    """Groups go from most of the mass to next to nothing: the square root shows both ends."""
    return 1.0 if len(scene.distribution) <= most else 0.5


# -- Text ---------------------------------------------------------------------------------------------


def text(scene: Scene) -> str:
    """A scene in a few lines for the terminal."""
    order, starts = _ordered(scene, _ACROSS), _groups(len(scene.distribution), _ACROSS)
    shown = {"truth": scene.distribution}
    if scene.prediction is not None:
        shown["prediction"] = scene.prediction
    power = _power(scene, _ACROSS)
    masses = {name: np.add.reduceat(values[order], starts) ** power for name, values in shown.items()}
    top = max(row.max() for row in masses.values())
    lines = [scene.title, f"round {scene.played:,} of {scene.horizon:,}; {_labels_text(scene, _ACROSS)}"]
    lines += [f"{name:12s}{_spark(row, top)}" for name, row in masses.items()]
    beliefs = {"posterior": scene.posterior} | ({} if scene.weights is None else {"weights": scene.weights})
    starts = _groups(len(scene.posterior), _ACROSS)
    for name, belief in beliefs.items():
        note = f"{belief[scene.truth]:.3f} on the truth, hypothesis {scene.truth}"
        lines.append(f"{name:12s}{_spark(np.add.reduceat(belief, starts), 1.0)}  {note}")
    bars = _message_bars(scene, _ACROSS)
    marks = ""
    if bars is not None:
        low = min(0.0, float(bars.min()))
        marks = _spark(bars - low, max(float(bars.max()) - low, 1e-300)) + "  "
    lines.append(f"{'message':12s}{marks}{_message_text(scene)}")
    if scene.played:
        lines.append(
            f"{'total KL':12s}{scene.losses[-1]:.3f} nats, the uniform mixture's {scene.uniform[-1]:.3f}"
        )
    return "\n".join(lines) + "\n"


def _spark(values: FloatArray, top: float) -> str:
    """Bars of text, eight steps high; what is not zero is seen."""
    steps = np.ceil(np.clip(values / top, 0.0, 1.0) * 8.0 - 1e-9).astype(int)
    return "".join(_BLOCKS[step] for step in steps)


# -- Pictures -----------------------------------------------------------------------------------------

WIDTH, HEIGHT = 960, 600
_BARS = 120
_PAPER, _INK, _FAINT, _GRID = (255, 255, 255), (40, 40, 40), (125, 125, 125), (225, 225, 225)
_TRUTH, _LEARNER, _PUBLIC = (120, 178, 217), (203, 75, 0), (150, 150, 150)


def _load_pygame() -> ModuleType:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            "pictures and windows are drawn with pygame: pip install 'ldp-gym[render]' "
            '(render_mode="ansi" needs nothing)'
        ) from error
    pygame.font.init()
    return pygame


class Painter:
    """Draws scenes. It needs no screen; :class:`Window` does."""

    def __init__(self) -> None:
        self._pygame = _load_pygame()
        self._fonts = {size: self._pygame.font.Font(None, size) for size in (20, 22, 26)}

    def frame(self, scene: Scene) -> Frame:
        """The picture as Gymnasium has them, ``(height, width, 3)``."""
        pixels: Frame = self._pygame.surfarray.array3d(self.surface(scene))
        return np.ascontiguousarray(pixels.transpose(1, 0, 2))

    def surface(self, scene: Scene) -> pygame.Surface:
        """The picture as pygame has them."""
        self._canvas = self._pygame.Surface((WIDTH, HEIGHT))
        self._canvas.fill(_PAPER)
        self._write(scene.title, (24, 16), size=26)
        self._write(f"round {scene.played:,} of {scene.horizon:,}", (WIDTH - 24, 16), size=26, right=True)
        self._labels(scene, (70, 84, WIDTH - 94, 216))
        self._beliefs(scene, (70, 386, 246, 176))
        self._message(scene, (372, 386, 216, 176))
        self._losses(scene, (650, 386, 286, 176))
        return self._canvas

    # -- The four panels ------------------------------------------------------------------------------

    def _labels(self, scene: Scene, box: tuple[int, int, int, int]) -> None:
        labels = len(scene.distribution)
        order, starts = _ordered(scene, _BARS), _groups(labels, _BARS)
        truth = np.add.reduceat(scene.distribution[order], starts)
        rows = [(truth, _TRUTH, 0.86)]
        if scene.prediction is not None:
            rows.append((np.add.reduceat(scene.prediction[order], starts), _LEARNER, 0.36))
        power = _power(scene, _BARS)
        top = _round_up(max(float(row.max()) for row, _, _ in rows))
        self._axes(box, [top * share ** (1 / power) for share in (0.0, 0.5, 1.0)], 0.0, top, power)
        for row, colour, width in rows:
            self._bars(box, (row / top) ** power, colour, width)
        names = [("truth", _TRUTH), ("prediction", _LEARNER)]
        self._caption(box, _labels_text(scene, _BARS), names)
        self._ticks_below(box, labels if labels <= _BARS else 0)

    def _beliefs(self, scene: Scene, box: tuple[int, int, int, int]) -> None:
        size = len(scene.posterior)
        starts = _groups(size, 64)
        self._axes(box, [0.0, 0.5, 1.0], 0.0, 1.0)
        names = [("posterior", _PUBLIC)]
        self._bars(box, np.add.reduceat(scene.posterior, starts), _PUBLIC, 0.86)
        if scene.weights is not None:
            self._bars(box, np.add.reduceat(scene.weights, starts), _LEARNER, 0.36)
            names.append(("learner", _LEARNER))
        self._caption(box, f"{size:,} hypotheses", names)
        self._ticks_below(box, size if size <= 64 else 0)
        # A triangle below the truth.
        slot = int(np.searchsorted(starts, scene.truth, side="right")) - 1
        x, y = box[0] + (slot + 0.5) * box[2] / len(starts), box[1] + box[3] + 3
        self._pygame.draw.polygon(self._canvas, _TRUTH, [(x, y), (x - 6, y + 9), (x + 6, y + 9)])

    def _message(self, scene: Scene, box: tuple[int, int, int, int]) -> None:
        self._caption(box, "message: " + _message_text(scene), [])
        bars = _message_bars(scene, 64)
        if bars is None:
            return
        low, high = min(0.0, float(bars.min())), max(0.0, float(bars.max()))
        low, high = -_round_up(-low) if low < 0.0 else 0.0, _round_up(high) if high > 0.0 else 0.0
        self._axes(box, sorted({low, 0.0, high}), low, high)
        self._bars(box, bars, _INK, 0.7, low, high)
        self._ticks_below(box, len(bars) if scene.message is not None and len(scene.message) <= 64 else 0)

    def _losses(self, scene: Scene, box: tuple[int, int, int, int]) -> None:
        curves = [("prediction", scene.losses, _LEARNER), ("uniform mixture", scene.uniform, _PUBLIC)]
        finite = [curve[np.isfinite(curve)] for _, curve, _ in curves]
        top = _round_up(max((float(curve.max()) for curve in finite if len(curve)), default=1.0))
        self._axes(box, [0.0, top / 2, top], 0.0, top)
        across = max(scene.played, 1)
        for (_, _, colour), curve in zip(curves, finite, strict=True):
            kept = np.unique(np.linspace(0, len(curve), 256).astype(np.int64))
            heights = np.append(0.0, curve)[kept]
            points = [
                (box[0] + t / across * box[2], box[1] + box[3] - height / top * box[3])
                for t, height in zip(kept.tolist(), heights.tolist(), strict=True)
            ]
            if len(points) > 1:
                self._pygame.draw.lines(self._canvas, colour, False, points, 3)
        now = f": {scene.losses[-1]:,.1f}, {scene.uniform[-1]:,.1f}" if scene.played else ""
        self._caption(box, f"total KL in nats{now}", [(name, colour) for name, _, colour in curves])
        self._write("0", (box[0], box[1] + box[3] + 6), colour=_FAINT)
        self._write(f"{across:,}", (box[0] + box[2], box[1] + box[3] + 6), colour=_FAINT, right=True)

    # -- Strokes --------------------------------------------------------------------------------------

    def _write(
        self,
        words: str,
        at: tuple[float, float],
        *,
        size: int = 20,
        colour: tuple[int, int, int] = _INK,
        right: bool = False,
    ) -> int:
        """Write at a corner, the upper left or the upper right; returns how wide it came out."""
        image = self._fonts[size].render(words, True, colour)
        self._canvas.blit(image, (at[0] - image.get_width() if right else at[0], at[1]))
        width: int = image.get_width()
        return width

    def _caption(
        self, box: tuple[int, int, int, int], words: str, names: list[tuple[str, tuple[int, int, int]]]
    ) -> None:
        """A panel's heading, and below it what its colours stand for."""
        wide = box[2] > 600
        self._write(words, (box[0], box[1] - (26 if wide else 44)), size=22)
        x = box[0] + (box[2] - 190 if wide else 0)
        for name, colour in names:
            self._pygame.draw.rect(self._canvas, colour, (x, box[1] - 20, 11, 11))
            x += 28 + self._write(name, (x + 16, box[1] - 22), colour=_FAINT)

    def _axes(
        self, box: tuple[int, int, int, int], ticks: list[float], low: float, high: float, power: float = 1.0
    ) -> None:
        for tick in ticks:
            y = box[1] + box[3] * (1.0 - ((tick - low) / (high - low)) ** power)
            self._pygame.draw.line(
                self._canvas, _FAINT if tick == 0.0 else _GRID, (box[0], y), (box[0] + box[2], y)
            )
            self._write(f"{tick:.3g}", (box[0] - 8, y - 7), colour=_FAINT, right=True)

    def _ticks_below(self, box: tuple[int, int, int, int], count: int) -> None:
        """Number the bars, as many of them as there is room for."""
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if box[2] * step >= 30 * count)
        for i in range(0, count, step):
            x = box[0] + (i + 0.5) * box[2] / count
            width = self._fonts[20].size(str(i))[0]
            self._write(str(i), (x - width / 2, box[1] + box[3] + 14), colour=_FAINT)

    def _bars(
        self,
        box: tuple[int, int, int, int],
        heights: FloatArray,
        colour: tuple[int, int, int],
        width: float,
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        slot, unit = box[2] / len(heights), box[3] / (high - low)
        zero = box[1] + box[3] + low * unit
        for i, height in enumerate((heights * unit).tolist()):
            left = round(box[0] + (i + (1.0 - width) / 2.0) * slot)
            right = max(left + 1, round(box[0] + (i + (1.0 + width) / 2.0) * slot))
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


class Screen:
    """Shows one scene after the other, in one of Gymnasium's render modes.

    Args:
        mode: ``"ansi"`` for text, ``"rgb_array"`` for a picture, ``"human"`` for a window.
        frames_per_second: how fast a window goes, at most.
    """

    def __init__(self, mode: str, frames_per_second: int) -> None:
        self._settings = (mode, frames_per_second)
        self._painter = None if mode == "ansi" else Painter()
        self._window = Window(frames_per_second) if mode == "human" else None

    def __reduce__(self) -> tuple[type[Screen], tuple[str, int]]:
        """A copy draws with brushes of its own: what pygame holds cannot be copied."""
        return Screen, self._settings

    def show(self, scene: Scene) -> Frame | str | None:
        """The scene as text or as a picture, or None when it is in the window."""
        if self._painter is None:
            return text(scene)
        if self._window is None:
            return self._painter.frame(scene)
        self._window.show(self._painter.surface(scene))
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()


class Window:
    """A window on the desktop.

    Args:
        frames_per_second: how fast, at most.
    """

    def __init__(self, frames_per_second: int) -> None:
        self._pygame = _load_pygame()
        self._pygame.display.init()
        self._pygame.display.set_caption("LDPDist-v0")
        self._desktop = self._pygame.display.set_mode((WIDTH, HEIGHT))
        self._clock = self._pygame.time.Clock()
        self._pace = frames_per_second

    def show(self, picture: pygame.Surface) -> None:
        """Show a picture, and wait until it is time for the next."""
        self._desktop.blit(picture, (0, 0))
        self._pygame.event.pump()
        self._pygame.display.flip()
        self._clock.tick(self._pace)

    def close(self) -> None:
        """Close it."""
        self._pygame.display.quit()
