"""The other side of :mod:`ldp_gym.bench.isolation`: the process that plays a third-party learner.

Requests come through stdin, pickled by the referee's side, which is trusted here. Answers are plain: one line
with the kind and the numbers' shape or the text's length, and then the numbers or the text.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import IncompatibleChannelError, summarize
from ldp_gym.core.registry import Registry, first_sentence
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import as_make_learner, track_of
from ldp_gym.testing import check_learner

LONGEST_TEXT = 20_000
"""How many bytes of an error are sent: its end says most."""


class Worker:
    """Makes the learner, and does what it is asked."""

    def __init__(self) -> None:
        self.learner: Any = None
        self.candidates: FloatArray | None = None

    def find(self, name: str) -> str:
        """Import it, and nothing more; returns the track that it declares."""
        return str(track_of(as_make_learner(name, trust=True)))

    def describe(self, kind: str, group: str, name: str) -> str:
        """What the documentation of something registered says in its first sentence."""
        return first_sentence(Registry[Any](kind, group)[name])

    def check(self, name: str, options: dict[str, Any], rules: dict[str, Any]) -> None:
        """Hold it to the contract of learners."""
        check_learner(as_make_learner(name, options, trust=True), **rules)

    def make(self, name: str, options: dict[str, Any], game: Game) -> None:
        """Make it for a game."""
        self.learner = as_make_learner(name, options, trust=True)(game)

    def reset(self, batch_shape: tuple[int, ...], generators: Sequence[np.random.Generator] | None) -> None:
        """Begin a batch of episodes."""
        if getattr(self.learner, "randomized", False):
            self.learner.reset(batch_shape, generators=generators)
        else:
            self.learner.reset(batch_shape)

    def predict(self, candidates: FloatArray | None) -> Any:
        """Predict for new candidates, or for those of the round before."""
        if candidates is not None:
            self.candidates = candidates
        return self.learner.predict(self.candidates)

    def update(self, message: Messages) -> None:
        """Learn from the round's messages."""
        self.learner.update(self.candidates, message)


def serve() -> None:
    """Answer requests from stdin until it closes."""
    requests = sys.stdin.buffer
    # What the learner prints must not end up among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = Worker()
    while True:
        try:
            what, *arguments = pickle.load(requests)
        except EOFError:
            return
        _answer(answers, getattr(worker, what), arguments)


def _answer(answers: BinaryIO, act: Callable[..., Any], arguments: list[Any]) -> None:
    try:
        returned = act(*arguments)
        if isinstance(returned, str):
            kind, content = "text", returned.encode()
        else:
            numbers = np.ascontiguousarray([] if returned is None else returned, dtype=np.float64)
            kind, content = "numbers", numbers.tobytes()
    except IncompatibleChannelError as error:
        kind, content = "incompatible", _encode(str(error))
    except BaseException as error:  # whatever it is, the referee's side reports it
        kind, content = "failed", _encode(summarize(error) + "\n\n" + traceback.format_exc())
    sizes = numbers.shape if kind == "numbers" else [len(content)]
    answers.write(" ".join([kind, *map(str, sizes)]).encode() + b"\n" + content)
    answers.flush()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")[:LONGEST_TEXT]
