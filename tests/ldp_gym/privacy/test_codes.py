import numpy as np
import pytest

from ldp_gym.privacy.codes import break_code, primes_for


def numbers_of(seed, count):
    return np.random.default_rng(seed).integers(2**63, size=count, dtype=np.uint64)


@pytest.mark.parametrize(
    ("prime", "write"),
    [
        (2, lambda n: (n >> np.uint64(5)) ^ (n >> np.uint64(40))),
        (7, lambda n: (n >> np.uint64(10)) % np.uint64(2**31)),
        (13, lambda n: np.uint64(3) * (n >> np.uint64(50)) + np.uint64(11)),
    ],
)
def test_a_linear_code_is_read(prime, write):
    """The code is found from a hundred numbers, and read off a thousand others."""
    numbers, others = numbers_of(0, 105), numbers_of(1, 1000)

    def labels(n):
        value = write(n) & np.uint64(1) if prime == 2 else write(n) % np.uint64(prime)
        return value.astype(np.int64)

    np.testing.assert_array_equal(break_code(numbers, labels(numbers), prime, others), labels(others))


def test_where_there_is_no_code_none_is_found():
    labels = np.random.default_rng(2).integers(7, size=105)
    assert break_code(numbers_of(0, 105), labels, 7, numbers_of(1, 10)) is None


def test_too_few_numbers_show_no_code():
    numbers = numbers_of(0, 60)
    assert break_code(numbers, (numbers % np.uint64(7)).astype(np.int64), 7, numbers) is None


def test_the_primes_tell_all_labels_apart():
    assert primes_for(2) == [2, 3, 5, 7, 11, 13]
    assert primes_for(14)[-1] == 17
