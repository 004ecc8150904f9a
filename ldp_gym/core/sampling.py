"""Random streams by purpose, uniforms, and random variables as pure functions of uniforms.

A label, a message or a context is computed from its uniforms by elementwise operations: one draw,
a batch of them and a whole tape are then the same computation with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray

_SMALLEST = 2.0**-54
"""Half the spacing of NumPy's uniforms; replaces an exact zero."""

_DRAWN_AHEAD = 1024
"""Number of uniforms that a generator draws at a time, so that the cost of its call vanishes."""

_MOST_AHEAD = 2**22
"""Largest number of uniforms that all generators of a batch draw ahead together: 32 MiB."""

_MANY_ROWS = 256
"""Number of rows from which distribution functions are summed up label by label."""

_BEYOND_EPISODES = 2**31
"""First child seed that no environment uses: its episodes use children 0, 1, 2, ..."""


class Purpose(Enum):
    """Purposes of random numbers other than episodes; the value is the spawn key below the seed.

    Without it a class and a pool of the same seed would be made of the same numbers.
    """

    CLASS = ()
    """Hypotheses of a random class, from the plain seed."""
    POOL = (_BEYOND_EPISODES,)
    """Contexts that a nature picks from."""
    CERTIFICATE = (_BEYOND_EPISODES + 1,)
    """Contexts at which a channel is certified."""
    INFORMATION = (_BEYOND_EPISODES + 2,)
    """Messages from which the information of a message is estimated."""
    SEARCH = (_BEYOND_EPISODES + 3,)
    """Contexts that a search tries."""


def stream(purpose: Purpose, seed: int) -> np.random.Generator:
    """Return the generator of a purpose under a seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=purpose.value))


def open_uniforms(rngs: Sequence[np.random.Generator], shape: tuple[int, ...]) -> FloatArray:
    """Draw uniforms ``(len(rngs), *shape)`` strictly inside (0, 1).

    Each generator draws its numbers row by row. So its stream does not depend on how many rows are
    drawn at a time.
    """
    return _without_zeros(_draw(rngs, shape))


def _draw(rngs: Sequence[np.random.Generator], shape: tuple[int, ...]) -> FloatArray:
    """Draw uniforms ``(len(rngs), *shape)`` in [0, 1)."""
    uniforms = np.empty((len(rngs), *shape))
    for rng, rows in zip(rngs, uniforms, strict=True):
        rng.random(out=rows)
    return uniforms


def _without_zeros(uniforms: FloatArray) -> FloatArray:
    """Return a copy of uniforms ``(..., numbers)`` in which tiny numbers replace exact zeros."""
    # The first numbers of all rounds stand side by side in memory, then the second ones, and so
    # on: what is computed from them runs along the rounds.
    last_axis = uniforms.ndim - 1
    by_kind = np.array(uniforms.transpose(last_axis, *range(last_axis)), order="C")
    zeros = by_kind == 0.0
    if zeros.any():
        by_kind[zeros] = _SMALLEST
    return by_kind.transpose(*range(1, by_kind.ndim), 0)


class UniformStreams:
    """The uniforms of B generators, round by round; they are drawn some rounds ahead of their use.

    Args:
        rngs: the generators; nothing else may draw from them.
        numbers: number of uniforms per round.
    """

    def __init__(self, rngs: Sequence[np.random.Generator], numbers: int) -> None:
        self._rngs = list(rngs)
        self._ahead = np.empty((len(rngs), 0, numbers))

    def take(self, rounds: int, most: int) -> FloatArray:
        """Return the uniforms of the next rounds, ``(B, rounds, numbers)``.

        Args:
            rounds: number of rounds to take.
            most: number of rounds that are left to play, these included: no more are drawn ahead.
        """
        if self._ahead.shape[1] < rounds:
            self._draw_ahead(rounds, most)
        taken = self._ahead[:, :rounds]
        self._ahead = self._ahead[:, rounds:]
        return _without_zeros(taken)

    def _draw_ahead(self, rounds: int, most: int) -> None:
        """Draw uniforms ahead of their use, so that those of at least ``rounds`` rounds are there.

        ``most`` is the number of rounds that are left to play.
        """
        games, left, numbers = self._ahead.shape
        numbers_per_game = min(_DRAWN_AHEAD, _MOST_AHEAD // games)
        rounds_ahead = numbers_per_game // max(1, numbers)
        wanted = min(max(rounds, rounds_ahead), most)
        drawn = _draw(self._rngs, (wanted - left, numbers))
        if left:
            drawn = np.concatenate([self._ahead, drawn], axis=1)
        self._ahead = drawn

    def keep(self, which: IntArray) -> None:
        """Continue with only some of the generators, given by their indices."""
        self._rngs = [self._rngs[i] for i in which]
        self._ahead = self._ahead[which]


def categorical(weights: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw indices ``(...)`` with probabilities in proportion to weights ``(..., M)``.

    The weights need not sum to one. An index of weight zero is never drawn.

    Example:
        >>> categorical(np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.01, 0.24, 0.26, 0.99])).tolist()
        [1, 1, 3, 3]
    """
    return inverse(cumulative(weights), uniforms)


def cumulative(weights: FloatArray) -> FloatArray:
    """Return the cumulative distribution functions ``(..., M)`` of weights ``(..., M)``.

    Example:
        >>> cumulative(np.array([1.0, 0.0, 3.0])).tolist()
        [0.25, 0.25, 1.0]
    """
    num_labels = weights.shape[-1]
    if weights.size < _MANY_ROWS * num_labels:
        sums: FloatArray = np.add.accumulate(weights, axis=-1)
    else:
        # The same sums, label by label: along a row every addition waits for the one before.
        by_label = np.array(np.moveaxis(weights, -1, 0), order="C")
        for y in range(1, num_labels):
            by_label[y] += by_label[y - 1]
        sums = np.moveaxis(by_label, 0, -1)
    # The last index of positive weight ends at exactly 1, above every uniform.
    sums /= sums[..., -1:]
    return sums


def inverse(cumulative: FloatArray, uniforms: FloatArray) -> IntArray:
    """Invert distribution functions ``(..., M)``: the first index ``(...)`` above each uniform.

    Example:
        >>> inverse(np.array([0.25, 0.25, 1.0]), np.array([0.2, 0.3])).tolist()
        [0, 2]
    """
    # The index is the number of values of the distribution function up to the uniform.
    if uniforms.size < cumulative.shape[-1]:
        return np.add.reduce(cumulative <= uniforms[..., None], axis=-1, dtype=np.int64)

    # Labels before all other axes: the comparison runs along the long ones.
    missing_axes = uniforms.ndim + 1 - cumulative.ndim
    aligned = cumulative.reshape((1,) * missing_axes + cumulative.shape)
    labels_first = aligned.transpose(uniforms.ndim, *range(uniforms.ndim))
    passed = labels_first <= uniforms

    # Bytes are summed up fastest, if they can hold the count.
    narrowest_type = np.min_scalar_type(len(passed))
    counts = np.add.reduce(passed.view(np.uint8), axis=0, dtype=narrowest_type)
    return counts.astype(np.int64)


def integers(bound: int, uniforms: FloatArray) -> IntArray:
    """Draw uniform integers in ``0 .. bound - 1``, in the shape of the uniforms.

    Example:
        >>> integers(10, np.array([0.05, 0.51, 0.99])).tolist()
        [0, 5, 9]
    """
    return (uniforms * bound).astype(np.int64)


def laplace(uniforms: FloatArray) -> FloatArray:
    """Draw Laplace variables of scale 1 by inverse transform, in the shape of the uniforms.

    Example:
        >>> laplace(np.array([0.25, 0.5, 0.75])).round(3).tolist()
        [-0.693, 0.0, 0.693]
    """
    tail = np.minimum(uniforms, 1.0 - uniforms)
    return np.copysign(np.log(2.0 * tail), uniforms - 0.5)


def normal(uniforms: FloatArray) -> FloatArray:
    """Draw standard normal variables by inverse transform, in the shape of the uniforms.

    Example:
        >>> normal(np.array([0.025, 0.5, 0.975])).round(2).tolist()
        [-1.96, 0.0, 1.96]
    """
    from scipy.special import ndtri  # imported here: it would double the time of `import ldp_gym`

    return ndtri(uniforms)


def least_prime(at_least: int) -> int:
    """Return the smallest prime that is not below ``at_least``.

    Example:
        >>> least_prime(257), least_prime(258)
        (257, 263)
    """
    number = max(2, at_least)
    while not _is_prime(number):
        number += 1
    return number


def _is_prime(number: int) -> bool:
    """Tell if a number of at least 2 is prime, by trial division."""
    return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))
