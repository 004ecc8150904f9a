"""Black-box audits: lower bounds on eps and delta from messages only, of a channel or any other mechanism.

**Events.** A message is written as numbers, and a decision tree looks for events, sets of messages, that one
label sends oftener than another (:mod:`ldp_gym.privacy.events`). So it finds messages that a label never
sends, a wrong scale or rounding, an order that gives the label away, seeds that repeat and floats that one
label cannot reach.

**Statistics.** Labels and event are chosen on one half of the messages and tested on the other, so the event
is fixed before the test: the two Clopper-Pearson bounds, each at half of the error, hold together
(Bonferroni). So ``eps >= log((p_low - delta) / p'_high)`` and ``delta >= p_low - e^eps p'_high`` hold with
the given confidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.privacy.densities import check_situation
from ldp_gym.privacy.events import Objective, best_event
from ldp_gym.privacy.mechanism import Mechanism
from ldp_gym.privacy.message_features import has_fractions
from ldp_gym.statistics import largest_share, least_share

_FIRST_ERROR = 0.1
"""Error rate of the bounds by which pairs of labels are compared."""

_ERROR = 1e-4
"""Error rate of the bounds by which events of a pair are compared, lest chance looks like a leak."""

_MOST_TRIALS = 1e10
"""Largest value of :attr:`EpsilonEstimate.trials_needed` that is reported."""

_TRIALS_GROWTH = 1.1
"""Factor between the numbers of test messages that :attr:`EpsilonEstimate.trials_needed` tries."""

_DIGITS = 6
"""Digits, relative to its spread, to which a column is rounded so that its lowest bits tell nothing."""


# -- Results ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpsilonEstimate:
    """Result of a black-box audit of eps.

    Attributes:
        epsilon: lower bound on the mechanism's eps, with the given confidence. It says nothing about how
            large eps really is: a small figure does not prove privacy.
        claimed: the eps that the mechanism claims, or None.
        confidence: confidence of the bound.
        delta: the delta that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: number of test messages of y and of y' in the event.
        trials: number of messages drawn in all.
        tested: number of test messages of each of the two labels.
        example: a message in the event, in words; empty if there is none.
        floats_only: True if the claim is broken by floats, and rounded messages do not break it.
    """

    epsilon: float
    claimed: float | None
    confidence: float
    delta: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int
    tested: int
    example: str = field(default="", repr=False)
    floats_only: bool = False

    @property
    def holds(self) -> bool | None:
        """False if the trials prove that the claim is broken; None without a claim."""
        if self.claimed is None:
            return None
        return self.epsilon <= self.claimed

    @property
    def trials_needed(self) -> int | None:
        """Number of trials that would break the claim, were the shares of the event those seen here.

        None if the claim is broken already, if there is none, or if 10^10 trials would not break it.
        """
        if self.claimed is None or not self.holds:
            return None
        first_share, second_share = np.array(self.counts) / self.tested
        trials_per_test = self.trials / self.tested
        # Raise the number of test messages by a tenth at a time, with the same shares in the event.
        tested = self.tested
        while tested * trials_per_test <= _MOST_TRIALS:
            hits = first_share * tested
            others = second_share * tested
            error = 1.0 - self.confidence
            bound = _epsilon_bound(hits, others, tested, error, self.delta)
            if bound > self.claimed:
                return math.ceil(self.trials * tested / self.tested)
            tested = math.ceil(_TRIALS_GROWTH * tested)
        return None

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        bound = f"eps >= {self.epsilon:.4g} with {100 * self.confidence:.8g}% confidence"
        if self.delta > 0.0:
            bound += f" and delta = {self.delta:g}"
        if self.claimed is None:
            return f"{bound}; no eps was claimed"
        if self.floats_only:
            return (
                f"holds in real arithmetic, as far as seen; broken by the low bits of floats: the claim of "
                f"eps = {self.claimed:g} is broken as messages are sent ({bound}), and not after rounding "
                f"to {_DIGITS} digits"
            )
        if not self.holds:
            return f"the claim of eps = {self.claimed:g} is broken: {bound}"
        sentence = f"no proof that the claim of eps = {self.claimed:g} is broken ({bound})"
        needed = self.trials_needed
        if needed is not None:
            sentence += f"; at the shares seen here {needed:,} trials would be such a proof"
        return sentence

    def __str__(self) -> str:
        return f"{self.verdict}. {_evidence(self)}"


@dataclass(frozen=True)
class DeltaEstimate:
    """Result of a black-box audit of delta.

    Attributes:
        delta: lower bound on the mechanism's delta at this eps, with the given confidence. A small figure
            does not prove privacy.
        claimed: the delta that the mechanism claims, or None.
        confidence: confidence of the bound.
        epsilon: the eps that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: number of test messages of y and of y' in the event.
        trials: number of messages drawn in all.
        tested: number of test messages of each of the two labels.
        example: a message in the event, in words; empty if there is none.
    """

    delta: float
    claimed: float | None
    confidence: float
    epsilon: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int
    tested: int
    example: str = field(default="", repr=False)

    @property
    def holds(self) -> bool | None:
        """False if the trials prove that the claim is broken; None without a claim."""
        if self.claimed is None:
            return None
        return self.delta <= self.claimed

    @property
    def verdict(self) -> str:
        """Conclusion, in words."""
        bound = (
            f"delta >= {self.delta:.4g} at eps = {self.epsilon:g} with "
            f"{100 * self.confidence:.8g}% confidence"
        )
        if self.claimed is None:
            return f"{bound}; no delta was claimed"
        if not self.holds:
            return f"the claim of delta = {self.claimed:g} is broken: {bound}"
        return f"no proof that the claim of delta = {self.claimed:g} is broken ({bound})"

    def __str__(self) -> str:
        return f"{self.verdict}. {_evidence(self)}"


def _evidence(estimate: EpsilonEstimate | DeltaEstimate) -> str:
    """The labels, an example, the counts and the event of an audit, in words."""
    first, second = estimate.labels
    hits, others = estimate.counts
    messages = "messages of the event"
    if estimate.example:
        messages = f"messages such as {estimate.example}"
    return (
        f"Label {first} against label {second}: {messages} came {hits:,} times out of "
        f"{estimate.tested:,} from label {first} and {others:,} times out of {estimate.tested:,} from label "
        f"{second}; {estimate.trials:,} were drawn. Event: {estimate.event}."
    )


# -- Audits -----------------------------------------------------------------------------------------------


def estimate_epsilon(
    mechanism: Channel | Callable[[Any], Any],
    candidates: FloatArray | None = None,
    trials: int = 100_000,
    confidence: float = 0.99,
    *,
    num_labels: int | None = None,
    claimed: float | None = None,
    delta: float | None = None,
    vectorized: bool = False,
    floats: bool | None = None,
    time_limit: float = 600.0,
    posterior: FloatArray | None = None,
    seed: int = 0,
) -> EpsilonEstimate:
    """Bound the eps of a mechanism from below by its messages.

    A quarter of the messages, of all labels, chooses two labels; a quarter, of those two, chooses an event
    that tells them apart; half of them test it. Messages are taken to be independent given their labels: what
    one message tells about another is not seen, nor what a mechanism prints or stores, nor its run time.

    Args:
        mechanism: a function from a label in ``0..M-1`` to a message (a number, a string, bytes, a set, a
            dict, or a tuple, list or array), or a Channel.
        candidates: the class at one context, ``(K, M)``, for a Channel.
        trials: number of messages to draw in all.
        confidence: confidence of the bound.
        num_labels: M, for a function.
        claimed: the eps that the mechanism claims; by default a Channel's own.
        delta: the delta to grant the mechanism; by default a Channel's own, and 0 for a function.
        vectorized: whether the function maps an array of labels ``(n,)`` to n messages.
        floats: whether to look at the lowest bits of floats, which noise that is right in real arithmetic may
            give away; by default for functions, not for Channels, whose promise is about real arithmetic.
        time_limit: seconds that a function may take for all messages.
        posterior: the public posterior, for an adaptive Channel.
        seed: seed of a Channel's messages and of the order of labels. A function has its own randomness.

    Raises:
        MechanismFailedError: if a function raises, hangs, or returns messages of several kinds.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def respond(label):  # the label with probability 3 / 4: eps = log 3
        ...     return label if rng.random() < 0.75 else 1 - label
        >>> estimate = estimate_epsilon(respond, num_labels=2, claimed=0.55, trials=20_000)
        >>> estimate.holds, estimate.labels, 0.9 < estimate.epsilon < 1.1
        (False, (0, 1), True)
    """
    confidence = validation.fraction("confidence", confidence)
    own_epsilon, own_delta = _own_claim(mechanism)
    if claimed is None:
        claimed = own_epsilon
    if claimed is not None and claimed != math.inf:
        claimed = validation.nonnegative("claimed", claimed)
    if delta is None:
        delta = own_delta or 0.0
    granted = validation.probability_below_one("delta", delta)
    sender = _make_sender(
        mechanism, candidates, posterior, num_labels, vectorized, time_limit, trials, seed
    )
    objective = partial(_epsilon_bound, delta=granted)
    look_at_floats = _default_floats(floats, mechanism)
    trial = _run_trial(sender, trials, objective, look_at_floats)
    error = 1.0 - confidence
    epsilon = max(0.0, _objective_of_counts(objective, trial.counts, trial.tested, error))

    # If rounded messages keep the claim, only the low bits of floats break it.
    floats_only = False
    if claimed is not None and epsilon > claimed and look_at_floats:
        rounded_counts = trial.rounded_counts(objective)
        if rounded_counts is not None:
            rounded = _objective_of_counts(objective, rounded_counts, trial.tested, error)
            floats_only = rounded <= claimed
    return EpsilonEstimate(
        epsilon=epsilon,
        claimed=claimed,
        confidence=confidence,
        delta=granted,
        labels=trial.labels,
        event=trial.words,
        counts=trial.counts,
        trials=trial.drawn,
        tested=trial.tested,
        example=trial.example,
        floats_only=floats_only,
    )


def estimate_delta(
    mechanism: Channel | Callable[[Any], Any],
    candidates: FloatArray | None = None,
    trials: int = 100_000,
    confidence: float = 0.99,
    *,
    num_labels: int | None = None,
    epsilon: float | None = None,
    claimed: float | None = None,
    vectorized: bool = False,
    floats: bool | None = None,
    time_limit: float = 600.0,
    posterior: FloatArray | None = None,
    seed: int = 0,
) -> DeltaEstimate:
    """Bound the delta of a mechanism at some eps from below by its messages.

    A quarter of the messages, of all labels, chooses two labels; a quarter, of those two, chooses an event
    with a large ``p - e^eps p'``, where p and p' are its probabilities under the two labels; half of them
    test it. Messages are taken to be independent given their labels.

    Args:
        mechanism: a function from a label in ``0..M-1`` to a message, or a Channel.
        candidates: the class at one context, ``(K, M)``, for a Channel.
        trials: number of messages to draw in all.
        confidence: confidence of the bound.
        num_labels: M, for a function.
        epsilon: the eps to grant the mechanism; by default a Channel's own.
        claimed: the delta that the mechanism claims; by default a Channel's own.
        vectorized: whether the function maps an array of labels ``(n,)`` to n messages.
        floats: whether to look at the lowest bits of floats; by default for functions, not for Channels.
        time_limit: seconds that a function may take for all messages.
        posterior: the public posterior, for an adaptive Channel.
        seed: seed of a Channel's messages and of the order of labels. A function has its own randomness.

    Raises:
        MechanismFailedError: if a function raises, hangs, or returns messages of several kinds.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> def respond(label):  # in the clear with probability 0.05, else a coin: (0, 0.05)-private
        ...     return 10 + label if rng.random() < 0.05 else int(rng.integers(2))
        >>> estimate = estimate_delta(respond, num_labels=2, epsilon=1.0, claimed=0.02)
        >>> estimate.holds, 0.045 < estimate.delta < 0.05
        (False, True)
    """
    confidence = validation.fraction("confidence", confidence)
    own_epsilon, own_delta = _own_claim(mechanism)
    if epsilon is None:
        epsilon = own_epsilon
    if epsilon is None:
        raise TypeError("estimate_delta needs epsilon=, the eps to grant a function")
    granted = validation.nonnegative("epsilon", epsilon)
    if claimed is None:
        claimed = own_delta
    if claimed is not None:
        claimed = validation.probability_below_one("claimed", claimed)
    sender = _make_sender(
        mechanism, candidates, posterior, num_labels, vectorized, time_limit, trials, seed
    )
    objective = partial(_delta_bound, epsilon=granted)
    trial = _run_trial(sender, trials, objective, _default_floats(floats, mechanism))
    error = 1.0 - confidence
    delta = max(0.0, _objective_of_counts(objective, trial.counts, trial.tested, error))
    return DeltaEstimate(
        delta=delta,
        claimed=claimed,
        confidence=confidence,
        epsilon=granted,
        labels=trial.labels,
        event=trial.words,
        counts=trial.counts,
        trials=trial.drawn,
        tested=trial.tested,
        example=trial.example,
    )


def _own_claim(mechanism: object) -> tuple[float | None, float | None]:
    """The eps and delta that a Channel promises; None for a function."""
    if isinstance(mechanism, Channel):
        return mechanism.epsilon, mechanism.delta
    return None, None


def _default_floats(floats: bool | None, mechanism: object) -> bool:
    """Tell whether to look at the lowest bits of floats: by default for functions only."""
    if floats is None:
        return not isinstance(mechanism, Channel)
    return validation.flag("floats", floats)


def validate_trials(trials: int, num_labels: int) -> int:
    """Return ``trials``, checked to be enough messages for this number of labels."""
    return validation.whole("trials", trials, least=20 * num_labels)


# -- Bounds -----------------------------------------------------------------------------------------------


def _epsilon_bound(hits: Any, others: Any, trials: int, error: float, delta: float) -> FloatArray:
    """Lower bound on eps, ``log((p_low - delta) / p'_high)``, from the counts of two labels in an event.

    ``p_low`` is a lower bound on the first label's probability of the event, and ``p'_high`` an upper bound
    on the second's, by Clopper and Pearson, each at half of the error.

    Args:
        hits: number of messages of the first label in the event, or an array of such.
        others: number of messages of the second label in the event.
        trials: number of messages of each label.
        error: error rate of the bound.
        delta: the delta that is granted.
    """
    low = least_share(hits, trials, error / 2.0)
    high = largest_share(others, trials, error / 2.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def _delta_bound(hits: Any, others: Any, trials: int, error: float, epsilon: float) -> FloatArray:
    """Lower bound on delta, ``p_low - e^eps p'_high``, from the counts of two labels in an event.

    ``p_low`` is a lower bound on the first label's probability of the event, and ``p'_high`` an upper bound
    on the second's, by Clopper and Pearson, each at half of the error.

    Args:
        hits: number of messages of the first label in the event, or an array of such.
        others: number of messages of the second label in the event.
        trials: number of messages of each label.
        error: error rate of the bound.
        epsilon: the eps that is granted.
    """
    low = least_share(hits, trials, error / 2.0)
    high = largest_share(others, trials, error / 2.0)
    with np.errstate(over="ignore"):
        return low - np.exp(epsilon) * high


def _objective_of_counts(
    objective: Objective, counts: tuple[int, int], trials: int, error: float
) -> float:
    """Objective of one event, from the number of messages of either label in it."""
    hits, others = counts
    return float(objective(np.asarray(hits), np.asarray(others), trials, error))


# -- Trials -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sender:
    """A mechanism that sends messages of M labels, and the generator of the order of labels."""

    mechanism: Mechanism
    num_labels: int
    rng: np.random.Generator

    def shuffled(self, labels: list[int], count: int) -> IntArray:
        """``count`` of each label, in random order: a mechanism may have a memory."""
        return self.rng.permutation(np.repeat(labels, count))

    def messages_of(self, labels: list[int], count: int) -> list[FloatArray]:
        """``count`` messages ``(count, F)`` of each label, as numbers."""
        order = self.shuffled(labels, count)
        messages = self.mechanism.numbers(order)
        return [messages[order == label] for label in labels]


def _make_sender(
    mechanism: Channel | Callable[[Any], Any],
    candidates: FloatArray | None,
    posterior: FloatArray | None,
    num_labels: int | None,
    vectorized: bool,
    time_limit: float,
    trials: int,
    seed: int,
) -> _Sender:
    """Check the arguments of an audit, and make the sender of its messages."""
    rng = np.random.default_rng(validation.seed("seed", seed))
    call: Callable[[Any], Any]
    if isinstance(mechanism, Channel):
        if num_labels is not None or vectorized:
            raise ValueError("num_labels and vectorized are for functions: a Channel knows its own")
        call = _sender_of_channel(mechanism, candidates, posterior, rng)
        num_labels = mechanism.num_labels
        vectorized = True
        numbers_per_trial = 1 + math.prod(mechanism.message_shape)  # the label too
    else:
        if not callable(mechanism) or isinstance(mechanism, type):
            what = "a function from a label to a message, or a Channel (made, not its class)"
            raise TypeError(f"mechanism must be {what}, got {validation.describe(mechanism)}")
        if candidates is not None or posterior is not None:
            raise ValueError("candidates and posterior are for Channels: pass num_labels=")
        call = mechanism
        num_labels = validation.whole("num_labels (M)", num_labels, least=2)
        numbers_per_trial = 2

    trials = validate_trials(trials, num_labels)
    vectorized = validation.flag("vectorized", vectorized)
    validation.fits_memory("trials", trials, numbers_per_trial, "messages")
    time_limit = validation.positive("time_limit", time_limit)
    return _Sender(Mechanism(call, vectorized, time_limit), num_labels, rng)


def _sender_of_channel(
    channel: Channel,
    candidates: FloatArray | None,
    posterior: FloatArray | None,
    rng: np.random.Generator,
) -> Callable[[IntArray], Any]:
    """Function from labels ``(n,)`` to messages of a channel, at checked candidates and posterior."""
    table, public = check_situation(channel, candidates, posterior)

    def privatize(labels: IntArray) -> Any:
        """Draw the messages of labels ``(n,)``."""
        return channel.privatize(labels, table, rng, public)

    return privatize


class _Trial(NamedTuple):
    """An event that tells two labels apart, and its test on fresh messages.

    Attributes:
        labels: the two labels.
        words: the event, in words.
        example: a test message of the first label in the event, in words; empty if there is none.
        counts: number of test messages of either label in the event.
        tested: number of test messages of each label.
        drawn: number of messages drawn in all.
        choosing_messages: the messages ``(n, F)`` of the two labels that chose the event.
        test_messages: the messages ``(n, F)`` that tested it.
        is_first: True where a test message is the first label's.
    """

    labels: tuple[int, int]
    words: str
    example: str
    counts: tuple[int, int]
    tested: int
    drawn: int
    choosing_messages: list[FloatArray]
    test_messages: FloatArray
    is_first: BoolArray

    def rounded_counts(self, objective: Objective) -> tuple[int, int] | None:
        """Counts of an event that is chosen and tested on the messages rounded to six digits.

        None if all of their numbers are whole, so that rounding changes nothing.
        """
        choosing_messages = np.concatenate(self.choosing_messages)
        is_fraction = has_fractions(choosing_messages)
        if not is_fraction.any():
            return None
        steps = _rounding_steps(choosing_messages, is_fraction)
        rounded = [_rounded(messages, steps) for messages in self.choosing_messages]
        event = best_event(rounded, objective, _ERROR, floats=False)
        inside = event(_rounded(self.test_messages, steps))
        counts = _counts(inside, self.is_first)
        # The event may tell the second label by what it sends more often.
        first, second = event.labels
        return counts[first], counts[second]


def _run_trial(sender: _Sender, trials: int, objective: Objective, floats: bool) -> _Trial:
    """Choose two labels with a quarter of the trials, an event with a quarter, and test it with half.

    Args:
        sender: sender of the messages.
        trials: number of messages in all.
        objective: score of an event.
        floats: whether to look at the lowest bits of floats.
    """
    per_label = trials // 4 // sender.num_labels
    all_labels = list(range(sender.num_labels))
    event_for_pair = best_event(
        sender.messages_of(all_labels, per_label), objective, _FIRST_ERROR, floats
    )
    pair = event_for_pair.labels

    per_label_of_pair = trials // 8
    messages_of_pair = sender.messages_of(list(pair), per_label_of_pair)
    event = best_event(messages_of_pair, objective, _ERROR, floats)
    first = pair[event.labels[0]]
    second = pair[event.labels[1]]

    tested = trials // 4
    order = sender.shuffled([first, second], tested)
    test_messages = sender.mechanism.numbers(order)
    inside = event(test_messages)
    is_first = order == first
    counts = _counts(inside, is_first)

    example = ""
    if counts[0] > 0:
        index = int(np.argmax(inside & is_first))
        example = validation.shorten(sender.mechanism.messages[index])
    layout = sender.mechanism.layout
    assert layout is not None, "messages have been drawn"
    return _Trial(
        labels=(first, second),
        words=event.words(layout.names, pair),
        example=example,
        counts=counts,
        tested=tested,
        drawn=per_label * sender.num_labels + 2 * per_label_of_pair + 2 * tested,
        choosing_messages=[messages_of_pair[index] for index in event.labels],
        test_messages=test_messages,
        is_first=is_first,
    )


def _counts(inside: BoolArray, is_first: BoolArray) -> tuple[int, int]:
    """Number of messages of the first label, and of the second, that are inside an event."""
    hits = int(np.count_nonzero(inside & is_first))
    others = int(np.count_nonzero(inside & ~is_first))
    return hits, others


def _rounding_steps(messages: FloatArray, is_fraction: BoolArray) -> FloatArray:
    """Steps ``(F,)`` to whose multiples columns are rounded; 0 for columns that stay as they are.

    A step is the power of ten that keeps six digits of a column's interquartile range (of its standard
    deviation if the range is 0).

    Args:
        messages: the messages, ``(n, F)``.
        is_fraction: whether a column has numbers that are not whole, ``(F,)``.
    """
    with np.errstate(all="ignore"):
        low, high = np.quantile(messages, [0.25, 0.75], axis=0)
        spread = np.where(high > low, high - low, messages.std(axis=0))
        steps = 10.0 ** (np.floor(np.log10(spread)) - _DIGITS)
    is_usable = is_fraction & np.isfinite(steps) & (steps > 0.0)
    return np.where(is_usable, steps, 0.0)


def _rounded(messages: FloatArray, steps: FloatArray) -> FloatArray:
    """Messages ``(n, F)`` rounded to multiples of the steps ``(F,)``; columns with step 0 stay."""
    is_rounded = steps > 0.0
    multiples = np.rint(messages / np.where(is_rounded, steps, 1.0))
    return np.where(is_rounded, multiples * steps, messages)
