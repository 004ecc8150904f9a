"""Uniforms and what is made of them, at the edges."""

import numpy as np

from ldp_gym.core.sampling import categorical, cumulative, inverse, open_uniforms


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
