"""A call in a subprocess with a time and a memory limit, for learners given as ``module:Class``.

A learner may crash, hang, exit or fill the memory: its own cells fail, with one line that says why. This is
not a security sandbox; a container is.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ldp_gym.core import validation
from ldp_gym.core.errors import IncompatibleChannelError, LearnerFailedError, printable, summarize
from ldp_gym.core.files import replacing

Result = TypeVar("Result")

_LEAST_MEMORY = 0.5
"""Smallest memory limit, in GiB: Python and NumPy need this much to be imported."""

_SPARE_SECONDS = 10
"""Seconds after its limit at which a subprocess ends itself, should its parent be gone."""

_PROGRAM = "from ldp_gym.bench.contained import _serve; _serve()"


@dataclass(frozen=True)
class Limits:
    """Limits of a subprocess: seconds of wall-clock time, and GiB of memory (address space)."""

    seconds: float = 600.0
    memory: float = 4.0

    def __post_init__(self) -> None:
        validation.positive("time_limit, in seconds", self.seconds)
        if validation.positive("memory_limit, in GiB", self.memory) < _LEAST_MEMORY:
            raise ValueError(f"memory_limit must be at least {_LEAST_MEMORY} GiB, got {self.memory}")


LIMITS = Limits()
"""Default limits."""


def call_contained(
    learner: str, limits: Limits, function: Callable[..., Result], *arguments: object
) -> Result:
    """Call a function of a module in a subprocess, and return its result; ``learner`` is named in errors.

    Raises:
        IncompatibleChannelError: if the call raises it.
        LearnerFailedError: if the call raises another error, or its process ends early.
    """
    with tempfile.TemporaryDirectory() as folder:
        request, answer, log = (Path(folder) / name for name in ("request", "answer", "log"))
        request.write_bytes(pickle.dumps((function, arguments, limits)))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, folder],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the parent only, which ends this group
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
                    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
                },
            )
        try:
            status = process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            raise LearnerFailedError(f"{learner} took more than its {limits.seconds:g} seconds") from None
        finally:
            _end_group(process)
        if not answer.exists():
            last = printable(log.read_text("utf-8", "replace")[-2000:])
            ended = f"was ended by {signal.Signals(-status).name}" if status < 0 else None
            how = ended or f"ended with status {status}"
            raise LearnerFailedError(f"the process of {learner} {how}\n\n{last}".rstrip())
        error, result = pickle.loads(answer.read_bytes())
    if error is not None:
        raise error
    return result


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a subprocess and the processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    process.wait()


def _serve() -> None:
    """Do what the request in a folder says, and leave the answer there."""
    folder = Path(sys.argv[1])
    function, arguments, limits = pickle.loads((folder / "request").read_bytes())
    _set_limits(limits)
    answer: tuple[Exception | None, object]
    try:
        answer = None, function(*arguments)
    except IncompatibleChannelError as refusal:
        answer = IncompatibleChannelError(str(refusal)), None
    except BaseException as failure:  # sys.exit and running out of memory are failures of the learner
        answer = LearnerFailedError(f"{summarize(failure)}\n\n{printable(traceback.format_exc())}"), None
    with replacing(folder / "answer") as part:
        part.write_bytes(pickle.dumps(answer))
    os._exit(0)  # a thread that the learner left behind is not waited for


def _set_limits(limits: Limits) -> None:
    """Limit the address space, and the time should the parent be gone; Windows has neither."""
    try:
        import resource
    except ImportError:
        return
    size = int(limits.memory * 2**30)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    signal.alarm(math.ceil(min(limits.seconds, 2**30)) + _SPARE_SECONDS)
