"""Conclusions from results, and tests of the claims that they belong to.

The data show a claim when they exclude its opposite, and contradict it when they exclude the claim; often
they do neither. A suite makes several claims, and of many false ones some would be shown by chance: Holm's
(1979) p-values hold the chance of any such mistake in a suite below 5%.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ldp_gym.bench.results import ExperimentResult
from ldp_gym.bench.statistics import CONFIDENCE, Estimate, difference
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.intervals import p_above, p_below


class Verdict(Enum):
    """Relation of the data to a claim, as it is written."""

    SHOWN = "shown"
    NOT_CONTRADICTED = "not contradicted"
    CONTRADICTED = "contradicted"

    @property
    def mark(self) -> str:
        """Sign in front of a finding."""
        return {"shown": "✓", "not contradicted": "~", "contradicted": "✗"}[self.value]


@dataclass(frozen=True)
class Evidence:
    """Two p-values about a claim.

    Attributes:
        p_for: p-value of the claim's opposite: small where the data show the claim.
        p_against: p-value of the claim: small where the data show the opposite.
    """

    p_for: float
    p_against: float


def above(samples: FloatArray, value: float) -> Evidence:
    """Test that an expectation is above a value; for samples ``(K, n)``, the largest of K."""
    samples = validation.numbers("samples", samples)
    if samples.ndim not in (1, 2) or np.isnan(samples).any():
        raise ValueError(f"samples must be numbers of shape (n,) or (K, n), got {samples}")
    value = validation.real("value", value)
    return Evidence(p_above(samples, value), p_below(samples, value))


def below(samples: FloatArray, value: float) -> Evidence:
    """Test that an expectation is below a value; see :func:`above`."""
    opposite = above(samples, value)
    return Evidence(opposite.p_against, opposite.p_for)


def certain(holds: bool) -> Evidence:
    """Evidence of a claim about computed numbers, which chance does not affect."""
    return Evidence(0.0, 1.0) if holds else Evidence(1.0, 0.0)


def every(parts: Iterable[Evidence]) -> Evidence:
    """Evidence that several claims hold together.

    ``p_for`` is the largest of theirs; ``p_against`` is the smallest, times their number (Bonferroni).
    """
    if not (parts := list(parts)):
        return Evidence(1.0, 1.0)
    against = min(1.0, len(parts) * min(part.p_against for part in parts))
    return Evidence(max(part.p_for for part in parts), against)


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
    gaps = {other.learner: _gap(other.totals, bayes.totals, len(others)) for other in others}
    texts = [f"{place}: Bayes has {bayes.risk} nats"]
    if level := [name for name, gap in gaps.items() if gap.contains(0.0)]:
        texts.append(f"level with Bayes: {', '.join(level)}")
    if less := [f"{name} by {-gap.value:.3g}" for name, gap in gaps.items() if gap.high < 0.0]:
        texts.append(f"below Bayes: {', '.join(less)}")
    if more := [name for name, gap in gaps.items() if gap.low > 0.0]:
        texts.append(f"above: {', '.join(more)}")
    return Finding("; ".join(texts) + ".", evidence)


def _gap(totals: FloatArray, others: FloatArray, comparisons: int) -> Estimate:
    """Paired difference with its interval; of length 0 where all of several episodes have the same one."""
    gap = difference(totals, others, comparisons)
    alike = len(totals) > 1 and np.ptp(totals - others) == 0.0
    return Estimate(gap.value, gap.value, gap.value) if alike else gap


def judge(findings: Iterable[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """Findings of a suite with the verdict on each claim, at 5% for all claims together.

    Example:
        >>> clear, less_clear, unclear = (Finding("...", Evidence(p, 1.0)) for p in (0.01, 0.04, 0.3))
        >>> [verdict.value for _, verdict in judge([clear, less_clear])]
        ['shown', 'shown']
        >>> [verdict.value for _, verdict in judge([clear, less_clear, unclear])]
        ['shown', 'not contradicted', 'not contradicted']
    """
    findings = list(findings)
    claims = [finding.evidence for finding in findings if finding.evidence is not None]
    shown = holm([evidence.p_for for evidence in claims]) <= 1.0 - CONFIDENCE
    contradicted = holm([evidence.p_against for evidence in claims]) <= 1.0 - CONFIDENCE
    verdicts = iter(
        Verdict.CONTRADICTED if is_false else Verdict.SHOWN if is_true else Verdict.NOT_CONTRADICTED
        for is_true, is_false in zip(shown, contradicted, strict=True)
    )
    return [(finding, next(verdicts) if finding.evidence is not None else None) for finding in findings]


def holm(p_values: Sequence[float]) -> FloatArray:
    """Holm's adjusted p-values: the chance that any true hypothesis has one below a is at most a."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(p_values)[order] * factors))
    return adjusted
