"""The action space: distributions over the labels."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import FloatArray, row_sums

TOLERANCE = 1e-4
"""How far an action may be from summing to one; within it, the action is renormalised."""

_ADVICE = (
    "an action is a distribution over the labels; ldp_gym.wrappers.MixtureAction and SoftmaxAction turn "
    "any agent's output into one"
)


class Simplex(spaces.Box):
    """A Box whose points sum to one along the last axis.

    Args:
        num_labels: M.
        batch_shape: leading axes, for a batch of distributions.
        seed: the seed of :meth:`sample`.

    Example:
        >>> space = Simplex(4, seed=0)
        >>> space
        Simplex(4)
        >>> space.sample() in space, np.array([0.5, 0.5, 0.5, 0.5]) in space
        (True, False)
    """

    def __init__(
        self,
        num_labels: int,
        batch_shape: tuple[int, ...] = (),
        seed: int | np.random.Generator | None = None,
    ) -> None:
        super().__init__(0.0, 1.0, (*batch_shape, num_labels), dtype=np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> FloatArray:
        """A uniform point of the simplex."""
        points = self.np_random.standard_exponential(self.shape)
        points /= np.add.reduce(points, axis=-1, keepdims=True)
        return points

    def contains(self, x: Any) -> bool:
        """Whether :meth:`distribution` accepts ``x``."""
        try:
            self.distribution(x)
        except (TypeError, ValueError):
            return False
        return True

    def distribution(self, action: npt.ArrayLike) -> FloatArray:
        """``action`` as distributions that sum to one to the last bit.

        Raises:
            ValueError: saying what is wrong with it, by how much, and what to do instead.
        """
        point = np.asarray(action, dtype=np.float64)
        if point.shape != self.shape:
            raise ValueError(f"an action has shape {self.shape}, got {point.shape}; {_ADVICE}")
        total = row_sums(point)
        off = np.abs(total - 1.0).max() if point.ndim > 1 else abs(float(total) - 1.0)
        # Comparisons that NaN fails too; only a failure pays for finding the culprit. An argmin costs half
        # of a min on short arrays.
        if not (point.item(point.argmin()) >= 0.0 and off <= TOLERANCE):
            subject = "the action of game" if point.ndim > 1 else "the action"
            fault = validation.fault_of_distributions(point, TOLERANCE)
            raise ValueError(f"{subject}{fault}; {_ADVICE}")
        normalised: FloatArray = np.divide(point, total[..., None] if point.ndim > 1 else total)
        return normalised

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and self.shape == other.shape

    def __repr__(self) -> str:
        return f"Simplex({', '.join(map(str, self.shape))})"


@batch_space.register(Simplex)
def _batch_simplex(space: Simplex, n: int = 1) -> Simplex:
    *batch_shape, num_labels = space.shape
    return Simplex(num_labels, (n, *batch_shape), seed=deepcopy(space.np_random))
