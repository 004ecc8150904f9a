import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import entropy

from ldp_gym.core.divergences import kl, negentropy, tv


def random_laws(batch, seed, num_labels):
    """Random laws p, with zeros, and q, without, of shape ``(*batch, num_labels)``."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(num_labels, 0.2), size=batch)
    q = rng.dirichlet(np.full(num_labels, 0.5), size=batch)
    p[rng.random(p.shape) < 0.2] = 0.0
    p[..., 0] += p.sum(axis=-1) == 0.0
    p /= p.sum(axis=-1, keepdims=True)
    return p, q


BATCHES = pytest.mark.parametrize("batch", [(), (3,), (40, 60)])
"""Shapes below and above the size at which sums change their method."""


@BATCHES
@given(st.integers(0, 10**6), st.integers(2, 20))
def test_kl_is_that_of_scipy(batch, seed, num_labels):
    p, q = random_laws(batch, seed, num_labels)
    np.testing.assert_allclose(kl(p, q), rel_entr(p, q).sum(axis=-1), rtol=1e-10, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(2, 20))
def test_kl_from_one_truth_of_all_rounds_is_that_of_scipy(seed, num_labels):
    p, q = random_laws((40, 60), seed, num_labels)
    shared = p[:, :1]
    expected = rel_entr(shared, q).sum(axis=-1)
    np.testing.assert_allclose(kl(shared, q), expected, rtol=1e-10, atol=1e-12)


@BATCHES
@given(st.integers(0, 10**6), st.integers(2, 20))
def test_tv_is_half_of_the_l1_distance(batch, seed, num_labels):
    p, q = random_laws(batch, seed, num_labels)
    np.testing.assert_allclose(tv(p, q), 0.5 * np.abs(p - q).sum(axis=-1), atol=1e-12)


@BATCHES
@given(st.integers(0, 10**6), st.integers(2, 20))
def test_negentropy_is_minus_the_entropy_of_scipy(batch, seed, num_labels):
    p, _ = random_laws(batch, seed, num_labels)
    np.testing.assert_allclose(negentropy(p), -entropy(p, axis=-1), atol=1e-12)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        ([0.5, 0.5, 0.0], [0.5, 0.5, 0.0], 0.0),
        ([1.0, 0.0, 0.0], [0.5, 0.5, 0.0], 0.6931471805599453),
        ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0], np.inf),
    ],
)
def test_kl_where_probabilities_are_zero(p, q, expected):
    assert kl(np.array(p), np.array(q)) == pytest.approx(expected)


def test_kl_of_nearly_equal_laws_is_not_negative():
    p = np.random.default_rng(0).dirichlet(np.ones(50), size=1000)
    assert (kl(p, np.nextafter(p, 1.0)) >= 0).all()
