"""Every suite at its small size: it runs, and concludes from the data."""

import dataclasses

import numpy as np
import pytest

from ldp_gym import bench, theory
from ldp_gym.bench import SUITES, Verdict, judge


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    directory = tmp_path_factory.mktemp("suites")
    whole = ("num-labels", "lower", "limit")  # what is concluded from these is tested below
    return {
        name: bench.run(
            name, size="small", episodes=None if name in whole else 2, jobs=1, out=directory / name
        )
        for name in SUITES.names()
    }


@pytest.mark.parametrize("name", SUITES.names())
def test_it_runs_and_concludes(played, name):
    results = played[name]
    assert not results.failures
    assert not results.missing
    assert all(finding.text for finding in SUITES[name]().findings(results))


def test_the_paper_s_main_point(played):
    judged = judge(SUITES["num-labels"]().findings(played["num-labels"]))
    marks = {finding.text.partition(":")[0]: verdict for finding, verdict in judged}
    assert marks["randomized-response"] is Verdict.SHOWN
    assert marks["split"] is Verdict.SHOWN


def test_conclusions_follow_the_data(played):
    """With risks turned to nothing, what held does not hold any more."""
    lower = SUITES["lower"]()

    def verdicts(results):
        return {verdict for _, verdict in judge(lower.findings(results))}

    assert verdicts(played["lower"]) <= {Verdict.SHOWN, Verdict.NOT_CONTRADICTED}
    cheated = played["lower"].__class__.__new__(played["lower"].__class__)
    cheated.__dict__ = dict(played["lower"].__dict__)
    cheated.successes = [
        dataclasses.replace(r, evaluation=dataclasses.replace(r.evaluation, kl=r.evaluation.kl * 1e-9))
        for r in cheated.successes
    ]
    assert verdicts(cheated) == {Verdict.CONTRADICTED}


def test_every_pure_channel_is_held_against_the_limit(played):
    channels = {p.channel for p in played["limit"].successes}
    assert {"laplace-single", "wheel", "adaptive-split", "subset-selection"} <= channels
    assert "identity" not in channels
    limit = theory.information_limit(8, 300, 1.0)
    for p in played["limit"].successes:
        error = p.totals.std(ddof=1) / np.sqrt(len(p.totals))
        assert p.totals.mean() >= limit - 5 * error
