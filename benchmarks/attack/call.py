"""A public callable with arguments that are right, and what is wrong for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from attack.wrong_values import KINDS


@dataclass(frozen=True)
class Call:
    """A public callable, with arguments that are right.

    Attributes:
        name: what it is called.
        function: the callable, taking these arguments by name.
        right: its arguments, each with a value that is right.
        wrong: what is wrong for some of them; :data:`KINDS` has it for the others. An empty list for what may
            be anything.
        words: what a message may call an argument instead of by its name.
        covers: the public object that this call is about, if that is not the function.
        optional: arguments for which None is right too. For others it is wrong, unless it is the right value.
    """

    name: str
    function: Callable[..., Any]
    right: dict[str, Any]
    wrong: dict[str, list[Any]] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    covers: Any = None
    optional: tuple[str, ...] = ()

    def wrong_values(self, argument: str) -> list[Any]:
        """What is tried for an argument."""
        values = self.wrong.get(argument, KINDS.get(argument))
        if values is None:
            raise KeyError(f"{self.name}: say what is wrong for {argument!r}")
        none_is_wrong = values and self.right[argument] is not None and argument not in self.optional
        return [*values, None] if none_is_wrong else values


WORDS_FOR = {
    "candidates": ("candidates", "hypothesis", "one context"),
    "posterior": ("posterior",),
    "weights": ("posterior", "weights"),
    "action": ("action",),
    "table": ("table", "hypothesis"),
    "hypotheses": ("hypothes", "table"),
    "members": ("members", "num_members"),
    "truth": ("truth",),
    "runs": ("runs", "run"),
    "env": ("env", "rule", "LDPDist", "keyword"),
    "name": ("learner",),
    "learner": ("learner",),
    "game": ("game", "Game"),
    "rules": ("rules", "env", "LDPDist"),
}
"""What a message may call an argument, instead of by its name."""
