from functools import partial

import numpy as np
import pytest
from helpers import ALPHA, NATURES
from scipy import stats
from scipy.special import rel_entr

from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.natures import IID, Adversary, Cycle, Drift, Omniscient, Sequence
from ldp_gym.natures.base import NATURES as REGISTRY
from ldp_gym.natures.base import NatureView
from ldp_gym.testing import check_nature
from ldp_gym.theory.information import MessageInformation, information_rate


@pytest.mark.parametrize("name", NATURES)
def test_every_nature_keeps_the_contract(name):
    check_nature(REGISTRY.build(name, {"context_dim": 3}, NATURES[name]))


CLASS = SoftmaxLinear(4, 5, 2)
CHANNEL = RandomizedResponse(4, 5, 100, epsilon=1.0)


def stretch(nature, batch, rounds, **more):
    uniforms = open_uniforms([np.random.default_rng(0)], (batch, rounds, nature.num_uniforms))[0]
    indices = np.broadcast_to(np.arange(rounds), (batch, rounds))
    prepared = nature.prepare(CLASS, partial(MessageInformation, CHANNEL))
    previous = np.zeros((batch, nature.context_dim))
    return NatureView(uniforms, indices, previous, CLASS, prepared=prepared, **more)


def test_contexts_are_standard_normal_in_every_round_and_the_drift_has_its_autocorrelation():
    for nature in (IID(2), Drift(2, rate=0.4)):
        contexts = nature.contexts(stretch(nature, 20_000, 5))
        for t in (0, 4):
            assert stats.kstest(contexts[:, t, 1], "norm").pvalue > ALPHA / 4
    contexts = Drift(1, rate=0.6).contexts(stretch(Drift(1), 50_000, 2))
    correlation = np.corrcoef(contexts[:, 0, 0], contexts[:, 1, 0])[0, 1]
    assert abs(np.arctanh(correlation) - np.arctanh(0.8)) < stats.norm.isf(ALPHA / 2) / np.sqrt(
        50_000 - 3
    )


@pytest.mark.parametrize("kind", [Cycle, Sequence])
def test_a_cycle_and_a_sequence_begin_with_their_first_context(kind):
    nature = kind(1, [[5.0], [7.0], [2.0]])
    rounds = 7 if kind is Cycle else 3
    assert (
        nature.contexts(stretch(nature, 2, rounds)).ravel().tolist()
        == 2 * [5, 7, 2, 5, 7, 2, 5][:rounds]
    )


@pytest.mark.parametrize("left", [1, 10, 1000])
def test_the_adversary_weighs_the_charge_against_what_a_message_tells(left):
    """By a plain loop over the pool and the hypotheses, with the exact information of a message."""
    assert Adversary(2, pool_size=1).pool.shape == (1, 2)
    nature = Adversary(2, pool_size=9)
    weights = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    chosen = nature.contexts(stretch(nature, 3, 1, posterior=weights, rounds_left=left))
    for w, x in zip(weights, chosen[:, 0], strict=True):
        scores = []
        for f in CLASS(nature.pool):
            charge = w @ rel_entr(f, w @ f).sum(axis=-1)
            rounds = stats.entropy(w) / information_rate(CHANNEL, f, w).rate
            scores.append(charge * min(left, rounds))
        np.testing.assert_array_equal(x, nature.pool[np.argmax(scores)])


def test_the_omniscient_maximises_the_kl_from_the_truth():
    nature, rng = Omniscient(2, pool_size=9), np.random.default_rng(1)
    weights, members = rng.dirichlet(np.ones(4), size=60), rng.integers(4, size=60)

    def truth(_, candidates):
        return np.stack([candidates[0, :, j] for j in members])

    chosen, other_way = nature.contexts(stretch(nature, 60, 1, posterior=weights, truth=truth)), 0
    for w, x, j in zip(weights, chosen[:, 0], members, strict=True):
        scores = [rel_entr(f[j], w @ f).sum() for f in CLASS(nature.pool)]
        np.testing.assert_array_equal(x, nature.pool[np.argmax(scores)])
        other_way += np.argmax(scores) != np.argmax(
            [rel_entr(w @ f, f[j]).sum() for f in CLASS(nature.pool)]
        )
    assert other_way > 0


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="rate must be positive and at most 1, got 1.5"):
        Drift(2, rate=1.5)
    with pytest.raises(ValueError, match="2 contexts for a horizon of 3.*'cycle'"):
        Sequence(1, [[1.0], [2.0]]).check_horizon(3)
