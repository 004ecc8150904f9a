"""The network of ``amortized``: small, with operations that NumPy and PyTorch share.

What is trained is therefore what is played, and a trained model plays where PyTorch is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ldp_agents.rl.relations import KINDS, Relation
from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import IncompatibleChannelError

Parameters = Mapping[str, Any]
"""Arrays or tensors by name: ``w0``, ``b0`` of the first layer, and so on; ``w``, ``b`` of the last."""

_CHANNEL_INPUTS = len(KINDS) + 2
"""Number of inputs that describe a channel."""

NODE_INPUTS = _CHANNEL_INPUTS + 3 * len(KINDS)
"""Number of inputs that describe a node of a channel's relation."""

_DISTANCE = 4.0
"""Divisor of distances, so that a layer sees numbers of size one."""


def describe_channel(channel: Channel) -> FloatArray:
    """Inputs that describe a private channel, ``(5,)``: the kind of its relation, eps, and its logarithm."""
    if not math.isfinite(channel.epsilon):
        raise IncompatibleChannelError(
            f"a learned agent reads private messages, and {channel!r} sends labels; "
            f"the learner 'bayes' reads every channel"
        )
    kind = np.equal(KINDS, Relation(channel).kind).astype(np.float64)
    return np.append(kind, [channel.epsilon / 4.0, math.log(channel.epsilon)])


def describe_nodes(channel: Channel) -> FloatArray:
    """Inputs that describe each node of the channel's relation, ``(nodes, 14)``.

    The first five describe the channel. Then follow, in the places of its kind, the relation, its root and
    its square: a weight may be steep at 0, and grow as fast as a squared distance.
    """
    relation = Relation(channel)
    points = relation.nodes / (1.0 if relation.kind == "agreement" else _DISTANCE)
    rows = np.zeros((len(points), NODE_INPUTS))
    rows[:, :_CHANNEL_INPUTS] = describe_channel(channel)
    first = _CHANNEL_INPUTS + 3 * KINDS.index(relation.kind)
    rows[:, first : first + 3] = np.column_stack([points, np.sqrt(points), np.square(points) / 4.0])
    return rows


def make_parameters(
    inputs: int, hidden: tuple[int, ...], outputs: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """New parameters, initialised as by He et al. (2015), with an output near zero."""
    width, parameters = inputs, {}
    for i, layer_width in enumerate(hidden):
        parameters[f"w{i}"] = rng.standard_normal((width, layer_width)) * np.sqrt(2.0 / width)
        parameters[f"b{i}"] = rng.uniform(-0.5, 0.5, layer_width)
        width = layer_width
    parameters["w"] = rng.standard_normal((width, outputs)) * (0.1 / np.sqrt(width))
    parameters["b"] = np.zeros(outputs)
    return parameters


def apply_network(parameters: Parameters, rows: Any) -> Any:
    """The outputs ``(..., outputs)`` of inputs ``(..., inputs)``."""
    layer, i = rows, 0
    while f"w{i}" in parameters:
        layer, i = (layer @ parameters[f"w{i}"] + parameters[f"b{i}"]).clip(0), i + 1
    return layer @ parameters["w"] + parameters["b"]


def weights_of(outputs: Any, channel: Channel, logaddexp: Callable[[Any, Any], Any]) -> Any:
    """The weights ``(nodes,)`` of label evidence, from one output for each node.

    A label that agrees with a message by r agrees with the opposite message by 1 - r. One of the two is
    sent, so their likelihoods, ``exp`` of the weights, sum to one. If the sum changed from label to label,
    some hypothesis would be favoured in every round, whatever the messages are. ``logaddexp`` is the function
    of NumPy for arrays, or of PyTorch for tensors.
    """
    if Relation(channel).kind != "agreement":
        return outputs
    return outputs - logaddexp(outputs, outputs[list(range(len(outputs)))[::-1]])


def learned_weights(parameters: Parameters, channel: Channel) -> FloatArray:
    """The weight of label evidence at the nodes of the channel's relation, ``(nodes,)``."""
    outputs = apply_network(parameters, describe_nodes(channel))[:, 0]
    weights: FloatArray = weights_of(outputs, channel, np.logaddexp)
    return weights
