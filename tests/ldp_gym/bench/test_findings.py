"""Comparisons with Bayes: pair by pair on the same tapes, beyond the error."""

import numpy as np
import pytest
from helpers import ALPHA
from scipy import stats

from ldp_gym.bench import SUITES, Finding, Results, Verdict, judge
from ldp_gym.bench.findings import above, below, every
from ldp_gym.bench.store import Outcome
from ldp_gym.evaluation import Evaluation


class Given:
    """A store in which Bayes' risks are known, and another learner's differ from them by a given amount."""

    def __init__(self, experiments, bayes, other, shift):
        self.known = {}
        for experiment in experiments:
            if experiment.learner in ("bayes", other):
                totals = bayes + (shift if experiment.learner == other else 0.0)
                kl, comparator = totals[:, None], np.zeros((len(totals), 8))
                evaluation = Evaluation(np.array([experiment.horizon]), kl, kl, comparator)
                outcome = Outcome("done", evaluation, None, 0.0)
                self.known |= {cell.key: outcome for cell in experiment.cells(0)}

    def outcomes(self, keys):
        return {key: self.known[key] for key in keys if key in self.known}


@pytest.mark.parametrize("name", ["quick", "contexts"])
def test_bayes_is_beaten_only_beyond_the_error_of_the_pairs(name):
    suite = SUITES[name]()
    experiments = suite.experiments("small", episodes=8)
    bayes = np.linspace(10.0, 80.0, 8)
    jitter = np.array([0.02, -0.01, 0.01, -0.02, 0.02, -0.01, 0.01, -0.02])

    def verdicts(shift):
        results = Results(Given(experiments, bayes, "uniform", shift), experiments, 0)
        findings = [f for f in suite.findings(results) if "the adversary's is above" not in f.text]
        texts = {f.text.partition("; ")[2].partition(".")[0] for f in findings if f.evidence}
        return {verdict for _, verdict in judge(findings)} - {None}, texts

    assert verdicts(1.0 + jitter) == ({Verdict.SHOWN}, {"above: uniform"})
    # Less on average, by chance: the differences are as often above zero as below.
    by_chance = np.array([9.0, -10.0, 8.0, -9.0, 7.0, -8.0, 6.0, -9.0])
    assert verdicts(by_chance) == ({Verdict.NOT_CONTRADICTED}, {"level with Bayes: uniform"})
    # A little less in every episode: far within the episodes' spread, and yet certain.
    assert verdicts(-0.5 + jitter) == ({Verdict.CONTRADICTED}, {"below Bayes: uniform by 0"})

    others = [e for e in experiments if e.learner != "bayes"]
    findings = suite.findings(Results(Given(others, bayes, "uniform", 0.0), others, 0))
    assert findings
    assert all(f.evidence is None and "Bayes" not in f.text for f in findings), "it did not play"


@pytest.mark.parametrize("choose", [False, True], ids=["ten claims", "the best of four learners"])
def test_false_claims_are_rarely_shown(choose):
    """Claims that are false by nothing: one is shown in at most 5% of 150 families (error rate 1e-6).

    Either ten claims that a mean is above its value, or one that the luckiest of four equal learners is best.
    """
    rng = np.random.default_rng(0)
    families, ticked = 150, 0
    for samples in rng.standard_normal((families, 10, 24)):
        if choose:
            best, *others = sorted(samples[:4], key=np.mean)
            claims = [every(below(best - other, 0.0) for other in others)]
        else:
            claims = [above(row, 0.0) for row in samples]
        ticked += Verdict.SHOWN in {verdict for _, verdict in judge([Finding("", c) for c in claims])}
    assert ticked <= stats.binom.isf(ALPHA, families, 0.05)
