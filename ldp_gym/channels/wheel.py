"""The wheel: hypotheses on a circle, and an arc that tends to cover the one that likes the label best.

Each hypothesis stands on a circle of circumference 1, in the middle of a stretch as long as the probability,
under the public mixture, of a label that votes for it (``v(y) = argmax_j f_j(x)[y]``; a private coin decides
among equals). Their order is drawn with public coins. The user reports an arc of length r, ``e^eps`` times
likelier if it covers the label's hypothesis.

An arc covers a share r of the mixture on average. If every arc covered just ``r* = (D - 1) / (e^eps - 1)``,
where ``D = eps / (1 - e^-eps)``, a message would tell ``C(eps)`` nats about the vote: the most that an
eps-private message can.
"""

from __future__ import annotations

from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import AdaptiveChannel
from ldp_gym.channels.listing import MOST_ORDERED, NUM_DRAWS, MessageList, all_orders
from ldp_gym.channels.two_level import TwoLevelChannel, best_share, log_mixture, quadratic_losses
from ldp_gym.channels.vote import (
    ballots_for_winners,
    cast_votes,
    expected_votes,
    vote_shares,
    votes,
    winners,
)
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at, mixture, uniform_distribution

_STEPS = 2.0**40
"""Into how many steps the circle is divided."""


class Wheel(TwoLevelChannel):
    """A noisy arc on a circle of hypotheses, which probably covers the one that likes the label best.

    The message says how far behind the start of the arc each hypothesis stands, in (0, 1]: those below r are
    covered.

    Privacy: an arc has one density if it covers the label's hypothesis and ``e^-eps`` times that if not, and
    the circle depends on public things alone. Use it where a few hypotheses have labels of their own: on 8 or
    32 disjoint supports no other non-adaptive channel here comes as close to the information limit.

    The base measure of :meth:`log_density` is the law of the order, times Lebesgue's for the arc's start.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def num_uniforms(self) -> int:
        """A lot for each hypothesis' place, whether to cover, where the arc starts, a coin among equals."""
        return self.num_hypotheses + 3

    @property
    def message_space(self) -> gym.spaces.Box:
        """How far behind the start of the arc each hypothesis stands."""
        return gym.spaces.Box(0.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def _stretches(self, candidates: FloatArray, posterior: FloatArray | None) -> FloatArray:
        """The public probability of a vote for each hypothesis, ``(..., K)``."""
        return vote_shares(self._weights(posterior), candidates)

    def _weights(self, posterior: FloatArray | None) -> FloatArray:
        """The weights of the hypotheses in the public mixture."""
        return uniform_distribution(self.num_hypotheses)

    def _arc(self, stretches: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The arc's length r, and the log density of an arc that covers: ``(..., 1)`` each.

        ``r*``, unless one hypothesis has more than that: then so much, up to a half, where the wheel asks for
        that one against the rest.
        """
        longest = stretches.max(axis=-1, keepdims=True)
        arc = np.clip(longest, best_share(self.epsilon), 0.5)
        return arc, self.epsilon - np.logaddexp(np.log(arc) + self.epsilon, np.log1p(-arc))

    def _places(self, lots: FloatArray, stretches: FloatArray) -> FloatArray:
        """Where each hypothesis stands when the lots ``(..., K)`` have put them in order."""
        order = lots.argsort(axis=-1)
        lengths = np.take_along_axis(np.broadcast_to(stretches, lots.shape), order, axis=-1)
        places = np.empty(lots.shape)
        np.put_along_axis(places, order, np.cumsum(lengths, axis=-1) - lengths / 2.0, axis=-1)
        return _on_grid(places)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        stretches = self._stretches(candidates, posterior)
        places = self._places(uniforms[..., :-3], stretches)
        chosen = cast_votes(candidates, np.asarray(labels), uniforms[..., -1])
        arc, log_density = (side[..., 0] for side in self._arc(stretches))
        covers = uniforms[..., -3] < arc * np.exp(log_density)
        chosen = np.broadcast_to(chosen, places.shape[:-1])
        start = at(places, chosen) + np.where(covers, -arc, 1.0 - arc) * uniforms[..., -2]
        return _behind(places, _on_grid(start)[..., None])

    def _coverage(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Which hypotheses the arc covers, ``(..., K)``, and the log density of such an arc, ``(..., 1)``."""
        arc, log_density = self._arc(self._stretches(candidates, posterior))
        return (messages <= arc).astype(np.float64), log_density

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        covered, _ = self._coverage(messages, candidates, posterior)
        return mixture(covered, votes(candidates))

    def _log_fits(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        return self._arc(self._stretches(candidates, posterior))[1]

    def log_likelihood(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        covered, log_density = self._coverage(messages, candidates, posterior)
        return log_mixture(expected_votes(candidates, covered), log_density, self.epsilon)

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        laws, names = ballots_for_winners(candidates), winners(candidates)
        arc, log_density = self._arc(self._stretches(candidates, posterior))
        names = np.broadcast_to(names, (*messages.shape[:-1], names.shape[-1]))
        places = np.take_along_axis(messages, names, axis=-1)
        apart = np.abs(places[..., :, None] - places[..., None, :])
        # How many of the starts make an arc cover both of two hypotheses, (..., J, J).
        both = np.maximum(arc[..., None] - np.minimum(apart, 1.0 - apart), 0.0)
        squares = np.exp(log_density) * np.einsum("...kj,...kj->...k", laws, laws @ both)
        covered = expected_votes(candidates, (messages <= arc).astype(np.float64))
        return quadratic_losses(covered, squares, self.epsilon)

    def list_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> MessageList:
        """For all orders, or random ones, an arc per interval of starts that cover the same hypotheses."""
        num_hypotheses, stretches = self.num_hypotheses, self._stretches(candidates, posterior)
        complete = num_hypotheses <= MOST_ORDERED
        if complete:  # where on the circle the first one stands says nothing
            lots = np.insert(all_orders(num_hypotheses - 1) + 1.0, 0, 0.0, axis=1)
        else:
            lots = np.random.default_rng(0).random((NUM_DRAWS, num_hypotheses))
        places = self._places(lots, stretches)
        ends = np.sort(np.concatenate([places, places - self._arc(stretches)[0]], axis=-1) % 1.0, axis=-1)
        ends = np.concatenate([ends, ends[:, :1] + 1.0], axis=-1)
        messages = _behind(places[:, None], (ends[:, 1:, None] + ends[:, :-1, None]) / 2.0)
        with np.errstate(divide="ignore"):
            log_weights = np.log(np.diff(ends, axis=-1) / len(places))
        draws = np.repeat(np.arange(len(places)), 2 * num_hypotheses)
        return MessageList(messages.reshape(-1, num_hypotheses), log_weights.reshape(-1), draws, complete)

    def worst_case_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """An arc around each hypothesis: a density takes two values, so any ratio is eps or 0."""
        stretches = self._stretches(candidates, posterior)
        places = self._places(np.arange(self.num_hypotheses, dtype=np.float64), stretches)
        return _behind(places, places[:, None] - self._arc(stretches)[0] / 2.0)


class AdaptiveWheel(AdaptiveChannel, Wheel):
    """The wheel on which likely hypotheses have much room, and unlikely ones stand close together."""

    def _weights(self, posterior: FloatArray | None) -> FloatArray:
        return self._public(posterior)


def _on_grid(places: FloatArray) -> FloatArray:
    """Places on the circle in whole steps: their differences are exact, whatever they are.

    Otherwise the last bits of a message show how it was rounded, and with it whose place the arc was put at.
    """
    return np.floor(places * _STEPS) / _STEPS


def _behind(places: FloatArray, start: FloatArray) -> FloatArray:
    """How far behind the start places are on the circle, in (0, 1]."""
    distance = places - start
    distance -= np.floor(distance)
    return np.where(distance <= 0.0, 1.0, distance)
