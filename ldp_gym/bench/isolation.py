"""A learner in a process of its own, with nothing in its memory but the public game.

Messages do not depend on predictions. So a third-party learner gets candidates and messages through a
pipe, round by round, and sends predictions back as plain numbers. Labels, truths, losses and messages to come
stay on this side, and its code is imported on the other alone: to look it up, to check it and to play it. It
may crash, exit, sleep or eat memory; its own process pays for it, and is ended, with all that it started,
when its time is up or this process is gone (:mod:`ldp_gym.bench.guard`).

This keeps an honest learner honest, and contains a broken one. It is no prison: a learner that is written to
cheat runs as the same user, and can read files, or draw the same tapes again from seeds that it guesses.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import IncompatibleChannelError, LearnerFailedError
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import Track

_LEAST_MEMORY = 0.5
"""GiB, without which Python and NumPy cannot be imported."""

_GRACE = 3.0
"""Seconds that the guard has to end a process whose time is up, before we no longer wait for its answer."""

_LONGEST = 1 << 20
"""How many bytes an answer may have, predictions aside."""


@dataclass(frozen=True)
class Limits:
    """What third-party code may take.

    Attributes:
        seconds: of time, in all.
        memory: in GiB, of all its processes together.
    """

    seconds: float = 600.0
    memory: float = 4.0

    def __post_init__(self) -> None:
        """Check the limits."""
        validation.positive("time_limit, in seconds", self.seconds)
        if validation.positive("memory_limit, in GiB", self.memory) < _LEAST_MEMORY:
            raise ValueError(f"memory_limit must be at least {_LEAST_MEMORY} GiB, got {self.memory}")


LIMITS = Limits()
"""Those that hold unless others are given."""


class IsolatedProcess:
    """A process for code that is not imported here, within limits of time and memory.

    Args:
        name: whose process it is, for messages.
        limits: what it may take.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        end, self._lifeline = os.pipe()
        numbers = [str(float(limits.seconds)), str(int(limits.memory * 2**30)), str(end)]
        program = "from ldp_gym.bench.worker import serve; serve()"
        self._deadline = time.monotonic() + limits.seconds
        with as_file(files("ldp_gym.bench") / "guard.py") as guard:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard, *numbers, sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=[end],
                bufsize=0,
                start_new_session=True,  # a Ctrl-C is ours
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            )
        os.close(end)
        assert self._process.stdin is not None, "opened as a pipe"
        assert self._process.stdout is not None, "opened as a pipe"
        self._requests, self._answers = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._requests, False)
        self._rest = b""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._lifeline)  # the guard ends all
        self._wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):  # what was left in a broken pipe is lost
                stream.close()  # type: ignore[union-attr]

    def _wait(self) -> int:
        """How the process has ended; a guard that does not end is ended."""
        try:
            return self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def ask(self, *request: object, most_bytes: int = _LONGEST) -> Any:
        """Have the other side do something; what it returns, as numbers or text.

        Raises:
            IncompatibleChannelError: if the learner does not understand the channel.
            LearnerFailedError: if it failed, or is no more. The first line of the message says how.
        """
        try:
            self._write(pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL))
            kind, *sizes = self._read_line().split()
            shape = [int(size) for size in sizes]
            size = math.prod(shape) * (8 if kind == b"numbers" else 1)
            if min(shape, default=0) < 0 or size > most_bytes:
                raise LearnerFailedError(
                    f"{self.name} sent an answer of {size} bytes, more than {most_bytes}"
                )
            content = self._read(size)
        except (EOFError, OSError, ValueError) as error:
            raise LearnerFailedError(self._failure_message()) from error
        if kind == b"numbers":
            # Numbers alone: unpickling what a learner sends would let it act on this side.
            return np.frombuffer(content).reshape(shape).copy()
        text = content.decode(errors="replace")
        if kind == b"text":
            return text
        raise (IncompatibleChannelError if kind == b"incompatible" else LearnerFailedError)(text)

    def _write(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            _, ready, _ = select.select([], [self._requests], [], self._seconds_left())
            if not ready:
                raise TimeoutError
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._requests, view) :]

    def _read_line(self) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > 200:
                raise ValueError("no answer begins like this")
            self._rest += self._receive()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _read(self, size: int) -> bytes:
        parts, missing = [self._rest[:size]], size - len(self._rest)
        self._rest = self._rest[size:]
        while missing > 0:
            part = self._receive(missing)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    def _receive(self, most: int = 4096) -> bytes:
        """Some of what has come; what a survivor keeps open is not waited for."""
        ready, _, _ = select.select([self._answers], [], [], self._seconds_left())
        content = os.read(self._answers, min(most, 1 << 20)) if ready else b""
        if not content:
            raise EOFError if ready else TimeoutError
        return content

    def _seconds_left(self) -> float:
        return max(0.0, self._deadline + _GRACE - time.monotonic())

    def _failure_message(self) -> str:
        if time.monotonic() >= self._deadline:
            return f"{self.name} took more than its {self.limits.seconds:g} seconds"
        status = self._wait()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace")
        if status == -signal.SIGKILL:
            memory = f"{self.limits.memory:g} GiB of memory"
            how = f"was killed: it used more than its {memory}, or was ended from outside"
        elif status < 0:
            how = f"was ended by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        return f"the process of {self.name} {how}\n\n{last}".rstrip()


class IsolatedLearner(IsolatedProcess):
    """A learner by its name, played in a process of its own, within limits of time and memory.

    Args:
        learner: the name, ``module:Class``, or a trained model's directory.
        options: its options.
        limits: what it may take.
    """

    randomized = True

    def __init__(self, learner: str, options: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(learner, limits)
        self.options = dict(options)
        self._candidates: FloatArray | None = None
        self._batch = 1

    def find(self) -> Track:
        """Import it, and nothing more; returns the track that it declares."""
        return "uninformed" if self.ask("find", self.name) == "uninformed" else "informed"

    def check(self, rules: Mapping[str, Any]) -> None:
        """Hold it to the contract of learners, on a small game of the same channel."""
        self.ask("check", self.name, self.options, dict(rules))

    def __call__(self, game: Game) -> IsolatedLearner:
        """Make the learner for a game, as its class would."""
        self.ask("make", self.name, self.options, game)
        return self

    def reset(self, batch_shape: tuple[int, ...] = (), generators: Any = None) -> None:
        """Begin an episode in each of a batch of games."""
        self._batch = math.prod(batch_shape)
        self.ask("reset", batch_shape, generators)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""
        # A constant class has the same candidates in every round: they are sent once.
        news = None if candidates is self._candidates else candidates
        self._candidates = candidates
        most_bytes = _LONGEST + 8 * self._batch * candidates.shape[-1]
        predictions: FloatArray = self.ask("predict", news, most_bytes=most_bytes)
        return predictions

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages ``(..., *message_shape)`` of the round that was predicted last."""
        self.ask("update", message)
