"""Conclusions from results, in words, with the evidence about what they claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldp_gym.bench.results import ExperimentResult
from ldp_gym.core import validation
from ldp_gym.statistics import Estimate, Evidence, Verdict, above, difference, every, paired, verdicts


@dataclass(frozen=True)
class Finding:
    """A conclusion computed from results.

    Attributes:
        text: the conclusion in words.
        evidence: tests of the claim that it makes; None if it claims nothing.
        in_words: True if the words say all that was found, so that only a contradiction gets a mark.
    """

    text: str
    evidence: Evidence | None = None
    in_words: bool = False

    def __post_init__(self) -> None:
        """Reject evidence of another type, such as a truth value."""
        if self.evidence is not None:
            validation.instance("evidence", self.evidence, Evidence, "evidence, such as above() returns")


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
    evidence = every(above(paired(other.totals, bayes.totals), 0.0) for other in others)
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
    return Finding("; ".join(texts) + ".", evidence, in_words=True)


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    judged = iter(verdicts([finding.evidence for finding in findings if finding.evidence]))
    found = [(finding, next(judged) if finding.evidence else None) for finding in findings]
    return [
        (f, None if f.in_words and verdict is not Verdict.CONTRADICTED else verdict) for f, verdict in found
    ]
