"""What an argument must satisfy, and what is said when it does not."""

import numpy as np

from ldp_gym.numerics import validation


def test_probabilities_without_a_reciprocal_are_none():
    table = validation.distributions([[1.0, 5e-324], [0.5, 0.5]])
    assert table[0, 1] == 0.0
    assert np.isfinite(1.0 / table[table > 0.0]).all()
