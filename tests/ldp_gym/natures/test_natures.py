import numpy as np
import pytest
from helpers import ALPHA, NATURES
from scipy import stats
from scipy.special import rel_entr

from ldp_gym.hypotheses.softmax_linear import SoftmaxLinear
from ldp_gym.natures.adversary import Adversary
from ldp_gym.natures.base import NATURES as REGISTRY
from ldp_gym.natures.base import NatureView
from ldp_gym.natures.drift import Drift
from ldp_gym.natures.iid import IID
from ldp_gym.natures.omniscient import Omniscient
from ldp_gym.natures.sequence import Sequence
from ldp_gym.numerics.sampling import open_uniforms
from ldp_gym.testing import check_nature


@pytest.mark.parametrize("name", NATURES)
def test_every_nature_keeps_the_contract(name):
    check_nature(REGISTRY.build(name, {"context_dim": 3}, NATURES[name]))


def stretch(nature, batch, rounds, **more):
    uniforms = open_uniforms([np.random.default_rng(0)], (batch, rounds, nature.num_uniforms))[0]
    indices = np.broadcast_to(np.arange(rounds), (batch, rounds))
    return NatureView(
        uniforms, indices, np.zeros((batch, nature.context_dim)), SoftmaxLinear(4, 5, 2), **more
    )


@pytest.mark.parametrize("nature", [IID(2), Drift(2, rate=0.4)])
def test_contexts_are_standard_normal_in_every_round(nature):
    contexts = nature.contexts(stretch(nature, 20_000, 5))
    for t in (0, 4):
        assert stats.kstest(contexts[:, t, 1], "norm").pvalue > ALPHA / 4


def test_the_drift_has_its_autocorrelation():
    contexts = Drift(1, rate=0.6).contexts(stretch(Drift(1), 50_000, 2))
    correlation = np.corrcoef(contexts[:, 0, 0], contexts[:, 1, 0])[0, 1]
    assert abs(np.arctanh(correlation) - np.arctanh(0.8)) < stats.norm.isf(ALPHA / 2) / np.sqrt(50_000 - 3)


def test_the_adversary_maximises_the_posterior_expected_kl():
    """By a plain loop over the pool, the hypotheses and the labels."""
    nature, f = Adversary(2, pool_size=9), SoftmaxLinear(4, 5, 2)
    weights = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    chosen = nature.contexts(stretch(nature, 3, 1, posterior=weights))
    for w, x in zip(weights, chosen[:, 0], strict=True):
        scores = [
            sum(w[k] * rel_entr(f(context)[k], w @ f(context)).sum() for k in range(4))
            for context in nature.pool
        ]
        np.testing.assert_array_equal(x, nature.pool[np.argmax(scores)])


def test_the_omniscient_maximises_the_kl_from_the_truth():
    nature, f = Omniscient(2, pool_size=9), SoftmaxLinear(4, 5, 2)
    weights = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    chosen = nature.contexts(stretch(nature, 3, 1, posterior=weights, truths=np.array([2, 0, 3])))
    for w, x, j in zip(weights, chosen[:, 0], (2, 0, 3), strict=True):
        scores = [rel_entr(f(context)[j], w @ f(context)).sum() for context in nature.pool]
        np.testing.assert_array_equal(x, nature.pool[np.argmax(scores)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Drift(2, rate=1.5), r"rate must lie in \(0, 1\], got 1.5"),
        (lambda: Sequence(2, [[1.0], [2.0]]), r"shape \(P, d\) with d=2, got \(2, 1\)"),
        (lambda: Sequence(1, [[1.0], [np.nan]]), "must be finite and within 1e.100, got nan"),
        (lambda: Sequence(1, [[1.0], [2.0]]).check_horizon(3), "2 contexts for a horizon of 3.*'cycle'"),
        (lambda: REGISTRY["advesary"], "did you mean 'adversary'"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
