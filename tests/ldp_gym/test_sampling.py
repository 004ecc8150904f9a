"""Uniforms and what is made of them, at the edges."""

import numpy as np

from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import softmax
from ldp_gym.numerics.sampling import categorical, cumulative, inverse, open_uniforms


class Zeros:
    """A generator whose every draw is the one that U(0, 1) must not have."""

    def random(self, out):
        out[:] = 0.0


def test_uniforms_are_strictly_inside():
    assert (open_uniforms([Zeros(), Zeros()], (3, 2)) > 0.0).all()


def test_an_index_begins_where_the_one_before_ends():
    law = cumulative(np.array([0.25, 0.25, 0.0, 0.5]))
    assert inverse(law, np.array([0.2, 0.25, 0.49, 0.5, 0.999])).tolist() == [0, 1, 1, 3, 3]
    assert categorical(np.array([0.0, 1.0]), np.array([2.0**-54])).tolist() == [1]


def test_weights_that_floats_can_hold_are_kept():
    weights = softmax(np.array([0.0, -40.0, -700.0, -800.0]))
    np.testing.assert_allclose(weights[:3], np.exp([0.0, -40.0, -700.0]), rtol=1e-12)
    assert weights[3] == 0.0


def test_probabilities_without_a_reciprocal_are_none():
    table = validation.distributions([[1.0, 5e-324], [0.5, 0.5]])
    assert table[0, 1] == 0.0
    assert np.isfinite(1.0 / table[table > 0.0]).all()
