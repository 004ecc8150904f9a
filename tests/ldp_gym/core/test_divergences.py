import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import entropy

from ldp_gym.core.divergences import kl, negentropy, tv


@pytest.mark.parametrize(
    "batch", [(), (3,), (40, 60)]
)  # below and above where the sums change their method
@given(st.integers(0, 10**6), st.integers(2, 20))
def test_against_scipy(batch, seed, labels):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(labels, 0.2), size=batch)
    q = rng.dirichlet(np.full(labels, 0.5), size=batch)
    p[rng.random(p.shape) < 0.2] = 0.0
    p[..., 0] += p.sum(axis=-1) == 0.0
    p /= p.sum(axis=-1, keepdims=True)
    for truth in (
        (p, p[:, :1]) if batch == (40, 60) else (p,)
    ):  # one truth a round, and one for all rounds
        np.testing.assert_allclose(
            kl(truth, q), rel_entr(truth, q).sum(axis=-1), rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(tv(truth, q), 0.5 * np.abs(truth - q).sum(axis=-1), atol=1e-12)
    np.testing.assert_allclose(negentropy(p), -entropy(p, axis=-1), atol=1e-12)


def test_divergences_where_probabilities_are_zero_or_nearly_equal():
    p = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    q = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(kl(p, q), [0.0, np.log(2), np.inf])
    assert kl(p, p).tolist() == [0.0, 0.0, 0.0]
    p = np.random.default_rng(0).dirichlet(np.ones(50), size=1000)
    assert (kl(p, np.nextafter(p, 1.0)) >= 0).all()
