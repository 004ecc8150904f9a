"""Learners given as module:Class: the same losses, and failures that stay their own."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ldp_gym
from ldp_gym.bench import Experiment
from ldp_gym.bench.contained import Limits, call_contained
from ldp_gym.bench.runner import play

GAME = {"hypotheses": "dirichlet", "horizon": 60}
MINUTES = Limits(600.0)


def played(learner, game=GAME, limits=MINUTES):
    return play(Experiment(game, f"third_party:{learner}", episodes=3).cells(seed=0)[0], limits)


@pytest.mark.parametrize(
    ("learner", "ours", "game"),
    [
        ("Centred", "centred-exp3", GAME),
        ("Stepper", "uniform", GAME),
        ("Centred", "centred-exp3", {"horizon": 40, "nature": "adversary", "channel": "laplace-single"}),
    ],
)
def test_it_plays_as_it_would_here(learner, ours, game):
    expected = ldp_gym.evaluate(ours, game, episodes=3).kl
    np.testing.assert_allclose(played(learner, game).evaluation.kl, expected, rtol=1e-9)


posix = pytest.mark.posix_only("signals and limits of memory")


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("Crasher", r"ZeroDivisionError: I divided by <b>zero</b> \x1b[2J"),
        ("Exits", "SystemExit: 3"),
        ("Quitter", "the process of third_party:Quitter ended with status 7"),
        pytest.param("Segfault", "the process of third_party:Segfault was ended by SIGSEGV", marks=posix),
        ("NoSuchLearner", "ValueError: cannot import learner 'third_party:NoSuchLearner'"),
        ("NotANumber", "has a NaN probability"),
        ("Negative", "AssertionError: "),
    ],
)
def test_a_failure_is_told_in_its_first_line(learner, message):
    outcome = played(learner)
    assert outcome.status == "failed"
    assert message in outcome.message.splitlines()[0]
    assert all(char.isprintable() for char in outcome.message if char not in "\n\t")


def test_a_learner_that_hangs_is_ended():
    """It never finishes, so the limit is reached on any machine."""
    outcome = played("Sleeper", limits=Limits(1.0))
    assert outcome.message == "third_party:Sleeper took more than its 1 seconds"


@posix
def test_memory_is_limited():
    assert played("Hoarder", limits=Limits(600.0, 1.0)).message.startswith("MemoryError")


def start_a_child(path):
    """Start a process that sleeps, and write down its number."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    path.write_text(str(child.pid))


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@posix
def test_processes_that_it_starts_are_ended_with_it(tmp_path):
    call_contained("a learner", MINUTES, start_a_child, tmp_path / "child")
    child = int((tmp_path / "child").read_text())
    while is_alive(child):  # a process outlives its signal by a moment
        time.sleep(0.01)
    assert not is_alive(child)


def test_a_learner_that_does_not_understand_says_so():
    learner = "ldp_agents.exp3:EXP3"
    outcome = play(Experiment({**GAME, "channel": "randomized-response"}, learner).cells(0)[0], MINUTES)
    assert outcome.status == "incompatible"
    assert "reads a noisy log-likelihood of each hypothesis" in outcome.message


def interrupt_the_parent():
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(3600)


@pytest.fixture
def _interruptible():
    """Handle SIGINT as Python does; it is ignored where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_ends_the_call_and_is_not_a_failure_of_the_learner():
    with pytest.raises(KeyboardInterrupt):
        call_contained("a learner", MINUTES, interrupt_the_parent)
