"""Comparisons of learners with Bayes: intervals that hold together, and one claim about all of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from ldp_bench.results import is_level
from ldp_bench.suites.base import compare_with_bayes, judge
from ldp_gym import statistics

NOISE = np.random.default_rng(3).normal(size=12)


def found(gaps):
    """The finding about learners that pay Bayes' totals and these gaps ``(L, n)``."""
    bayes = np.linspace(50.0, 90.0, 12)
    samples = {"bayes": bayes} | {f"other{i}": bayes + gap for i, gap in enumerate(gaps)}
    results = [SimpleNamespace(learner=name, totals=totals) for name, totals in samples.items()]
    (finding,) = compare_with_bayes({"here": results})
    return finding


@pytest.mark.parametrize(
    ("sign", "alone"), [(1.0, "better than Bayes."), (-1.0, "Below Bayes: other0 on here")]
)
def test_intervals_of_several_learners_hold_together(sign, alone):
    """A gap that is shown at 95%, and not at the 98.75% that each of four intervals has."""
    ends = [statistics.mean(sign * NOISE, confidence).low for confidence in (0.95, 1 - 0.05 / 4)]
    gap = sign * (sign * NOISE - np.mean(ends))
    text = found([gap]).text
    assert alone in text
    assert "Level" not in text
    level = "better than Bayes. Level with Bayes: other0, other1, other2, other3 on here."
    assert found([gap] * 4).text.endswith(level)


def test_the_claim_is_that_none_is_below_bayes():
    gaps = NOISE + np.array([[0.4], [0.9], [-1.5]])
    p_values = found(gaps).p_values
    assert p_values.p_for == max(statistics.p_above(gap, 0.0) for gap in gaps)
    assert p_values.p_against == min(1.0, 3 * min(statistics.p_below(gap, 0.0) for gap in gaps))


JITTER = np.tile([0.02, -0.01, 0.01, -0.02], 3)
WORSE, BROKEN = (
    "On no channel does one of these learners do better than Bayes.",
    statistics.Verdict.CONTRADICTED,
)


@pytest.mark.parametrize(
    ("gap", "text", "verdict"),
    [
        (1.0 + JITTER, WORSE, None),
        (500.0 * JITTER - 0.5, f"{WORSE} Level with Bayes: other0 on here.", None),
        (-0.5 + JITTER, "Below Bayes: other0 on here by 0.500 [0.483, 0.519]", BROKEN),
    ],
    ids=["worse", "less on average, by chance", "a little less in every episode"],
)
def test_bayes_is_beaten_only_beyond_the_error_of_the_pairs(gap, text, verdict):
    """What the words say gets no mark, but a contradiction of the theorem does."""
    ((finding, judged),) = judge([found([gap])])
    assert finding.text.startswith(text)
    assert judged is verdict


def test_an_interval_that_contains_nearly_everything_says_too_few_to_tell():
    text = found([20.0 + 5000.0 * JITTER]).text
    assert text == f"{WORSE} Too few episodes to tell: other0 on here."


def test_a_learner_is_level_with_bayes_if_it_pays_at_most_a_quarter_more():
    assert is_level(statistics.Estimate(1.0, -2.0, 4.0), bayes_risk=16.0)
    assert not is_level(statistics.Estimate(1.0, -2.0, 4.01), bayes_risk=16.0)
    assert not is_level(statistics.Estimate(1.0, 0.5, 2.0), bayes_risk=16.0)


def test_nothing_is_compared_where_bayes_did_not_play():
    assert not list(
        compare_with_bayes({"here": [SimpleNamespace(learner="uniform", totals=NOISE)]})
    )
