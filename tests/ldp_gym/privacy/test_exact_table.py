"""Exact tables, their eps by fractions; and messages that exclude labels in floating-point arithmetic."""

import itertools
import math
from collections import defaultdict
from decimal import Decimal, getcontext

import gymnasium as gym
import numpy as np
import pytest
from broken_channels import sharper
from helpers import FINITE, make_channel

import ldp_gym
from ldp_gym import audit
from ldp_gym.channels.base import Channel
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import BrokenPromiseError, IncompatibleChannelError
from ldp_gym.privacy import ExactChannel
from ldp_gym.privacy.exact_table import _EXP_BITS, NEAREST, TOTAL, _exp_below


def public(name, size, rng):
    return rng.dirichlet(np.full(size, 0.3)) if ldp_gym.CHANNELS[name].adaptive else None


@pytest.mark.parametrize("name", NEAREST)
def test_a_channel_that_sends_reals_or_hides_nothing_is_refused_with_the_nearest_that_will_do(name):
    channel = make_channel(name, 3, 4, 100)
    assert NEAREST[name] in FINITE
    with pytest.raises(IncompatibleChannelError, match=f"Use '{NEAREST[name]}', the nearest"):
        ExactChannel(channel)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 60.0, 700.0])
def test_the_eps_of_every_table_is_a_fraction_at_most_e_to_the_eps_asked_for(name, epsilon):
    rng = np.random.default_rng(0)
    getcontext().prec = 60
    asked = Decimal(epsilon).exp()
    for size, labels in ((2, 2), (3, 5), (6, 4)):
        exact = ExactChannel(make_channel(name, size, labels, 50, epsilon=epsilon))
        candidates = rng.dirichlet(np.full(labels, 0.3), size=size)
        posterior = public(name, size, rng)
        for coins in rng.random((8, exact.channel.num_public_coins)):
            table = exact.table(coins, candidates, posterior)
            columns = [table.probabilities(label) for label in range(labels)]
            assert all(sum(column) == 1 for column in columns)
            worst = max(max(row) / min(row) for row in zip(*columns, strict=True))
            assert worst == table.ratio
            assert table.epsilon <= epsilon
            true = Decimal(worst.numerator) / Decimal(worst.denominator)
            assert true <= min(asked, Decimal(table.epsilon).exp())  # the reported eps is not below it
            assert table.epsilon <= math.log(worst) * (1 + 1e-15) + 5e-15  # and hardly above it


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 17.3, 700.0])
def test_powers_are_bounded_from_below_to_forty_digits(epsilon):
    getcontext().prec = 80
    share = Decimal(_exp_below(epsilon)) / 2**_EXP_BITS / Decimal(epsilon).exp()
    assert 1 - Decimal(10) ** -40 < share < 1


@pytest.mark.parametrize("name", FINITE)
def test_given_the_coins_the_table_is_the_density(name):
    rng = np.random.default_rng(1)
    channel = make_channel(name, 4, 5, 50, epsilon=1.0)
    exact, posterior = ExactChannel(channel), public(name, 4, rng)
    candidates = rng.dirichlet(np.full(5, 0.4), size=4)
    for coins in rng.random((20, exact.channel.num_public_coins)):
        table = exact.table(coins, candidates, posterior)
        found = np.array([[float(p) for p in table.probabilities(y)] for y in range(5)]).T
        density = np.exp(channel.log_density(table.messages, candidates, posterior))
        # The messages have together as much from every label: the coins tell nothing.
        assert np.ptp(density.sum(axis=0)) <= 1e-12 * density.sum(axis=0).max()
        assert np.allclose(found, density / density.sum(axis=0), rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", ["subset-selection", "vote", "unary-encoding"])
def test_circles_and_windows_have_the_law_of_sets(name):
    """All orders of the circle, and all numbers of ones, by enumeration: the law of log_density to 1e-9."""
    rng = np.random.default_rng(2)
    channel = make_channel(name, 4, 4, 50, epsilon=0.7)
    exact, candidates = ExactChannel(channel), rng.dirichlet(np.ones(4), size=4)
    law = defaultdict(lambda: np.zeros(4))  # of the labels, by message
    flips = [()] if name != "unary-encoding" else itertools.product([0, 1], repeat=4)
    chances = np.array([0.5, *[1.0 / (1.0 + math.exp(0.7))] * 3])
    for flip, order in itertools.product(flips, itertools.permutations(range(4))):
        weight = math.prod(np.where(flip, chances, 1.0 - chances)) if flip else 1.0
        bits = np.where(flip, 1e-9, 1.0 - 1e-9) if flip else np.zeros(0)
        table = exact.table(np.concatenate([bits, np.argsort(order) / 4.0 + 0.1]), candidates)
        shares = np.array([[float(p) for p in table.probabilities(label)] for label in range(4)])
        for message, share in zip(table.messages.tolist(), shares.T, strict=True):
            law[tuple(message)] += weight / 24 * share
    for message, found in law.items():
        assert np.allclose(found, np.exp(channel.log_density(np.array(message), candidates)), rtol=1e-9)
    np.testing.assert_allclose(sum(law.values()), 1.0, atol=1e-12)


@pytest.mark.parametrize("name", FINITE)
def test_answers_come_from_the_operating_system(name):
    rng = np.random.default_rng(3)
    exact, posterior = ExactChannel(make_channel(name, 5, 6, 50)), public(name, 5, rng)
    candidates = rng.dirichlet(np.ones(6), size=5)
    for label in range(6):
        message, epsilon = exact.answer(label, candidates, posterior)
        assert exact.channel.message_space.contains(np.asarray(message))
        assert np.isfinite(exact.channel.log_density(message, candidates, posterior)).all()
        assert 0.0 <= epsilon <= 1.0
    drawn = []

    def bits(count):
        drawn.append(count)
        return 0

    exact.answer(0, candidates, posterior, bits)
    assert drawn == [64 * exact.channel.num_public_coins, 64]


def test_tables_by_hand():
    """A number picks the message whose share it falls into; labels that look alike spend nothing."""
    exact = ExactChannel(RandomizedResponse(2, 3, 100, epsilon=math.log(2.0)))
    table = exact.table(np.zeros(0), np.full((2, 3), 1 / 3))
    ends = list(itertools.accumulate(int(p * TOTAL) for p in table.probabilities(1)))
    assert ends[-1] == TOTAL
    assert [table.pick(1, end - 1) for end in ends] == [0, 1, 2]
    assert [table.pick(1, number) for number in (0, ends[0], ends[1])] == [0, 1, 2]
    assert [float(p) for p in table.probabilities(1)] == pytest.approx([0.25, 0.5, 0.25])

    exact = ExactChannel(make_channel("split", 4, 3, 100))  # labels that a message does not tell apart
    table = exact.table(np.linspace(0.1, 0.9, 4), np.full((4, 3), 1 / 3))
    assert table.ratio == 1
    assert table.epsilon == 0.0


def test_a_channel_that_breaks_its_promise_answers_nothing():
    exact = ExactChannel(sharper(RandomizedResponse, declared=1.1)(2, 3, 100, epsilon=1.0))
    with pytest.raises(BrokenPromiseError, match="does not keep its promise"):
        exact.answer(0, np.full((2, 3), 1 / 3))


def test_wrong_arguments_are_named():
    with pytest.raises(TypeError, match="made, not its class"):
        ExactChannel(Channel)
    channel, table = make_channel("split", 4, 3, 100), np.full((4, 3), 1 / 3)
    exact = ExactChannel(channel)
    for call, message in [
        (lambda: exact.answer(3, table), "label must be at most 2"),
        (lambda: exact.answer(0, table[1:]), "candidates of shape"),
        (lambda: exact.table(np.zeros(99), table), "coins must be 4 uniforms"),
        (lambda: audit.reachable(channel, table[1:]), "shape"),
        (lambda: audit.reachable(channel, table, [0.5, 0.6]), "posterior"),
        (lambda: audit.reachable(make_channel("adaptive-split", 4, 3, 9), table), "Pass posterior="),
    ]:
        with pytest.raises(ValueError, match=message):
            call()


TWO = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])


def judge(channel, table=TWO, **options):
    posterior = np.full(len(table), 1.0 / len(table)) if channel.adaptive else None
    return audit.reachable(channel, table, posterior, **options)


def test_three_in_a_hundred_messages_of_laplace_single_give_their_label_away():
    """The figure of the design: K = 2, M = 3, T = 100, eps = 1; 3.0%, and 98.7% of those the true one."""
    found = judge(make_channel("laplace-single", 2, 3, 100), messages=6000)
    assert found.judged == 6000
    assert found.verdict == "broken"
    assert not found.labels.all()
    assert 0.02 < found.share < 0.04
    assert 0.97 < found.correct <= 1.0


def test_every_label_sends_every_message_where_h_t_exchanges_it():
    """Once in T: label y sends, bit by bit, what label 0 sends with the same noise."""
    channel, rng = make_channel("laplace-single", 2, 3, 100), np.random.default_rng(0)
    uniforms = rng.random((200, 4))
    uniforms[:, :2] = 0.9, 1e-6
    kept = channel.encode(np.zeros(200, dtype=np.int64), TWO, uniforms)
    uniforms[:, 0] = 0.5 / 100  # below 1/T: the second uniform picks the new label, here the first
    for label in range(3):
        assert np.array_equal(channel.encode(np.full(200, label), TWO, uniforms), kept)


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("shape", [(2, 3), (6, 5)])
def test_finite_channels_exclude_no_label(name, shape):
    table = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.5), size=shape[0])
    found = judge(make_channel(name, *shape, 100), table)
    assert found.holds, found
    assert found.share == 0.0


def test_a_probability_below_the_step_of_a_uniform_counts_as_zero():
    """At eps = 60 another label is reported with a probability of e^-60; an exact table makes it 2^-64."""
    found = judge(make_channel("identity", 2, 3, 100))
    assert (found.verdict, found.share) == ("broken", 1.0)
    sharp = make_channel("randomized-response", 2, 3, 100, epsilon=60.0)
    assert judge(sharp).verdict == "broken"
    assert ExactChannel(sharp).table(np.zeros(0), TWO).counts.min() > 0


class Undeclared(RandomizedResponse):
    """Randomized response in a message space of real numbers."""

    message_space = gym.spaces.Box(0.0, 2.0, (), dtype=np.float64)


@pytest.mark.parametrize(
    "channel",
    [make_channel("gaussian-vector", 2, 3, 100), make_channel("wheel", 2, 3, 100), Undeclared(2, 3, 9)],
)
def test_other_real_messages_are_not_judged(channel):
    found = judge(channel)
    assert found.verdict == "not judged"
    assert "real numbers" in found.reason
    assert not found.holds


def test_a_certificate_has_both_answers():
    table = np.random.default_rng(0).dirichlet(np.full(16, 0.3), size=8)
    certificate = audit.certify(make_channel("laplace-single", 8, 16, 1000), table)
    assert certificate.holds
    assert certificate.floats.verdict == "broken"
    assert audit.certify(make_channel("split", 8, 16, 1000), table).floats.holds
    assert audit.Certificate(1.0, 0.0, 1.0, 0.0, "by hand").floats.verdict == "not judged"
