"""Audits of channels, and those that break their promise or the contract: out of every comparison."""

import numpy as np
import pytest
from broken_channels import sharper
from command_line import run_in_line

import ldp_gym
from ldp_gym import bench
from ldp_gym.bench import Experiment, tables
from ldp_gym.bench.results import audit_channels
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core.errors import BrokenPromiseWarning

DOUBLE, CRASH, SHY = (f"{__name__}:{name}Response" for name in ("Double", "Crashing", "Shy"))
DoubleResponse = sharper(RandomizedResponse, 2.0, 2.0)


class CrashingResponse(RandomizedResponse):
    def encode(self, *arguments, **options):
        raise RuntimeError("no [bold]way[/bold] \ud800")


class ShyResponse(RandomizedResponse):
    """Sends the label itself, but not in small games."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        honest = super().encode(labels, candidates, uniforms, posterior)
        return np.asarray(labels) if self.num_labels >= 12 else honest


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    return bench.run("quick", size="small", episodes=2, channels=[DOUBLE, CRASH, SHY], out=out, jobs=1)


def test_a_broken_promise_is_out_of_every_comparison(results):
    assert [audit.channel for audit in results.broken_promises] == [DOUBLE]
    assert "promises ε = 1 and has ε = 2" in str(results.broken_promises[0])
    assert {result.channel for result in results.broken} == {DOUBLE}
    assert DOUBLE not in results.channels
    broken = results.frame["broken"] != ""
    assert broken.any()
    assert broken.is_monotonic_increasing, "they come last"
    assert not results.frame[broken]["best"].any()
    assert results.frame[broken][["score", "over_bayes"]].isna().all(axis=None)
    findings = bench.SUITES["quick"]().findings(results)
    assert not any("DoubleResponse" in finding.text for finding in findings)


def test_a_channel_that_fails_its_check_in_the_game_that_it_plays_fails_its_own_cells(results):
    messages = {failure.experiment.channel: failure.message for failure in results.failures}
    assert set(messages) == {CRASH, SHY}
    expected = f"the channel {CRASH!r} fails its check: RuntimeError: no [bold]way[/bold] \\ud800"
    assert messages[CRASH] == expected
    assert "split" in results.channels


def test_the_command_says_so_and_ends_with_1(tmp_path):
    common = ("bench", "limit", "--size", "small", "--episodes", 1, "--jobs", 1, "--out", tmp_path)
    code, said = run_in_line(*common, "--channel", DOUBLE, "--channel", CRASH)
    assert code == 1
    assert "BROKEN PROMISE" in said
    assert "promises ε = 1 and has ε = 2" in said
    assert said.count("fails its check") == 1
    assert "no [bold]way[/bold]" in said
    page = (tmp_path / "report.html").read_text()
    assert page.index("Broken promise: ") < page.index("<main>")


def test_evaluate_warns():
    with pytest.warns(BrokenPromiseWarning, match="it has epsilon = 2"):
        ldp_gym.evaluate("bayes", {"channel": DOUBLE, "horizon": 10}, episodes=1)
    literal = {"hypotheses": [[1, 0, 0], [0, 0.5, 0.5]], "channel_kwargs": {"clipping": "paper"}}
    with pytest.warns(BrokenPromiseWarning, match="epsilon = 1.0"):
        ldp_gym.evaluate("bayes", {**literal, "horizon": 100}, episodes=1)


# -- Audits -------------------------------------------------------------------------------------------------

BROKEN = [[0, 0, 0, 1, 0], [2 / 9, 2 / 9, 3 / 9, 0, 2 / 9]]
"""On this table the paper's own clipping breaks Algorithm 2's promise: eps is 1.0333, not 1."""


class Secretive(RandomizedResponse):
    def worst_case_messages(self, candidates, posterior=None):
        raise RuntimeError("none of your business")


LARGE = {"hypotheses": "dirichlet", "num_hypotheses": 64, "num_labels": 1000, "channel": "split"}


@pytest.mark.parametrize(
    ("rules", "epsilon", "verdict"),
    [
        ({"hypotheses": BROKEN}, 0.9988, "the promise holds"),
        ({"hypotheses": BROKEN, "channel_kwargs": {"clipping": "paper"}}, 1.0333, "the promise is broken"),
        (LARGE, None, "not audited: its table is large: run ldp-gym audit"),
        ({"channel": f"{__name__}:Secretive"}, None, "not audited: RuntimeError: none of your business"),
    ],
)
def test_the_table_has_a_verdict(rules, epsilon, verdict):
    (audit,) = audit_channels([Experiment(rules, "bayes")]).values()
    assert tables.certificate_table([audit])["Verdict"][0] == verdict
    assert (audit.certificate is None) == (epsilon is None)
    if epsilon:
        assert audit.certificate.epsilon == pytest.approx(epsilon, abs=1e-4)
        assert audit.hypotheses == "table, K = 2, M = 5"


def test_a_channel_is_audited_once_for_a_promise_and_kind_on_the_largest_class():
    experiments = [
        Experiment({"channel": "split", "hypotheses": "dirichlet", "num_labels": labels, **rules}, "bayes")
        for labels in (32, 16, 64, 10_000)
        for rules in ({}, {"epsilon": 1.0}, {"epsilon": 2.0})
    ]
    rows = audit_channels(experiments).values()
    assert [row.certificate.claimed_epsilon for row in rows] == [1.0, 2.0]
    assert {row.hypotheses for row in rows} == {"dirichlet, K = 8, M = 64"}
