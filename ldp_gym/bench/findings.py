"""What follows from results, and whether the data show it.

A finding may come with a claim: of the paper, of theory or of the design. The data show a claim when they
exclude its opposite; they contradict it when they exclude the claim. Often they do neither. A suite makes
several claims, and of many false ones some would be "shown" by chance: Holm's (1979) p-values hold the chance
of any such mark in a suite below 5%.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ldp_gym.bench.results import ExperimentResult
from ldp_gym.bench.statistics import CONFIDENCE
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.intervals import p_above, p_below


class Verdict(Enum):
    """What the data say about a claim; the value is how it is written."""

    SHOWN = "shown"
    NOT_CONTRADICTED = "not contradicted"
    CONTRADICTED = "contradicted"

    @property
    def mark(self) -> str:
        """The sign in front of a finding."""
        return {"shown": "✓", "not contradicted": "~", "contradicted": "✗"}[self.value]


@dataclass(frozen=True)
class Evidence:
    """How the data stand to a claim.

    Attributes:
        p_for: the p-value of the claim's opposite: small where the data show the claim.
        p_against: the p-value of the claim: small where the data show the opposite.
    """

    p_for: float
    p_against: float


def above(samples: FloatArray, value: float) -> Evidence:
    """For the claim that an expectation is above a value, from samples ``(n,)``; the largest of ``(K, n)``.

    Example:
        >>> above(np.arange(100.0), 40.0).p_for < 0.01 < above(np.arange(100.0), 40.0).p_against
        True
    """
    samples, value = _samples(samples), validation.real("value", value)
    return Evidence(p_above(samples, value), p_below(samples, value))


def below(samples: FloatArray, value: float) -> Evidence:
    """For the claim that it is below."""
    samples, value = _samples(samples), validation.real("value", value)
    return Evidence(p_below(samples, value), p_above(samples, value))


def _samples(values: FloatArray) -> FloatArray:
    samples = validation.numbers("samples", values)
    if samples.ndim not in (1, 2) or np.isnan(samples).any():
        raise ValueError(f"samples must be numbers of shape (n,) or (K, n), got {samples}")
    return samples


def certain(holds: bool) -> Evidence:
    """For a claim about the very numbers that were computed: there is no chance in it."""
    return Evidence(0.0, 1.0) if validation.flag("holds", holds) else Evidence(1.0, 0.0)


def every(parts: Iterable[Evidence]) -> Evidence:
    """For the claim that all of several claims hold: so is the best of several tested, against each other.

    All are shown when the least clear of them is. That one of n is false must be clearer than the least lucky
    of n true ones may look by chance.
    """
    if not isinstance(parts, Iterable):
        raise TypeError(f"parts must be evidence, of one claim each, got {parts!r}")
    parts = [validation.instance("parts", part, Evidence, "evidence, of one claim each") for part in parts]
    if not parts:
        return Evidence(1.0, 1.0)
    return Evidence(
        max(part.p_for for part in parts), min(1.0, len(parts) * min(part.p_against for part in parts))
    )


@dataclass(frozen=True)
class Finding:
    """A conclusion that was computed from the results.

    Attributes:
        text: the conclusion, with its numbers.
        evidence: how the data stand to what is claimed; None if nothing is.
    """

    text: str
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        """Check that evidence is evidence: a truth value, say, would be none."""
        validation.text("text", self.text)
        if self.evidence is not None:
            validation.instance("evidence", self.evidence, Evidence, "evidence, such as above() returns")


def find_least_risk(place: str, results: Sequence[ExperimentResult]) -> Finding:
    """Who has the least risk of those that played the same tapes.

    The claim, where Bayes is among them, is that no other has less than Bayes, pair by pair.
    """
    best = min(results, key=lambda result: result.risk.value)
    text = f"{place}: the least risk is that of {best.learner}, {best.risk} nats"
    bayes = next((result for result in results if result.learner == "bayes"), None)
    if bayes is None:
        return Finding(f"{text}.")
    evidence = every(below(bayes.totals - other.totals, 0.0) for other in results if other is not bayes)
    return Finding(f"{text}." if best is bayes else f"{text}; Bayes has {bayes.risk}.", evidence)


def judge(findings: Sequence[Finding]) -> list[tuple[Finding, Verdict | None]]:
    """The findings of a suite with what the data say about each claim, at 5% for all claims together.

    Example:
        >>> clear, less_clear, unclear = (Finding("...", Evidence(p, 1.0)) for p in (0.01, 0.04, 0.3))
        >>> [verdict.value for _, verdict in judge([clear, less_clear])]
        ['shown', 'shown']
        >>> [verdict.value for _, verdict in judge([clear, less_clear, unclear])]
        ['shown', 'not contradicted', 'not contradicted']
    """
    findings = validation.list_of("findings", findings, "findings")
    for finding in findings:
        validation.instance("findings", finding, Finding, "a list of findings")
    claims = [finding.evidence for finding in findings if finding.evidence is not None]
    level = 1.0 - CONFIDENCE
    shown = holm([evidence.p_for for evidence in claims]) <= level
    contradicted = holm([evidence.p_against for evidence in claims]) <= level
    verdicts = iter(
        Verdict.CONTRADICTED if is_false else Verdict.SHOWN if is_true else Verdict.NOT_CONTRADICTED
        for is_true, is_false in zip(shown, contradicted, strict=True)
    )
    return [(finding, next(verdicts) if finding.evidence is not None else None) for finding in findings]


def holm(p_values: Sequence[float]) -> FloatArray:
    """Holm's adjusted p-values: at most a share a of families has one below a whose hypothesis is true.

    Example:
        >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(p_values)[order] * factors))
    return adjusted
