"""Hadamard response (Acharya, Sun and Zhang 2019): subset selection at small eps, in short messages."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Posterior
from ldp_gym.channels.two_level import LabelChannel, quadratic_losses
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, masses
from ldp_gym.core.sampling import integers


class HadamardResponse(LabelChannel):
    """A column of a Hadamard matrix in which the label probably has +1 (Acharya, Sun and Zhang 2019).

    With N the least power of two above M, the message is a column z in ``0..N-1``. It is ``e^eps`` times
    likelier if the Sylvester-Hadamard matrix has +1 in row y + 1 and column z (row 0 is all ones) than if it
    has -1. Half of the columns say yes to a label.

    Example:
        K = 3, M = 3, eps = 1: N = 4, a column that says yes has probability ``e / (2 (e + 1)) = 0.366``, any
        other 0.134. Column 1 says no to labels 0 and 2, whose rows 1 and 3 have bit 0:

        >>> table = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
        >>> HadamardResponse(3, 3, 100).agreement(np.array(1), table).tolist()
        [0.0, 1.0, 0.0]

    Privacy: a column has one of two probabilities, ``e^eps`` apart.

    When to use it: as ``subset-selection`` where messages must be short, at eps up to about 1. When not: at
    larger eps half of the columns are too many, and at any eps its signal fades with M.

    The base measure of :meth:`log_density` counts columns.
    """

    num_uniforms = 2  # a column, and whether it is to say yes

    @property
    def order(self) -> int:
        """N."""
        return 1 << self.num_labels.bit_length()

    @property
    def _log_yes(self) -> float:
        """The log probability of a column that says yes."""
        return math.log(2.0 / self.order) - math.log1p(math.exp(-self.epsilon))

    @property
    def agreement_rates(self) -> tuple[float, float]:
        return 1.0 / (1.0 + math.exp(-self.epsilon)), 0.5

    @property
    def message_space(self) -> gym.spaces.Discrete:
        """The columns."""
        return gym.spaces.Discrete(self.order)

    def encode(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray, posterior: Posterior = None
    ) -> Messages:
        rows = np.asarray(labels) + 1
        columns = integers(self.order, uniforms[..., 0])
        says_yes = np.bitwise_count(rows & columns) % 2 == 0
        wanted = uniforms[..., 1] < 1.0 / (1.0 + math.exp(-self.epsilon))
        # A bit that the row has turns a column of one kind into one of the other, one to one.
        return np.where(says_yes == wanted, columns, columns ^ (rows & -rows))

    def agreement(
        self, messages: Messages, candidates: FloatArray, posterior: Posterior = None
    ) -> FloatArray:
        columns, rows = np.asarray(messages)[..., None], np.arange(1, self.num_labels + 1)
        return (np.bitwise_count(columns & rows) % 2 == 0).astype(np.float64)

    def _log_fits(self, messages: Messages, candidates: FloatArray, posterior: Posterior) -> float:
        return self._log_yes

    def worst_case_messages(self, candidates: FloatArray, posterior: Posterior = None) -> Messages:
        """The second column, which says no to the first label and yes to the second: no ratio is larger."""
        return np.array([1])

    def _chances(self, messages: Messages, candidates: FloatArray, posterior: Posterior) -> FloatArray:
        if candidates.ndim > 2:  # every round has its own table: one column of it is enough
            return super()._chances(messages, candidates, posterior)
        return (1.0 + masses(_walsh(candidates, self.order), np.asarray(messages))) / 2.0

    def loss_estimates(
        self, messages: Messages, candidates: FloatArray, posterior: Posterior = None
    ) -> FloatArray:
        # A column says yes to two labels in a quarter of the cases, and to one in half of them.
        squares = math.exp(self._log_yes) * self.order / 4.0 * np.square(candidates).sum(axis=-1)
        return quadratic_losses(self._chances(messages, candidates, posterior), squares, self.epsilon)


def _walsh(candidates: FloatArray, order: int) -> FloatArray:
    """``sum_y f_k[y] H[y + 1, z]`` for every column z, by the fast Walsh transform: ``(..., K, N)``."""
    values = np.zeros((*candidates.shape[:-1], order))
    values[..., 1 : candidates.shape[-1] + 1] = candidates
    spare = np.empty_like(values)
    for _ in range(order.bit_length() - 1):
        # The halves differ in the highest bit of the index, which becomes the lowest: when every bit has
        # had its turn, all are back in their places. So the operations run along halves, never along pairs.
        first, second = values[..., : order // 2], values[..., order // 2 :]
        np.add(first, second, out=spare[..., ::2])
        np.subtract(first, second, out=spare[..., 1::2])
        values, spare = spare, values
    return values
