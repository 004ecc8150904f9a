"""Exact tables, their eps by fractions; and messages that exclude labels in floating-point arithmetic."""

import itertools
import json
import math
from collections import defaultdict
from decimal import Decimal, getcontext

import numpy as np
import pytest
from broken_channels import sharper
from helpers import FINITE, make_channel

from ldp_gym import CHANNELS, audit
from ldp_gym.channels.base import Channel
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import BrokenPromiseError, IncompatibleChannelError
from ldp_gym.privacy import ExactChannel, ExactTable
from ldp_gym.privacy.exact_table import TOTAL, _exp_below

THIRDS = np.full((2, 3), 1 / 3)


def draw_situation(name, size, labels, seed, **options):
    """A channel's exact tables, with random candidates, posterior and public coins to make them for."""
    rng = np.random.default_rng(seed)
    exact = ExactChannel(make_channel(name, size, labels, 50, **options))
    posterior = None
    if exact.channel.adaptive:
        posterior = rng.dirichlet(np.full(size, 0.3))
    candidates = rng.dirichlet(np.full(labels, 0.4), size=size)
    return exact, candidates, posterior, rng.random((20, exact.channel.num_public_coins))


def law_of(table):
    """Probabilities of a table's messages given each label, as fractions: a list of columns."""
    return [table.probabilities(label) for label in range(table.counts.shape[1])]


@pytest.mark.parametrize("name", sorted(set(CHANNELS) - set(FINITE)))
def test_a_channel_that_sends_reals_or_hides_nothing_is_refused_with_one_that_will_do(name):
    with pytest.raises(IncompatibleChannelError, match="finite messages, such as 'one-bit'"):
        ExactChannel(make_channel(name, 3, 4, 100))


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 60.0, 700.0])
def test_every_table_is_the_density_with_at_most_the_eps_asked_for(name, epsilon):
    getcontext().prec = 60
    for shape in ((2, 2), (3, 5), (6, 4)):
        exact, candidates, posterior, draws = draw_situation(name, *shape, seed=0, epsilon=epsilon)
        for coins in draws[:8]:
            table = exact.table(coins, candidates, posterior)
            columns = law_of(table)
            assert all(sum(column) == 1 for column in columns)
            worst = max(max(row) / min(row) for row in zip(*columns, strict=True))
            assert worst == table.ratio
            assert table.epsilon <= epsilon
            true = Decimal(worst.numerator) / Decimal(worst.denominator)
            assert true <= min(Decimal(epsilon).exp(), Decimal(table.epsilon).exp())
            assert (
                table.epsilon <= math.log(worst) * (1 + 1e-15) + 5e-15
            )  # hardly above the true one
            density = np.exp(exact.channel.log_density(table.messages, candidates, posterior))
            total = density.sum(axis=0)
            assert (
                np.ptp(total) <= 1e-12 * total.max()
            )  # the same for all labels: the coins tell nothing
            if epsilon <= 1.0:
                np.testing.assert_allclose(np.array(columns, float).T, density / total, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 17.3, 700.0])
def test_powers_are_bounded_from_below_to_forty_digits(epsilon):
    getcontext().prec = 80
    below = _exp_below(epsilon)
    share = Decimal(below.numerator) / below.denominator / Decimal(epsilon).exp()
    assert 1 - Decimal(10) ** -40 < share < 1


@pytest.mark.parametrize("name", ["subset-selection", "vote", "unary-encoding"])
def test_circles_and_windows_have_the_law_of_sets(name):
    """All orders of the circle, and all numbers of ones, by enumeration: the law of log_density to 1e-9."""
    exact, candidates, _, _ = draw_situation(name, 4, 4, seed=2, epsilon=0.7)
    law = defaultdict(lambda: np.zeros(4))  # of the labels, by message
    flips = [()] if name != "unary-encoding" else itertools.product([0, 1], repeat=4)
    chances = np.array([0.5, *[1.0 / (1.0 + math.exp(0.7))] * 3])
    for flip, order in itertools.product(flips, itertools.permutations(range(4))):
        weight = math.prod(np.where(flip, chances, 1.0 - chances)) if flip else 1.0
        bits = np.where(flip, 1e-9, 1.0 - 1e-9) if flip else np.zeros(0)
        table = exact.table(np.concatenate([bits, np.argsort(order) / 4.0 + 0.1]), candidates)
        for message, share in zip(
            table.messages.tolist(), np.array(law_of(table), float).T, strict=True
        ):
            law[tuple(message)] += weight / 24 * share
    for message, found in law.items():
        density = np.exp(exact.channel.log_density(np.array(message), candidates))
        np.testing.assert_allclose(found, density, rtol=1e-9)
    np.testing.assert_allclose(sum(law.values()), 1.0, atol=1e-12)


@pytest.mark.parametrize("name", FINITE)
def test_answers_come_from_the_operating_system(name):
    exact, candidates, posterior, _ = draw_situation(name, 5, 6, seed=3)
    for label in range(6):
        message, epsilon = exact.answer(label, candidates, posterior)
        assert exact.channel.message_space.contains(np.asarray(message))
        assert np.isfinite(exact.channel.log_density(message, candidates, posterior)).all()
        assert 0.0 <= epsilon <= 1.0
    drawn = []
    exact.answer(0, candidates, posterior, lambda count: drawn.append(count) or 0)
    assert drawn == [64 * exact.channel.num_public_coins, 64]
    last, _ = exact.answer(5, candidates, posterior, lambda count: 2**count - 1)
    assert exact.channel.message_space.contains(np.asarray(last))


def table_of_thirds():
    """Randomized response with e^eps = 2 on three labels: its own with probability 1/2, others with 1/4."""
    exact = ExactChannel(RandomizedResponse(2, 3, 100, epsilon=math.log(2.0)))
    return exact.table(np.zeros(0), THIRDS)


def test_the_probabilities_of_a_table_are_those_of_the_channel():
    shares = table_of_thirds().probabilities(1)
    assert [float(share) for share in shares] == pytest.approx([0.25, 0.5, 0.25])


def test_a_number_picks_the_message_whose_share_it_falls_into():
    table = table_of_thirds()
    first, second, third = (int(share * TOTAL) for share in table.probabilities(1))
    assert first + second + third == TOTAL
    assert [table.pick(1, 0), table.pick(1, first - 1)] == [0, 0]
    assert [table.pick(1, first), table.pick(1, first + second - 1)] == [1, 1]
    assert [table.pick(1, first + second), table.pick(1, TOTAL - 1)] == [2, 2]


def test_labels_that_look_alike_spend_nothing():
    equal_hypotheses = THIRDS[[0] * 4]
    exact = ExactChannel(make_channel("split", 4, 3, 100))
    table = exact.table(np.linspace(0.1, 0.9, 4), equal_hypotheses)
    assert table.ratio == 1
    assert table.epsilon == 0.0


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("epsilon", [1e-15, 1e-12, 1e-9])
def test_a_tiny_eps_is_kept_too(name, epsilon):
    """Rare messages have few counts: their ratios are kept at the cost of a part of eps, or of all of it."""
    exact, candidates, posterior, draws = draw_situation(name, 4, 5, seed=4, epsilon=epsilon)
    assert exact.table(draws[0], candidates, posterior).epsilon <= epsilon


def test_a_channel_that_declares_too_large_ratios_has_no_table():
    broken = ExactChannel(sharper(RandomizedResponse, declared=1.1)(2, 3, 100, epsilon=1.0))
    with pytest.raises(BrokenPromiseError, match="does not keep its promise"):
        broken.answer(0, THIRDS)


def test_a_class_in_place_of_a_channel_is_refused():
    with pytest.raises(TypeError, match="made, not its class"):
        ExactChannel(Channel)


def test_a_label_beyond_the_last_is_refused():
    exact = ExactChannel(make_channel("split", 2, 3, 100))
    with pytest.raises(ValueError, match="label must be at most 2"):
        exact.answer(3, THIRDS)


def test_the_wrong_number_of_public_coins_is_refused():
    exact = ExactChannel(make_channel("split", 2, 3, 100))
    with pytest.raises(ValueError, match="coins must be 2 uniforms"):
        exact.table(np.zeros(99), THIRDS)


def test_an_adaptive_channel_needs_a_posterior():
    with pytest.raises(ValueError, match="Pass posterior="):
        audit.reachable(make_channel("adaptive-split", 2, 3, 100), THIRDS)


TWO = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])


def judge(channel, table=TWO, **options):
    return audit.reachable(channel, table, audit.uniform_posterior(channel), **options)


def test_three_in_a_hundred_messages_of_laplace_single_give_their_label_away():
    """The figure of the design: K = 2, M = 3, T = 100, eps = 1; 3%, and 99% of those the true one."""
    found = judge(make_channel("laplace-single", 2, 3, 100), messages=6000)
    assert found.verdict == "broken"
    assert 0.02 < found.share < 0.04
    assert 0.97 < found.correct <= 1.0


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("shape", [(2, 3), (6, 5)])
def test_finite_channels_exclude_no_label(name, shape):
    table = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.5), size=shape[0])
    found = judge(make_channel(name, *shape, 100), table)
    assert (found.holds, found.share) == (True, 0.0), found


def test_a_probability_below_the_step_of_a_uniform_counts_as_zero():
    """At eps = 60 another label is reported with a probability of e^-60; an exact table makes it 2^-64."""
    found = judge(make_channel("identity", 2, 3, 100))
    assert (found.verdict, found.share) == ("broken", 1.0)
    sharp = make_channel("randomized-response", 2, 3, 100, epsilon=60.0)
    assert judge(sharp).verdict == "broken"
    assert ExactChannel(sharp).table(np.zeros(0), TWO).counts.min() > 0


class Fenced(RandomizedResponse):
    """Label 2 alone sends message 2; it never sends message 0."""

    def log_density(self, messages, candidates, posterior=None):
        with np.errstate(divide="ignore"):
            return np.log(np.array([[0.6, 0.4, 0.0], [0.4, 0.6, 0.7], [0.0, 0.0, 0.3]])[messages])


def test_the_share_that_gives_its_label_away_by_hand():
    """A message that two labels send tells neither; a coin's draws count equally."""
    found = judge(Fenced(2, 3, 9))
    assert (found.verdict, found.correct) == ("broken", 1.0)
    assert found.share == pytest.approx(0.3 / 3)
    sides = judge(make_channel("split", 2, 3, 100, epsilon=60.0))  # label 2 alone is on its side
    assert sides.share == pytest.approx(1 / 3)


def test_other_real_messages_are_not_judged():
    for name in ("gaussian-vector", "wheel"):
        found = judge(make_channel(name, 2, 3, 100))
        assert (found.verdict, found.holds) == ("not judged", False)
        assert "real numbers" in found.reason


def table_of(name):
    """An exact table of a channel at random candidates and public coins."""
    exact, candidates, posterior, coins = draw_situation(name, 4, 5, 0, epsilon=1.0)
    return exact.table(coins[0], candidates, posterior)


@pytest.mark.parametrize("name", ["randomized-response", "split", "adaptive-split", "one-bit"])
def test_a_table_goes_through_json(name):
    table = table_of(name)
    again = ExactTable.from_json(table.to_json())
    np.testing.assert_array_equal(again.messages, table.messages)
    np.testing.assert_array_equal(again.counts, table.counts)
    assert again.ratio == table.ratio


@pytest.mark.parametrize("name", ["randomized-response", "split", "adaptive-split", "one-bit"])
def test_the_eps_of_a_table_from_json_is_its_log_ratio_rounded_up(name):
    table = table_of(name)
    again = ExactTable.from_json(table.to_json())
    assert again.epsilon == pytest.approx(table.epsilon, abs=1e-12)
    ratio = Decimal(again.ratio.numerator) / Decimal(again.ratio.denominator)
    assert Decimal(again.epsilon).exp() >= ratio


def test_counts_of_json_that_do_not_sum_to_2_to_the_64_are_refused():
    given = json.loads(table_of("split").to_json())
    given["counts"][0][0] = str(int(given["counts"][0][0]) + 1)
    with pytest.raises(ValueError, match="sum to 2\\^64"):
        ExactTable.from_json(json.dumps(given))


def test_json_with_fewer_rows_of_counts_than_messages_is_refused():
    given = json.loads(table_of("split").to_json())
    given["counts"] = given["counts"][1:]
    with pytest.raises(ValueError, match="a row of counts per message"):
        ExactTable.from_json(json.dumps(given))
