"""A call in a subprocess with a time limit, for learners given as ``module:Class``.

A learner may crash, hang or exit: its own cells fail, with one line that says why. This is not a security
sandbox; a container is.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ldp_gym.core.errors import IncompatibleChannelError, LearnerFailedError, printable, summarize
from ldp_gym.core.files import replacing

Result = TypeVar("Result")

TIME_LIMIT = 600.0
"""Longest time that a call may take, in seconds."""

_LOG_LENGTH = 2000
"""Number of characters, from the end of a process's output, that an error shows."""

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from ldp_bench.contained import _serve
_serve()
"""


def call_contained(learner: str, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function of a module in a subprocess, and return its result; ``learner`` is named in errors.

    Raises:
        IncompatibleChannelError: if the call raises it.
        LearnerFailedError: if the call raises another error, or its process ends early.
    """
    with tempfile.TemporaryDirectory() as folder:
        request = Path(folder) / "request"
        answer = Path(folder) / "answer"
        log = Path(folder) / "log"
        request.write_bytes(pickle.dumps((function, arguments)))
        process = _start(folder, log)
        try:
            status = process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise LearnerFailedError(
                f"{learner} took more than its {TIME_LIMIT:g} seconds"
            ) from None
        finally:
            _end(process)

        if not answer.exists():
            how = _describe_end(status)
            output = printable(log.read_text("utf-8", "replace")[-_LOG_LENGTH:])
            raise LearnerFailedError(f"the process of {learner} {how}\n\n{output}".rstrip())
        error, result = pickle.loads(answer.read_bytes())
    if error is not None:
        raise error
    return result


def _start(folder: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a subprocess that answers the request in a folder, and prints into the file ``log``."""
    import_path = [path or os.getcwd() for path in sys.path]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, folder, json.dumps(import_path)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C reaches the parent only, which ends this group
            env={**os.environ, **one_thread},
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a subprocess and the processes that it started; those that have ended are left alone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # Windows has no groups of processes
            process.kill()
    process.wait()


def _describe_end(status: int) -> str:
    """Describe how a process ended, by its exit status; of a signal it is negative."""
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _serve() -> None:
    """Subprocess entry point: unpickle a request, run it, and write the answer."""
    folder = Path(sys.argv[1])
    function, arguments = pickle.loads((folder / "request").read_bytes())
    if hasattr(signal, "alarm"):  # Windows has no alarms
        # Ten seconds after its parent should have ended it, it ends itself: the parent may be gone.
        signal.alarm(int(TIME_LIMIT) + 10)
    answer: tuple[Exception | None, object]
    try:
        answer = (None, function(*arguments))
    except IncompatibleChannelError as refusal:
        answer = (IncompatibleChannelError(str(refusal)), None)
    except BaseException as failure:  # sys.exit is a failure of the learner too
        message = f"{summarize(failure)}\n\n{printable(traceback.format_exc())}"
        answer = (LearnerFailedError(message), None)
    with replacing(folder / "answer") as part:
        part.write_bytes(pickle.dumps(answer))
    os._exit(0)  # a thread that the learner left behind is not waited for
