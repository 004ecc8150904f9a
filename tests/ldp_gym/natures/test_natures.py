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


def view_of_rounds(nature, batch, rounds, **more):
    """What a nature sees of the first rounds of ``batch`` games: uniforms, indices, previous contexts."""
    uniforms = open_uniforms([np.random.default_rng(0)], (batch, rounds, nature.num_uniforms))[0]
    indices = np.broadcast_to(np.arange(rounds), (batch, rounds))
    prepared = nature.prepare(CLASS, partial(MessageInformation, CHANNEL))
    previous = np.zeros((batch, nature.context_dim))
    return NatureView(uniforms, indices, previous, CLASS, prepared=prepared, **more)


@pytest.mark.parametrize("nature", [IID(2), Drift(2, rate=0.4)], ids=["iid", "drift"])
def test_contexts_are_standard_normal_in_the_first_round_and_in_the_fifth(nature):
    contexts = nature.contexts(view_of_rounds(nature, 20_000, 5))
    assert stats.kstest(contexts[:, 0, 1], "norm").pvalue > ALPHA / 4
    assert stats.kstest(contexts[:, 4, 1], "norm").pvalue > ALPHA / 4


def test_a_drift_of_rate_0_6_has_autocorrelation_0_8():
    """sqrt(1 - 0.6^2) = 0.8; Fisher's z of 50,000 pairs has the standard error 1 / sqrt(n - 3)."""
    contexts = Drift(1, rate=0.6).contexts(view_of_rounds(Drift(1), 50_000, 2))
    correlation = np.corrcoef(contexts[:, 0, 0], contexts[:, 1, 0])[0, 1]
    standard_error = 1 / np.sqrt(50_000 - 3)
    difference = abs(np.arctanh(correlation) - np.arctanh(0.8))
    assert difference < stats.norm.isf(ALPHA / 2) * standard_error


def test_a_cycle_repeats_its_contexts_in_order():
    nature = Cycle(1, [[5.0], [7.0], [2.0]])
    contexts = nature.contexts(view_of_rounds(nature, 2, 7))[..., 0]
    assert contexts.tolist() == [[5, 7, 2, 5, 7, 2, 5], [5, 7, 2, 5, 7, 2, 5]]


def test_a_sequence_plays_its_contexts_in_order():
    nature = Sequence(1, [[5.0], [7.0], [2.0]])
    contexts = nature.contexts(view_of_rounds(nature, 2, 3))[..., 0]
    assert contexts.tolist() == [[5, 7, 2], [5, 7, 2]]


def test_an_adversary_may_have_a_pool_of_one_context():
    assert Adversary(2, pool_size=1).pool.shape == (1, 2)


@pytest.mark.parametrize("rounds_left", [1, 10, 1000])
def test_the_adversary_weighs_the_charge_against_what_a_message_tells(rounds_left):
    """By a plain loop over the pool and the hypotheses, with the exact information of a message.

    A context's score is the expected KL of one round, times the rounds until messages have told all of
    the posterior's entropy, or the rounds that are left if those are fewer.
    """
    nature = Adversary(2, pool_size=9)
    posteriors = np.random.default_rng(1).dirichlet(np.ones(4), size=3)
    view = view_of_rounds(nature, 3, 1, posterior=posteriors, rounds_left=rounds_left)
    contexts = nature.contexts(view)[:, 0]
    for posterior, context in zip(posteriors, contexts, strict=True):
        scores = []
        for candidates in CLASS(nature.pool):
            charge = posterior @ rel_entr(candidates, posterior @ candidates).sum(axis=-1)
            information = information_rate(CHANNEL, candidates, posterior).rate
            rounds_to_learn = stats.entropy(posterior) / information
            scores.append(charge * min(rounds_left, rounds_to_learn))
        np.testing.assert_array_equal(context, nature.pool[np.argmax(scores)])


@pytest.fixture(scope="module")
def omniscient_choices():
    """Sixty games of the omniscient nature: contexts, and both KL divergences, ``(60, pool)``.

    The first divergence is from the truth to the posterior mixture, the second the other way round.
    """
    nature = Omniscient(2, pool_size=9)
    rng = np.random.default_rng(1)
    posteriors = rng.dirichlet(np.ones(4), size=60)
    members = rng.integers(4, size=60)

    def truth(_, candidates):
        return np.stack([candidates[0, :, j] for j in members])

    contexts = nature.contexts(view_of_rounds(nature, 60, 1, posterior=posteriors, truth=truth))
    tables = CLASS(nature.pool)
    truths = tables[:, members].swapaxes(0, 1)
    mixtures = np.einsum("gk,pky->gpy", posteriors, tables)
    from_the_truth = rel_entr(truths, mixtures).sum(axis=-1)
    to_the_truth = rel_entr(mixtures, truths).sum(axis=-1)
    return nature.pool, contexts[:, 0], from_the_truth, to_the_truth


def test_the_omniscient_maximises_the_kl_from_the_truth(omniscient_choices):
    pool, contexts, from_the_truth, _ = omniscient_choices
    np.testing.assert_array_equal(contexts, pool[from_the_truth.argmax(axis=1)])


def test_the_games_of_the_omniscient_tell_the_two_divergences_apart(omniscient_choices):
    _, _, from_the_truth, to_the_truth = omniscient_choices
    assert (from_the_truth.argmax(axis=1) != to_the_truth.argmax(axis=1)).any()


def test_a_bad_rate_of_a_drift_is_named():
    with pytest.raises(ValueError, match="rate must be positive and at most 1, got 1.5"):
        Drift(2, rate=1.5)


def test_a_sequence_shorter_than_the_horizon_is_refused():
    with pytest.raises(ValueError, match="2 contexts for a horizon of 3.*'cycle'"):
        Sequence(1, [[1.0], [2.0]]).check_horizon(3)
