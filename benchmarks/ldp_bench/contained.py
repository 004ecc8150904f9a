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
        request, answer, log = (Path(folder) / name for name in ("request", "answer", "log"))
        request.write_bytes(pickle.dumps((function, arguments)))
        import_path = [path or os.getcwd() for path in sys.path]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, folder, json.dumps(import_path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the parent only, which ends this group
                env={
                    **os.environ,
                    **dict.fromkeys(
                        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
                    ),
                },
            )
        try:
            status = process.wait(TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise LearnerFailedError(
                f"{learner} took more than its {TIME_LIMIT:g} seconds"
            ) from None
        finally:  # end it and the processes that it started
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
            process.wait()
        if not answer.exists():
            last = printable(log.read_text("utf-8", "replace")[-2000:])
            how = f"ended with status {status}"
            if status < 0:
                how = f"was ended by {signal.Signals(-status).name}"
            raise LearnerFailedError(f"the process of {learner} {how}\n\n{last}".rstrip())
        error, result = pickle.loads(answer.read_bytes())
    if error is not None:
        raise error
    return result


def _serve() -> None:
    """Subprocess entry point: unpickle a request, run it, and write the answer."""
    folder = Path(sys.argv[1])
    function, arguments = pickle.loads((folder / "request").read_bytes())
    if hasattr(signal, "alarm"):  # it ends itself, should its parent be gone; Windows has no alarms
        signal.alarm(int(TIME_LIMIT) + 10)
    answer: tuple[Exception | None, object]
    try:
        answer = None, function(*arguments)
    except IncompatibleChannelError as refusal:
        answer = IncompatibleChannelError(str(refusal)), None
    except BaseException as failure:  # sys.exit is a failure of the learner too
        answer = (
            LearnerFailedError(f"{summarize(failure)}\n\n{printable(traceback.format_exc())}"),
            None,
        )
    with replacing(folder / "answer") as part:
        part.write_bytes(pickle.dumps(answer))
    os._exit(0)  # a thread that the learner left behind is not waited for
