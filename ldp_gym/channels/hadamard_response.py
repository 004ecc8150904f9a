"""Hadamard response (Acharya, Sun and Zhang 2019): at small eps subset selection, but shorter."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Public
from ldp_gym.channels.two_level import EvenChannel, LabelChannel
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.core.sampling import integers


class HadamardResponse(EvenChannel, LabelChannel):
    """A column of a Hadamard matrix that probably has +1 in the label's row.

    With N the least power of two above M, the message is a column z in ``0..N-1``, ``e^eps`` times
    likelier if the Sylvester-Hadamard matrix has +1 in row y + 1 and column z than if it has -1
    (row 0 is all ones). Half of the columns say yes to a label.

    Example:
        K = 3, M = 3, eps = 1: N = 4, a column that says yes has probability
        ``e / (2 (e + 1)) = 0.366``, any other 0.134. Column 1 says no to labels 0 and 2, whose rows
        1 and 3 have bit 0:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> HadamardResponse(3, 3, 100).agreement(np.array(1), table).tolist()
        [0.0, 1.0, 0.0]

    Privacy: a column has one of two probabilities, ``e^eps`` apart.

    When to use it: in place of ``subset-selection``, for short messages, at eps up to about 1. When
    not: at larger eps half of the columns are too many, and at any eps its signal fades with M.

    The base measure of :meth:`log_density` counts columns.
    """

    num_uniforms = 2  # a column, and whether it is to say yes

    @property
    def order(self) -> int:
        """Order N of the Hadamard matrix: the least power of two above M."""
        return 1 << self.num_labels.bit_length()

    @property
    def _log_fit(self) -> float:
        """Log probability of each column that has +1 at the label."""
        return math.log(2.0 / self.order) - math.log1p(math.exp(-self.epsilon))

    @property
    def agreement_rates(self) -> tuple[float, float]:
        """Probabilities of +1 at the user's label, and at another."""
        return 1.0 / (1.0 + math.exp(-self.epsilon)), 0.5

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """Space of messages: the number of a column of the Hadamard matrix."""
        return gym.spaces.Discrete(self.order)

    def encode(
        self,
        labels: IntArray,
        candidates: FloatArray,
        uniforms: FloatArray,
        posterior: Public = None,
    ) -> Messages:
        """Draw columns ``(...)``, with +1 at the label with probability ``e^eps / (1 + e^eps)``."""
        rows = np.asarray(labels) + 1
        columns = integers(self.order, uniforms[..., 0])
        has_plus_one = np.bitwise_count(rows & columns) % 2 == 0

        probability_of_plus_one, _ = self.agreement_rates
        wants_plus_one = uniforms[..., 1] < probability_of_plus_one
        # Flipping a bit that is set in the row maps the columns with +1 to those with -1, one to
        # one.
        lowest_set_bit = rows & -rows
        flipped = columns ^ lowest_set_bit
        return np.where(has_plus_one == wants_plus_one, columns, flipped)

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Public = None
    ) -> FloatArray:
        """Return 1 for the labels at which a message's column has +1, 0 for others."""
        columns = np.asarray(messages)[..., None]
        rows = np.arange(1, self.num_labels + 1)
        has_plus_one = np.bitwise_count(columns & rows) % 2 == 0
        return has_plus_one.astype(np.float64)

    def worst_case_messages(self, candidates: FloatArray, posterior: Public = None) -> Messages:
        """Return column 1, with -1 at label 0 and +1 at label 1; no ratio is larger."""
        return np.array([1])
