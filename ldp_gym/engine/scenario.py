"""A scenario: the public rules, and how Nature and the referee run them.

The single environment, the vector environment and ``evaluate`` are made from the same keyword arguments
through this one class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.engine.rules import DEFAULT_PRIVACY, Rules, complete_rules
from ldp_gym.game import Game
from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass
from ldp_gym.hypotheses.sources import as_hypotheses
from ldp_gym.natures.base import NATURES, Nature
from ldp_gym.numerics import validation
from ldp_gym.numerics.sampling import integers
from ldp_gym.spaces import Simplex


class Scenario:
    """The rules, checked and turned into parties.

    Args:
        **rules: see :class:`ldp_gym.engine.rules.Rules`.
    """

    def __init__(self, **rules: Unpack[Rules]) -> None:
        given = complete_rules(rules)
        self.horizon = validation.whole("horizon (T)", given["horizon"], least=2)
        epsilon, channel = given["epsilon"], given["channel"]
        if epsilon is not None and not validation.real("epsilon", epsilon) > 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")  # the channel checks the rest
        self.max_loss = validation.positive("max_loss", given["max_loss"])
        self.observe_candidates = validation.flag("observe_candidates", given["observe_candidates"])
        self.reveal = validation.flag("reveal", given["reveal"])
        self._class_source = given["hypotheses"]
        self._class_parameters = {
            "num_hypotheses": given["num_hypotheses"],
            "num_labels": given["num_labels"],
            "context_dim": given["context_dim"],
            "class_seed": validation.whole("class_seed", given["class_seed"], least=0),
            "epsilon": _known_epsilon(channel, epsilon),
            "horizon": self.horizon,
        }
        self._class_options = validation.options("hypotheses_kwargs", given["hypotheses_kwargs"])
        self.hypotheses = as_hypotheses(self._class_source, self._class_parameters, self._class_options)
        self.redraws = validation.flag("redraw_hypotheses", given["redraw_hypotheses"])
        if self.redraws:
            self._check_redrawable()
        promise = {"epsilon": epsilon, "delta": given["delta"]}
        options = validation.options("channel_kwargs", given["channel_kwargs"])
        self.channel = self._channel(channel, promise, options)
        self.nature = self._nature(
            given["nature"], validation.options("nature_kwargs", given["nature_kwargs"])
        )
        self.game = Game(None if self.redraws else self.hypotheses, self.channel, self.horizon)
        truth = given["truth"]
        self.truth = truth if truth == "uniform" else self.valid_truth(truth)

    # -- Making the parties ---------------------------------------------------------------------------

    def _channel(
        self, channel: str | Channel, promise: Mapping[str, float | None], options: Mapping[str, Any]
    ) -> Channel:
        parameters = {
            "num_hypotheses": self.hypotheses.num_hypotheses,
            "num_labels": self.hypotheses.num_labels,
            "horizon": self.horizon,
            **{name: value for name, value in promise.items() if value is not None},
        }
        if isinstance(channel, str):
            parameters = {**DEFAULT_PRIVACY, **parameters}
            made = CHANNELS.build(channel, parameters, options)
        else:
            made = channel
        if not isinstance(made, Channel):
            raise TypeError(f"channel must be a name or a Channel (made, not its class), got {made!r}")
        if options and made is channel:
            raise TypeError(f"channel_kwargs {sorted(options)} go with a named channel, not with {made!r}")
        for name, value in parameters.items():
            has = getattr(made, name)
            loud = name == "epsilon" and has == math.inf  # identity takes any eps, keeps none, and says so
            if has != value and not loud:
                raise ValueError(f"{made!r} was made for {name}={has}, not for the game's {value}")
        return made

    def _nature(self, nature: str | Nature, options: Mapping[str, Any]) -> Nature:
        dim = self.hypotheses.context_dim
        if isinstance(nature, str):
            nature = NATURES.build(nature, {"context_dim": dim}, options)
        elif not isinstance(nature, Nature):
            raise TypeError(f"nature must be a name or a Nature (made, not its class), got {nature!r}")
        elif options:
            raise TypeError(f"nature_kwargs {sorted(options)} go with a named nature, not with {nature!r}")
        if nature.context_dim != dim:
            raise ValueError(f"{nature!r} was made for context_dim={nature.context_dim}, not for {dim}")
        nature.check_horizon(self.horizon)
        return nature

    def _check_redrawable(self) -> None:
        source = self._class_source
        seeded = isinstance(source, str) and HYPOTHESES.takes(source, "class_seed")
        probe = np.ones(self.hypotheses.context_dim)
        if not seeded or np.array_equal(self._member(0)(probe), self._member(1)(probe)):
            raise ValueError(
                f"redraw_hypotheses needs a random class by its name, such as 'dirichlet', so that another "
                f"seed gives another class; got {source!r} with {self._class_options}"
            )
        if not self.observe_candidates:
            raise ValueError(
                "redraw_hypotheses needs observe_candidates=True: a learner must see the class it plays"
            )

    def _member(self, class_seed: int) -> HypothesisClass:
        """The named class with another seed."""
        parameters = {**self._class_parameters, "class_seed": class_seed}
        return as_hypotheses(self._class_source, parameters, self._class_options)

    # -- Beginning an episode -------------------------------------------------------------------------

    def valid_truth(self, truth: object) -> int:
        """``truth`` as the index of a hypothesis."""
        num_hypotheses = self.hypotheses.num_hypotheses
        if isinstance(truth, str):
            raise ValueError(
                f"truth must be an index in 0..{num_hypotheses - 1} (or 'uniform' when the environment "
                f"is made), got {truth!r}"
            )
        return validation.index("truth", truth, num_hypotheses)

    def start_episode(self, generator: np.random.Generator, truth: int | None = None) -> EpisodeStart:
        """Nature's first move with an episode's own generator: the truth, and the class if it is redrawn.

        The truth is drawn even where it is given, so that episodes of different truths share all else.
        """
        drawn = int(integers(self.hypotheses.num_hypotheses, generator.random(1))[0])
        if truth is None:
            truth = drawn if self.truth == "uniform" else int(self.truth)
        hypotheses = self.hypotheses
        if self.redraws:
            hypotheses = self._member(int(generator.integers(2**63)))
        return EpisodeStart(generator, truth, hypotheses)

    # -- What the learner sees and does ---------------------------------------------------------------

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """How many messages there have been, ``x_t``, ``Ytilde_{t-1}``, and the candidates on request."""
        dim = self.hypotheses.context_dim
        spaces: dict[str, gym.Space[Any]] = {
            "round": gym.spaces.Box(0, self.horizon, (1,), dtype=np.int64),
            "context": gym.spaces.Box(-np.inf, np.inf, (dim,), dtype=np.float64),
            "message": self.channel.message_space,
        }
        if self.observe_candidates:
            shape = (self.hypotheses.num_hypotheses, self.hypotheses.num_labels)
            spaces["candidates"] = gym.spaces.Box(0.0, 1.0, shape, dtype=np.float64)
        return gym.spaces.Dict(spaces)

    @property
    def action_space(self) -> Simplex:
        """Distributions over the labels."""
        return Simplex(self.hypotheses.num_labels)

    @property
    def shares_table(self) -> bool:
        """Whether all rounds of all episodes have the same candidates."""
        return self.hypotheses.constant and not self.redraws

    @property
    def footprint(self) -> int:
        """About how many numbers one round of one episode takes on a tape."""
        num_hypotheses, num_labels = self.hypotheses.num_hypotheses, self.hypotheses.num_labels
        drawn = self.nature.num_uniforms + self.hypotheses.context_dim + self.channel.num_uniforms
        return drawn + (num_hypotheses + num_labels if self.shares_table else num_hypotheses * num_labels)

    def rounds_at_a_time(self, episodes: int, cells: int) -> int:
        """How many rounds of so many episodes keep a tape's arrays below about ``cells`` numbers."""
        return max(1, min(self.horizon, cells // (episodes * self.footprint)))


def _known_epsilon(channel: str | Channel, epsilon: float | None) -> float:
    """The privacy level that a class may be made for."""
    if epsilon is None and isinstance(channel, Channel) and channel.epsilon < math.inf:
        return channel.epsilon
    return DEFAULT_PRIVACY["epsilon"] if epsilon is None else epsilon


@dataclass(frozen=True)
class EpisodeStart:
    """How one episode begins: its generator, its truth and its class."""

    generator: np.random.Generator
    truth: int
    hypotheses: HypothesisClass
