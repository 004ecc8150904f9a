"""The wheel: labels on a circle, and an arc that tends to cover the user's.

The labels lie on a circle of circumference 1, each on a segment as long as its mass under the public mixture,
grouped by the hypothesis that likes them best. The user is a uniform point of the label's segment. The message
is the start z in (0, 1] of an arc of length r, which is ``e^eps`` times likelier to cover the point than not to.

With ``r* = (D - 1) / (e^eps - 1)``, ``D = eps / (1 - e^-eps)``, the arc tells ``C(eps)`` nats about the point, the
most that any eps-private message can: where a point tells the hypothesis, nothing is lost but at the edges.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.arrays import FloatArray, IntArray, Messages, at, mixture
from ldp_gym.channels.base import CHANNELS, Channel, log_mixed

_SHORTEST = 1e-6
"""The shortest arc: below it, positions on the circle run out of floats."""


@CHANNELS.register("wheel")
class Wheel(Channel):
    """The wheel of the uniform mixture. Pure, free of M, non-interactive.

    Privacy: given the point, an arc has one density if it covers it and ``e^-eps`` times that if not; the point
    depends on the label alone. Use it where the hypotheses' supports hardly meet.

    The base measure of :meth:`log_density` is Lebesgue's on (0, 1].
    """

    num_uniforms = 3  # the point on its segment, whether to cover it, and where the arc starts

    @cached_property
    def arc(self) -> float:
        """The arc's length, ``r*``."""
        excess = self.epsilon / -math.expm1(-self.epsilon) - 1.0
        log_length = math.log(max(excess, self.epsilon / 4.0)) - self.epsilon - _log1mexp(self.epsilon)
        return min(max(math.exp(log_length), _SHORTEST), 0.5)

    @cached_property
    def _log_densities(self) -> tuple[float, float]:
        """The log density of an arc that covers the point, and of one that does not."""
        log_norm = float(np.logaddexp(math.log(self.arc) + self.epsilon, math.log1p(-self.arc)))
        return self.epsilon - log_norm, -log_norm

    @property
    def message_space(self) -> gym.spaces.Box:
        """The start of the arc."""
        return gym.spaces.Box(0.0, 1.0, (1,), dtype=np.float64)

    def _segments(
        self, candidates: FloatArray, posterior: FloatArray | None
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """The labels in their order on the circle ``(..., M)``, and the starts and lengths of their segments."""
        weights = np.full(self.num_hypotheses, 1.0 / self.num_hypotheses)
        if self.interactive and posterior is not None:
            weights = posterior
        order = candidates.argmax(axis=-2).argsort(axis=-1, kind="stable")
        mass = mixture(weights, candidates)
        lengths = np.take_along_axis(mass, np.broadcast_to(order, mass.shape), axis=-1)
        ends = np.cumsum(lengths, axis=-1)
        lengths, ends = lengths / ends[..., -1:], ends / ends[..., -1:]
        return order, ends - lengths, lengths

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        order, starts, lengths = self._segments(candidates, posterior)
        place = at(order.argsort(axis=-1), np.asarray(labels))
        point = at(starts, place) + uniforms[..., 0] * at(lengths, place)
        covers = uniforms[..., 1] < math.exp(self._log_densities[0] + math.log(self.arc))
        start = point + np.where(covers, -self.arc, 1.0 - self.arc) * uniforms[..., 2]
        start -= np.floor(start)
        return np.where(start <= 0.0, 1.0, start)[..., None]

    def _covered(self, messages: Messages, starts: FloatArray, lengths: FloatArray) -> FloatArray:
        """The share of each segment that the arc covers, ``(..., M)``, in the order on the circle."""
        covered = np.zeros(np.broadcast_shapes(messages.shape, starts.shape))
        safe = np.maximum(lengths, np.finfo(np.float64).tiny)
        for turn in (0.0, 1.0):  # the arc may run over the end of the circle
            low, high = messages - turn, messages + (self.arc - turn)
            share = (np.minimum(starts + lengths, high) - np.maximum(starts, low)) / safe
            inside = (low <= starts) & (starts <= high)
            covered += np.where(lengths > 0.0, np.clip(share, 0.0, 1.0), inside)
        return np.minimum(covered, 1.0)

    def log_density(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        order, starts, lengths = self._segments(candidates, posterior)
        covered = self._covered(messages, starts, lengths)
        places = np.broadcast_to(order.argsort(axis=-1), covered.shape)
        return log_mixed(np.take_along_axis(covered, places, axis=-1), self._log_densities)

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        order, starts, lengths = self._segments(candidates, posterior)
        covered = self._covered(messages, starts, lengths)
        if candidates.ndim == 2:
            chance = covered @ candidates[:, order].T
        else:
            ordered = np.take_along_axis(candidates, order[..., None, :], axis=-1)
            chance = np.einsum("...km,...m->...k", ordered, covered)
        none = self.is_none(messages)[..., None]
        return np.where(none, 0.0, log_mixed(chance, self._log_densities))

    def extrema(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """Arcs that begin or end where a segment does: between them all densities are linear."""
        _, starts, lengths = self._segments(candidates, posterior)
        edges = np.concatenate([starts, starts + lengths])
        edges = np.concatenate([edges, edges - self.arc])
        edges -= np.floor(edges)
        return np.unique(np.where(edges <= 0.0, 1.0, edges))[:, None]


@CHANNELS.register("adaptive-wheel")
class AdaptiveWheel(Wheel):
    """The wheel of the public posterior's mixture: as it turns, likely labels take up more of it (interactive)."""

    interactive: ClassVar[bool] = True


def _log1mexp(x: float) -> float:
    """``log(1 - e^-x)``."""
    return math.log(-math.expm1(-x))
