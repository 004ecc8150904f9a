"""What client and server must agree on, and by what they know that they do."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.channels.clipped import ClippedChannel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.deploy.exact import ExactChannel
from ldp_gym.engine.game import Game
from ldp_gym.engine.rules import as_rules
from ldp_gym.engine.scenario import Scenario

VERSION = 1
"""Of questions and answers: client and server of another version do not talk."""

_PRIVATE = ("truth", "truth_kwargs")
"""Rules of the simulator alone. In a deployment labels come from people."""

_DIGITS = 9
"""To how many digits a class must agree: the last bit of a float is the machine's."""


@dataclass(frozen=True)
class Terms:
    """The public rules of a deployment.

    Attributes:
        game: class, channel and horizon, as in the simulator.
        channel: the channel in whole numbers.
    """

    game: Game
    channel: ExactChannel

    @staticmethod
    def from_rules(rules: Mapping[str, Any]) -> Terms:
        """The terms of the simulator's rules; its truth is left out, and so is a nature it does not need.

        Raises:
            TypeError, ValueError: for unknown rules, or rules that do not fit together.
            IncompatibleChannelError: for a channel that cannot be deployed; it names one that can.
        """
        rules = as_rules("rules", rules)
        if rules.get("truth") == "replay" and rules.get("horizon") is None:
            raise ValueError("a deployment replays nothing: say for how many rounds it is, with 'horizon'")
        public = {name: value for name, value in rules.items() if name not in _PRIVATE}
        if public.get("nature") is None:
            public["nature"] = "iid"  # no context is drawn from it
        game = Scenario(**public).game
        return Terms(game, ExactChannel(game.channel))

    @cached_property
    def fingerprint(self) -> str:
        """A short text that is the same for the same terms: class, channel with all options, and horizon."""
        what = [VERSION, self.game.horizon, _description(self.game.channel), self._class_digest()]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]

    def _class_digest(self) -> str:
        """A digest of what the class says at a few contexts."""
        hypotheses = self.game.hypotheses
        if hypotheses is None:
            return "candidates come with the question"
        contexts = np.random.default_rng(0).standard_normal((8, hypotheses.context_dim))
        table = np.round(hypotheses(contexts), _DIGITS) + 0.0  # no negative zero
        return hashlib.sha256(np.ascontiguousarray(table).tobytes()).hexdigest()

    @cached_property
    def constant_candidates(self) -> FloatArray | None:
        """The class's table, if it is the same for every context."""
        hypotheses = self.game.hypotheses
        if hypotheses is None or not hypotheses.constant:
            return None
        table = np.array(hypotheses(np.zeros(hypotheses.context_dim)))
        table.flags.writeable = False
        return table

    def candidates(self, context: object) -> FloatArray:
        """The candidates ``(K, M)`` at a context ``(d,)``; or themselves, where the class is redrawn.

        Raises:
            ValueError: for what is no context, or candidates that are no distributions.
        """
        hypotheses, channel = self.game.hypotheses, self.channel
        if hypotheses is None:
            return game_arrays.one_context(
                validation.numeric("candidates", context), channel.num_hypotheses, channel.num_labels
            )
        place = self.context(context)
        if self.constant_candidates is not None:
            return self.constant_candidates
        with np.errstate(all="ignore"):  # what is no distribution is refused
            return game_arrays.one_context(hypotheses(place), channel.num_hypotheses, channel.num_labels)

    def context(self, context: object) -> FloatArray:
        """A context ``(d,)``, checked."""
        assert self.game.hypotheses is not None
        dim = self.game.hypotheses.context_dim
        if context is None and self.constant_candidates is not None:
            return np.zeros(dim)
        numbers = validation.numeric("the context", context)
        if numbers.ndim != 1:
            raise ValueError(f"a context has shape ({dim},), got {numbers.shape}")
        return game_arrays.contexts("the context", numbers[None], dim)[0]


def _description(channel: Channel) -> list[Any]:
    """A channel's class, and the options that it was made with, as far as it remembers them."""
    makers = [vars(cls)["__init__"] for cls in type(channel).__mro__[:-1] if "__init__" in vars(cls)]
    names = {name for maker in makers for name in inspect.signature(maker).parameters}
    options = {name: getattr(channel, name) for name in sorted(names) if hasattr(channel, name)}
    if isinstance(channel, ClippedChannel):
        options["clipping"] = channel.clipping.rule
    plain = {name: value for name, value in options.items() if isinstance(value, bool | int | float | str)}
    return [type(channel).__module__, type(channel).__qualname__, plain]
