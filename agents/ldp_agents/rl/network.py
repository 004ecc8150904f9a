"""Networks of label evidence, written once for PyTorch, which trains them, and for NumPy, which plays them.

A network is a dict of arrays, or of tensors, and :func:`apply` uses operations that NumPy and PyTorch spell
alike. So what is trained is what is played, and a trained model plays where PyTorch is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.features.evidence import SLOPES, nodes, slope_weights
from ldp_gym.features.relations import KINDS, relation_of
from ldp_gym.numerics.arrays import FloatArray

Parameters = Mapping[str, Any]
"""Arrays or tensors by name: ``w0``, ``b0`` of the first layer, and so on; ``w``, ``b`` of the last."""

NUM_INPUTS = 2 * len(KINDS) + 2

_DISTANCE = 4.0
"""By what distances are divided, so that a layer sees numbers of size one."""


def describe(channel: Channel) -> FloatArray:
    """What a network reads of a channel, ``(8,)``.

    A place for a relation of each kind, all of them 0; which kind it is; eps, and its logarithm.
    """
    row = np.zeros(NUM_INPUTS)
    row[len(KINDS) + KINDS.index(relation_of(channel).kind)] = 1.0
    row[-2:] = channel.epsilon / 4.0, math.log(channel.epsilon)
    return row


def describe_nodes(channel: Channel) -> FloatArray:
    """What a network reads of each node of the channel's relation, ``(nodes, 8)``."""
    relation = relation_of(channel)
    points = nodes(relation)
    rows = np.tile(describe(channel), (len(points), 1))
    scale = 1.0 if relation.kind == "agreement" else _DISTANCE
    rows[:, KINDS.index(relation.kind)] = points / scale
    return rows


def make(
    hidden: tuple[int, ...], outputs: int, rng: np.random.Generator, inputs: int = NUM_INPUTS
) -> dict[str, FloatArray]:
    """New parameters: layers initialised as by He et al. (2015), and an output that is near zero at first."""
    width, parameters = inputs, {}
    for i, layer_width in enumerate(hidden):
        parameters[f"w{i}"] = rng.standard_normal((width, layer_width)) * np.sqrt(2.0 / width)
        parameters[f"b{i}"] = rng.uniform(-0.5, 0.5, layer_width)
        width = layer_width
    parameters["w"] = rng.standard_normal((width, outputs)) * (0.1 / np.sqrt(width))
    parameters["b"] = np.zeros(outputs)
    return parameters


def apply(parameters: Parameters, rows: Any) -> Any:
    """The outputs ``(..., outputs)`` of inputs ``(..., 8)``."""
    layer, i = rows, 0
    while f"w{i}" in parameters:
        layer, i = (layer @ parameters[f"w{i}"] + parameters[f"b{i}"]).clip(0), i + 1
    return layer @ parameters["w"] + parameters["b"]


def learned_weights(parameters: Parameters, channel: Channel) -> tuple[FloatArray, FloatArray]:
    """One weight of label evidence ``(1, nodes)``, as the network says, that counts as it is ``(1,)``."""
    return apply(parameters, describe_nodes(channel)).T, np.ones(1)


def learned_slopes(parameters: Parameters, channel: Channel) -> tuple[FloatArray, FloatArray]:
    """Fixed weights ``(slopes, nodes)``, and what each one's evidence counts ``(slopes,)``, as it says."""
    return slope_weights(channel), counts_of(apply(parameters, describe(channel))) / SLOPES


def counts_of(outputs: Any) -> Any:
    """What the slopes count ``(..., slopes)``, of outputs ``(..., 1 + slopes)``: one in all at first.

    Outputs are logarithms: how much a message weighs is to be found over orders of magnitude. The first of
    them raises all slopes.
    """
    return math.e ** (outputs[..., 1:] + outputs[..., :1]) / len(SLOPES)


EVIDENCE = {"weights": learned_weights, "slopes": learned_slopes}
"""What a network may say of a channel, by name: weights of label evidence, and what their evidence counts."""
