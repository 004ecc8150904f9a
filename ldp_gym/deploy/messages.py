"""Questions and answers as plain data: what goes over the wire, and the checks at both ends.

A question::

    {"version": 1, "game": "…", "survey": "…", "number": 17, "round": 12, "context": [0.3, -1.2]}

with the server's ``posterior`` if the channel is adaptive, and ``candidates`` in place of the context if the
class is redrawn. An answer::

    {"version": 1, "game": "…", "survey": "…", "number": 17, "round": 12, "message": [0, 1, 0, 0]}

``game`` is the same for the same rules, ``survey`` for the same store of a server. ``number`` is the
question's own; ``round`` says how many answers the server had counted when it asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ldp_gym.deploy.terms import VERSION, Terms
from ldp_gym.errors import AnswerRefusedError, QuestionRefusedError
from ldp_gym.numerics import game_arrays, validation
from ldp_gym.numerics.arrays import FloatArray, Messages

_LARGEST = 2**53
"""Numbers of questions are below it: every JSON reader keeps them as they are."""

_LONGEST = 64
"""Of the names of surveys."""


class Question(NamedTuple):
    """A question that has been checked.

    Attributes:
        survey: whose it is.
        number: its own.
        round: how many answers had been counted.
        candidates: ``(K, M)``.
        posterior: the public posterior ``(K,)``, if the channel is adaptive.
    """

    survey: str
    number: int
    round: int
    candidates: FloatArray
    posterior: FloatArray | None

    @property
    def digest(self) -> str:
        """The same for the same question of a game, and different for another."""
        parts = [f"{self.survey} {self.number} {self.round}".encode(), self.candidates.tobytes()]
        if self.posterior is not None:
            parts.append(self.posterior.tobytes())
        return hashlib.sha256(b"|".join(parts)).hexdigest()


def write_question(
    terms: Terms, survey: str, number: int, round: int, context: object, posterior: FloatArray | None
) -> dict[str, Any]:
    """A question as plain data.

    Raises:
        ValueError: for what is no context.
    """
    question: dict[str, Any] = {
        "version": VERSION,
        "game": terms.fingerprint,
        "survey": survey,
        "number": number,
        "round": round,
    }
    if terms.game.hypotheses is None:
        question["candidates"] = terms.candidates(context).tolist()
    else:
        question["context"] = terms.context(context).tolist()
    if posterior is not None:
        question["posterior"] = posterior.tolist()
    return question


def read_question(terms: Terms, question: object) -> Question:
    """A question from outside, checked from end to end.

    Raises:
        QuestionRefusedError: if it is not one of this game, or says what no question says.
    """
    place = "candidates" if terms.game.hypotheses is None else "context"
    names = {"version", "game", "survey", "number", "round", place}
    names |= {"posterior"} if terms.channel.adaptive else set()
    try:
        fields = _fields(terms, question, names)
        survey, number = _survey(fields["survey"]), _number(fields["number"])
        round = validation.index("its round", fields["round"], terms.game.horizon)
        candidates = terms.candidates(fields[place])
        posterior = None
        if terms.channel.adaptive:
            weights = validation.numeric("its posterior", fields["posterior"])
            posterior = game_arrays.one_posterior(weights, terms.channel.num_hypotheses)
    except (TypeError, ValueError, OverflowError) as error:
        raise QuestionRefusedError(f"no answer to this question: {error}") from error
    return Question(survey, number, round, candidates, posterior)


def write_answer(terms: Terms, question: Question, message: Messages) -> dict[str, Any]:
    """An answer as plain data."""
    return {
        "version": VERSION,
        "game": terms.fingerprint,
        "survey": question.survey,
        "number": question.number,
        "round": question.round,
        "message": message.tolist(),
    }


def read_answer(terms: Terms, answer: object) -> tuple[str, int, int, Messages]:
    """The survey, number and round of an answer from outside, and its message.

    Raises:
        AnswerRefusedError: if it is not one of this game, or has no message.
    """
    try:
        fields = _fields(terms, answer, {"version", "game", "survey", "number", "round", "message"})
        survey, number = _survey(fields["survey"]), _number(fields["number"])
        round = validation.index("its round", fields["round"], terms.game.horizon)
        message = as_message(terms, fields["message"])
    except (TypeError, ValueError, OverflowError) as error:
        raise AnswerRefusedError(f"this answer is not counted: {error}") from error
    return survey, number, round, message


def as_message(terms: Terms, values: object) -> Messages:
    """A message from plain data."""
    numbers, dtype = validation.numeric("its message", values), terms.channel.message_space.dtype
    message = numbers.astype(dtype)
    if numbers.shape != terms.channel.message_shape or not np.array_equal(message, numbers):
        raise ValueError(f"its message must lie in {terms.channel.message_space}, got {values!r}")
    return message[()] if message.ndim == 0 else message


def _fields(terms: Terms, data: object, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise TypeError(f"it must be a dict, as json.loads makes one, got {type(data).__name__}")
    if data.get("version") != VERSION:
        raise ValueError(f"it is of version {data.get('version')!r}, not {VERSION}")
    if set(data) != names:
        raise ValueError(f"it must have {sorted(names)}, got {sorted(map(str, data))}")
    if data["game"] != terms.fingerprint:
        raise ValueError(f"it is of another game, {data['game']!r}, not {terms.fingerprint!r}")
    return data


def _survey(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or not value.isalnum():
        raise ValueError(f"its survey must be a name of letters and digits, got {value!r}")
    return value


def _number(value: object) -> int:
    return validation.index("its number", value, _LARGEST)


to_json = json.JSONEncoder(allow_nan=False).encode
"""Plain data as one line of JSON; floats keep every bit."""
