"""The public posterior is Bayes' rule."""

import numpy as np

from ldp_gym.posterior import PublicPosterior


def test_the_posterior_is_bayes_rule():
    posterior = PublicPosterior(3)
    posterior.advance(np.log([0.5, 0.2, 0.1]))
    np.testing.assert_allclose(posterior.weights, np.array([5, 2, 1]) / 8)
    posterior.advance(np.array([-2000.0, -3000.0, -1e6]))
    assert np.isfinite(posterior.weights).all()
