"""Label evidence: what a message says for every hypothesis, if its relation to a label weighs so much.

With the relation ``r_y`` of a message to label y (:mod:`ldp_gym.wrappers.features.relations`) and a weight
``q(r)``, the evidence of hypothesis k is ``log sum_y f_k[y] exp(q(r_y))``. With the channel's own log
density for a weight this would be the log-likelihood. Here the weight is what an agent has
learned, as a table over the relation.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray, Messages, expectations
from ldp_gym.wrappers.features.relations import Relation, relation_of

_NODES = {"agreement": 65, "laplace": 129, "gauss": 129}
"""At how many points a weight is known, by the kind of the relation; between them it is linear."""


def nodes(relation: Relation) -> FloatArray:
    """The points of the relation at which a weight is known."""
    return np.linspace(relation.low, relation.high, _NODES[relation.kind])


SLOPES = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Weights to choose from for an agent that learns none of its own."""


def slope_weights(channel: Channel) -> FloatArray:
    """The weights ``(slopes, nodes)`` that grow as a label fits a message better, at each slope b.

    An agreement r is a share: ``log(1 - r + r e^b)``, from 0 to b. A distance d in a noise of straight tails
    weighs ``-b d``, in one of Gauss' ``-b d^2 / 2``.
    """
    relation = relation_of(channel)
    points, slopes = nodes(relation), SLOPES[:, None]
    if relation.kind == "agreement":
        return np.log1p(points * np.expm1(slopes))
    return -slopes * (points if relation.kind == "laplace" else np.square(points) / 2.0)


class LabelEvidence:
    """The evidence of every hypothesis, by one weight or several.

    Args:
        channel: whose messages are read.
        weights: ``q`` at the :func:`nodes` of the channel's relation, ``(I, nodes)``, a row for each weight.
    """

    def __init__(self, channel: Channel, weights: FloatArray) -> None:
        self.relation = relation_of(channel)
        self._nodes, self._weights = nodes(self.relation), weights

    def __call__(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        """The evidence ``(..., K, I)`` of messages at candidates ``(..., K, M)``."""
        total = [np.zeros(())] * len(self._weights)
        for relation in self.relation.read(messages, candidates, posterior):
            total = [
                sum_ + np.interp(relation, self._nodes, weights)
                for sum_, weights in zip(total, self._weights, strict=True)
            ]
        laws = self.relation.laws(candidates)
        return np.stack([_log_mean_exp(weights, laws) for weights in total], axis=-1)


def _log_mean_exp(weights: FloatArray, laws: FloatArray) -> FloatArray:
    """``log sum_y f_k[y] exp(q_y)`` of every hypothesis, ``(..., K)``, for weights ``(..., M)``."""
    peak = weights.max(axis=-1, keepdims=True)
    return np.log(expectations(laws, np.exp(weights - peak))) + peak
