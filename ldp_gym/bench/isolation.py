"""A learner in a process of its own, with nothing in its memory but the public game.

Messages do not depend on predictions. So a third-party learner gets candidates and messages through a
pipe, round by round, and sends predictions back as plain numbers. Labels, truths, losses and messages to come
stay on this side. It may crash, exit or sleep; its own process pays for it.

This keeps an honest learner honest, and contains a broken one. It is no prison: a learner that is written to
cheat can draw the same tapes again from seeds that it guesses, or read files.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ldp_gym.errors import IncompatibleChannelError, LearnerFailedError
from ldp_gym.game import Game
from ldp_gym.learners import GeneratorSource, Track, hand_generators, learner_maker, track_of
from ldp_gym.numerics.arrays import FloatArray, Messages
from ldp_gym.testing import check_learner

_NAME = "ldp_gym.bench.isolation"


class IsolatedLearner:
    """A learner by its name, played in a process of its own, within a time limit.

    Args:
        learner: the name, ``module:Class``, or a trained model's directory.
        options: its options.
        seconds: how long it may take in all.
    """

    episode_generators: GeneratorSource | None = None

    def __init__(self, learner: str, options: Mapping[str, Any], seconds: float) -> None:
        self.learner, self.options, self.seconds = learner, dict(options), seconds
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", _NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # so that what it starts can be ended with it
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        )
        self._candidates: FloatArray | None = None
        self._late = threading.Event()
        self._watch = threading.Timer(seconds, self._expire)
        self._watch.daemon = True
        self._watch.start()

    def __enter__(self) -> IsolatedLearner:
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.cancel()
        self._end()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):  # what was left in a broken pipe is lost
                stream.close()  # type: ignore[union-attr]
        self._process.wait()

    def _expire(self) -> None:
        self._late.set()
        self._end()

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def find(self) -> Track:
        """Import it, and nothing more; returns the track that it declares."""
        return "uninformed" if str(self._ask("find", self.learner)) == "uninformed" else "informed"

    def check(self, rules: Mapping[str, Any]) -> None:
        """Hold it to the contract of learners, on a small game of the same channel."""
        self._ask("check", self.learner, self.options, dict(rules))

    def __call__(self, game: Game) -> IsolatedLearner:
        """Make the learner for a game, as its class would."""
        self._ask("make", self.learner, self.options, game)
        return self

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""
        generators = None if self.episode_generators is None else self.episode_generators()
        self._ask("reset", batch_shape, generators)

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The predictions ``(..., M)`` for the current round's candidates ``(..., K, M)``."""
        # A constant class has the same candidates in every round: they are sent once.
        news = None if candidates is self._candidates else candidates
        self._candidates = candidates
        predictions: FloatArray = self._ask("predict", news)
        return predictions

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Learn from the messages ``(..., *message_shape)`` of the round that was predicted last."""
        self._ask("update", message)

    def _ask(self, *request: object) -> Any:
        assert self._process.stdin is not None, "opened as a pipe"
        assert self._process.stdout is not None, "opened as a pipe"
        try:
            pickle.dump(request, self._process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            answer, length = self._process.stdout.readline().split()
            value = self._process.stdout.read(int(length))
        except (OSError, ValueError) as error:
            raise LearnerFailedError(self._failure_message()) from error
        if answer == b"incompatible":
            raise IncompatibleChannelError(value.decode(errors="replace"))
        if answer == b"failed":
            raise LearnerFailedError(value.decode(errors="replace"))
        # Numbers alone: unpickling what a learner sends would let it act on this side.
        return np.load(io.BytesIO(value), allow_pickle=False)

    def _failure_message(self) -> str:
        if self._late.is_set():
            return f"{self.learner} took more than its {self.seconds:g} seconds"
        self._process.wait()
        self._errors.seek(0)
        last = self._errors.read()[-2000:].decode(errors="replace")
        return f"the process of {self.learner} ended with status {self._process.returncode}\n{last}".rstrip()


class _Worker:
    """The other side: makes the learner, and does what it is asked."""

    def __init__(self) -> None:
        self.learner: Any = None
        self.candidates: FloatArray | None = None

    def find(self, name: str) -> Any:
        return np.array(track_of(learner_maker(name)))

    def check(self, name: str, options: dict[str, Any], rules: dict[str, Any]) -> None:
        check_learner(learner_maker(name, options), **rules)

    def make(self, name: str, options: dict[str, Any], game: Game) -> None:
        self.learner = learner_maker(name, options)(game)

    def reset(self, batch_shape: tuple[int, ...], generators: Sequence[np.random.Generator] | None) -> None:
        if generators is not None:
            hand_generators(self.learner, lambda: generators)
        self.learner.reset(batch_shape)

    def predict(self, candidates: FloatArray | None) -> Any:
        if candidates is not None:
            self.candidates = candidates
        return self.learner.predict(self.candidates)

    def update(self, message: Messages) -> None:
        self.learner.update(self.candidates, message)


def _serve() -> None:
    """Answer requests from stdin until it closes."""
    requests = sys.stdin.buffer
    # What the learner prints must not end up among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = _Worker()
    while True:
        try:
            what, *arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            value = io.BytesIO()
            returned = getattr(worker, what)(*arguments)
            np.save(value, np.zeros(0) if returned is None else returned, allow_pickle=False)
            answer, content = b"done", value.getvalue()
        except IncompatibleChannelError as error:
            answer, content = b"incompatible", str(error).encode()
        except BaseException:  # whatever it is, the referee's side reports it
            answer, content = b"failed", traceback.format_exc().encode()
        answers.write(b"%s %d\n%s" % (answer, len(content), content))
        answers.flush()


if __name__ == "__main__":
    _serve()
