"""Frames as text."""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import FloatArray
from ldp_gym.envs.rendering.history import FrameData
from ldp_gym.envs.rendering.summary import (
    bar_starts,
    label_masses,
    labels_text,
    message_bars,
    message_text,
    scale_power,
)

_BLOCKS = " ▁▂▃▄▅▆▇█"

_ACROSS = 64
"""How many bars a line of text has room for."""


def draw_text(data: FrameData) -> str:
    """A frame in a few lines for the terminal."""
    power = scale_power(data, _ACROSS)
    heights = {name: row**power for name, row in label_masses(data, _ACROSS).items()}
    top = max(row.max() for row in heights.values())
    lines = [data.title, f"round {data.played:,} of {data.horizon:,}; {labels_text(data, _ACROSS)}"]
    lines += [f"{name:12s}{_spark(row, top)}" for name, row in heights.items()]
    beliefs = {"posterior": data.posterior} | ({} if data.weights is None else {"weights": data.weights})
    starts = bar_starts(len(data.posterior), _ACROSS)
    for name, belief in beliefs.items():
        note = (
            f"{belief[data.truth]:.3f} on the truth, hypothesis {data.truth}"
            if data.truth >= 0
            else "the truth is no member"
        )
        lines.append(f"{name:12s}{_spark(np.add.reduceat(belief, starts), 1.0)}  {note}")
    bars = message_bars(data, _ACROSS)
    marks = ""
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
    """Bars of text, eight steps high; what is not zero is seen."""
    steps = np.ceil(np.clip(values / top, 0.0, 1.0) * 8.0 - 1e-9).astype(int)
    return "".join(_BLOCKS[step] for step in steps)
