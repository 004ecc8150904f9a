"""Labels that are written into the digits of a number: which linear code could have put them there.

The last bits of a number, a parity of any bits, bits s to t modulo p: in all of these a label, modulo a prime
p, is a sum of fixed multiples of the number's bits. Of a code that is always kept, as many equations as bits
tell all the multiples, however odd the code: they are solved over the field of p elements.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_gym.numerics.arrays import BoolArray, IntArray
from ldp_gym.numerics.primes import least_prime

Codes = npt.NDArray[np.uint64]

_SPARE = 40
"""So many equations more than unknowns: a solution by chance has probability p^-40."""


def primes_for(num_labels: int) -> list[int]:
    """The primes up to 13, and the first at which all labels differ.

    Example:
        >>> primes_for(16)
        [2, 3, 5, 7, 11, 13, 17]
    """
    return sorted({2, 3, 5, 7, 11, 13, least_prime(num_labels)})


def break_code(numbers: Codes, labels: IntArray, prime: int, candidates: Codes) -> IntArray | None:
    """What the code that wrote these labels ``(n,)`` into numbers ``(n,)`` says of others; None if none did.

    Args:
        numbers: the bits of some numbers, of which the first hundred are looked at.
        labels: what was written into them.
        prime: p.
        candidates: the bits of the numbers to read.

    Returns:
        Labels modulo p, one for each of ``candidates``.
    """
    used = np.flatnonzero(
        _bits(np.array([np.bitwise_or.reduce(numbers) ^ np.bitwise_and.reduce(numbers)]))[0]
    )
    rows = min(len(numbers), len(used) + 1 + _SPARE)
    ones = np.ones((rows, 1), dtype=np.int64)
    system = np.concatenate(
        [_bits(numbers[:rows])[:, used].astype(np.int64), ones, labels[:rows, None] % prime], axis=1
    )
    weights = _solve(system, prime)
    if weights is None:
        return None
    read: IntArray = (_bits(candidates)[:, used].astype(np.int64) @ weights[:-1] + weights[-1]) % prime
    return read


def _bits(numbers: Codes) -> BoolArray:
    """``(n, 64)``."""
    return (numbers[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1) != 0


def _solve(system: IntArray, prime: int) -> IntArray | None:
    """A solution of ``A w = b`` for ``[A | b]`` modulo a prime; None if none, or too few equations."""
    system = system % prime
    num_rows, num_unknowns = system.shape[0], system.shape[1] - 1
    pivots: list[int] = []
    for column in range(num_unknowns):
        row = len(pivots)
        found = np.flatnonzero(system[row:, column])
        if not len(found):
            continue
        system[[row, row + found[0]]] = system[[row + found[0], row]]
        system[row] = system[row] * pow(int(system[row, column]), -1, prime) % prime
        factors = system[:, column].copy()
        factors[row] = 0
        system = (system - factors[:, None] * system[row]) % prime
        pivots.append(column)
        if len(pivots) == num_rows:
            return None
    if num_rows - len(pivots) < _SPARE // 2 or system[len(pivots) :, -1].any():
        return None
    weights = np.zeros(num_unknowns, dtype=np.int64)
    weights[pivots] = system[: len(pivots), -1]
    return weights
