"""A set of hypotheses that tends to hold the one that likes the label best."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import gymnasium as gym
import numpy as np

from ldp_gym.channels.capacity import best_share
from ldp_gym.channels.scores import quadratic_losses
from ldp_gym.channels.subset_selection import SubsetChannel
from ldp_gym.channels.votes import ballots_for_winners, cast_votes, expected_votes, votes
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, mixture


class Vote(SubsetChannel):
    """A random set of hypotheses that probably holds the one that likes the label best.

    ``v(y) = argmax_j f_j(x)[y]``; among equals a private coin decides. The message is -1 for the hypotheses
    in the set and +1 for the others. Use it when hypotheses have labels of their own; where many hypotheses
    share their labels, ``split`` loses less.
    """

    free_of_num_labels: ClassVar[bool] = True

    @property
    def num_names(self) -> int:
        """K."""
        return self.num_hypotheses

    @cached_property
    def size(self) -> int:
        """``r* K``, rounded, which tells most about a vote; Ye and Barg's size estimates its law best."""
        share = round(best_share(self.epsilon) * self.num_names)
        return min(max(1, share), self.num_names - 1)

    @property
    def num_uniforms(self) -> int:
        """Those of the set, and a coin among equals."""
        return super().num_uniforms + 1

    @property
    def message_space(self) -> gym.spaces.Box:
        """-1 in the set, +1 outside."""
        return gym.spaces.Box(-1.0, 1.0, (self.num_hypotheses,), dtype=np.float64)

    def _write(self, sets: FloatArray) -> Messages:
        return 1.0 - 2.0 * sets

    def _read(self, messages: Messages) -> FloatArray:
        return (messages < 0.0).astype(np.float64)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: FloatArray | None = None,
    ) -> Messages:
        chosen = cast_votes(candidates, np.asarray(labels), uniforms[..., -1])
        return self._write(self._draw(chosen, uniforms[..., :-1]))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        return mixture(self._read(messages), votes(candidates))

    def _chances(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None
    ) -> FloatArray:
        return expected_votes(candidates, self._read(messages))

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: FloatArray | None = None
    ) -> FloatArray:
        held = self._chances(messages, candidates, posterior)
        return quadratic_losses(held, self._squares(ballots_for_winners(candidates)), self.epsilon)

    def worst_case_messages(self, candidates: FloatArray, posterior: FloatArray | None = None) -> Messages:
        """A window of names that slides around: a density takes two values, so any ratio is eps or 0."""
        return self.messages_given_coins(np.arange(self.num_names) / self.num_names, candidates)
