"""Bets on labels: whether messages tell more about their labels than the declared density says.

A label Y is drawn and its message Z is sent. By Bayes' rule the declared density gives the *belief*
``pi(y) = P(Y = y | Z)``. A bettor who has seen Z, and earlier messages with their labels, stakes a
distribution g on the label and is paid ``g(Y) / pi(Y)``. If the density is right, that is 1 on average,
whatever g is: the wealth of a bettor who starts with 1 is a nonnegative martingale, and exceeds ``1 / alpha``
with probability at most alpha (Ville 1939). So is the mean wealth of many bettors, whatever they share.

If messages tell anything about labels that the density does not say, a bettor who finds it gets rich at an
exponential rate. Rules may be as many and as intricate as one likes, and look at all messages, but only at
the labels of earlier ones.

That the belief is right is all that privacy needs: two channels with the same beliefs have the same density
ratios between labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.privacy.bits import coordinate, fold, varying
from ldp_gym.privacy.codes import break_code, primes_for
from ldp_gym.privacy.questions import Labelled, grow, promising
from ldp_gym.privacy.views import views

Wealth = tuple[str, float]
"""What a bettor looks at, and the logarithm of what is left of a stake of 1."""

BLOCKS = (1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""The messages come in blocks of these shares; on each one bets by what the blocks before have taught."""

_POWERS = (-0.25, -0.05, -0.005, 0.005, 0.02, 0.1, 0.5, 2.0)
_DOUBTS = (1.5, 3.5)
_STAKES = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
_DEPTHS = (1, 3, 8)
_STEPS = (1.0, 0.3, 0.1)
_MOST_LINEAR = 16
_MOST_CODED = 8
_EQUATIONS = 105
_REPEATED = 8
_EXCESSES = (0.3, 1.0, 10.0)


@dataclass(frozen=True)
class Sample:
    """Messages and how often which label was behind them: a row per message, situation and block.

    Attributes:
        messages: ``(R, F)``.
        situations: the number of the public situation that each was sent in, ``(R,)``.
        counts: how often each was sent with which label, ``(R, L)``.
        beliefs: what the declared density says of the label, ``(R, L)``.
        ends: where the rows of each block end.
    """

    messages: FloatArray
    situations: IntArray
    counts: FloatArray
    beliefs: FloatArray
    ends: tuple[int, ...]

    @cached_property
    def blocks(self) -> IntArray:
        """The block of each row, ``(R,)``."""
        return np.searchsorted(self.ends, np.arange(len(self.counts)), side="right")

    @cached_property
    def expected(self) -> FloatArray:
        """How often each label was to be expected, ``(R, L)``."""
        return self.beliefs * self.counts.sum(axis=-1, keepdims=True)

    @cached_property
    def events(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows, labels and counts of what was sent at all."""
        rows, labels = np.nonzero(self.counts)
        return rows, labels, self.counts[rows, labels]


def select(sample: Sample, rows: BoolArray) -> Sample:
    """Some of the rows."""
    kept = np.append(0, np.cumsum(rows))
    return Sample(
        np.ascontiguousarray(sample.messages[rows]),
        sample.situations[rows],
        sample.counts[rows],
        sample.beliefs[rows],
        tuple(int(kept[end]) for end in sample.ends),
    )


def mean_wealth(wealth: Iterable[float]) -> float:
    """The logarithm of the mean, from logarithms."""
    logs = np.fromiter(wealth, dtype=np.float64)
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def bet(sample: Sample) -> Iterator[Wealth]:
    """The wealth that every bettor has in the end."""
    yield from _bet_on_sharpness(sample)
    for name, cells in views(sample.messages, sample.situations, sample.counts.shape[-1]):
        blocks = CellBets(sample, cells)
        yield from ((name, wealth) for wealth in [*blocks.tilted(), blocks.guessed(), blocks.written()])
    blocks = CellBets(sample, sample.beliefs.argmax(axis=-1))
    yield from (("the likeliest label", wealth) for wealth in [blocks.guessed(), *blocks.tilted()])
    if varying(sample.messages):
        yield from _bet_on_codes(sample)
        yield from _bet_on_trees(sample)
        yield _bet_on_a_linear_rule(sample)


# -- Rules without a memory ---------------------------------------------------------------------------


def _bet_on_sharpness(sample: Sample) -> Iterator[Wealth]:
    """Stake ``pi^(1 + power)``, which is right if messages tell more, or less, than declared."""
    log_beliefs = np.log(np.where(sample.beliefs > 0.0, sample.beliefs, 1.0))
    for power in _POWERS:
        gains = _gains(sample, slice(None), power * log_beliefs)
        by_situation = np.bincount(sample.situations, gains)
        yield from (("how sure the density is", float(gain)) for gain in [gains.sum(), *by_situation])


def _gains(sample: Sample, rows: slice, log_tilt: FloatArray) -> FloatArray:
    """The log wealth ``(R,)`` of ``g = pi e^tilt``, normalised, in each of those rows."""
    counts, beliefs = sample.counts[rows], sample.beliefs[rows]
    log_norm = np.log(np.einsum("rl,rl->r", beliefs, np.exp(log_tilt)))
    return np.einsum("rl,rl->r", counts, log_tilt) - counts.sum(axis=-1) * log_norm


def bet_on_delta(
    log_density: FloatArray, counts: FloatArray, epsilon: float, delta: float
) -> Iterator[Wealth]:
    """Bet that density ratios exceed ``e^eps`` by more than a delta allows.

    Given label y, ``X = max(0, 1 - e^eps q(Z | y') / q(Z | y))`` is delta(y, y') on average. So a bettor
    whose wealth is multiplied by ``1 + s (X - delta)`` with every message of y gains nothing on average if
    no pair has more than delta.

    Args:
        log_density: of messages given each label, ``(R, L)``.
        counts: how often each was sent with which label, ``(R, L)``.
        epsilon: eps.
        delta: what is declared.
    """
    gains: list[list[FloatArray]] = [[] for _ in _EXCESSES]
    for other in log_density.T:
        loss = np.minimum(
            epsilon + other[:, None] - log_density, 0.0, where=counts > 0.0, out=np.zeros_like(counts)
        )
        excess = -np.expm1(loss)
        for wealth, stake in zip(gains, _EXCESSES, strict=True):
            factor = 1.0 + min(stake, 0.5 / max(delta, 1e-300)) * (excess - delta)
            wealth.append(np.einsum("rl,rl->l", counts, np.log(factor)))
    for wealth in gains:
        yield "how far density ratios exceed e^eps beside delta_bounds", mean_wealth(np.concatenate(wealth))


def bet_on_repeats(blocks: Sequence[tuple[IntArray, FloatArray, FloatArray]]) -> float:
    """Bet that the message which was sent too often so far is sent too often in the next block as well.

    Its probability is at most its density q, if no message weighs more than 1 in the base measure. A bettor
    who takes it for p > q stakes ``p / q`` on it and ``(1 - p) / (1 - q)`` on all others.

    Args:
        blocks: of each the messages' codes, how often each was sent, and the densities, ``(R,)`` each.
    """
    wealth = 0.0
    for number in range(1, len(blocks)):
        codes, counts, densities = (np.concatenate(parts) for parts in zip(*blocks[:number], strict=True))
        known, first, places = np.unique(codes, return_index=True, return_inverse=True)
        sent = np.bincount(places, counts)
        shares, density = sent / (sent.sum() + 1.0), np.maximum(densities[first], 1e-300)
        excess = np.where(sent >= _REPEATED, shares / density, 0.0)
        worst = int(excess.argmax())
        if excess[worst] > 2.0:
            p, q = float(shares[worst]), float(density[worst])
            now, times, _ = blocks[number]
            hits = float(times[now == known[worst]].sum())
            others = float(times.sum()) - hits
            wealth += hits * math.log(p / q) + others * (math.log1p(-p) - math.log1p(-q))
    return wealth


# -- Rules that count labels in cells -----------------------------------------------------------------


class CellBets:
    """Bets on a block by how often labels were sent in each cell in the blocks before.

    To stake ``g = pi r / sum_y pi(y) r(y)`` with the cell's tilts r costs ``log sum_y pi(y) r(y)`` per
    message. The logarithm is concave, so that n messages of a cell cost at most n times what their mean
    belief costs. So the cells' sums bound wealth from below, and they are all that is computed.

    Args:
        sample: the messages.
        cells: the cell of each row, ``(R,)``; nobody bets on those in cell -1.
    """

    def __init__(self, sample: Sample, cells: IntArray) -> None:
        from scipy import sparse

        num_blocks, num_labels = len(sample.ends), sample.counts.shape[-1]
        shape = int(cells.max(initial=-1)) + 1, num_blocks, num_labels
        places = cells * num_blocks + sample.blocks
        inside = cells >= 0
        starts = np.concatenate([[0], np.cumsum(inside)])
        members = sparse.csc_array(
            (np.ones(starts[-1]), places[inside], starts), shape=(shape[0] * num_blocks, len(cells))
        )
        self.expected = (members.tocsr() @ sample.expected).reshape(shape)
        rows, labels, counts = sample.events
        bet = inside[rows]
        bins = places[rows[bet]] * num_labels + labels[bet]
        self.sent = np.bincount(bins, counts[bet], minlength=math.prod(shape)).reshape(shape)

    @cached_property
    def _past(self) -> tuple[FloatArray, FloatArray]:
        """What was sent and expected before each block but the first, ``(G, B - 1, L)``."""
        sent, expected = (np.cumsum(sums, axis=1)[:, :-1] for sums in (self.sent, self.expected))
        return sent, expected

    @cached_property
    def _surprise(self) -> FloatArray:
        """By how many standard deviations the past was off, ``(G, B - 1, L)``."""
        sent, expected = self._past
        total = np.maximum(sent.sum(axis=-1, keepdims=True), 1.0)
        return (sent - expected) / np.sqrt(expected * np.maximum(1.0 - expected / total, 0.0) + 0.1)

    def tilted(self, last: int = 0) -> list[float]:
        """Stake as often as in the past, on labels that were more surprising than each of some doubts.

        Args:
            last: bet on so many of the last blocks; 0 for all.
        """
        (sent, expected), now = self._past, self.sent[:, 1:]
        ratio = (sent + 0.5) / (expected + 0.5)
        wealth = []
        for doubt in _DOUBTS:
            tilt = np.where(np.abs(self._surprise) > doubt, ratio, 1.0)
            count = now.sum(axis=-1)
            mean = np.einsum("gbl,gbl->gb", self.expected[:, 1:], tilt) / np.maximum(count, 1.0)
            cost = count * np.log(np.where(count > 0.0, mean, 1.0))
            gains = np.einsum("gbl,gbl->b", now, np.log(tilt)) - cost.sum(axis=0)
            wealth.append(float(gains[-last:].sum()))
        return wealth

    def guessed(self, last: int = 0) -> float:
        """Stake on the label that was most surprising in the cell."""
        guess = self._surprise.argmax(axis=-1)[..., None]
        hits, chances = (
            np.take_along_axis(sums[:, 1:], guess, axis=-1)[:, -last:].sum()
            for sums in (self.sent, self.expected)
        )
        return _stake(hits, chances, self.sent[:, 1:][:, -last:].sum())

    def written(self) -> float:
        """Stake on the label whose number the cell has: that is how a label would be written there."""
        place = np.arange(min(self.sent.shape[0], self.sent.shape[2]))
        hits, chances = (sums[place, :, place].sum() for sums in (self.sent, self.expected))
        return _stake(hits, chances, self.sent[place].sum())


def _stake(hits: float, chances: float, count: float) -> float:
    """The log wealth of guesses that were right ``hits`` times and expected to be ``chances`` times.

    The mean over stakes s of ``(1 + s)^hits (1 + s chances / count)^-count``, a lower bound as above.
    """
    if count == 0.0:
        return 0.0
    return mean_wealth(hits * np.log1p(_STAKES) - count * np.log1p(_STAKES * chances / count))


# -- Rules learned on the first half ------------------------------------------------------------------


def _bet_on_trees(sample: Sample) -> Iterator[Wealth]:
    half = sample.ends[-2]
    counts = sample.counts[:half]
    surplus = counts - sample.expected[:half]
    labelled = Labelled(sample.messages[:half], counts.sum(axis=-1), surplus, sample.beliefs[:half])
    questions = promising(labelled)
    for depth in _DEPTHS:
        tree = grow(labelled, questions, depth)
        bets = CellBets(sample, tree.cells(sample.messages))
        name = f"whether {tree.question.text}" if tree.question else "nothing"
        yield from ((name, wealth) for wealth in [*bets.tilted(last=1), bets.guessed(last=1)])


def _bet_on_codes(sample: Sample) -> Iterator[Wealth]:
    """Read labels by the linear codes that wrote those of the first half (:mod:`ldp_gym.privacy.codes`)."""
    half, num_labels = sample.ends[-2], sample.counts.shape[-1]
    labels = sample.counts[:half].argmax(axis=-1)
    whole = fold(sample.messages)
    everywhere = _spread(np.arange(half))
    numbers = [("all coordinates, folded", whole, everywhere)]
    for situation in np.unique(sample.situations):
        rows = _spread(np.flatnonzero(sample.situations[:half] == situation))
        numbers.append(("all coordinates, folded", whole, rows))
    for j in varying(sample.messages)[:_MOST_CODED]:
        numbers.append((f"coordinate {j}", coordinate(sample.messages, j), everywhere))
    for name, codes, rows in numbers:
        for prime in primes_for(num_labels):
            read = break_code(codes[rows], labels[rows], prime, codes)
            if read is None:
                yield "nothing", 0.0
            else:
                bets = CellBets(sample, read)
                wealth = mean_wealth([*bets.tilted(last=1), bets.guessed(last=1)])
                yield f"sums modulo {prime} of the bits of {name}", wealth


def _spread(rows: IntArray) -> IntArray:
    """As many of the rows as there are equations, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), _EQUATIONS), dtype=np.int64)]


def _bet_on_a_linear_rule(sample: Sample) -> Wealth:
    """One step of logistic regression on coordinates, squares and products, with the belief as its offset."""
    half = sample.ends[-2]
    features = _features(sample.messages)
    surplus, variance = sample.counts - sample.expected, sample.expected * (1.0 - sample.beliefs)
    slope = features[:half].T @ surplus[:half]
    curvature = np.square(features[:half]).T @ variance[:half] + 1.0
    weights = np.where(np.square(slope) > 6.0 * curvature, slope / curvature, 0.0)
    tilt = np.clip(features @ weights, -4.0, 4.0)
    first, second = slice(0, half), slice(half, None)
    gain, step = max((_gains(sample, first, step * tilt[first]).sum(), step) for step in _STEPS)
    wealth = float(_gains(sample, second, step * tilt[second]).sum()) if gain > 0.0 else 0.0
    return "coordinates and their products", wealth


def _features(messages: FloatArray) -> FloatArray:
    """Ranks of the coordinates, their squares and products, and the coordinates within three deviations."""
    columns = np.nan_to_num(messages[:, varying(messages)[:_MOST_LINEAR]])
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in columns.T], axis=1)
    ranks = 2.0 * ranks / np.maximum(ranks.max(axis=0), 1) - 1.0
    scale = np.maximum(columns.std(axis=0), 1e-300)
    products = [ranks[:, [i]] * ranks[:, : i + 1] for i in range(ranks.shape[1])]
    scaled = np.clip((columns - np.median(columns, axis=0)) / scale, -3.0, 3.0)
    features = np.concatenate([ranks, scaled, *products], axis=1)
    return features - features.mean(axis=0)
