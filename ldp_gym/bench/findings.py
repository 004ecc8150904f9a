"""Conclusions from results, in words, with tests of what they claim."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldp_gym.bench.results import ExperimentResult
from ldp_gym.core import validation
from ldp_gym.statistics import Estimate, PValues, Verdict, above, difference, every, paired, verdicts


@dataclass(frozen=True)
class Finding:
    """A conclusion computed from results.

    Attributes:
        text: the conclusion in words.
        p_values: tests of the claim that it makes; None if it claims nothing.
        in_words: True if the words say all that was found, so that only a contradiction gets a mark.
    """

    text: str
    p_values: PValues | None = None
    in_words: bool = False

    def __post_init__(self) -> None:
        if self.p_values is not None:
            validation.instance("p_values", self.p_values, PValues, "p-values, such as above() returns")


def compare_with_bayes(
    places: Mapping[str, Sequence[ExperimentResult]], start: str = "On no channel"
) -> Iterator[Finding]:
    """Compare learners with Bayes in each place where he plays; the theorem is that none does better.

    Level with Bayes is a learner whose paired difference has an interval that contains 0. The intervals of
    all learners in a place hold together with 95% confidence.
    """
    tests, below, level = list[PValues](), list[str](), defaultdict[str, list[str]](list)
    for place, results in places.items():
        for bayes in [result for result in results if result.learner == "bayes"]:
            for other in [result for result in results if result is not bayes]:
                tests.append(above(paired(other.totals, bayes.totals), 0.0))
                gap = difference(other.totals, bayes.totals, len(results) - 1)
                if gap.contains(0.0):
                    level[other.learner].append(place)
                elif gap.high < 0.0:
                    less = Estimate(-gap.value, -gap.high, -gap.low)
                    below.append(f"{other.learner} on {place} by {less} nats")
    if not tests:
        return
    text = f"Below Bayes: {'; '.join(below)}." if below else f"{start} does a learner do better than Bayes."
    played = Counter(result.learner for results in places.values() for result in results)
    ties: dict[str, list[str]] = {}
    for learner, some in level.items():
        count = f"all {len(some)}" if len(some) == played[learner] else f"{len(some)} of {played[learner]}"
        ties.setdefault(" and ".join(some) if len(some) < 3 else f"{count} that it plays", []).append(learner)
    told = "; ".join(f"{', '.join(learners)} on {where}" for where, learners in ties.items())
    yield Finding(f"{text} Level with Bayes: {told}." if ties else text, every(tests), in_words=True)


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    judged = iter(verdicts([finding.p_values for finding in findings if finding.p_values]))
    found = [(finding, next(judged) if finding.p_values else None) for finding in findings]
    return [
        (f, None if f.in_words and verdict is not Verdict.CONTRADICTED else verdict) for f, verdict in found
    ]
