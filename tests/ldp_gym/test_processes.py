"""Work shared out among processes: the same results, and clear words where it cannot be."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import fields

import numpy as np
import pytest

import ldp_agents
import ldp_gym
from ldp_gym.processes import count_jobs, share_out

RULES = {"hypotheses": [[0.5, 0.5], [0.9, 0.1]], "channel": "split", "horizon": 25_000}


class Own(ldp_agents.Bayes):
    """A learner that only this module has: it goes along by value."""


Own.__module__ = "__main__"


@pytest.mark.parametrize(
    "learner", ["exp3", Own, lambda game: ldp_agents.Bayes(game)], ids=["name", "class", "function"]
)
def test_any_number_of_processes_gives_the_same_numbers(learner):
    rules = {**RULES, "channel": "laplace-single"} if learner == "exp3" else RULES
    rounds = []
    options = {"episodes": 8, "seed": 3, "averages": True, "leaders": True, "progress": rounds.append}
    one, two = (ldp_gym.evaluate(learner, rules, jobs=jobs, **options) for jobs in (1, 2))
    for field in fields(one):
        ours, theirs = (getattr(result, field.name) for result in (one, two))
        np.testing.assert_array_equal(ours, theirs, err_msg=field.name)
    assert sum(rounds) == 2 * 8 * 25_000
    assert rounds[-1] == sum(rounds) // 8, "a piece is reported when it is done"


def test_every_truth_in_several_processes():
    one, two = (ldp_gym.evaluate("uniform", RULES, episodes=4, truth="all", jobs=jobs) for jobs in (1, 2))
    assert two.kl.shape[:2] == (2, 4)
    np.testing.assert_array_equal(one.kl, two.kl)


def test_what_cannot_be_sent_says_so():
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"jobs=2 .* sent to other processes.*lock.*class or its name"):
        ldp_gym.evaluate(lambda game: lock and ldp_agents.Bayes(game), RULES, episodes=8, jobs=2)


def test_an_error_in_a_process_is_the_caller_s():
    def fail(piece):
        raise ValueError(f"no luck with {piece}")

    with pytest.raises(ValueError, match="no luck with [123]"):
        share_out(fail, [1, 2, 3], 2, lambda piece: None)


def test_a_process_that_ends_too_early_is_named():
    with pytest.raises(RuntimeError, match="ended before its work was done"):
        share_out(lambda piece: os._exit(3), [1, 2], 2, lambda piece: None)


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True])
def test_a_wrong_number_of_jobs_is_refused(jobs):
    with pytest.raises((TypeError, ValueError), match="jobs"):
        ldp_gym.evaluate("uniform", {"horizon": 5}, episodes=1, jobs=jobs)


def test_all_cores():
    assert count_jobs(-1) >= 1


SLEEPS = """
import os, time
from ldp_gym.processes import share_out

def work(piece):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(60)

if __name__ == "__main__":
    share_out(work, [1, 2], 2, print)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX has it")
def test_processes_end_with_their_parent(tmp_path):
    script = tmp_path / "sleeps.py"
    script.write_text(SLEEPS)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(is_alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a process outlived its parent"
        time.sleep(0.05)


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as stat:
        return stat.read().split()[2] != "Z"
