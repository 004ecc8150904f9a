"""Killed runs: resumed, they end with the rows of one that was left alone, and leave no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from attack.tiny import play

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)

_PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which nohup would have it ignore
from attack.tiny import Tiny
from ldp_gym import bench
print("begin", flush=True)
bench.run(Tiny(), jobs=int(sys.argv[2]), out=sys.argv[1], on_cell=lambda *_: time.sleep(0.1))
"""

_SECONDS = 8.0
"""How long a process may stay after its parent."""


def run(rng: np.random.Generator, count: int = 20) -> tuple[int, list[str]]:
    """Kill so many runs at moments drawn by ``rng``; how many were tried, and those that fell."""
    fallen = []
    with tempfile.TemporaryDirectory() as directory:
        expected = play(Path(directory) / "alone")
        for number in range(count):
            # Every fourth begins in a place of its own; the others go on from the one before.
            place, jobs = Path(directory) / str(number // 4), 1 + number % 2
            killer = SIGNALS[number % len(SIGNALS)]
            left = _kill(place, jobs, killer, float(rng.uniform(0.0, 2.0)))
            if left:
                fallen.append(f"{killer.name} with {jobs} jobs: {len(left)} processes are left")
            if (number % 4 == 3 or number == count - 1) and play(place) != expected:
                fallen.append(f"{killer.name} with {jobs} jobs: the rows are not the same")
    return count, fallen


def _kill(place: Path, jobs: int, number: signal.Signals, seconds: float) -> list[int]:
    """Start a run, kill it after some time; the processes that are left of it."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, place, str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has begun
    time.sleep(seconds)
    session = process.pid
    process.send_signal(number)
    process.wait()
    process.stdout.close()
    end = time.monotonic() + _SECONDS
    while (left := _members(session)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _members(session: int) -> list[int]:
    """The processes of a session that are alive."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            facts = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(facts[3]) == session and facts[0] != "Z":
            found.append(int(name))
    return found
