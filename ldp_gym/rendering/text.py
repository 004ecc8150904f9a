"""Frames as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ldp_gym.numerics.arrays import FloatArray
from ldp_gym.rendering.history import FrameData

if TYPE_CHECKING:
    pass
from ldp_gym.rendering.summary import _groups, _labels_text, _message_bars, _message_text, _ordered, _power

_BLOCKS = " ▁▂▃▄▅▆▇█"


_ACROSS = 64
"""How many bars a line of text has room for."""


def text(scene: FrameData) -> str:
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
