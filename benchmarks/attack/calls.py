"""Wrong calls: every public callable of ldp_gym and ldp_agents, with values of every wrong kind.

A call holds if it ends in a TypeError or ValueError that a ``raise`` of ours raised, with a message that
names the argument. It falls if the value is accepted, or if something else goes wrong over it. The test
``tests/test_calls.py`` makes all of them; :func:`run` draws some by a seed.
"""

from __future__ import annotations

import inspect
import linecache
from dataclasses import dataclass
from typing import Any

import numpy as np
from attack.call import WORDS_FOR, Call
from attack.judging_calls import judging_calls
from attack.part_calls import part_calls
from attack.play_calls import play_calls
from attack.project_calls import project_calls


def all_calls() -> list[Call]:
    """Every public callable, with what is right and wrong for each of its arguments."""
    return [*part_calls(), *judging_calls(), *play_calls(), *project_calls()]


@dataclass(frozen=True)
class Fallen:
    """A wrong call that was accepted, or ended in somebody else's error."""

    call: str
    argument: str
    value: str
    what: str

    def __str__(self) -> str:
        return f"{self.call}({self.argument}={self.value}): {self.what}"


def attempt(call: Call, argument: str, value: Any) -> Fallen | None:
    """Make a wrong call; None if it held."""

    def fallen(what: str) -> Fallen:
        try:
            shown = repr(value)[:60]
        except ValueError:
            shown = "a whole number of thousands of digits"
        return Fallen(call.name, argument, shown, what)

    try:
        call.function(**{**call.right, argument: value})
    except (TypeError, ValueError) as error:
        message = str(error)
        if not is_ours(error):
            return fallen(f"not our error: {type(error).__name__}: {message[:200]}")
        words = call.words.get(argument) or WORDS_FOR.get(argument, (argument,))
        if not any(word in message for word in words):
            return fallen(f"the message does not name it: {message[:200]}")
        if len(message) > 2000:
            return fallen(f"the message has {len(message)} characters: {message[:200]}")
        return None
    except BaseException as error:
        return fallen(f"{type(error).__name__}: {str(error)[:200]}")
    return fallen("accepted")


def is_ours(error: BaseException) -> bool:
    """Whether a ``raise`` of ldp_gym or ldp_agents raised it; Gymnasium's copy of ours counts."""
    frames = inspect.getinnerframes(error.__traceback__)
    innermost = frames[-1]
    module = innermost.frame.f_globals.get("__name__", "")
    if module == "gymnasium.envs.registration" and error.__context__ is not None:
        return is_ours(error.__context__)
    line = linecache.getline(innermost.filename, innermost.lineno).strip()
    return module.partition(".")[0] in ("ldp_gym", "ldp_agents") and line.startswith("raise ")


def run(rng: np.random.Generator, count: int = 2500) -> tuple[int, list[Fallen]]:
    """Make so many wrong calls, drawn by ``rng``; returns how many were tried, and those that fell."""
    tries = [
        (call, argument, value)
        for call in all_calls()
        for argument in call.right
        for value in call.wrong_values(argument)
    ]
    chosen = rng.choice(len(tries), size=min(count, len(tries)), replace=False)
    with np.errstate(all="ignore"):
        results = [attempt(*tries[i]) for i in chosen]
    return len(chosen), [result for result in results if result is not None]
