"""Black-box audits of functions: kinds of messages, planted mistakes, the bound, functions that fail."""

import contextlib
import dataclasses
import math
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from audit_power import CASES, EPSILON, respond
from helpers import ALPHA
from scipy.optimize import brentq
from scipy.stats import binom

from ldp_gym import audit
from ldp_gym.core.errors import MechanismFailedError
from ldp_gym.privacy.mechanism import Layout

KINDS = {
    "int": int,
    "float": lambda z: z / 3,
    "string": lambda z: ["spam", "ham", "egg", "ham!"][z],
    "bytes": lambda z: bytes([7, 1 << z]),
    "tuple": lambda z: ("x", z, (0.5, z)),
    "list of any length": lambda z: [1] * z,
    "array": lambda z: np.eye(4)[z],
    "set": lambda z: {z, "a"},
    "dict": lambda z: {"answer": z},
    "dict with other keys": lambda z: {"spam": 1} if z == 0 else {"eggs": z},
    "huge number": lambda z: 10**400 * (z % 2) - z,
}


def estimate_of_kind(kind, factor):
    """Audit of randomized response at ``factor`` times the claim, whose messages are written in some kind."""
    send = respond(4, factor, np.random.default_rng(0))
    return audit.estimate_epsilon(
        lambda label: KINDS[kind](send(label)),
        num_labels=4,
        claimed=1.0,
        trials=10_000,
        confidence=1 - ALPHA,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_every_kind_convict_a_mechanism_at_twice_its_claim(kind):
    estimate = estimate_of_kind(kind, 2.0)
    assert not estimate.holds
    assert 1.2 < estimate.epsilon <= 2.0


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_every_kind_acquit_a_mechanism_at_its_claim(kind):
    """With probability 1 - ALPHA."""
    estimate = estimate_of_kind(kind, 1.0)
    assert estimate.holds
    assert 0.6 < estimate.epsilon <= 1.0


@pytest.mark.parametrize(
    "case", [CASES[i] for i in (0, 7, 9, 10, 16, 17, 18)], ids=lambda case: case.mistake
)
def test_planted_mistakes_are_found(case):
    options = {"num_labels": case.num_labels, "claimed": EPSILON}
    assert not audit.estimate_epsilon(case.wrong, **options).holds
    assert audit.estimate_epsilon(case.right, confidence=1 - ALPHA, **options).holds


def clopper_pearson(counts, tested, error):
    """Bounds on two probabilities by definition: tails of half the error each."""
    low = brentq(lambda p: binom.sf(counts[0] - 1, tested, p) - error / 2, 1e-12, 1 - 1e-12)
    return low, brentq(lambda p: binom.cdf(counts[1], tested, p) - error / 2, 1e-12, 1 - 1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_bound_is_that_of_two_tails_of_half_the_error_each(delta):
    send = respond(3, 1.0, np.random.default_rng(0))
    found = audit.estimate_epsilon(
        send, num_labels=3, claimed=1.0, trials=4_000, confidence=0.9, delta=delta
    )
    low, high = clopper_pearson(found.counts, found.tested, 0.1)
    assert found.epsilon == pytest.approx(math.log((low - delta) / high), rel=1e-6)
    assert (found.tested, found.trials) == (1_000, 3_999)


def clear_text_in_a_share_of_messages(share):
    """In the clear with this probability, else randomized response at eps = 1: (1, share)-private."""
    rng = np.random.default_rng(0)
    respond_at_1 = respond(3, 1.0, rng)

    def leak(label):
        return 10 + label if rng.random() < share else respond_at_1(label)

    return leak


def test_a_leak_is_granted_up_to_delta():
    options = {"num_labels": 3, "claimed": 1.0, "trials": 40_000, "confidence": 1 - ALPHA}
    leak = clear_text_in_a_share_of_messages(0.05)
    granted = audit.estimate_epsilon(leak, delta=0.05, **options)
    assert granted.holds
    assert granted.epsilon > 0.5


def test_a_leak_is_not_granted_without_delta():
    options = {"num_labels": 3, "claimed": 1.0, "trials": 40_000, "confidence": 1 - ALPHA}
    leak = clear_text_in_a_share_of_messages(0.05)
    assert audit.estimate_epsilon(leak, **options).epsilon > 3.0


def test_the_delta_of_a_leak_is_estimated_from_below():
    options = {"num_labels": 3, "epsilon": 1.0, "trials": 40_000, "confidence": 1 - ALPHA}
    leak = clear_text_in_a_share_of_messages(0.05)
    estimate = audit.estimate_delta(leak, claimed=0.03, **options)
    assert 0.03 < estimate.delta <= 0.05
    assert estimate.holds is False
    assert "the claim of delta = 0.03 is broken: delta >= 0.0" in estimate.verdict


def test_a_delta_that_is_kept_holds():
    options = {"num_labels": 3, "epsilon": 1.0, "trials": 40_000, "confidence": 1 - ALPHA}
    leak = clear_text_in_a_share_of_messages(0.05)
    assert audit.estimate_delta(leak, claimed=0.05, **options).holds


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_the_bound_on_delta_is_that_of_two_tails_of_half_the_error_each(epsilon):
    send = respond(3, 1.0, np.random.default_rng(0))
    estimate = audit.estimate_delta(
        send, num_labels=3, epsilon=epsilon, trials=4_000, confidence=0.9
    )
    low, high = clopper_pearson(estimate.counts, estimate.tested, 0.1)
    assert estimate.delta == pytest.approx(low - math.exp(epsilon) * high, rel=1e-6)
    assert estimate.holds is None
    assert "no delta was claimed" in estimate.verdict


def test_a_delta_of_a_function_needs_an_epsilon():
    with pytest.raises(TypeError, match="needs epsilon="):
        audit.estimate_delta(lambda label: label, num_labels=2)


def test_laplace_noise_in_floats_is_broken_by_its_low_bits_only():
    rng = np.random.default_rng(0)
    estimate = audit.estimate_epsilon(
        lambda label: label / 10 + rng.laplace(scale=0.25), num_labels=3, claimed=0.8
    )
    assert not estimate.holds
    assert estimate.floats_only
    assert "broken by the low bits of floats" in estimate.verdict


def test_too_little_noise_in_floats_is_broken_in_real_arithmetic():
    rng = np.random.default_rng(0)
    estimate = audit.estimate_epsilon(
        lambda label: label / 10 + rng.laplace(scale=0.1), num_labels=3, claimed=0.8
    )
    assert not estimate.holds
    assert not estimate.floats_only
    assert "the claim of eps = 0.8 is broken" in estimate.verdict


def test_an_estimate_is_printed_with_its_labels_an_example_and_both_counts():
    rng = np.random.default_rng(0)
    send = respond(2, 2.0, rng)
    estimate = audit.estimate_epsilon(
        lambda label: ["no", "yes"][send(label)], num_labels=2, claimed=1.0, trials=8_000
    )
    first, second = estimate.labels
    hits, others = estimate.counts
    expected = (
        f"Label {first} against label {second}: messages such as '{['no', 'yes'][first]}' came "
        f"{hits:,} times out of 2,000 from label {first} and {others:,} times out of 2,000 from "
        f"label {second}"
    )
    assert expected in str(estimate)


def test_a_pair_of_numbers_tells_where_neither_does():
    """The label is a difference of two random numbers; the third number never comes twice."""
    rng = np.random.default_rng(0)

    def hide_in_a_difference(label):
        first = int(rng.integers(4))
        return first, first ^ (2 * label), rng.random()

    estimate = audit.estimate_epsilon(
        hide_in_a_difference, num_labels=2, trials=4_000, floats=False
    )
    assert estimate.counts == (1_000, 0)
    expected = "this pair of values, coordinate 0 and coordinate 1, came at least "
    assert estimate.event.startswith(expected)


ESTIMATE = audit.EpsilonEstimate(
    epsilon=0.9,
    claimed=1.0,
    confidence=0.99,
    delta=0.0,
    labels=(0, 1),
    event="by hand",
    counts=(600, 200),
    trials=4_000,
    tested=1_000,
)
"""An audit whose event has shares of 0.6 and 0.2: a ratio of e^1.0986."""


def bound_at_the_shares_seen(trials):
    """Lower bound on eps from 60% and 20% of a quarter of these trials, by definition."""
    tested = round(trials / 4)
    low, high = clopper_pearson((round(0.6 * tested), round(0.2 * tested)), tested, 0.01)
    return math.log(low / high)


def test_the_trials_needed_would_break_the_claim():
    assert ESTIMATE.trials_needed > 4_000
    assert bound_at_the_shares_seen(ESTIMATE.trials_needed) > 1.0


def test_nine_tenths_of_the_trials_needed_would_not_break_the_claim():
    assert bound_at_the_shares_seen(0.9 * ESTIMATE.trials_needed) <= 1.0


def test_the_verdict_names_the_trials_needed():
    assert f"{ESTIMATE.trials_needed:,} trials would be such a proof" in ESTIMATE.verdict


@pytest.mark.parametrize("claimed", [1.2, math.log(3) - 1e-5])
def test_no_trials_are_named_where_ten_billion_would_not_break_the_claim(claimed):
    """At a ratio of 3, which is within a claim of 1.2; and 1e-5 above the other needs some 10^12."""
    estimate = dataclasses.replace(ESTIMATE, claimed=claimed)
    assert estimate.holds
    assert estimate.trials_needed is None


def test_an_estimate_without_a_claim_neither_holds_nor_needs_trials():
    estimate = dataclasses.replace(ESTIMATE, claimed=None)
    assert estimate.holds is None
    assert estimate.trials_needed is None
    assert "no eps was claimed" in str(estimate)


@pytest.mark.parametrize(("epsilon", "holds"), [(1.0, True), (1.001, False)])
def test_a_claim_is_broken_by_a_bound_above_it(epsilon, holds):
    assert dataclasses.replace(ESTIMATE, epsilon=epsilon).holds is holds


def test_a_right_mechanism_is_convicted_at_the_stated_rate():
    options, alarms = {"num_labels": 2, "claimed": 0.7, "trials": 800, "confidence": 0.8}, 0
    send = respond(2, 0.7, np.random.default_rng(0))
    for seed in range(60):
        alarms += not audit.estimate_epsilon(send, seed=seed, **options).holds
    assert alarms <= binom.isf(ALPHA, 60, 0.2)


def test_vectorized_functions_get_all_labels_at_once():
    rng, shapes = np.random.default_rng(0), []

    def respond_to_all(labels):
        shapes.append(labels.shape)
        return np.where(rng.random(len(labels)) < 0.9, labels, 1 - labels)

    found = audit.estimate_epsilon(
        respond_to_all, num_labels=2, claimed=1.0, trials=8_000, vectorized=True
    )
    assert not found.holds
    assert shapes == [(2_000,), (2_000,), (4_000,)]


def hang(label):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def now_and_then(label, calls=[0]):  # noqa: B006 - counts its calls
    calls[0] += 1
    return "seven" if calls[0] % 50 == 0 else label


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (
            lambda label: 1 // (label - 1),
            "failed for label 1 .* ZeroDivisionError.*return a message instead",
        ),
        (lambda label: exit(label), "failed for label . .* SystemExit"),
        (
            now_and_then,
            "of type str for label ., and a number before|of type int .* a string before",
        ),
        (lambda label: None, "returned None of type NoneType for label .; a message is a number"),
    ],
)
def test_a_function_that_fails_gets_a_sentence(mechanism, message):
    with pytest.raises(MechanismFailedError, match=message):
        audit.estimate_epsilon(mechanism, num_labels=3, claimed=1.0, trials=400)


def test_a_function_that_hangs_is_interrupted():
    with pytest.raises(
        MechanismFailedError, match="hang took more than 0.5 seconds, last for label"
    ):
        audit.estimate_epsilon(hang, num_labels=3, claimed=1.0, trials=400, time_limit=0.5)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms are Unix's")
def test_an_alarm_that_was_set_before_an_audit_rings_when_it_should():
    signal.setitimer(signal.ITIMER_REAL, 1000.0)
    audit.estimate_epsilon(lambda label: time.sleep(1e-4) or 0, num_labels=2, trials=400)
    assert 0.0 < signal.setitimer(signal.ITIMER_REAL, 0.0)[0] < 1000.0 - 400 * 1e-4


def test_a_slow_function_is_stopped_between_calls_where_there_are_no_alarms():
    """In a thread alarms cannot be set."""
    with ThreadPoolExecutor() as pool:
        audited = pool.submit(
            audit.estimate_epsilon,
            lambda label: time.sleep(0.01),
            num_labels=2,
            trials=1000,
            time_limit=0.1,
        )
        with pytest.raises(MechanismFailedError, match="took more than 0.1 seconds"):
            audited.result()


def test_a_function_that_prints_is_warned_of():
    def print_the_label(label):
        print(f"label {label}")
        return 0

    with pytest.warns(UserWarning, match="prints, as 'label .*: the audit does not read it"):
        audit.estimate_epsilon(print_the_label, num_labels=2, trials=400)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "num_labels"),
        ({"num_labels": 2, "claimed": -1.0}, "claimed"),
        ({"num_labels": 2, "time_limit": 0}, "time_limit"),
        ({"num_labels": 2, "candidates": np.eye(2)}, "candidates"),
    ],
)
def test_a_wrong_argument_of_an_audit_is_named(options, name):
    with pytest.raises((TypeError, ValueError), match=name):
        audit.estimate_epsilon(lambda label: label, **options)


@pytest.mark.parametrize("wrong", [3, int, None])
def test_a_mechanism_must_be_a_function(wrong):
    with pytest.raises(TypeError, match="mechanism must be a function"):
        audit.estimate_epsilon(wrong, num_labels=2)


def test_a_vectorized_function_must_return_a_message_per_label():
    expected = "must give a list or array of as many messages, got 1"
    with pytest.raises(MechanismFailedError, match=expected):
        audit.estimate_epsilon(lambda labels: [0], num_labels=2, vectorized=True)


def test_a_set_has_columns_for_its_elements_its_order_and_its_length():
    layout = Layout([{"a"}, {"b", "a"}])
    orders = ["place in its order 0", "place in its order 1", "its length"]
    assert layout.names == ["('a' in it)", "('b' in it)", *orders]
    assert layout.matrix([{"b"}]).tolist() == [[0.0, 1.0, 1.0, -1e308, 1.0]]


def test_tuples_of_other_lengths_than_the_first_are_filled_up_or_cut():
    ragged = Layout([(1, 2), (3, 4)]).matrix([(5,), (6, 7, 8)])
    assert ragged.tolist() == [[5.0, -1e308], [6.0, 7.0]]


def test_nested_messages_are_read_with_the_length_of_each_part():
    """'c' has length 1 and code 99, the set length 2; the last column is the tuple's length."""
    matrix = Layout([(1,), ("a", {1, 2})]).matrix([("c", {3, 4})])
    assert matrix.tolist() == [[1.0, 99.0, 2.0, 3.0, 4.0, 2.0]]


def test_bytes_are_read_bit_by_bit():
    assert Layout([b"\x81"]).matrix([b"\x03"]).tolist() == [[0, 0, 0, 0, 0, 0, 1, 1, 1]]


def test_dicts_with_the_same_keys_have_a_column_for_each_value():
    layout = Layout([{"b": 1, "a": 2.5}])
    assert layout.names == ["value of 'a'", "value of 'b'"]
    assert layout.matrix([{"a": 3, "b": 4}]).tolist() == [[3.0, 4.0]]


def test_the_order_of_a_dict_does_not_count():
    layout = Layout([{"b": 1, "a": 2}, {"c": 3}])
    assert layout.matrix([{"b": 1, "a": 2}]).tolist() == layout.matrix([{"a": 2, "b": 1}]).tolist()


def test_numbers_of_different_types_count_as_one():
    assert Layout([1]).matrix([1.0, True, np.int64(1)]).tolist() == [[1.0], [1.0], [1.0]]


def test_the_eps_of_a_table_is_its_largest_log_ratio():
    """Message 0: 0.5 from label 0 and 0.1 from label 1. A message that nobody sends does not count."""
    table = [[0.5, 0.2, 0.3, 0.0], [0.1, 0.5, 0.4, 0.0], [0.25, 0.25, 0.5, 0.0]]
    exact = audit.exact_epsilon(table)
    assert exact.epsilon == pytest.approx(math.log(5.0))
    assert exact.labels == (0, 1)
    assert int(exact.message) == 0


def test_the_eps_of_a_table_with_a_message_of_one_label_only_is_infinite():
    assert audit.exact_epsilon([[1.0, 0.0], [0.5, 0.5]]).epsilon == math.inf


@pytest.mark.parametrize(
    "wrong",
    [[[0.5, 0.6], [0.5, 0.5]], [0.5, 0.5], [[1.0]], "x", 3, [[math.nan, 1.0], [0.5, 0.5]]],
)
def test_an_object_that_is_not_a_table_of_probabilities_is_refused(wrong):
    with pytest.raises(ValueError, match="table|label|probabilit|sums"):
        audit.exact_epsilon(wrong)
