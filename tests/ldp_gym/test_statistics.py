"""Estimates, p-values and verdicts against values worked out in other ways."""

import math

import numpy as np
import pytest
from helpers import ALPHA
from scipy import stats

from ldp_gym import statistics
from ldp_gym.statistics import Estimate, PValues, Verdict, above, below, certain, conjunction

RNG = np.random.default_rng(0)
NORMAL, SKEWED = RNG.normal(3.0, 1.0, (3, 40)), RNG.lognormal(0.0, 1.0, (2, 16))

LONG = np.random.default_rng(9).lognormal(0.0, 1.0, (1, 400))
"""So skewed and long that its short side is Student's."""


def ends(estimate):
    """Both ends of an interval."""
    return estimate.low, estimate.high


def strictness(count):
    """Share of the error rate that remains for samples of this size."""
    return 1 - min(0.85, 4.2 / math.sqrt(count))


def resampled(samples):
    """Means, errors, and pivots of 2,000 resamples, written out; NaN where all drawn values are the same."""
    count = samples.shape[-1]
    drawn = samples[:, np.random.default_rng(count).integers(count, size=(2000, count))]
    means, errors = samples.mean(axis=-1), stats.sem(samples, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        pivots = (drawn.mean(axis=-1) - means[:, None]) / stats.sem(drawn, axis=-1)
    return means, errors, np.where(np.isfinite(pivots), pivots, np.nan)


def quantile(values, share):
    """The value that a share of n values and the sample's own lies below, at place share (n + 1)."""
    ordered = np.sort(values[~np.isnan(values)])
    return np.interp(share * (len(ordered) + 1), np.arange(1, len(ordered) + 1), ordered)


@pytest.mark.parametrize(
    "samples", [NORMAL[:1], NORMAL, SKEWED[:1], SKEWED, -SKEWED, LONG], ids=range(6)
)
@pytest.mark.parametrize("confidence", [0.95, 0.9])
def test_the_bootstrap_t_interval_is_that_of_resamples_written_out(samples, confidence):
    """Quantiles of the pivots of real resamples, between Student's and 1.25 times Student's."""
    num_rows, count = samples.shape
    means, errors, pivots = resampled(samples)
    tail = (1 - confidence) * strictness(count) / 2
    student_quantile = stats.t(count - 1).isf
    smallest = student_quantile((1 - confidence) / 2)

    above = quantile(np.fmax.reduce(pivots), 1 - tail)
    above = np.clip(above, smallest, 1.25 * student_quantile(tail / num_rows))
    below = -quantile(pivots.ravel(), tail)
    below = np.clip(below, smallest, 1.25 * student_quantile(tail))

    estimate = statistics.largest_mean(samples, confidence)
    assert estimate.low == pytest.approx((means - above * errors).max(), rel=1e-9)
    assert estimate.high == pytest.approx((means + below * errors).max(), rel=1e-9)


def test_the_estimate_of_several_samples_is_their_largest_mean():
    assert statistics.largest_mean(np.array([[1.0, 3.0], [5.0, 6.0]])).value == 5.5


def test_a_mean_is_the_largest_mean_of_one_sample():
    assert statistics.mean(SKEWED[0]) == statistics.largest_mean(SKEWED[:1])


@pytest.mark.parametrize("samples", [NORMAL[:1], NORMAL, SKEWED[:1], SKEWED], ids=range(4))
@pytest.mark.parametrize("away", [-1.0, 0.3, 2.0, 3.0, 4.5])
def test_p_values_are_those_of_their_description(samples, away):
    """``away`` standard errors from the value; the worst of several rows, and all rows below."""
    value = samples.mean(axis=-1).max() - away * stats.sem(samples, axis=-1).max()

    def two_sided(some):
        rows, count = some.shape
        means, errors, pivots = resampled(some - value)
        distance, student = (means / errors).max(), stats.t(count - 1)
        beyond = np.fmax.reduce(pivots)
        share = (1 + np.sum(beyond >= distance)) / (1 + np.sum(~np.isnan(beyond)))
        share = min(share, rows * student.sf(distance / 1.25)) / strictness(count)
        return min(1.0, 2 * max(share, student.sf(distance)))

    assert statistics.p_above(samples, value) == pytest.approx(two_sided(samples), rel=1e-9)
    value = -value
    opposite = max(two_sided(-row[None]) for row in samples)
    assert statistics.p_below(samples, -value) == pytest.approx(opposite, rel=1e-9)


def test_five_values_or_fewer_have_student_s_law():
    few = np.array([1.0, 2.0, 4.0, 9.0])
    half = stats.t(3).isf(0.05 * 0.15 / 2) * stats.sem(few)
    assert ends(statistics.mean(few)) == pytest.approx((4 - half, 4 + half), rel=0.02)
    assert statistics.p_above(few, 4 - half) == pytest.approx(0.05, rel=0.1)
    two = statistics.largest_mean(
        np.stack([few, few])
    )  # two independent pivots, of which one is above
    wider = stats.t(3).isf(1 - (1 - 0.05 * 0.15 / 2) ** 0.5) * stats.sem(few)
    assert ends(two) == pytest.approx((4 - wider, 4 + half), rel=0.05)
    for count, student in ((5, True), (6, False)):
        values = np.square(np.arange(count))
        found = statistics.mean(values).half / stats.sem(values)
        assert bool(abs(found / stats.t(count - 1).isf(0.00375) - 1) < 0.02) is student


def test_many_values_are_resampled_in_parts_that_fit_into_memory():
    parts = list(statistics._resamples(700))
    assert [part.shape for part in parts] == [(700, 1428), (700, 572)]
    assert all((part.sum(axis=0) == 700).all() for part in parts)
    assert statistics.nominal_level(0.1, 24) == pytest.approx(0.1 * 0.15)
    assert statistics.nominal_level(0.1, 900) == pytest.approx(0.1 * 0.86)


@pytest.mark.parametrize(
    ("draw", "truth", "least", "most"),
    [
        (lambda rng: statistics.mean(rng.exponential(size=60)), 1.0, 0.92, 0.945),  # skewed
        (lambda rng: statistics.mean(rng.lognormal(-0.28125, 0.75, 16)), 1.0, 0.94, 1.0),  # more so
        (lambda rng: statistics.mean(rng.standard_normal(4)), 0.0, 0.95, 1.0),
        (lambda rng: statistics.largest_mean(rng.standard_normal((16, 12))), 0.0, 0.95, 1.0),
        (
            lambda rng: statistics.slope([1, 10], 3 + 0.1 * rng.standard_normal((2, 12))),
            0.0,
            0.95,
            0.95,
        ),
    ],
)
def test_intervals_cover_as_often_as_they_say(draw, truth, least, most):
    """Between two rates of 400 samples, at error rate 1e-6."""
    rng = np.random.default_rng(6)
    hits = sum(draw(rng).contains(truth) for _ in range(400))
    assert stats.binom.ppf(ALPHA, 400, least) <= hits <= stats.binom.ppf(1 - ALPHA, 400, most)


def test_a_sample_that_hardly_varies_has_the_rule_of_three():
    """None of n values shows an event of probability 3/n with probability 5% or less."""
    wave = np.linspace(-1.0, 1.0, 32)
    length = 2 * statistics.mean(wave).half
    for relative, unseen, known in (
        (1.001e-3, 0, True),
        (0.999e-3, 3 / 32, True),
        (0.9e-9, 3 / 32, False),
    ):
        sample = 1.0 - relative / 2 + relative / length * wave  # its interval ends at about 1
        found = statistics.mean(sample)
        assert (found.unseen, found.known) == (unseen, known)
        assert (below(sample, 2.0).p_for < 0.01) is (unseen == 0 or not known), (
            "a failure may cost 100"
        )
        assert above(sample, 0.5).p_for < 0.01
    assert statistics.mean(1.0 + 1.1e-9 / length * wave).known
    assert ends(statistics.mean(np.zeros(9))) == (-np.inf, np.inf)
    assert statistics.mean(np.ones(1)) == Estimate(1.0)
    assert statistics.mean(np.array([1.0, np.inf])) == Estimate(np.inf)
    for count in (10, 100, 1000):
        assert 0.02 < (1 - statistics.mean(np.ones(count)).unseen) ** count <= 0.05
    warned = statistics.mean(np.full(2, 7.0)).warning(3.0)
    assert "up to 100.0% of the episodes, at most 3 each, would add up to 3" in warned


def test_an_interval_starts_at_the_least_possible_value():
    wild = np.array([0.0, 0.0, 0.1, 0.0, 9.0, 0.0, 0.2])
    free, bounded = statistics.mean(wild), statistics.mean(wild, least=0.0)
    assert free.low < 0.0
    assert bounded == Estimate(free.value, 0.0, free.high)
    assert statistics.mean(wild + 5.0, least=0.0) == statistics.mean(wild + 5.0)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(999.94, 99.95, 1234.5), "999.9 [100.0, 1,234.5]"),
        (Estimate(1000.0, 998.6, 1001.4), "1,000 [999, 1,001]"),
        (Estimate(10.0, 9.0, 11.0), "10.0 [9.0, 11.0]"),
        (Estimate(-1000.0, -1001.4, -998.6), "-1,000 [-1,001, -999]"),
        (Estimate(-9.9999, -12.0, 0.00001), "-10.000 [-12.000, 0.000]"),
        (Estimate(3.0), "3.000"),
        (Estimate(2.0, 1.99999, 2.00001), "2.000 (episodes alike: rare failures may be unseen)"),
        (Estimate(2.0, 1.0, 3.0, 1.5), f"2.000 ({statistics.ALIKE}, in up to 100.0% of them)"),
    ],
)
def test_estimates_as_text(estimate, text):
    assert str(estimate) == text


ESTIMATE = Estimate(6.0, low=4.0, high=10.0, unseen=0.5)


def test_an_estimate_is_divided_with_its_interval():
    halved = ESTIMATE / 2.0
    assert halved == Estimate(3.0, 2.0, 5.0, 0.5)


def test_half_the_length_of_an_interval():
    assert ESTIMATE.half == 3.0


def test_an_interval_is_known_if_both_ends_are_finite():
    assert ESTIMATE.known
    assert not Estimate(1.0, low=0.0).known


@pytest.mark.parametrize(
    ("value", "inside"), [(3.9, False), (4.0, True), (10.0, True), (10.1, False)]
)
def test_an_interval_contains_its_ends_and_what_lies_between(value, inside):
    assert ESTIMATE.contains(value) is inside


def test_a_difference_is_the_mean_of_paired_differences():
    differences = statistics.difference(NORMAL[0], NORMAL[1])
    assert differences == statistics.mean(NORMAL[0] - NORMAL[1])


def test_four_differences_that_hold_together_have_98_75_percent_each():
    differences = statistics.difference(NORMAL[0], NORMAL[1], comparisons=4)
    assert differences == statistics.mean(NORMAL[0] - NORMAL[1], confidence=0.9875)


def test_a_difference_that_is_the_same_in_all_episodes_has_no_width():
    same = statistics.difference(np.arange(50.0) + 2.0, np.arange(50.0))
    assert same == Estimate(2.0, low=2.0, high=2.0, unseen=3 / 50)


def test_a_difference_of_one_episode_has_no_interval():
    assert statistics.difference(np.ones(1), np.zeros(1)) == Estimate(1.0)


def test_differences_below_nine_digits_are_zero():
    differences = statistics.paired(1.0 + np.array([0.0, 0.9e-9, 1.2e-9, 4.0]), 1.0)
    assert differences.tolist() == pytest.approx([0.0, 0.0, 1.2e-9, 4.0])


def test_differences_of_infinite_risks():
    samples = np.array([np.inf, np.inf, 1.0])
    others = np.array([np.inf, 1.0, np.inf])
    np.testing.assert_array_equal(statistics.paired(samples, others), [np.nan, np.inf, -np.inf])


def test_a_slope_is_the_least_squares_line_of_the_logarithms():
    """Contributions are derivatives by the episodes' weights; extra episodes of a position are left out."""
    x, y = [2.0, 10.0, 300.0], RNG.uniform(1.0, 4.0, (3, 9)) * np.array([[1.0], [3.0], [5.0]])

    def line(weights):
        return np.polyfit(np.log(x), np.log(y @ weights / weights.sum()), 1)[0]

    weights, step = np.ones(9), 1e-6
    contributions = statistics.slope_contributions(x, [y[0], np.append(y[1], 7.0), y[2]])
    assert contributions.mean() == pytest.approx(line(weights))
    for i, found in enumerate(contributions):
        moved = 9 * (line(weights + step * np.eye(9)[i]) - line(weights)) / step
        assert found - line(weights) == pytest.approx(moved, abs=1e-4)
    assert statistics.slope(x, list(y)) == statistics.mean(contributions)
    for bad in (np.zeros(9), np.full(9, np.inf), -y[0]):
        assert math.isnan(statistics.slope(x, [bad, y[1], y[2]]).value)


def test_a_score_is_a_share_of_bayes_gain_on_the_same_episodes():
    """Gains of Bayes 6, 7, 5 and 8: the mean is 6.5. None where they are infinite, or not shown."""
    uniform, bayes, totals = np.array([[10, 12, 11, 13], [4, 5, 6, 5], [9, 10, 9.0, 8]])
    assert statistics.score_totals(uniform, totals, bayes) == pytest.approx((46 - 36) / 4 / 6.5)
    assert statistics.score_totals(uniform, np.full(4, np.inf), bayes) == -np.inf
    for infinite in ((uniform + np.inf, totals, bayes), (uniform, totals, bayes + np.inf)):
        assert statistics.score_totals(*infinite) is None
    for gain, shown in ((3.2, False), (4.5, True)):  # p-values 0.077 and 0.029
        assert (statistics.unit_of_score(gain + np.array([1, -1, 1, -1])) is not None) is shown


@pytest.mark.parametrize(("hits", "count"), [(0, 10), (1, 10), (3, 10), (9, 10), (10, 10)])
@pytest.mark.parametrize("tail", [0.025, 0.1])
def test_the_exact_bounds_of_a_share(hits, count, tail):
    """There, as many hits or more (or fewer) have the error's probability."""
    low = statistics.least_share(np.array([hits, 10]), count, tail)[0]
    high = statistics.largest_share(np.array([0, hits]), count, tail)[1]
    assert low == 0.0 if hits == 0 else stats.binom.sf(hits - 1, count, low) == pytest.approx(tail)
    assert (
        high == 1.0 if hits == count else stats.binom.cdf(hits, count, high) == pytest.approx(tail)
    )


def test_constant_samples_are_taken_at_their_word_up_to_rounding():
    assert statistics.p_above(np.ones(4), 0.0) < 1e-6 < 0.9 < statistics.p_above(np.ones(4), 2.0)
    for sample in (np.ones(9), 1.0 + 1e-12 * np.arange(9.0)):
        assert statistics.p_above(sample, 1.0) == statistics.p_below(sample, 1.0) == 1.0
    mixed = np.stack([np.ones(9), 3.0 + np.arange(9.0)])
    assert statistics.p_above(mixed, 1.0) < 0.05, "a row at the value says nothing about the others"
    assert (
        statistics.p_above(np.array([1.0, np.inf]), 0.0)
        == statistics.p_above(np.ones(1), 0.0)
        == 1.0
    )


def test_p_values_are_for_and_against():
    sample, value = NORMAL[0], 2.7
    up, down = statistics.p_above(sample, value), statistics.p_below(sample, value)
    assert up < down
    assert above(sample, value) == PValues(up, down)
    assert below(sample, value) == PValues(down, up)
    assert (certain(True), certain(False)) == (PValues(0.0, 1.0), PValues(1.0, 0.0))
    with pytest.raises(ValueError, match="samples must be numbers"):
        above(np.array([np.nan, 1.0]), 0.0)


def test_a_claim_that_its_control_keeps_is_vacuous():
    sample = NORMAL[0]
    for claim, breaking, keeping in ((below, 4.0, 2.0), (above, 2.0, 4.0)):
        for control, vacuous in ((breaking, False), (keeping, True), (3.0, True)):
            assert claim(sample, 3.0, control).vacuous is vacuous
            assert claim(sample, 3.0, np.full((2, 5), control)).vacuous is vacuous
    barely = NORMAL[1]
    low, high = (statistics.mean(barely, confidence).low for confidence in (0.96, 0.94))
    assert not below(sample, low - 0.02, barely).vacuous
    assert below(sample, high + 0.02, barely).vacuous
    assert not above(sample, 3.0).vacuous


WEAK = PValues(p_for=0.2, p_against=0.03)
STRONG = PValues(p_for=0.01, p_against=0.5)
VACUOUS = PValues(p_for=0.9, p_against=0.02, vacuous=True)


def test_a_conjunction_is_as_doubtful_as_its_weakest_claim():
    """The smallest p-value against, 0.03, counts twice: there are two claims."""
    assert conjunction([WEAK, STRONG]) == PValues(p_for=0.2, p_against=0.06)


def test_a_vacuous_claim_does_not_weaken_a_conjunction():
    """It does count among the claims that may be contradicted: 3 times 0.02."""
    assert conjunction([WEAK, STRONG, VACUOUS]) == PValues(p_for=0.2, p_against=0.06)


def test_a_conjunction_of_vacuous_claims_is_vacuous():
    assert conjunction([VACUOUS, VACUOUS]) == PValues(p_for=1.0, p_against=0.04, vacuous=True)


def test_a_p_value_of_a_conjunction_is_at_most_one():
    assert conjunction([STRONG, STRONG, STRONG]) == PValues(p_for=0.01, p_against=1.0)


def test_a_conjunction_of_no_claims_is_not_shown():
    assert conjunction([]) == PValues(p_for=1.0, p_against=1.0)


def test_holm_s_p_values_by_hand():
    """Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, and none is smaller than one before it."""
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )
    assert statistics.holm([0.7, 0.6]).tolist() == [1.0, 1.0]
    assert statistics.holm([]).tolist() == []


def test_verdicts_hold_together_and_a_contradiction_comes_first():
    judged = statistics.verdicts
    for p, verdict in ((0.05, Verdict.SHOWN), (0.0501, Verdict.NOT_CONTRADICTED)):
        assert judged([PValues(p, 1.0)]) == [verdict]
        assert judged([PValues(p / 2, 1.0), PValues(0.9, 1.0)]) == [
            verdict,
            Verdict.NOT_CONTRADICTED,
        ]
    for p, verdict in ((0.025, Verdict.CONTRADICTED), (0.0251, Verdict.VACUOUS)):
        assert judged([PValues(0.0, p, vacuous=True), PValues(1.0, 1.0)])[0] is verdict
    assert [verdict.mark[0] for verdict in Verdict] == ["✓", "~", "·", "✗"]


@pytest.mark.parametrize("choose", [False, True], ids=["ten claims", "the best of four learners"])
def test_false_claims_are_rarely_shown(choose):
    """Claims that are false by nothing: one is shown in at most 5% of 150 families (error rate 1e-6).

    Either ten claims that a mean is above its value, or one that the luckiest of four equal learners is best.
    """
    ticked = 0
    for samples in np.random.default_rng(0).standard_normal((150, 10, 24)):
        best, *others = sorted(samples[:4], key=np.mean)
        claims = [above(row, 0.0) for row in samples]
        if choose:
            claims = [conjunction(below(best - other, 0.0) for other in others)]
        ticked += Verdict.SHOWN in statistics.verdicts(claims)
    assert ticked <= stats.binom.isf(ALPHA, 150, 0.05)


def simulated_totals(rng, runs=1, episodes=200, spread_of_runs=0.0):
    """Totals of uniform, of runs whose scores are 0.9 in expectation, and of Bayes."""
    bayes = rng.gamma(4.0, 5.0, size=episodes)
    uniform = bayes + rng.gamma(9.0, 10.0, size=episodes)
    scores = 0.9 + spread_of_runs * rng.standard_normal(runs)
    noise = 10.0 * rng.standard_normal((runs, episodes))
    return uniform, uniform - scores[:, None] * (uniform - bayes) + noise, bayes


def test_a_score_has_the_interval_of_a_ratio():
    """The delta method by hand: the error of a mean of (gain - score * unit) / mean unit."""
    uniform, totals, bayes = simulated_totals(np.random.default_rng(0))
    estimate = statistics.score_estimate(uniform, totals[0], bayes)
    residuals = uniform - totals[0] - estimate.value * (uniform - bayes)
    error = residuals.std(ddof=1) / math.sqrt(200) / (uniform - bayes).mean()
    assert estimate.value == statistics.score_totals(uniform, totals[0], bayes)
    assert estimate.half == pytest.approx(1.96 * error, rel=0.15)


def test_intervals_of_scores_cover_the_expected_score():
    rng = np.random.default_rng(1)
    estimates = []
    for _ in range(200):
        uniform, totals, bayes = simulated_totals(rng, episodes=60)
        estimates.append(statistics.score_estimate(uniform, totals[0], bayes))
    covered = sum(estimate.contains(0.9) for estimate in estimates)
    assert stats.binomtest(covered, 200, 0.95, alternative="less").pvalue > 1e-6
    assert covered < 200


def test_a_score_that_is_the_same_in_every_episode_has_no_width():
    uniform, _, bayes = simulated_totals(np.random.default_rng(2))
    estimate = statistics.score_estimate(uniform, uniform, bayes)
    assert (estimate.value, estimate.low, estimate.high) == (0.0, 0.0, 0.0)


def test_an_infinite_risk_scores_minus_infinity_without_an_interval():
    uniform, totals, bayes = simulated_totals(np.random.default_rng(2))
    totals[0, 5] = math.inf
    assert statistics.score_estimate(uniform, totals[0], bayes) == Estimate(-math.inf)


def test_without_a_unit_there_is_no_score():
    uniform, totals, _ = simulated_totals(np.random.default_rng(3))
    assert statistics.score_estimate(uniform, totals[0], uniform) is None
    assert statistics.score_of_runs(uniform, totals, uniform) is None


def test_the_score_of_runs_is_their_interquartile_mean():
    uniform, _, bayes = simulated_totals(np.random.default_rng(4))
    scores = np.array([0.5, 0.1, 0.9, 0.3, 9.0])
    totals = uniform - scores[:, None] * (uniform - bayes)
    estimate = statistics.score_of_runs(uniform, totals, bayes)
    assert estimate.value == pytest.approx((0.5 + 0.9 + 0.3) / 3)
    assert estimate.low == pytest.approx(0.1 + 0.2 / 3, abs=0.1)


def test_the_interval_of_runs_has_the_spread_of_episodes_and_of_runs():
    """Alone, each has its error by hand: of a ratio over episodes, of a mean over runs."""
    rng = np.random.default_rng(5)
    uniform, totals, bayes = simulated_totals(rng)
    one_run = statistics.score_of_runs(uniform, totals, bayes)
    assert one_run.half == pytest.approx(
        statistics.score_estimate(uniform, totals[0], bayes).half, rel=0.2
    )
    scores = np.array([0.7, 0.8, 0.9])
    same_episodes = uniform - scores[:, None] * (uniform - bayes)
    three_runs = statistics.score_of_runs(uniform, same_episodes, bayes)
    assert three_runs.value == pytest.approx(0.8)
    assert (three_runs.low, three_runs.high) == (pytest.approx(0.7), pytest.approx(0.9))


def test_intervals_of_runs_cover_the_expected_score_of_many_runs():
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(100):
        samples = simulated_totals(rng, runs=12, episodes=60, spread_of_runs=0.05)
        covered += statistics.score_of_runs(*samples).contains(0.9)
    assert 80 < covered < 100
