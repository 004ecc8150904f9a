"""The least prime, against a sieve."""

import numpy as np

from ldp_gym.core.sampling import least_prime


def test_the_least_prime_is_the_sieve_s():
    is_prime = np.ones(1100, dtype=bool)
    is_prime[:2] = False
    for n in range(2, 34):
        is_prime[n * n :: n] = False
    primes = np.flatnonzero(is_prime)
    assert [least_prime(n) for n in range(1000)] == [primes[primes >= n][0] for n in range(1000)]
