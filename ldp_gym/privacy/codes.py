"""Labels that are written into the digits of a number: which linear code could have put them there.

The last bits of a number, a parity of any bits, bits s to t modulo p: in all of these a label, modulo a prime
p, is a sum of fixed multiples of the number's bits. Of a code that is always kept, as many equations as bits
tell all the multiples, however odd the code: they are solved over the field of p elements.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.core.arrays import IntArray
from ldp_gym.core.sampling import least_prime
from ldp_gym.privacy.bits import Codes, changing

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
    used = np.array(changing(numbers), dtype=np.uint64)
    rows = min(len(numbers), len(used) + 1 + _SPARE)
    weights = _solve(np.column_stack([_unknowns(numbers[:rows], used), labels[:rows]]), prime)
    return None if weights is None else _unknowns(candidates, used) @ weights % prime


def _unknowns(numbers: Codes, used: Codes) -> IntArray:
    """What the multiples belong to: the used bits of each number, and 1, ``(n, U + 1)``."""
    bits = (numbers[:, None] >> used & np.uint64(1)).astype(np.int64)
    return np.column_stack([bits, np.ones(len(bits), dtype=np.int64)])


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
