"""The public posterior is Bayes' rule; on request it is tempered, or shares its weight."""

import numpy as np
import pytest

from ldp_gym.engine.posterior import PublicPosterior


def test_the_posterior_is_bayes_rule():
    posterior = PublicPosterior(3)
    posterior.advance(np.log([0.5, 0.2, 0.1]))
    np.testing.assert_allclose(posterior.weights, np.array([5, 2, 1]) / 8)
    posterior.advance(np.array([-2000.0, -3000.0, -1e6]))
    assert np.isfinite(posterior.weights).all()


def test_no_number_of_messages_is_too_many():
    posterior = PublicPosterior(2)
    for _ in range(10_000):
        posterior.advance(np.array([-1000.0, -1000.001]))
    np.testing.assert_allclose(np.log(posterior.weights[1]), -10.0, rtol=1e-4)


def test_a_hypothesis_that_is_ruled_out_stays_out():
    posterior = PublicPosterior(3)
    posterior.advance(np.array([-np.inf, -1.0, -2.0]))
    posterior.advance(np.array([0.0, -1.0, -1.0]))
    np.testing.assert_allclose(posterior.weights, np.array([0.0, 1.0, np.exp(-1.0)]) / (1 + np.exp(-1.0)))


@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.1), (0.5, 0.02)])
def test_weights_are_tempered_and_shared_in_linear_space(rate, share):
    likelihoods = np.random.default_rng(0).random((3, 20, 4))
    posterior = PublicPosterior(4, (3,), rate=rate, share=share)
    along = PublicPosterior(4, (3,), rate=rate, share=share).along(np.log(likelihoods))
    weights = np.full((3, 4), 0.25)
    for t in range(20):
        np.testing.assert_allclose(posterior.weights, weights, rtol=1e-9)
        np.testing.assert_allclose(along[:, t], weights, rtol=1e-9)
        posterior.advance(np.log(likelihoods[:, t]))
        weights = weights * likelihoods[:, t] ** rate
        weights = (1 - share) * weights / weights.sum(axis=-1, keepdims=True) + share / 4


def test_a_message_that_all_rule_out_tells_nothing():
    posterior = PublicPosterior(2)
    for ruled_out in ([0.0, 0.5], [0.5, 0.0], [0.0, 0.0]):
        with np.errstate(divide="ignore"):
            posterior.advance(np.log(ruled_out))
    np.testing.assert_allclose(posterior.weights, 0.5)
