"""Where frames are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_gym.envs.rendering.history import FrameData
from ldp_gym.envs.rendering.painter import HEIGHT, WIDTH, Frame, Painter, load_pygame
from ldp_gym.envs.rendering.text import draw_text

if TYPE_CHECKING:
    import pygame


class Screen:
    """Shows one frame after the other, in one of Gymnasium's render modes.

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

    def show(self, data: FrameData) -> Frame | str | None:
        """The frame as text or as a picture, or None when it is in the window."""
        if self._painter is None:
            return draw_text(data)
        if self._window is None:
            return self._painter.frame(data)
        self._window.show(self._painter.surface(data))
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
        self._pygame = load_pygame()
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
