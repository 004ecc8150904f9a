"""Every suite at its small size: it runs, and concludes from the data."""

import copy
from dataclasses import replace

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


def changed(results, **change):
    """The same results with arrays of their evaluations changed by functions."""
    others = copy.copy(results)
    others.successes = [
        replace(
            r, evaluation=replace(r.evaluation, **{n: f(getattr(r.evaluation, n)) for n, f in change.items()})
        )
        for r in results.successes
    ]
    return others


def test_conclusions_follow_the_data(played):
    lower = SUITES["lower"]()

    def verdicts(results):
        return {verdict for _, verdict in judge(lower.findings(results))}

    assert verdicts(played["lower"]) <= {Verdict.SHOWN, Verdict.NOT_CONTRADICTED}
    assert verdicts(changed(played["lower"], kl=lambda kl: kl * 1e-9)) == {Verdict.CONTRADICTED}


def test_the_theorem_about_half_spaces_can_fail(played):
    """Three claims, on tables and on contexts by two adversaries; sums above the bound contradict them."""
    suite = SUITES["tv"]()

    def verdicts(results):
        judged = judge(suite.findings(results))
        return [verdict for finding, verdict in judged if "half-space" in finding.text]

    assert len(verdicts(played["tv"])) == 3
    assert Verdict.CONTRADICTED not in verdicts(played["tv"])
    above = changed(played["tv"], tv_squared=lambda squares: squares + 1e9)
    assert verdicts(above) == [Verdict.CONTRADICTED] * 3
    games = [r.experiment for r in played["tv"].successes if r.experiment.truth == "all"]
    assert [e.rules.get("nature") for e in games] == [None] * 8 + ["adversary", "omniscient"]


def test_every_pure_channel_is_held_against_the_limit(played):
    channels = {p.channel for p in played["limit"].successes}
    assert {"laplace-single", "wheel", "adaptive-split", "subset-selection"} <= channels
    assert "identity" not in channels
    limit = theory.information_limit(8, 300, 1.0)
    for p in played["limit"].successes:
        error = p.totals.std(ddof=1) / np.sqrt(len(p.totals))
        assert p.totals.mean() >= limit - 5 * error
