"""Privacy that can be checked: exact audits of a channel's density, and a black-box audit of its messages.

========================== ============================ ==================================================
audit                      needs                        says
========================== ============================ ==================================================
:func:`exact_epsilon`      ``log_density``, ``extrema`` the least eps of the density, to 1e-9
:func:`exact_delta`        ``delta_bounds``             bounds on the least delta at an eps
:func:`estimate_epsilon`   ``privatize`` alone          a lower bound on eps, with confidence
========================== ============================ ==================================================

The exact audits judge the density that a channel declares, so a channel whose messages do not follow it
escapes them; ``ldp_gym.testing.check_channel`` and the black-box audit look at the messages themselves. A
black-box audit can convict a channel and never acquit it.

All of it is about one round, in real arithmetic, and protects the label alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ldp_gym import validation
from ldp_gym.accounting import DeltaBounds
from ldp_gym.arrays import BoolArray, FloatArray, IntArray, Messages

if TYPE_CHECKING:
    from ldp_gym.channels.base import Channel

TOLERANCE = 1e-9
"""How far above its claim a channel may be in floats, relatively."""

_ROUNDING = 1e-12
"""How far off a difference of two log densities may be."""

_CELLS = 8_000_000
"""How many numbers an audit holds at a time: 64 MB."""


@dataclass(frozen=True)
class ExactEpsilon:
    """The largest log density ratio of a channel.

    Attributes:
        epsilon: the supremum over messages and label pairs of ``log q(z | y) - log q(z | y')``.
        labels: the pair ``(y, y')`` that attains it.
        message: the message z at which it does.
    """

    epsilon: float
    labels: tuple[int, int]
    message: Messages


def exact_epsilon(
    channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None
) -> ExactEpsilon:
    """The least eps for which the channel's declared density is eps-LDP at these candidates ``(K, M)``.

    Deterministic. The channel's :meth:`~ldp_gym.Channel.extrema` names messages among which the supremum is
    found; labels that no hypothesis allows count too.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> table = np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
        >>> round(exact_epsilon(RandomizedResponse(2, 3, 10, epsilon=1.5), table).epsilon, 9)
        1.5
    """
    candidates = _table(channel, candidates)
    messages = _extrema(channel, candidates, posterior)
    found: ExactEpsilon | None = None
    together = max(1, _CELLS // candidates.size)  # messages, so that many labels do not take all memory
    for start in range(0, len(messages), together):
        some = messages[start : start + together]
        log_density = channel.log_density(some, candidates, posterior)
        highest, lowest = log_density.max(axis=-1), log_density.min(axis=-1)
        # Of a message that is never sent nobody learns anything.
        ratios = np.subtract(highest, lowest, where=highest > -np.inf, out=np.full(len(some), -np.inf))
        worst = int(ratios.argmax())
        if found is None or ratios[worst] > found.epsilon:
            labels = int(log_density[worst].argmax()), int(log_density[worst].argmin())
            found = ExactEpsilon(float(ratios[worst]), labels, some[worst])
    assert found is not None, "a channel has extrema"
    return found


def _table(channel: Channel, candidates: FloatArray) -> FloatArray:
    """Candidates at one context, checked."""
    table, expected = validation.distributions(candidates), (channel.num_hypotheses, channel.num_labels)
    if table.shape != expected:
        raise ValueError(
            f"an audit of {channel!r} looks at one context, candidates of shape {expected}; got {table.shape}"
        )
    return table


def _extrema(channel: Channel, candidates: FloatArray, posterior: FloatArray | None) -> Messages:
    """The channel's extrema, unless a subclass has given it a density that they were not made for."""
    from ldp_gym.channels.base import Channel as Base  # a channel's certificate is an audit

    def owner(name: str) -> type:
        return next(cls for cls in type(channel).__mro__ if name in vars(cls))

    if issubclass(owner("extrema"), owner("log_density")):
        return channel.extrema(candidates, posterior)
    return Base.extrema(channel, candidates, posterior)


def exact_delta(channel: Channel, candidates: FloatArray, epsilon: float) -> DeltaBounds:
    """Bounds on the least delta for which the channel is (eps, delta)-LDP at these candidates ``(K, M)``."""
    return channel.delta_bounds(_table(channel, candidates), validation.positive("epsilon", epsilon))


@dataclass(frozen=True)
class Certificate:
    """What an audit found of a channel at one class, beside what the channel claims.

    Attributes:
        epsilon: the eps that holds.
        delta: the delta that holds with it.
        claimed_epsilon: what the channel promises.
        claimed_delta: what the channel promises.
        method: how the figures were obtained.
        labels: the pair of labels that is told apart best, where the method names one.
        message: the message that tells them apart, where the method names one.
    """

    epsilon: float
    delta: float
    claimed_epsilon: float
    claimed_delta: float
    method: str
    labels: tuple[int, int] | None = None
    message: Messages | None = None

    @property
    def holds(self) -> bool:
        """Whether the claim is met."""
        within = self.epsilon <= self.claimed_epsilon * (1.0 + TOLERANCE) + _ROUNDING
        return within and self.delta <= self.claimed_delta * (1.0 + TOLERANCE)


def certify(channel: Channel, candidates: FloatArray, posterior: FloatArray | None = None) -> Certificate:
    """Audit a channel's own claim at these candidates: exactly if it is pure, by its delta if it is not."""
    claim = channel.epsilon, channel.delta
    if channel.pure:
        found = exact_epsilon(channel, candidates, posterior)
        method = "exact density ratio over all labels"
        return Certificate(found.epsilon, 0.0, *claim, method, found.labels, found.message)
    bounds = exact_delta(channel, candidates, channel.epsilon)
    return Certificate(channel.epsilon, bounds.upper, *claim, "accounted delta, an upper bound")


# -- The black box ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EpsilonEstimate:
    """What a black-box audit found.

    Attributes:
        epsilon: the channel's eps is at least this, with the given confidence. It says nothing about how
            large eps really is: a small figure is no proof of privacy.
        confidence: of that statement.
        delta: the delta that was granted.
        labels: the pair ``(y, y')`` that was told apart.
        event: the event that tells them apart, in words.
        counts: how often it happened among the test messages of y and of y'.
        trials: how many test messages each of the two had.
    """

    epsilon: float
    confidence: float
    delta: float
    labels: tuple[int, int]
    event: str
    counts: tuple[int, int]
    trials: int


def estimate_epsilon(
    channel: Channel,
    candidates: FloatArray,
    trials: int = 1_000_000,
    confidence: float = 0.99,
    *,
    delta: float = 0.0,
    posterior: FloatArray | None = None,
    seed: int = 0,
) -> EpsilonEstimate:
    """A lower bound on a channel's eps from its messages alone (it needs ``privatize``).

    Half of the messages, of all labels, go into finding an event and a pair of labels; the other half, of
    those two labels, into testing it. As the event is fixed before the test, the Clopper-Pearson bounds on
    its two probabilities hold, and ``eps >= log((p_low - delta) / p'_high)`` with the given confidence.

    Args:
        channel: the channel.
        candidates: the class at one context, ``(K, M)``.
        trials: how many messages to draw in all.
        confidence: of the bound.
        delta: the delta to grant the channel.
        posterior: the public posterior, for an interactive channel.
        seed: of the messages.
    """
    candidates = _table(channel, candidates)
    confidence = validation.fraction("confidence", confidence)
    delta = validation.probability_below_one("delta", delta)
    half = validation.whole("trials", trials, least=20 * channel.num_labels) // 2
    rng = np.random.default_rng(seed)

    def draw(label: int, count: int) -> FloatArray:
        messages = channel.privatize(np.full(count, label), candidates, rng, posterior)
        return np.asarray(messages, dtype=np.float64).reshape(count, -1)

    each = half // channel.num_labels
    explored = np.stack([draw(label, each) for label in range(channel.num_labels)])
    (first, second), event = _worst_event(explored, delta)
    tested = half // 2
    hits, others = (int(event(draw(label, tested)).sum()) for label in (first, second))
    epsilon = float(_epsilon_bound(np.array(hits), np.array(others), tested, 1.0 - confidence, delta))
    return EpsilonEstimate(
        max(0.0, epsilon), confidence, delta, (first, second), str(event), (hits, others), tested
    )


_CAUTION = 1e-6
"""At what error rate events are compared in the exploration: small, lest luck look like a leak."""


@dataclass(frozen=True)
class _Event:
    """A set of messages: a score at, above or below a threshold; repeated values have their own."""

    weights: FloatArray
    threshold: float
    side: str
    atoms: FloatArray

    def __call__(self, messages: FloatArray) -> BoolArray:
        score = messages @ self.weights
        if self.side == "=":
            return score == self.threshold
        beyond = score >= self.threshold if self.side == ">=" else score <= self.threshold
        return beyond & ~np.isin(score, self.atoms)

    def __str__(self) -> str:
        used = np.flatnonzero(self.weights)
        where = f"coordinate {used[0]}" if len(used) == 1 else "a projection of the message"
        return f"{where} {self.side} {self.threshold:.6g}"


def _worst_event(messages: FloatArray, delta: float) -> tuple[tuple[int, int], _Event]:
    """The event and the pair of labels with the largest confident ratio, among messages ``(M, n, F)``."""
    features = messages.shape[-1]
    directions = list(np.eye(features))
    if features > 1:  # the direction in which two labels' means differ most, for vectors of noise
        means, spread = messages.mean(axis=1), messages.std(axis=(0, 1)) + 1e-300
        scaled = means / spread
        distance = np.square(scaled[:, None] - scaled).sum(axis=-1)
        one, other = np.unravel_index(distance.argmax(), distance.shape)
        directions.append((scaled[one] - scaled[other]) / spread)
    best: tuple[float, tuple[int, int], _Event] | None = None
    for weights in directions:
        score = messages @ weights
        values, counts = np.unique(score, return_counts=True)
        atoms = values[counts >= 10]
        smooth = np.sort(score[~np.isin(score, atoms)])
        cuts = smooth[np.unique(np.linspace(0, len(smooth) - 1, 99).astype(int))] if len(smooth) else smooth
        common = values[np.argsort(counts)[::-1][:500]]
        for side, thresholds in (("=", np.intersect1d(common, atoms)), (">=", cuts), ("<=", cuts)):
            for threshold in thresholds:
                event = _Event(weights, float(threshold), side, atoms)
                hits = event(messages).sum(axis=-1)
                pair = int(hits.argmax()), int(hits.argmin())
                bound = float(
                    _epsilon_bound(hits[pair[0]], hits[pair[1]], messages.shape[1], _CAUTION, delta)
                )
                if best is None or bound > best[0]:
                    best = bound, pair, event
    assert best is not None, "every message is an atom or has a threshold"
    return best[1], best[2]


def _epsilon_bound(hits: IntArray, others: IntArray, trials: int, error: float, delta: float) -> FloatArray:
    """``log((p_low - delta) / p'_high)`` with Clopper-Pearson bounds, each at half the error."""
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(error / 2.0, np.maximum(hits, 1), trials - hits + 1), 0.0)
    high = np.where(others < trials, beta.isf(error / 2.0, others + 1, np.maximum(trials - others, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)
