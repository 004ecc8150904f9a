"""Random streams by purpose, uniforms, and draws as pure functions of numbers in (0, 1).

A label, a message or a context is computed from its uniforms by elementwise operations: one draw,
a batch of them and a whole tape are then the same computation with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import count

import numpy as np

from ldp_gym.core.arrays import FloatArray, IntArray

_SMALLEST = 2.0**-54
"""Half the spacing of NumPy's uniforms; replaces an exact zero."""

_DRAWN_AHEAD, _MOST_AHEAD = 1024, 2**20
"""Numbers that a generator draws at a time, so that the cost of its call vanishes, and the largest total of
generators that draw together."""

_MANY_ROWS = 256
"""Number of rows from which distribution functions are summed up label by label."""

_BEYOND_EPISODES = 2**31
"""Number of the first child seed that no environment uses: its episodes use children 0, 1, 2, ..."""


class Purpose(Enum):
    """Purposes of random numbers other than episodes; the value is the spawn key below the seed.

    Without it a class and a pool of the same seed would be made of the same numbers.
    """

    CLASS = ()
    """Hypotheses of a random class: the plain seed."""
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
    """Draw uniforms strictly inside (0, 1): ``shape`` from each generator, in row-major order.

    Because of that order a stream does not depend on how many rows are drawn at a time.
    """
    return _opened(_draw(rngs, shape))


def _draw(rngs: Sequence[np.random.Generator], shape: tuple[int, ...]) -> FloatArray:
    uniforms = np.empty((len(rngs), *shape))
    for rng, rows in zip(rngs, uniforms, strict=True):
        rng.random(out=rows)
    return uniforms


def _opened(uniforms: FloatArray) -> FloatArray:
    """Uniforms without exact zeros."""
    # The numbers of one kind side by side in memory: what is made of them runs along the rounds.
    by_kind = np.array(np.moveaxis(uniforms, -1, 0), order="C")
    zeros = by_kind == 0.0
    if zeros.any():
        by_kind[zeros] = _SMALLEST
    return np.moveaxis(by_kind, 0, -1)


class UniformStreams:
    """The uniforms of B generators, round by round; they are drawn some rounds ahead of their use.

    Args:
        rngs: the generators, which nobody else draws from.
        numbers: number of uniforms per round.
    """

    def __init__(self, rngs: Sequence[np.random.Generator], numbers: int) -> None:
        self._rngs, self._ahead = list(rngs), np.empty((len(rngs), 0, numbers))

    def take(self, rounds: int, most: int) -> FloatArray:
        """Uniforms ``(B, rounds, numbers)`` of the next rounds; ``most`` rounds at most are left to play."""
        games, left, numbers = self._ahead.shape
        if left < rounds:
            ahead = min(_DRAWN_AHEAD, _MOST_AHEAD // games) // max(1, numbers)
            more = _draw(self._rngs, (min(max(rounds, ahead), most) - left, numbers))
            self._ahead = np.concatenate([self._ahead, more], axis=1) if left else more
        taken, self._ahead = self._ahead[:, :rounds], self._ahead[:, rounds:]
        return _opened(taken)

    def keep(self, which: IntArray) -> None:
        """Go on with only some of the generators, by their indices."""
        self._rngs, self._ahead = [self._rngs[i] for i in which], self._ahead[which]


def categorical(weights: FloatArray, uniforms: FloatArray) -> IntArray:
    """Inverse transform of a categorical law: indices ``(...)`` from weights ``(..., M)``.

    The weights need not sum to one. An index of weight zero is never drawn.

    Example:
        >>> categorical(np.array([0.0, 1.0, 0.0, 3.0]), np.array([0.01, 0.24, 0.26, 0.99])).tolist()
        [1, 1, 3, 3]
    """
    return inverse(cumulative(weights), uniforms)


def cumulative(weights: FloatArray) -> FloatArray:
    """Cumulative distribution function ``(..., M)`` of a categorical law."""
    num_labels = weights.shape[-1]
    if weights.size < _MANY_ROWS * num_labels:
        sums: FloatArray = np.add.accumulate(weights, axis=-1)
    else:  # the same sums, label by label: along a row every addition waits for the one before
        sums = np.moveaxis(np.array(np.moveaxis(weights, -1, 0), order="C"), 0, -1)
        for y in range(1, num_labels):
            sums[..., y] += sums[..., y - 1]
    # The last index of positive weight ends at exactly 1, above every uniform.
    sums /= sums[..., -1:]
    return sums


def inverse(cumulative: FloatArray, uniforms: FloatArray) -> IntArray:
    """First index ``(...)`` at which a distribution function ``(..., M)`` exceeds each uniform."""
    if uniforms.size < cumulative.shape[-1]:
        return np.add.reduce(cumulative <= uniforms[..., None], axis=-1, dtype=np.int64)
    # Labels before all other axes: the comparison runs along the long ones.
    behind = cumulative.reshape((1,) * (uniforms.ndim + 1 - cumulative.ndim) + cumulative.shape)
    passed = behind.transpose(uniforms.ndim, *range(uniforms.ndim)) <= uniforms
    narrow = np.min_scalar_type(
        len(passed)
    )  # bytes, where they can hold the count, are summed fastest
    return np.add.reduce(passed.view(np.uint8), axis=0, dtype=narrow).astype(np.int64)


def integers(bound: int, uniforms: FloatArray) -> IntArray:
    """Uniform integers in ``0 .. bound - 1``."""
    return (uniforms * bound).astype(np.int64)


def laplace(uniforms: FloatArray) -> FloatArray:
    """Inverse transform of the Laplace law with scale 1."""
    tail = np.minimum(uniforms, 1.0 - uniforms)
    return np.copysign(np.log(2.0 * tail), uniforms - 0.5)


def normal(uniforms: FloatArray) -> FloatArray:
    """Inverse transform of the standard normal law."""
    from scipy.special import ndtri  # imported here: it would double the time of `import ldp_gym`

    return ndtri(uniforms)


def least_prime(at_least: int) -> int:
    """Smallest prime that is not below ``at_least``, by trial division."""
    return next(
        n for n in count(max(2, at_least)) if all(n % d for d in range(2, math.isqrt(n) + 1))
    )
