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
def test_nothing_is_claimed_of_bayes_where_it_did_not_play(name):
    suite = SUITES[name]()
    experiments = [e for e in suite.experiments("small", episodes=8) if e.learner != "bayes"]
    findings = suite.findings(Results(Given(experiments, np.arange(8.0), "uniform", 0.0), experiments, 0))
    assert findings
    assert all(finding.evidence is None and "Bayes" not in finding.text for finding in findings)


@pytest.mark.parametrize("name", ["quick", "contexts"])
def test_bayes_is_beaten_only_beyond_the_error_of_the_pairs(name):
    suite = SUITES[name]()
    experiments = suite.experiments("small", episodes=8)
    bayes = np.linspace(10.0, 80.0, 8)

    def verdicts(shift):
        results = Results(Given(experiments, bayes, "uniform", shift), experiments, 0)
        findings = [f for f in suite.findings(results) if "the adversary's is above" not in f.text]
        texts = {f.text.partition("; ")[2].partition(".")[0] for f in findings if f.evidence}
        return {verdict for _, verdict in judge(findings)} - {None}, texts

    assert verdicts(1.0) == ({Verdict.SHOWN}, {"above: uniform"})
    # Less on average, by chance: the differences are as often above zero as below.
    by_chance = np.array([9.0, -10.0, 8.0, -9.0, 7.0, -8.0, 6.0, -9.0])
    assert verdicts(by_chance) == ({Verdict.NOT_CONTRADICTED}, {"level with Bayes: uniform"})
    # A little less in every episode: far within the episodes' spread, and yet certain.
    assert verdicts(-0.5) == ({Verdict.CONTRADICTED}, {"below Bayes: uniform by 0"})


def test_of_many_false_claims_few_suites_show_one():
    """Families of 10 claims of which each is false by nothing: at most 5% have a tick (error rate 1e-6)."""
    rng = np.random.default_rng(0)
    families = 150
    ticked = sum(
        Verdict.SHOWN in {v for _, v in judge([Finding("", above(row, 0.0)) for row in samples])}
        for samples in rng.standard_normal((families, 10, 24))
    )
    assert ticked <= stats.binom.isf(ALPHA, families, 0.05)


def test_the_best_of_several_is_tested_as_the_best_of_several():
    """Four equal learners: the luckiest is not shown to be the best more often than in 5% of cases."""
    rng = np.random.default_rng(1)
    trials, shown = 150, 0
    for _ in range(trials):
        risks = rng.standard_normal((4, 24))
        best, *others = risks[np.argsort(risks.mean(axis=1))]
        evidence = every(below(best - other, 0.0) for other in others)
        shown += judge([Finding("", evidence)])[0][1] is Verdict.SHOWN
    assert shown <= stats.binom.isf(ALPHA, trials, 0.05)
