"""The exit status of ``ldp-gym audit`` is a verdict, whoever reads its output."""

import os
import subprocess
import sys

import pytest
from command_line import run_in_line

from ldp_bench.commands import auditing

LITERAL = [
    "--hypotheses",
    "[[1,0,0],[0,0.5,0.5]]",
    "--horizon",
    "100",
    "--rule",
    "channel_kwargs.clipping=paper",
]


def status_without_a_reader(*arguments):
    """Exit status of an audit whose output nobody reads: the other end of the pipe is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "ldp_bench", "audit", *arguments]
    try:
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writer)
    assert done.stderr == b""
    return done.returncode


def test_a_promise_that_holds_is_status_0_when_nobody_reads_the_output():
    assert status_without_a_reader("split", "--rule", "num_labels=3") == 0


def test_a_broken_promise_is_status_1_when_nobody_reads_the_output():
    assert status_without_a_reader("laplace-single", *LITERAL) == 1


def test_an_interrupted_audit_has_no_verdict(monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(auditing, "_audit_channel", interrupt)
    code, output = run_in_line("audit", "split")
    assert code == 130
    assert "no verdict" in output


def test_a_function_with_a_delta_is_audited_for_its_delta():
    code, output = run_in_line(
        "audit", f"{__name__}:leak", "--num-labels", 2, "--epsilon", 1, "--delta", 0.01
    )
    assert code == 1
    assert "the claim of delta = 0.01 is broken: delta >= " in output


def leak(label, calls=[0]):  # noqa: B006 - counts its calls
    """The label in every tenth message."""
    calls[0] += 1
    return 1 + label if calls[0] % 10 == 0 else 0


def test_a_custom_channel_that_breaks_its_promise_at_other_candidates_only_is_found():
    channel = "broken_channels:ListedElsewhere"
    code, output = run_in_line("audit", channel, "--rule", "num_hypotheses=2", "--num-labels", 3)
    assert code == 1
    assert "the promise is broken at other candidates" in output


@pytest.mark.parametrize("trials", ["0", "20000"])
def test_a_certificate_from_samples_says_what_was_looked_at(trials):
    code, output = run_in_line(
        "audit", "broken_channels:HonestLaplace", "--num-labels", 3, "--trials", trials
    )
    assert code == 0
    assert "the promise holds over the listed worst cases (2) and" in output
