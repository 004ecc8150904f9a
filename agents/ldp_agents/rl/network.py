"""Log-likelihoods with learned weights: what ``amortized`` computes from a transcript.

Two message formats cover all channels. Either a message names, holds, covers or favours some
labels: its relation to a label is the *agreement*, from 0 to 1. Or it reveals a log-likelihood with
noise: its relation to a label is the *distance* of the label's level from it, in scales of the
noise. Neither says how far a message can be trusted: a network learns that, as a weight ``q(r)`` of
a relation r. The *learned log-likelihood* of hypothesis k is ``log sum_y f_k[y] exp(q(r_y))``: if
the weight is the channel's own log density, it is the exact log-likelihood. The network uses only
operations that NumPy and PyTorch share, so a trained network plays the same without PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.channels.noisy import GAUSS, NoisyChannel
from ldp_gym.core.arrays import FloatArray, Messages, expectations
from ldp_gym.core.errors import IncompatibleChannelError

KINDS = ("agreement", "laplace", "gauss")
"""Kinds of relations: agreements, and distances under two kinds of noise."""

_NODES = {"agreement": 65, "laplace": 129, "gauss": 129}
"""Number of points at which a weight is known, by kind of relation; between them it is linear."""

_REACH = 16.0
"""Largest distance, in scales of the noise; larger ones are cut to it."""

_CHANNEL_INPUTS = len(KINDS) + 2
"""Number of inputs that describe a channel."""

NODE_INPUTS = _CHANNEL_INPUTS + 3 * len(KINDS)
"""Number of inputs that describe a node of a channel's relation."""

_TYPICAL_DISTANCE = 4.0
"""Divisor of distances, so that a layer sees numbers of size one."""

Parameters = Mapping[str, Any]
"""Arrays or tensors by name: ``w0``, ``b0`` of the first layer, ...; ``w``, ``b`` of the last."""


class Relation:
    """Relation of messages to labels: its ``kind``, and the ``nodes`` that get a weight each."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        if not isinstance(channel, NoisyChannel):
            self.kind = "agreement"
            largest = 1.0
        elif channel.law is GAUSS:
            self.kind = "gauss"
            largest = _REACH
        else:
            self.kind = "laplace"
            largest = _REACH
        self.nodes: FloatArray = np.linspace(0.0, largest, _NODES[self.kind])

    def read(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        """Yield the relations ``(..., M)`` to labels of each number that a message reveals.

        An agreement is the only one of its message. A noisy vector reveals a number per coordinate.
        """
        if isinstance(self.channel, NoisyChannel):
            cells = self.channel.clipping.cells(candidates)
            for distances in self.channel.distances(messages, candidates, cells):
                yield from np.minimum(np.abs(distances), _REACH)
        else:
            yield self.channel.agreement(messages, candidates, posterior)

    def laws(self, candidates: FloatArray) -> FloatArray:
        """Law ``(..., K, M)``, under each hypothesis, of the label that a message is about.

        This is the user's own label, or ``h_t(y)`` where the channel clips (Section 4, eq. (5)).
        """
        if isinstance(self.channel, ClippedChannel):
            return self.channel.clipping.smooth_candidates(candidates)
        return candidates


def learned_log_likelihood(
    relation: Relation,
    weights: FloatArray,
    messages: Messages,
    candidates: FloatArray,
    posterior: FloatArray | None = None,
) -> FloatArray:
    """Return learned log-likelihoods ``log sum_y f_k[y] exp(q_y)``, ``(..., K)``, of messages.

    Args:
        relation: relation r of messages to labels, with the nodes at which weights are known.
        weights: weights q(r) at the nodes, ``(nodes,)``; between two nodes q is linear.
        messages: ``(..., *message_shape)``.
        candidates: the hypotheses f_k at the contexts, ``(..., K, M)``.
        posterior: public posterior ``(..., K)`` under which an adaptive channel sent the messages.
    """
    log_weights: FloatArray = np.zeros(())  # of the labels, (..., M)
    for values in relation.read(messages, candidates, posterior):
        log_weights = log_weights + np.interp(values, relation.nodes, weights)

    # Weights relative to the largest, so that the exponential cannot overflow.
    largest = log_weights.max(axis=-1, keepdims=True)
    relative = np.exp(log_weights - largest)
    return np.log(expectations(relation.laws(candidates), relative)) + largest


def describe_nodes(channel: Channel) -> FloatArray:
    """Return the network's inputs at each node of the channel's relation, ``(nodes, 14)``.

    The first five describe the channel: three indicators of the kind of its relation, eps / 4 and
    log eps. Then follow three columns per kind of relation. The three of the channel's kind hold
    the relation r, its root and ``r^2 / 4``, as a weight may be steep at 0 and grow as fast as a
    squared distance; the others are 0.

    Raises:
        IncompatibleChannelError: if eps is infinite: the channel is not private.
    """
    if not math.isfinite(channel.epsilon):
        raise IncompatibleChannelError(
            f"a learned agent reads private messages, and {channel!r} sends labels; "
            f"the learner 'bayes' reads every channel"
        )
    relation = Relation(channel)
    points = relation.nodes
    if relation.kind != "agreement":
        points = points / _TYPICAL_DISTANCE  # numbers of size one

    inputs = np.zeros((len(points), NODE_INPUTS))
    num_kinds = len(KINDS)
    inputs[:, :num_kinds] = np.equal(KINDS, relation.kind)  # 1 in the column of the kind, else 0
    inputs[:, num_kinds] = channel.epsilon / 4.0  # of size one for usual eps
    inputs[:, num_kinds + 1] = math.log(channel.epsilon)

    first_column = _CHANNEL_INPUTS + 3 * KINDS.index(relation.kind)
    inputs[:, first_column] = points
    inputs[:, first_column + 1] = np.sqrt(points)
    inputs[:, first_column + 2] = np.square(points) / 4.0
    return inputs


def make_parameters(hidden: tuple[int, ...], rng: np.random.Generator) -> dict[str, FloatArray]:
    """Draw initial parameters of a network with hidden layers of the given widths.

    The weights have the variance 2 / width of He et al. (2015), where width is the number of inputs
    of the layer. Those of the last layer are smaller, so that the output begins near zero.
    """
    parameters = {}
    width = NODE_INPUTS
    for i, layer_width in enumerate(hidden):
        parameters[f"w{i}"] = rng.standard_normal((width, layer_width)) * np.sqrt(2.0 / width)
        parameters[f"b{i}"] = rng.uniform(-0.5, 0.5, layer_width)
        width = layer_width
    parameters["w"] = rng.standard_normal((width, 1)) * (0.1 / np.sqrt(width))
    parameters["b"] = np.zeros(1)
    return parameters


def apply_network(parameters: Parameters, rows: Any) -> Any:
    """Return the outputs ``(..., outputs)`` of the network for inputs ``(..., inputs)``.

    Hidden layers are affine maps with a rectifier (ReLU); the last layer is affine.
    """
    values = rows
    i = 0
    while f"w{i}" in parameters:
        layer = values @ parameters[f"w{i}"] + parameters[f"b{i}"]
        values = layer.clip(0)
        i += 1
    return values @ parameters["w"] + parameters["b"]


def node_weights(outputs: Any, channel: Channel, logaddexp: Callable[[Any, Any], Any]) -> Any:
    """Return the weights ``(nodes,)`` of relations, from the network's output at each node.

    A label that agrees with a message by r agrees with the opposite message by 1 - r. One of the
    two is sent, so their likelihoods, ``exp`` of the weights, sum to one. If the sum changed from
    label to label, some hypothesis would be favoured in every round, whatever the messages are.
    ``logaddexp`` is the function of NumPy for arrays, or of PyTorch for tensors.
    """
    if Relation(channel).kind != "agreement":
        return outputs

    # Nodes go from 0 to 1 in equal steps: in the opposite order, r becomes 1 - r. A list of
    # indices, as PyTorch has no slices of negative step.
    opposite_nodes = list(range(len(outputs) - 1, -1, -1))
    return outputs - logaddexp(outputs, outputs[opposite_nodes])


def learned_weights(parameters: Parameters, channel: Channel) -> FloatArray:
    """Evaluate a network at a channel's nodes: log-weights ``(nodes,)`` of labels."""
    # The network has one output.
    outputs = apply_network(parameters, describe_nodes(channel))[:, 0]
    return node_weights(outputs, channel, np.logaddexp)
