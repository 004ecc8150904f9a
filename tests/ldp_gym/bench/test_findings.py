"""When a suite says that Bayes is beaten: pair by pair on the same tapes, beyond the error."""

import numpy as np
import pytest

from ldp_gym.bench import SUITES, Results
from ldp_gym.bench.store import Outcome
from ldp_gym.evaluation import Evaluation


class Given:
    """A store in which Bayes' risks are known, and another learner's differ from them by a given amount."""

    def __init__(self, experiments, bayes, other, shift):
        self.outcomes = {}
        for experiment in experiments:
            if experiment.learner in ("bayes", other):
                totals = bayes + (shift if experiment.learner == other else 0.0)
                kl, comparator = totals[:, None], np.zeros((len(totals), 8))
                evaluation = Evaluation(np.array([experiment.horizon]), kl, kl, comparator)
                outcome = Outcome("done", evaluation, None, 0.0)
                self.outcomes |= {cell.key: outcome for cell in experiment.cells(0)}

    def outcome(self, key):
        return self.outcomes.get(key)


@pytest.mark.parametrize("name", ["quick", "contexts"])
def test_bayes_is_beaten_only_beyond_the_error_of_the_pairs(name):
    suite = SUITES[name]()
    experiments = suite.experiments("small", episodes=8)
    bayes = np.linspace(10.0, 80.0, 8)

    def holds(shift):
        results = Results(Given(experiments, bayes, "uniform", shift), experiments, 0)
        return {finding.holds for finding in suite.findings(results)} - {None}

    assert holds(1.0) == {True}
    # Less on average, by chance: the differences are as often above zero as below.
    assert holds(np.array([9.0, -10.0, 8.0, -9.0, 7.0, -8.0, 6.0, -9.0])) == {True}
    # A little less in every episode: far within the episodes' spread, and yet certain.
    assert holds(-0.5) == {False}
