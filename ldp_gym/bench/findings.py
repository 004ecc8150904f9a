"""Conclusions from results, in words, with tests of what they claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def find_least_risk(place: str, results: Sequence[ExperimentResult]) -> Finding:
    """Compare learners that played the same tapes; the theorem is that none has less risk than Bayes.

    Level with Bayes is a learner whose paired difference has an interval that contains 0. The intervals of
    all learners hold together with 95% confidence.
    """
    ranked = sorted(results, key=lambda result: result.risk.value)
    bayes = next((result for result in results if result.learner == "bayes"), None)
    if bayes is None:
        return Finding(f"{place}: {ranked[0].learner} pays least, {ranked[0].risk} nats.")
    others = [result for result in ranked if result is not bayes]
    p_values = every(above(paired(other.totals, bayes.totals), 0.0) for other in others)
    gaps = {other.learner: difference(other.totals, bayes.totals, len(others)) for other in others}
    texts = [f"{place}: Bayes pays {bayes.risk} nats"]
    if level := [name for name, gap in gaps.items() if gap.contains(0.0)]:
        texts.append(f"level with it: {', '.join(level)}")
    if less := [
        f"{name} by {Estimate(-g.value, -g.high, -g.low)}" for name, g in gaps.items() if g.high < 0.0
    ]:
        texts.append(f"below it: {', '.join(less)}")
    if more := [f"{name} by {gap}" for name, gap in gaps.items() if gap.low > 0.0]:
        texts.append(f"above it: {', '.join(more)}")
    return Finding("; ".join(texts) + ".", p_values, in_words=True)


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    judged = iter(verdicts([finding.p_values for finding in findings if finding.p_values]))
    found = [(finding, next(judged) if finding.p_values else None) for finding in findings]
    return [
        (f, None if f.in_words and verdict is not Verdict.CONTRADICTED else verdict) for f, verdict in found
    ]
