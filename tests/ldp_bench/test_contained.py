"""Learners given as module:Class: the same losses, and failures that stay their own."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import is_running
from third_party import Coin

import ldp_bench
import ldp_gym
from ldp_bench import Experiment, contained
from ldp_bench.contained import call_contained
from ldp_bench.runner import play
from ldp_bench.suites import YourGame

GAME = {
    "hypotheses": "dirichlet",
    "num_labels": 3,
    "horizon": 60,
    "epsilon": 1.0,
    "channel": "split",
}


def test_in_a_run_they_play_as_they_would_here_and_fail_alone(tmp_path):
    same = {"third_party:Centred": "centred-exp3", "third_party:Coin": Coin, "bayes": "bayes"}
    same["third_party:Picky"] = "uniform"  # in the one game that it plays, with three methods
    learners = [*same, "third_party:Crasher", "third_party:Negative"]
    results = ldp_bench.run(YourGame(GAME), learners=learners, episodes=3, jobs=1, out=tmp_path)
    assert {result.experiment.learner for result in results.successes} == set(same)
    for result in results.successes:
        expected = ldp_gym.evaluate(same[result.experiment.learner], GAME, episodes=3)
        np.testing.assert_allclose(result.evaluation.kl, expected.kl, rtol=1e-9)
        np.testing.assert_allclose(result.evaluation.tv, expected.tv, rtol=1e-9)
    told = {failure.experiment.learner: failure.message for failure in results.failures}
    assert set(told) == {"third_party:Crasher", "third_party:Negative"}
    crash, *_ = told["third_party:Crasher"].splitlines()
    assert crash == r"ZeroDivisionError: I divided by <b>zero</b> \x1b[2J"
    assert told["third_party:Negative"].startswith("AssertionError: ")
    assert "no negative probability" in told["third_party:Negative"]


def test_a_directory_with_a_colon_in_its_name_is_no_obstacle(tmp_path, monkeypatch):
    """It cannot stand in PYTHONPATH, whose entries are separated by colons."""
    folder = tmp_path / "a:b"
    folder.mkdir()
    (folder / "homemade_colon.py").write_text("import ldp_agents\nMine = ldp_agents.Uniform\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    assert played("homemade_colon:Mine").status == "done"


def played(learner):
    return play(Experiment(GAME, learner, episodes=3).cells(seed=0)[0])


def test_a_learner_that_hangs_is_ended(monkeypatch):
    """It never finishes, so the limit is reached on any machine."""
    monkeypatch.setattr(contained, "TIME_LIMIT", 1.0)
    assert (
        played("third_party:Sleeper").message == "third_party:Sleeper took more than its 1 seconds"
    )


posix = pytest.mark.posix_only("signals")


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("Exits", "SystemExit: 3"),
        ("Quitter", "the process of third_party:Quitter ended with status 7"),
        pytest.param(
            "Segfault", "the process of third_party:Segfault was ended by SIGSEGV", marks=posix
        ),
        ("NoSuchLearner", "ValueError: cannot import learner 'third_party:NoSuchLearner'"),
        ("NotANumber", "has a NaN probability"),
        ("ldp_agents.literal:EXP3", "reads a noisy log-likelihood of each hypothesis"),
    ],
)
def test_a_failure_is_told_in_its_first_line(learner, message):
    outcome = played(learner if ":" in learner else f"third_party:{learner}")
    assert outcome.status == ("incompatible" if ":" in learner else "failed")
    assert message in outcome.message.splitlines()[0]
    assert all(char.isprintable() for char in outcome.message if char not in "\n\t")


def start_a_child(path):
    """Start a process that sleeps, and write down its number."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    path.write_text(str(child.pid))


@posix
def test_processes_that_it_starts_are_ended_with_it(tmp_path):
    call_contained("a learner", start_a_child, tmp_path / "child")
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 60  # a process outlives its signal by a moment
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def interrupt_the_parent():
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(3600)


@posix
def test_an_interrupt_ends_the_call_and_is_not_a_failure_of_the_learner():
    """SIGINT is handled as by Python: it is ignored in tests that a shell has started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            call_contained("a learner", interrupt_the_parent)
    finally:
        signal.signal(signal.SIGINT, before)
