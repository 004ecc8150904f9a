"""The suite ``rates``: risks over T, K and eps in units of the minimax rate, between bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ldp_bench import figures
from ldp_bench.experiment import Experiment
from ldp_bench.results import ExperimentResult, Results, grouped
from ldp_bench.suites.base import Finding, Suite
from ldp_gym import statistics, theory
from ldp_gym.core.arrays import FloatArray
from ldp_gym.engine.rules import Rules
from ldp_gym.hypotheses.families import star_amplitude
from ldp_gym.statistics import Estimate, PValues, above, below, conjunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Scheme(NamedTuple):
    """A learner on a channel."""

    learner: str
    channel: str

    def __str__(self) -> str:
        return f"{self.learner} on {self.channel}"


class Point(NamedTuple):
    """K, T and eps of a game."""

    num_hypotheses: int
    horizon: int
    epsilon: float

    @property
    def unit(self) -> float:
        """The unit of risk ``sqrt(K T) / eps``, in nats."""
        return math.sqrt(self.num_hypotheses * self.horizon) / self.epsilon

    @property
    def fixed_channel_unit(self) -> float:
        """The minimax rate without interaction, ``sqrt(K T log K) / eps``, in nats."""
        return self.unit * math.sqrt(math.log(self.num_hypotheses))

    def __str__(self) -> str:
        return f"K = {self.num_hypotheses}, T = {self.horizon:,}, eps = {self.epsilon:g}"


NEVER_LEARNS = Scheme("uniform", "half-space")
ALGORITHM_2 = Scheme("exp3", "laplace-single")
SAME_MESSAGES = Scheme("bayes", "laplace-single")
FIXED = Scheme("bayes", "half-space")
INTERACTIVE = Scheme("bayes", "challenge")

CENTRE = 0
"""Number of the centre among the hypotheses of ``hadamard-star``."""

LEAF = 1
"""Number of one leaf; if K is a power of two, relabelling turns any leaf into any other."""

_BAND = 2.0
"""Factor within which the risk of Bayes on ``half-space`` is to follow its rate."""

_NOT_FALLEN = 0.9
"""Share of the risk of never learning above which a learner has not begun to learn."""

_LEARNED = 0.5
"""Share of the risk of never learning below which a learner has learned."""

_LONGEST_INTERACTIVE = 8_000
"""Longest horizon of ``challenge``, which costs a hundred times as much as ``half-space``."""

_CHEAP_SIZE = 16
"""Largest K of the cheap games: only they have Algorithm 2, and more episodes on ``half-space``."""

_CHEAP_HORIZON = 16_000
"""Longest horizon of the cheap games."""


class Rates(Suite):
    """Risks on ``hadamard-star`` in units of ``sqrt(K T) / eps``, for the worst amplitude and truth."""

    name = "rates"
    title = "The paper's rate: risks over T, K and eps, between bounds"
    claim = (
        "The minimax KL-risk over classes of size K is of order sqrt(K T log K) / eps if channels are fixed "
        "in advance, as in the paper, and of order sqrt(K T) / eps with interaction. Played on "
        "hadamard-star, the class of our lower bounds; a risk is the largest over amplitudes (powers of "
        "two down to that of the lower bound) and truths (the centre or a leaf), in units of sqrt(K T) / "
        "eps."
    )
    schemes: ClassVar[tuple[Scheme, ...]] = (
        NEVER_LEARNS,
        ALGORITHM_2,
        SAME_MESSAGES,
        FIXED,
        INTERACTIVE,
    )
    lines: ClassVar[Mapping[str, Sequence[Point]]] = {
        "T": [Point(16, horizon, 1.0) for horizon in (250, 1_000, 4_000, 16_000, 64_000)],
        "K": [Point(size, 250 * size, 1.0) for size in (4, 8, 16, 32, 64)],
        "eps": [Point(16, 4_000, epsilon) for epsilon in (0.25, 0.5, 1.0, 2.0)],
    }
    """Games along each axis."""

    small_lines: ClassVar[Mapping[str, Sequence[Point]]] = {
        "T": [Point(4, horizon, 1.0) for horizon in (64, 256, 1_024)],
        "K": [Point(size, 64 * size, 1.0) for size in (4, 8)],
        "eps": [Point(4, 256, epsilon) for epsilon in (0.5, 1.0, 2.0)],
    }
    """Games of the small size."""

    def own_experiments(self, small: bool) -> list[Experiment]:
        lines = self.small_lines if small else self.lines
        points = dict.fromkeys(point for line in lines.values() for point in line)
        return [
            _experiment(scheme, point, amplitude, truth, _num_episodes(scheme, point, small))
            for scheme in self.schemes
            for point in points
            if _is_affordable(scheme, point)
            for amplitude in _amplitudes(point)
            for truth in (CENTRE, LEAF)
        ]

    def findings(self, results: Results) -> Iterator[Finding]:
        measured = _measure(results)
        if FIXED in measured:
            yield from _find_rate(measured[FIXED])
        yield from _find_bounds(measured)
        yield from _find_interaction(measured)
        yield from _find_algorithm_2(measured)

    def draw(self, results: Results) -> figures.Figure:
        from matplotlib.figure import Figure

        measured = _measure(results)
        if not measured:  # no game was played with both truths
            return super().draw(results)
        drawing = Figure(figsize=(7.6, 6.4), layout="constrained")
        panels = drawing.subplots(2, 2, sharey=True)
        for panel, symbol in zip(panels.flat, self.lines, strict=False):
            _draw_axis(panel, symbol, measured)
        for panel in panels[:, 0]:
            panel.set_ylabel("KL-risk in units of sqrt(K T) / eps")

        legend_place = panels[1, 1]
        legend_place.set_visible(False)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="center", bbox_to_anchor=(0.77, 0.25))
        return drawing


# -- Experiments, and their risks at a point ----------------------------------------------------------------


def _amplitudes(point: Point) -> list[float]:
    """Powers of two from 1 down to the amplitude of the lower bound."""
    least = star_amplitude(*point)
    amplitudes = [1.0]
    while amplitudes[-1] / 2.0 >= least:
        amplitudes.append(amplitudes[-1] / 2.0)
    return amplitudes


def _num_episodes(scheme: Scheme, point: Point, small: bool) -> int:
    """Number of episodes of an experiment: more on ``half-space``, where they are cheap."""
    if small:
        return 8
    if scheme == FIXED and _is_cheap(point):
        return 128
    return 32


def _is_affordable(scheme: Scheme, point: Point) -> bool:
    """Tell if a scheme is played at a point: expensive ones are not played in the largest games."""
    if scheme.channel == INTERACTIVE.channel:
        return point.horizon <= _LONGEST_INTERACTIVE
    if scheme.channel == ALGORITHM_2.channel:
        return _is_cheap(point)
    return True


def _is_cheap(point: Point) -> bool:
    return point.num_hypotheses <= _CHEAP_SIZE and point.horizon <= _CHEAP_HORIZON


def _experiment(
    scheme: Scheme, point: Point, amplitude: float, truth: int, episodes: int
) -> Experiment:
    rules = Rules(
        hypotheses="hadamard-star",
        hypotheses_kwargs={"amplitude": amplitude},
        num_hypotheses=point.num_hypotheses,
        horizon=point.horizon,
        epsilon=point.epsilon,
        channel=scheme.channel,
    )
    return Experiment(rules, scheme.learner, episodes=episodes, truth=truth)


class Risk(NamedTuple):
    """Total KL of the episodes of a scheme at a point, for each amplitude and truth.

    Attributes:
        by_truth: one row for each amplitude and truth, ``(rows, n)``.
        averaged: averages over a uniform truth, one row for each amplitude, ``(amplitudes, n)``.
    """

    by_truth: FloatArray
    averaged: FloatArray

    @property
    def worst(self) -> FloatArray:
        """Episodes of the amplitude and truth with the largest mean, ``(n,)``."""
        return self.by_truth[np.argmax(self.by_truth.mean(axis=-1))]

    @property
    def value(self) -> float:
        """Largest mean over amplitudes and truths."""
        return float(self.by_truth.mean(axis=-1).max())


Measured = Mapping[Scheme, Mapping[Point, Risk]]
"""Risks by scheme and point, each scheme's in the order of the suite."""


def _measure(results: Results) -> dict[Scheme, dict[Point, Risk]]:
    """Collect the results of each scheme at each point where both truths were played."""
    measured: dict[Scheme, dict[Point, Risk]] = {}
    for (scheme, point), played in grouped(results.successes, _place).items():
        risk = _collect(played, point.num_hypotheses)
        if risk is not None:
            measured.setdefault(scheme, {})[point] = risk
    return measured


def _place(result: ExperimentResult) -> tuple[Scheme, Point]:
    experiment = result.experiment
    point = Point(experiment.num_hypotheses, result.horizon, experiment.epsilon)
    return Scheme(result.learner, result.channel), point


def _collect(played: Sequence[ExperimentResult], num_hypotheses: int) -> Risk | None:
    """Collect the episodes at one point; None unless both truths were played at an amplitude."""
    by_amplitude: dict[float, dict[object, FloatArray]] = {}
    for result in played:
        options = result.experiment.rules.hypotheses_kwargs or {}
        by_truth = by_amplitude.setdefault(options["amplitude"], {})
        by_truth[result.experiment.truth] = result.totals

    pairs = [truths for truths in by_amplitude.values() if {CENTRE, LEAF} <= set(truths)]
    if not pairs:
        return None
    centres = np.stack([truths[CENTRE] for truths in pairs])
    leaves = np.stack([truths[LEAF] for truths in pairs])
    averaged = (centres + (num_hypotheses - 1) * leaves) / num_hypotheses
    return Risk(np.concatenate([centres, leaves]), averaged)


# -- Claims -------------------------------------------------------------------------------------------------


def _lower_bound(point: Point) -> float:
    """Lower bound on the risk of every private scheme, for some amplitude and truth that are played."""
    bounds = [theory.interactive_kl_lower_bound(*point, a) for a in _amplitudes(point)]
    return max(bounds)


def _find_rate(risks: Mapping[Point, Risk]) -> Iterator[Finding]:
    """Compare the risk of Bayes on ``half-space`` with its rate over each axis."""
    shares = {point: risk.worst / point.fixed_channel_unit for point, risk in risks.items()}
    means = [float(share.mean()) for share in shares.values()]
    text = (
        f"{FIXED}: the risk is {min(means):.2f} to {max(means):.2f} times sqrt(K T log K) / eps over all "
        f"{len(means)} games: the claim is that no two differ by more than a factor of {_BAND:g}."
    )
    tests = list[PValues]()
    for one, other in itertools.permutations(shares.values(), 2):
        own, reference = _same_episodes(one, other)
        tests.append(below(statistics.paired(own, _BAND * reference), 0.0))
    if tests:
        yield Finding(text, conjunction(tests))

    for symbol in Rates.lines:
        line = _points_along(symbol, {FIXED: risks})
        if len(line) < 2:
            continue
        positions = [_position(symbol, point) for point in line]
        slope = statistics.slope(positions, [risks[point].worst for point in line])
        rates = [point.fixed_channel_unit for point in line]
        rate_slope = np.polyfit(np.log(positions), np.log(rates), deg=1)[0]
        span = f"{symbol} from {positions[0]:,.10g} to {positions[-1]:,.10g}"
        yield Finding(
            f"{FIXED}: the risk has slope {slope} in {span} ({_fixed_quantities(symbol, line[0])}), the rate "
            f"{rate_slope:.2f}."
        )


def _find_bounds(measured: Measured) -> Iterator[Finding]:
    """Compare measured risks with the bounds; never learning is the control of upper bounds."""
    controls = measured.get(NEVER_LEARNS, {})
    upper_bounds: dict[Scheme, Callable[..., float]] = {
        FIXED: theory.half_space_worst_kl_bound,
        INTERACTIVE: theory.interactive_kl_bound,
    }
    for scheme, upper_bound in upper_bounds.items():
        risks = {point: r for point, r in measured.get(scheme, {}).items() if point in controls}
        if not risks:
            continue
        tests = list[PValues]()
        for point, risk in risks.items():
            tests.append(above(risk.by_truth, _lower_bound(point)))
            tests.append(below(risk.by_truth, upper_bound(*point), controls[point].by_truth))
        over_lower = [risk.value / _lower_bound(point) for point, risk in risks.items()]
        over_upper = [risk.value / upper_bound(*point) for point, risk in risks.items()]
        idle = max(controls[point].value / upper_bound(*point) for point in risks)
        yield Finding(
            f"{scheme} lies between the bounds in all {len(risks)} games: {min(over_lower):.2g} to "
            f"{max(over_lower):.2g} times the lower bound for all private schemes, "
            f"{min(over_upper):.2g} to {max(over_upper):.2g} times the upper bound (never learning: up to "
            f"{idle:.2g}).",
            conjunction(tests),
        )

    averages = {point: r for point, r in measured.get(FIXED, {}).items() if point in controls}
    if averages:
        tests = [
            below(risk.averaged, theory.half_space_kl_bound(*point), controls[point].averaged)
            for point, risk in averages.items()
        ]
        largest = max(
            risk.averaged.mean(axis=-1).max() / theory.half_space_kl_bound(*point)
            for point, risk in averages.items()
        )
        text = f"{FIXED}, on average over a uniform truth: at most {largest:.2g} times the bound of"
        yield Finding(f"{text} our Theorem 4.", conjunction(tests))


def _find_interaction(measured: Measured) -> Iterator[Finding]:
    """Compare ``half-space`` with ``challenge``: interaction may gain a factor of sqrt(log K)."""
    fixed = measured.get(FIXED, {})
    interactive = measured.get(INTERACTIVE, {})
    idle = measured.get(NEVER_LEARNS, {})
    along_k = [
        point
        for point in _points_along("K", {FIXED: fixed})
        if point in interactive and point in idle
    ]
    if not along_k:
        return
    gains = [
        f"{fixed[point].value / interactive[point].value:.2f} at K = {point.num_hypotheses}"
        for point in along_k
    ]
    last = along_k[-1]
    most = math.sqrt(math.log(last.num_hypotheses))
    own, other = _same_episodes(fixed[last].worst, interactive[last].worst)
    gains_at_most = below(statistics.paired(own, most * other), 0.0)
    both_learn = [_has_learned(risks[last], idle[last]) for risks in (fixed, interactive)]
    yield Finding(
        f"Interaction divides the risk of Bayes by {', '.join(gains)}: the claim is that the last factor is "
        f"at most sqrt(log K) = {most:.2f}, and that neither pays more than {_LEARNED:g} times as much as "
        f"never learning.",
        conjunction([gains_at_most, *both_learn]),
    )


def _has_learned(risk: Risk, idle: Risk) -> PValues:
    """Test that a risk is well below that of never learning."""
    own, control = _same_episodes(risk.worst, idle.worst)
    return below(statistics.paired(own, _LEARNED * control), 0.0)


def _find_algorithm_2(measured: Measured) -> Iterator[Finding]:
    """Compare Algorithm 2 with never learning, and with Bayes on the same messages."""
    paper = measured.get(ALGORITHM_2, {})
    bayes = measured.get(SAME_MESSAGES, {})
    idle = measured.get(NEVER_LEARNS, {})
    along_t = [
        point
        for point in _points_along("T", {ALGORITHM_2: paper})
        if point in idle and point in bayes
    ]
    if not along_t:
        return
    last = along_t[-1]
    shares = [paper[point].value / idle[point].value for point in along_t]
    learned = bayes[last].value / idle[last].value
    tests = list[PValues]()
    for point in along_t:
        own, control = _same_episodes(paper[point].worst, idle[point].worst)
        tests.append(above(statistics.paired(own, _NOT_FALLEN * control), 0.0))
    tests.append(_has_learned(bayes[last], idle[last]))
    yield Finding(
        f"Algorithm 2 ({ALGORITHM_2}) pays {min(shares):.2f} to {max(shares):.2f} times as much as never "
        f"learning for T from {along_t[0].horizon:,} to {last.horizon:,}, and Bayes on the same "
        f"messages {learned:.2g} times at the end: the claim is at least {_NOT_FALLEN:g}, and at most "
        f"{_LEARNED:g} for Bayes.",
        conjunction(tests),
    )


def _same_episodes(one: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut two samples to the episodes that they have in common."""
    count = min(len(one), len(other))
    return one[:count], other[:count]


# -- Figure -------------------------------------------------------------------------------------------------


def _position(symbol: str, point: Point) -> float:
    """Place of a point on an axis."""
    by_symbol = {"K": point.num_hypotheses, "T": point.horizon, "eps": point.epsilon}
    return float(by_symbol[symbol])


def _points_along(symbol: str, measured: Measured) -> list[Point]:
    """Points of an axis at which a scheme was measured, in their order."""
    played = {point for risks in measured.values() for point in risks}
    own_points = {*Rates.lines[symbol], *Rates.small_lines[symbol]}
    return sorted(own_points & played, key=lambda point: _position(symbol, point))


def _fixed_quantities(symbol: str, point: Point) -> str:
    """Quantities that stay the same along an axis, in words."""
    size, horizon, epsilon = point
    fixed = {
        "T": f"K = {size}, eps = {epsilon:g}",
        "K": f"T = {horizon // size} K, eps = {epsilon:g}",
        "eps": f"K = {size}, T = {horizon:,}",
    }
    return fixed[symbol]


def _draw_axis(panel: Axes, symbol: str, measured: Measured) -> None:
    """Draw the bounds as bands, worst risks as lines with intervals, and averages as dashed lines."""
    points = _points_along(symbol, measured)
    if points:
        panel.set_title(f"over {symbol}: {_fixed_quantities(symbol, points[0])}")
        _draw_bands(panel, symbol, points)
    panel.set_xlabel(symbol)
    for i, (scheme, risks) in enumerate(measured.items()):
        line = [point for point in points if point in risks]
        x = [_position(symbol, point) for point in line]
        hue = figures.pair_colour(scheme.learner, scheme.channel, i)
        if scheme == NEVER_LEARNS:
            hue = figures.colour("uniform")
        elif scheme == SAME_MESSAGES:
            hue = figures.colour("bayes")
        worst = [statistics.largest_mean(risks[point].by_truth) / point.unit for point in line]
        label = _LABELS.get(scheme, str(scheme))
        figures.draw_line(panel, figures.Line(label, x, worst, hue), place=i - len(measured) / 2.0)
        if scheme in (FIXED, INTERACTIVE):
            averages = [
                Estimate(float(risks[point].averaged.mean(axis=-1).max()) / point.unit)
                for point in line
            ]
            average_label = f"{scheme.channel}, uniform truth"
            figures.draw_line(panel, figures.Line(average_label, x, averages, hue, "--"), 0.0)
    positions = [_position(symbol, point) for point in points]
    figures.set_log_scale(panel, "x", positions)
    figures.set_log_scale(panel, "y")


_LABELS = {
    NEVER_LEARNS: "never learns (uniform)",
    ALGORITHM_2: "Algorithm 2 (exp3)",
    SAME_MESSAGES: "Bayes, Algorithm 2's messages",
    FIXED: "Bayes on half-space (fixed)",
    INTERACTIVE: "Bayes on challenge (interactive)",
}
"""Labels of the schemes in the figure."""


def _draw_bands(panel: Axes, symbol: str, points: Sequence[Point]) -> None:
    """Draw the range between lower and upper bounds, for fixed and for interactive channels."""
    x = [_position(symbol, point) for point in points]
    bands: list[tuple[str, str, Callable[..., float], Callable[..., float]]] = [
        (
            "bounds, fixed channels",
            FIXED.channel,
            theory.noninteractive_kl_lower_bound,
            theory.half_space_worst_kl_bound,
        ),
        (
            "bounds, with interaction",
            INTERACTIVE.channel,
            theory.interactive_kl_lower_bound,
            theory.interactive_kl_bound,
        ),
    ]
    for label, channel, lower_bound, upper_bound in bands:
        low = [lower_bound(*point) / point.unit for point in points]
        high = [upper_bound(*point) / point.unit for point in points]
        hue = figures.colour(channel)
        panel.fill_between(x, low, high, color=hue, alpha=0.13, linewidth=0, label=label)
