"""A scenario: the public rules, and how Nature and the referee run them.

The single environment, the vector environment and ``evaluate`` are made from the same keyword arguments
through this one class.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.game import Game
from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass
from ldp_gym.hypotheses.sources import as_hypotheses
from ldp_gym.natures.base import NATURES, Nature
from ldp_gym.numerics import validation
from ldp_gym.numerics.sampling import integers
from ldp_gym.spaces import Simplex

DEFAULT_PRIVACY = {"epsilon": 1.0, "delta": 0.0}
"""What a named channel promises where nothing else is asked of it."""


def rule_value(rules: Mapping[str, Any], name: str) -> Any:
    """What ``gym.make``'s keyword arguments say of one of them: its value, or its default.

    Example:
        >>> rule_value({"horizon": 10}, "horizon"), rule_value({}, "horizon"), rule_value({}, "epsilon")
        (10, 1000, 1.0)
    """
    value = rules.get(name)
    return _defaults()[name] if value is None else value


@cache
def _defaults() -> dict[str, Any]:
    parameters = inspect.signature(Scenario).parameters
    return {name: parameter.default for name, parameter in parameters.items()} | DEFAULT_PRIVACY


def scenario_of(rules: Mapping[str, Any]) -> Scenario:
    """The scenario of ``gym.make``'s keyword arguments; an unknown one gets the nearest as advice."""
    known = list(inspect.signature(Scenario).parameters)
    for name in rules:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"LDPDist-v0 has no argument {name!r}{hint} It takes {', '.join(known)}")
    return Scenario(**rules)


class Scenario:
    """The keyword arguments of ``gym.make("LDPDist-v0", ...)``, checked and turned into parties.

    Args:
        hypotheses: the class F: a name, a ``(K, M)`` table (array or nested lists), a list of callables, a
            list of fitted classifiers, or a HypothesisClass.
        num_hypotheses: K; a named class has its own default, 8.
        num_labels: M; a named class has its own default, 16 for ``softmax-linear`` and ``dirichlet``.
        context_dim: d; a named class has its own default, 4 for ``softmax-linear`` and 1 for the others.
        class_seed: the seed of a random class.
        hypotheses_kwargs: further options of a named class.
        channel: how users privatize: a name, ``"module:Object"``, or a Channel.
        channel_kwargs: further options of a named channel.
        epsilon: a named channel's privacy level; 1 by default.
        delta: a named channel's delta; 0, as for all pure channels, by default.
        horizon: T.
        nature: who picks the contexts: a name or a Nature.
        nature_kwargs: further options of a named nature.
        truth: the index of the truth in ``0..K-1``, or "uniform" to draw it each episode.
        observe_candidates: whether the observations hold the candidates ``f_j(x_t)``.
        redraw_hypotheses: whether each episode draws a new class of the named family.
        reveal: whether info holds the truth and the labels. For debugging and analysis only.
        max_loss: where the reward caps the KL, so that it is always finite.
    """

    def __init__(
        self,
        hypotheses: object = "softmax-linear",
        num_hypotheses: int | None = None,
        num_labels: int | None = None,
        context_dim: int | None = None,
        class_seed: int = 0,
        hypotheses_kwargs: Mapping[str, Any] | None = None,
        channel: str | Channel = "laplace-single",
        channel_kwargs: Mapping[str, Any] | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        horizon: int = 1000,
        nature: str | Nature = "iid",
        nature_kwargs: Mapping[str, Any] | None = None,
        truth: int | str = "uniform",
        observe_candidates: bool = False,
        redraw_hypotheses: bool = False,
        reveal: bool = False,
        max_loss: float = 100.0,
    ) -> None:
        self.horizon = validation.whole("horizon (T)", horizon, least=2)
        if epsilon is not None and not validation.real("epsilon", epsilon) > 0.0:
            raise ValueError(f"epsilon must be positive, got {epsilon}")  # the channel has the rest to say
        self.max_loss = validation.positive("max_loss", max_loss)
        self.observe_candidates = validation.flag("observe_candidates", observe_candidates)
        self.reveal = validation.flag("reveal", reveal)
        self._class_source = hypotheses
        self._class_facts = {
            "num_hypotheses": num_hypotheses,
            "num_labels": num_labels,
            "context_dim": context_dim,
            "class_seed": validation.whole("class_seed", class_seed, least=0),
            "epsilon": _known_epsilon(channel, epsilon),
            "horizon": self.horizon,
        }
        self._class_options = validation.options("hypotheses_kwargs", hypotheses_kwargs)
        self.hypotheses = as_hypotheses(hypotheses, self._class_facts, self._class_options)
        self.redraws = validation.flag("redraw_hypotheses", redraw_hypotheses)
        if self.redraws:
            self._check_redrawable()
        promise = {"epsilon": epsilon, "delta": delta}
        self.channel = self._channel(channel, promise, validation.options("channel_kwargs", channel_kwargs))
        self.nature = self._nature(nature, validation.options("nature_kwargs", nature_kwargs))
        self.game = Game(None if self.redraws else self.hypotheses, self.channel, self.horizon)
        self.truth = truth if truth == "uniform" else self.valid_truth(truth)

    # -- Making the parties ---------------------------------------------------------------------------

    def _channel(
        self, channel: str | Channel, promise: Mapping[str, float | None], options: Mapping[str, Any]
    ) -> Channel:
        facts = {
            "num_hypotheses": self.hypotheses.num_hypotheses,
            "num_labels": self.hypotheses.num_labels,
            "horizon": self.horizon,
            **{name: value for name, value in promise.items() if value is not None},
        }
        if isinstance(channel, str):
            facts = {**DEFAULT_PRIVACY, **facts}
            made = CHANNELS.build(channel, facts, options)
        else:
            made = channel
        if not isinstance(made, Channel):
            raise TypeError(f"channel must be a name or a Channel (made, not its class), got {made!r}")
        if options and made is channel:
            raise TypeError(f"channel_kwargs {sorted(options)} go with a named channel, not with {made!r}")
        for fact, value in facts.items():
            has = getattr(made, fact)
            loud = fact == "epsilon" and has == math.inf  # identity takes any eps, keeps none, and says so
            if has != value and not loud:
                raise ValueError(f"{made!r} was made for {fact}={has}, not for the game's {value}")
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
        facts = {**self._class_facts, "class_seed": class_seed}
        return as_hypotheses(self._class_source, facts, self._class_options)

    # -- Beginning an episode -------------------------------------------------------------------------

    def valid_truth(self, truth: object) -> int:
        """``truth`` as the index of a hypothesis."""
        size = self.hypotheses.num_hypotheses
        if isinstance(truth, str):
            raise ValueError(
                f"truth must be an index in 0..{size - 1} (or 'uniform' when the environment is made), "
                f"got {truth!r}"
            )
        return validation.index("truth", truth, size)

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
        """``x_t``, ``Ytilde_{t-1}``, and the candidates on request."""
        dim = self.hypotheses.context_dim
        spaces: dict[str, gym.Space[Any]] = {
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
        size, labels = self.hypotheses.num_hypotheses, self.hypotheses.num_labels
        drawn = self.nature.num_uniforms + self.hypotheses.context_dim + self.channel.num_uniforms
        return drawn + (size + labels if self.shares_table else size * labels)

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
