"""Networks of label evidence, written once for PyTorch, which trains them, and for NumPy, which plays them.

A network is a dict of arrays, or of tensors, and :func:`apply` uses operations that NumPy and PyTorch spell
alike. So what is trained is what is played, and a trained model plays where PyTorch is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.wrappers.features.evidence import SLOPES, nodes, slope_weights
from ldp_gym.wrappers.features.relations import KINDS, relation_of

Parameters = Mapping[str, Any]
"""Arrays or tensors by name: ``w0``, ``b0`` of the first layer, and so on; ``w``, ``b`` of the last."""

CHANNEL_INPUTS = len(KINDS) + 2
"""How many numbers describe a channel."""

NODE_INPUTS = CHANNEL_INPUTS + 3 * len(KINDS)
"""How many numbers describe a node of a channel's relation."""

SLOPE_OUTPUTS = 2
"""What a network says of slopes: which one, and how much it counts."""

_PLACE_OF_ONE = 2
"""The place of the slope of one among :data:`SLOPES`."""

_DISTANCE = 4.0
"""By what distances are divided, so that a layer sees numbers of size one."""


def describe(channel: Channel) -> FloatArray:
    """What a network reads of a channel, ``(5,)``: the kind of its relation; eps, and its logarithm.

    Raises:
        IncompatibleChannelError: if its messages are not private.
    """
    if not math.isfinite(channel.epsilon):
        raise IncompatibleChannelError(
            f"a learned agent reads private messages, and {channel!r} sends labels; "
            f"the learner 'bayes' reads every channel"
        )
    kind = np.equal(KINDS, relation_of(channel).kind).astype(np.float64)
    return np.append(kind, [channel.epsilon / 4.0, math.log(channel.epsilon)])


def describe_nodes(channel: Channel) -> FloatArray:
    """What a network reads of each node of the channel's relation, ``(nodes, 14)``.

    First what describes the channel. Then, in the places of its kind, the relation, its root and its square:
    a weight may be steep at 0, as that of a share is at large eps, and grow as fast as a distance in Gauss'
    noise.
    """
    relation = relation_of(channel)
    points = nodes(relation) / (1.0 if relation.kind == "agreement" else _DISTANCE)
    rows = np.zeros((len(points), NODE_INPUTS))
    rows[:, :CHANNEL_INPUTS] = describe(channel)
    first = CHANNEL_INPUTS + 3 * KINDS.index(relation.kind)
    rows[:, first : first + 3] = np.column_stack([points, np.sqrt(points), np.square(points) / 4.0])
    return rows


def make(
    inputs: int, hidden: tuple[int, ...], outputs: int, rng: np.random.Generator
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
    """The outputs ``(..., outputs)`` of inputs ``(..., inputs)``."""
    layer, i = rows, 0
    while f"w{i}" in parameters:
        layer, i = (layer @ parameters[f"w{i}"] + parameters[f"b{i}"]).clip(0), i + 1
    return layer @ parameters["w"] + parameters["b"]


def weights_of(outputs: Any, channel: Channel, logaddexp: Callable[[Any, Any], Any]) -> Any:
    """The weights ``(nodes,)`` of label evidence, of one output for each node.

    A label that agrees with a message by r agrees with the opposite message by 1 - r. One of the two is
    sent, so their likelihoods, ``exp`` of the weights, sum to one. If the sum changed from label to label,
    some hypothesis would be favoured in every round, whatever the messages are. A distance weighs what the
    network says.

    Args:
        outputs: the network's.
        channel: whose messages are weighed.
        logaddexp: that of NumPy for arrays, that of PyTorch for tensors.
    """
    if relation_of(channel).kind != "agreement":
        return outputs
    return outputs - logaddexp(outputs, outputs[list(range(len(outputs)))[::-1]])


def learned_weights(parameters: Parameters, channel: Channel) -> tuple[FloatArray, FloatArray]:
    """One weight of label evidence ``(1, nodes)``, as the network says, that counts as it is ``(1,)``."""
    outputs = apply(parameters, describe_nodes(channel))[:, 0]
    return weights_of(outputs, channel, np.logaddexp)[None], np.ones(1)


def learned_slopes(parameters: Parameters, channel: Channel) -> tuple[FloatArray, FloatArray]:
    """Fixed weights ``(slopes, nodes)``, and what each one's evidence counts ``(slopes,)``, as it says."""
    return slope_weights(channel), counts_of(apply(parameters, describe(channel)), np.arange(len(SLOPES)))


def counts_of(outputs: Any, places: Any) -> Any:
    """What the evidence at each slope counts ``(..., slopes)``, of two outputs ``(..., 2)``.

    The first says which slope, the second how much it counts, both as logarithms: how much a message weighs
    is to be found over orders of magnitude. Between two slopes of :data:`SLOPES`, each twice the one before,
    both count, the nearer one more. At first it is the slope of one.

    Args:
        outputs: the network's.
        places: ``0, 1, ...``, one for each slope, as an array or a tensor.
    """
    place = (outputs[..., :1] + _PLACE_OF_ONE).clip(0, len(SLOPES) - 1)
    return math.e ** outputs[..., 1:] * (1.0 - abs(place - places)).clip(0)


ANY_TRUTH = "any-truth"
"""Weights too, of a model that also holds the dials of :mod:`ldp_agents.rl.any_truth`."""

EVIDENCE = {"weights": learned_weights, "slopes": learned_slopes, ANY_TRUTH: learned_weights}
"""What a network may say of a channel, by name: weights of label evidence, and what their evidence counts."""
