"""What text and pictures share: how many bars there is room for, and what is said in words."""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.envs.rendering.history import FrameData


def bar_starts(length: int, most: int) -> IntArray:
    """Where groups of equal size begin, when ``length`` bars have to fit into ``most``."""
    return np.linspace(0, length, min(length, most), endpoint=False).astype(np.int64)


def label_order(data: FrameData, most: int) -> IntArray:
    """The order in which labels are drawn: as they come if they fit, else the truth's likeliest first."""
    labels = len(data.distribution)
    return np.arange(labels) if labels <= most else np.argsort(-data.distribution, kind="stable")


def label_masses(data: FrameData, most: int) -> dict[str, FloatArray]:
    """The masses of the truth, and of the prediction if there is one, on the bars of the labels."""
    order, starts = label_order(data, most), bar_starts(len(data.distribution), most)
    rows = {"truth": data.distribution}
    if data.prediction is not None:
        rows["prediction"] = data.prediction
    return {name: np.add.reduceat(row[order], starts) for name, row in rows.items()}


def message_bars(data: FrameData, most: int) -> FloatArray | None:
    """A message with several numbers, as bars: the means of groups where there are too many of them."""
    if data.message is None or data.message.ndim == 0:
        return None
    values = data.message.astype(np.float64)
    if len(values) == len(data.distribution):  # it speaks of labels
        values = values[label_order(data, most)]
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


def labels_text(data: FrameData, most: int) -> str:
    """How many labels there are, and how they are drawn."""
    labels = len(data.distribution)
    if labels <= most:
        return f"{labels} labels"
    return f"{labels:,} labels in {most} groups, the truth's likeliest first; square-root scale"


def scale_power(data: FrameData, most: int) -> float:
    """Groups go from most of the mass to next to nothing: the square root shows both ends."""
    return 1.0 if len(data.distribution) <= most else 0.5
