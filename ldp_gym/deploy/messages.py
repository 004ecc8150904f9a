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

from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import AnswerRefusedError, QuestionRefusedError
from ldp_gym.deploy.terms import VERSION, Terms

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
    question = _write_head(terms, survey, number, round)
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
    further = {place, "posterior"} if terms.channel.adaptive else {place}
    try:
        fields, head = _read_head(terms, question, further)
        candidates = terms.candidates(fields[place])
        posterior = None
        if terms.channel.adaptive:
            weights = validation.numeric("its posterior", fields["posterior"])
            posterior = game_arrays.one_posterior(weights, terms.channel.num_hypotheses)
    except (TypeError, ValueError, OverflowError) as error:
        raise QuestionRefusedError(f"no answer to this question: {error}") from error
    return Question(*head, candidates, posterior)


def write_answer(terms: Terms, question: Question, message: Messages) -> dict[str, Any]:
    """An answer as plain data."""
    head = _write_head(terms, question.survey, question.number, question.round)
    return {**head, "message": message.tolist()}


def read_answer(terms: Terms, answer: object) -> tuple[str, int, int, Messages]:
    """The survey, number and round of an answer from outside, and its message.

    Raises:
        AnswerRefusedError: if it is not one of this game, or has no message.
    """
    try:
        fields, head = _read_head(terms, answer, {"message"})
        return *head, as_message(terms, fields["message"])
    except (TypeError, ValueError, OverflowError) as error:
        raise AnswerRefusedError(f"this answer is not counted: {error}") from error


def as_message(terms: Terms, values: object) -> Messages:
    """A message from plain data."""
    numbers, dtype = validation.numeric("its message", values), terms.channel.message_space.dtype
    message = numbers.astype(dtype)
    if numbers.shape != terms.channel.message_shape or not np.array_equal(message, numbers):
        raise ValueError(f"its message must lie in {terms.channel.message_space}, got {values!r}")
    return message[()] if message.ndim == 0 else message


def _write_head(terms: Terms, survey: str, number: int, round: int) -> dict[str, Any]:
    """What questions and answers begin with."""
    named = {"survey": survey, "number": number, "round": round}
    return {"version": VERSION, "game": terms.fingerprint, **named}


def _read_head(
    terms: Terms, data: object, further: set[str]
) -> tuple[Mapping[str, Any], tuple[str, int, int]]:
    """All fields of a question or an answer, and its survey, number and round.

    Raises:
        TypeError, ValueError: if it is not one of this game, or has other fields than these and ``further``.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"it must be a dict, as json.loads makes one, got {type(data).__name__}")
    if data.get("version") != VERSION:
        raise ValueError(f"it is of version {data.get('version')!r}, not {VERSION}")
    names = {"version", "game", "survey", "number", "round", *further}
    if set(data) != names:
        raise ValueError(f"it must have {sorted(names)}, got {sorted(map(str, data))}")
    if data["game"] != terms.fingerprint:
        raise ValueError(f"it is of another game, {data['game']!r}, not {terms.fingerprint!r}")
    survey = data["survey"]
    if not isinstance(survey, str) or not 0 < len(survey) <= _LONGEST or not survey.isalnum():
        raise ValueError(f"its survey must be a name of letters and digits, got {survey!r}")
    number = validation.index("its number", data["number"], _LARGEST)
    round = validation.index("its round", data["round"], terms.game.horizon)
    return data, (survey, number, round)


to_json = json.JSONEncoder(allow_nan=False).encode
"""Plain data as one line of JSON; floats keep every bit."""
