"""The process between the benchmark and a third-party one, which it ends with all that the latter starts.

Run as a program, with nothing but the standard library: ``guard.py SECONDS BYTES LIFELINE COMMAND...``. It
starts the command, and ends it, with every process that descends from it, when

- the time is up, or they hold more memory together than they may;
- the other end of the pipe ``LIFELINE`` is closed: the process that asked for it is gone, however it ended;
- the command itself has ended.

On Linux no process escapes by a session of its own, or by outliving its parent: the guard adopts orphans.
Elsewhere the command's group is ended.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

_EVERY = 0.5
"""Seconds between looks at the time and the memory."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def guard(seconds: float, most_bytes: int, lifeline: int, command: list[str]) -> int:
    """Run the command within its limits; its status, negative for the signal that ended it."""
    deadline = time.monotonic() + seconds
    prctl = _process_control()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # should the guard itself be ended

    child = subprocess.Popen(command, start_new_session=True, preexec_fn=limit)
    # The pipes are the child's alone: where they lead to, its end must be seen.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    events = [lifeline, *_end_of(child)]
    while child.poll() is None and time.monotonic() < deadline and _memory() <= most_bytes:
        if lifeline in select.select(events, [], [], min(_EVERY, max(deadline - time.monotonic(), 0)))[0]:
            break
    _end_all(child)
    return child.wait()


def _process_control() -> Callable[[int, int], object]:
    """Linux's prctl; elsewhere what does nothing."""
    try:
        from ctypes import CDLL

        call = CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return lambda option, value: None
    return lambda option, value: call(option, value, 0, 0, 0)


def _end_of(child: subprocess.Popen[bytes]) -> list[int]:
    """What can be read when the child has ended, where the system has such a thing."""
    try:
        return [os.pidfd_open(child.pid)]
    except (AttributeError, OSError):
        return []


def _descendants() -> list[int]:
    """The processes that descend from this one; none where the system has no ``/proc``."""
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process, and its parent."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                yield int(name), int(file.read().rpartition(")")[2].split()[1])


def _memory() -> int:
    """How many bytes all descendants hold together, as far as the system tells."""
    pages = 0
    for process in _descendants():
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{process}/statm") as file:
            pages += int(file.read().split()[1])
    return pages * resource.getpagesize()


def _end_all(child: subprocess.Popen[bytes]) -> None:
    """End the child's group and every descendant, until there is none."""
    while True:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        alive = _descendants()
        for stop in (signal.SIGSTOP, signal.SIGKILL):  # stopped, they start no others meanwhile
            for process in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, stop)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not alive:
            return
        time.sleep(0.01)


def _main() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the lifeline decides; a handler is not passed on
    seconds, most_bytes, lifeline, *command = sys.argv[1:]
    status = guard(float(seconds), int(most_bytes), int(lifeline), command)
    if status < 0:  # end as it ended
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    _main()
