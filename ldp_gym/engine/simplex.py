"""The action space: distributions over the labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import Error
from gymnasium.vector import utils

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray

_ADVICE = (
    "an action is a distribution over the labels; ldp_gym.wrappers.MixtureAction and SoftmaxAction turn "
    'any agent\'s output into one, as the id "LDPDistBox-v0" does for RL libraries'
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
        num_labels = validation.whole("num_labels (M)", num_labels, least=1)
        validation.fits_memory("num_labels", num_labels, math.prod(batch_shape), "the space")
        super().__init__(0.0, 1.0, (*batch_shape, num_labels), dtype=np.float64, seed=seed)

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplex) and self.shape == other.shape

    def __repr__(self) -> str:
        *batch_shape, num_labels = self.shape
        return (
            f"Simplex({num_labels}, {tuple(batch_shape)})"
            if batch_shape
            else f"Simplex({num_labels})"
        )


def _name_action(row: list[int]) -> str:
    return f"the action of game {row[-1]}" if row else "the action"


# Gymnasium's functions look a space up by its very class; to these a simplex is a box.
utils.concatenate.register(Simplex, utils.concatenate.registry[spaces.Box])
utils.create_empty_array.register(Simplex, utils.create_empty_array.registry[spaces.Box])
utils.iterate.register(Simplex, utils.iterate.registry[spaces.Box])


@utils.batch_space.register(Simplex)
def _batch_simplex(space: Simplex, n: int = 1) -> Simplex:
    *batch_shape, num_labels = space.shape
    return Simplex(num_labels, (n, *batch_shape), seed=deepcopy(space.np_random))


def _batch_simplices(simplices: Sequence[Simplex]) -> Simplex:
    if any(space != simplices[0] for space in simplices):
        raise ValueError(
            f"expected simplices of one shape, got {[space.shape for space in simplices]}"
        )
    return _batch_simplex(simplices[0], len(simplices))


utils.batch_differing_spaces.register(Simplex, _batch_simplices)
