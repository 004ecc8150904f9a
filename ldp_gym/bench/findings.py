"""Conclusions from results, in words, with the evidence about what they claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ldp_gym.bench.results import ExperimentResult
from ldp_gym.core import validation
from ldp_gym.statistics import Evidence, Verdict, below, difference, every, verdicts


@dataclass(frozen=True)
class Finding:
    """A conclusion computed from results, and the tests of its claim; None if it claims nothing."""

    text: str
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        """Reject evidence of another type, such as a truth value."""
        if self.evidence is not None:
            validation.instance("evidence", self.evidence, Evidence, "evidence, such as above() returns")


def find_least_risk(place: str, results: Sequence[ExperimentResult]) -> Finding:
    """Compare learners that played the same tapes; the claim is that none has less risk than Bayes.

    Level with Bayes is a learner whose paired difference has an interval that holds 0. The intervals of all
    learners hold together with 95% confidence.
    """
    ranked = sorted(results, key=lambda result: result.risk.value)
    bayes = next((result for result in results if result.learner == "bayes"), None)
    if bayes is None:
        return Finding(f"{place}: {ranked[0].learner} has the least risk, {ranked[0].risk} nats.")
    others = [result for result in ranked if result is not bayes]
    evidence = every(below(bayes.totals - other.totals, 0.0) for other in others)
    gaps = {other.learner: difference(other.totals, bayes.totals, len(others)) for other in others}
    texts = [f"{place}: Bayes has {bayes.risk} nats"]
    if level := [name for name, gap in gaps.items() if gap.contains(0.0)]:
        texts.append(f"level with Bayes: {', '.join(level)}")
    if less := [f"{name} by {-gap.value:.3g}" for name, gap in gaps.items() if gap.high < 0.0]:
        texts.append(f"below Bayes: {', '.join(less)}")
    if more := [name for name, gap in gaps.items() if gap.low > 0.0]:
        texts.append(f"above: {', '.join(more)}")
    return Finding("; ".join(texts) + ".", evidence)


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together."""
    findings = list(findings)
    judged = iter(verdicts([finding.evidence for finding in findings if finding.evidence is not None]))
    return [(finding, None if finding.evidence is None else next(judged)) for finding in findings]
