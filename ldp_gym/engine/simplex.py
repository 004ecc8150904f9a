"""The action space: distributions over the labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import Error
from gymnasium.spaces import utils as space_utils
from gymnasium.vector import utils as vector_utils

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray

_ADVICE = (
    "an action is a distribution over the labels; ldp_gym.wrappers.MixtureAction and SoftmaxAction turn "
    'any agent\'s output into one, as the id "LDPDistBox-v0" does for RL libraries'
)


class Simplex(spaces.Space[FloatArray]):
    """Distributions: arrays of nonnegative numbers that sum to one along the last axis.

    It is no ``Box``, whose points are nearly all outside: an RL library that does not know it refuses it when
    an agent is made, with the text of the space, which names the wrappers.

    Args:
        num_labels: M.
        batch_shape: leading axes, for a batch of distributions.
        seed: the seed of :meth:`sample`.

    Attributes:
        low: zeros, the lower bounds.
        high: ones, the upper bounds.

    Example:
        >>> space = Simplex(4, seed=0)
        >>> space
        Simplex(4)
        >>> space.sample() in space, np.array([0.5, 0.5, 0.5, 0.5]) in space
        (True, False)
    """

    shape: tuple[int, ...]

    def __init__(
        self,
        num_labels: int,
        batch_shape: tuple[int, ...] = (),
        seed: int | np.random.Generator | None = None,
    ) -> None:
        num_labels = validation.whole("num_labels (M)", num_labels, least=1)
        validation.fits_memory("num_labels", num_labels, math.prod(batch_shape), "the space")
        shape = (*batch_shape, num_labels)
        self.low = np.zeros(shape)
        self.high = np.ones(shape)
        super().__init__(shape, np.float64, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """True: a point is one array."""
        return True

    def sample(self, mask: None = None, probability: None = None) -> FloatArray:
        """A uniform point of the simplex; masks are refused, as by a Box."""
        if mask is not None or probability is not None:
            raise Error(
                "Simplex.sample takes no mask and no probability: these are for spaces of few points"
            )
        points = self.np_random.standard_exponential(self.shape)
        points /= np.add.reduce(points, axis=-1, keepdims=True)
        return points

    def contains(self, x: Any) -> bool:
        """Tell if :meth:`distribution` accepts ``x``."""
        try:
            self.distribution(x)
        except (TypeError, ValueError):
            return False
        return True

    def distribution(self, action: npt.ArrayLike) -> FloatArray:
        """``action`` as distributions, checked and renormalised.

        Raises:
            ValueError: saying what is wrong with it, by how much, and what to do instead.
        """
        point = game_arrays.prediction_floats("an action", action)
        if point.shape != self.shape:
            raise ValueError(f"an action has shape {self.shape}, got {point.shape}; {_ADVICE}")
        return game_arrays.predictions(point, _name_action, _ADVICE)

    def to_jsonable(self, sample_n: Iterable[FloatArray]) -> list[Any]:
        """Points as nested lists."""
        return [point.tolist() for point in sample_n]

    def from_jsonable(self, sample_n: Sequence[Any]) -> list[FloatArray]:
        """Points from nested lists."""
        return [np.asarray(point, dtype=np.float64) for point in sample_n]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and self.shape == other.shape

    def __repr__(self) -> str:
        *batch_shape, num_labels = self.shape
        if batch_shape:
            return f"Simplex({num_labels}, {tuple(batch_shape)})"
        return f"Simplex({num_labels})"

    def __str__(self) -> str:
        return f"{self!r} ({_ADVICE})"


def _name_action(row: list[int]) -> str:
    return f"the action of game {row[-1]}" if row else "the action"


_AS_A_BOX: tuple[Any, ...] = (
    space_utils.flatdim,
    space_utils.flatten,
    space_utils.flatten_space,
    space_utils.unflatten,
    vector_utils.concatenate,
    vector_utils.create_empty_array,
    vector_utils.iterate,
)
"""Functions of Gymnasium that look a space up by its very class, and work on a simplex as on a box."""

for _function in _AS_A_BOX:
    _of_a_box: Callable[..., Any] = _function.registry[spaces.Box]
    _function.register(Simplex, _of_a_box)


@vector_utils.batch_space.register(Simplex)
def _batch_simplex(space: Simplex, n: int = 1) -> Simplex:
    *batch_shape, num_labels = space.shape
    return Simplex(num_labels, (n, *batch_shape), seed=deepcopy(space.np_random))


def _batch_simplices(simplices: Sequence[Simplex]) -> Simplex:
    if any(space != simplices[0] for space in simplices):
        shapes = [space.shape for space in simplices]
        raise ValueError(f"expected simplices of one shape, got {shapes}")
    return _batch_simplex(simplices[0], len(simplices))


vector_utils.batch_differing_spaces.register(Simplex, _batch_simplices)
