"""A scenario: the rules of a game turned into its class, truth, channel and nature.

The single environment, the vector environment and ``evaluate`` are made from the same keyword arguments
through this one class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.channels.base import CHANNELS, Channel
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.core.validation import describe
from ldp_gym.engine.game import Game
from ldp_gym.engine.losses import load_losses
from ldp_gym.engine.rules import DEFAULT_HORIZON, PARTY_RULES, Rules
from ldp_gym.engine.simplex import Simplex
from ldp_gym.hypotheses.base import HYPOTHESES, HypothesisClass, as_hypotheses
from ldp_gym.natures.base import IID, NATURES, Nature
from ldp_gym.theory.contraction import LARGEST_EPSILON, ClassFloor, class_floor
from ldp_gym.theory.information import MessageInformation
from ldp_gym.truths.base import Member, as_truth


class Scenario:
    """A game's class, truth, channel and nature, made from its :class:`~ldp_gym.engine.rules.Rules`."""

    def __init__(self, rules: Rules) -> None:
        """Make the parties, which check their own numbers, and check that they fit together."""
        self.max_loss = float(rules.max_loss)
        self.losses = load_losses(rules.losses)
        self.observe_candidates = bool(rules.observe_candidates)
        self.reveal = bool(rules.reveal)
        self.redraws = bool(rules.redraw_hypotheses)
        options = {party: dict(getattr(rules, f"{party}_kwargs") or {}) for party in PARTY_RULES}
        # The truth may have its own number of rounds, which is not known before it is made.
        first_horizon = rules.rounds or DEFAULT_HORIZON
        self._class_source = rules.hypotheses
        self._class_options = options["hypotheses"]
        self._class_parameters = {
            "num_hypotheses": rules.num_hypotheses,
            "num_labels": rules.num_labels,
            "context_dim": rules.context_dim,
            "class_seed": int(rules.class_seed),
            "epsilon": rules.promise["epsilon"],
            "horizon": first_horizon,
        }
        self.hypotheses = as_hypotheses(
            self._class_source, self._class_parameters, self._class_options
        )
        if self.redraws:
            self._check_redrawable()
        self.truth = as_truth(rules.truth, self.hypotheses, first_horizon, options["truth"])
        self.horizon = self._horizon(rules)
        self.channel = self._channel(rules, options["channel"])
        self.nature = self._nature(rules.nature, options["nature"])
        hypotheses: HypothesisClass | None = self.hypotheses
        if self.redraws:  # there is no class that all episodes share
            hypotheses = None
        self.game = Game(hypotheses, self.channel, self.horizon, int(rules.batch))

    def _channel(self, rules: Rules, options: Mapping[str, Any]) -> Channel:
        """Make the channel of a name, or check that the given channel was made for this game."""
        channel = rules.channel
        parameters = {
            "num_hypotheses": self.hypotheses.num_hypotheses,
            "num_labels": self.hypotheses.num_labels,
            "horizon": self.horizon,
            **rules.promise,
        }
        made = channel
        if isinstance(channel, str):
            made = CHANNELS.build(channel, parameters, options)
        if not isinstance(made, Channel):
            raise TypeError(
                f"channel must be a name or a Channel (made, not its class), got {describe(made)}"
            )
        if options and made is channel:
            raise TypeError(
                f"channel_kwargs {sorted(options)} go with a named channel, not with {made!r}"
            )
        for name, wanted in parameters.items():
            value = getattr(made, name)
            # The channel "identity" takes any eps, and states that it keeps none.
            states_no_privacy = name == "epsilon" and value == math.inf
            if value != wanted and not states_no_privacy:
                raise ValueError(
                    f"{made!r} was made for {name}={value}, not for the game's {wanted}"
                )
        return made

    def _horizon(self, rules: Rules) -> int:
        """Number of rounds T: that of the rules, else that of the truth's data, else the default."""
        rounds = self.truth.num_rounds
        if rules.horizon is None:
            return rounds or DEFAULT_HORIZON
        if rounds is not None and rules.horizon > rounds:
            raise ValueError(
                f"horizon={rules.horizon} is more than the {rounds} rounds of {self.truth!r}"
            )
        return int(rules.horizon)

    def _nature(self, nature: str | Nature | None, options: Mapping[str, Any]) -> Nature:
        """Make the nature, which gives the contexts, or check the given one.

        It is the truth's own if that brings contexts along, else that of the rules, else the class's default.
        """
        dim = self.hypotheses.context_dim
        if self.truth.nature is not None:
            if nature is not None or options:
                raise ValueError(
                    f"{self.truth!r} brings its contexts along: leave out nature={nature!r} and nature_kwargs"
                )
            return self.truth.nature
        if nature is None:
            nature = self.hypotheses.default_nature
        if nature is None:
            raise ValueError(
                f'{self.hypotheses!r} has no default nature: give contexts as data, truth="replay" with '
                f'truth_kwargs={{"contexts": X, "labels": y}}, or as a list, nature="sequence" (or "cycle") '
                f'with nature_kwargs={{"contexts": X}}; nature="iid" asks for standard normal ones'
            )
        if isinstance(nature, str):
            nature = NATURES.build(nature, {"context_dim": dim}, options)
        elif options:
            raise TypeError(
                f"nature_kwargs {sorted(options)} go with a named nature, not with {nature!r}"
            )
        if not isinstance(nature, Nature):
            raise TypeError(
                f"nature must be a name or a Nature (made, not its class), got {describe(nature)}"
            )
        if nature.context_dim != dim:
            raise ValueError(
                f"{nature!r} was made for context_dim={nature.context_dim}, not for {dim}"
            )
        nature.check_horizon(self.horizon)
        return nature

    def prepare_nature(self, hypotheses: Callable[[FloatArray], FloatArray]) -> Any:
        """Result of the nature's ``prepare`` for a class and this channel."""
        return self.nature.prepare(hypotheses, partial(MessageInformation, self.channel))

    @cached_property
    def prepared_nature(self) -> Any:
        """:meth:`prepare_nature` for the game's own class, computed once."""
        return self.prepare_nature(self.hypotheses)

    def _check_redrawable(self) -> None:
        """Raise a ValueError unless other seeds give other classes, and learners see the class they play."""
        source = self._class_source
        is_seeded = isinstance(source, str) and HYPOTHESES.takes(source, "class_seed")
        differs = False
        if is_seeded:
            context = np.ones(self.hypotheses.context_dim)
            first_table = self._class_of_seed(0)(context)
            second_table = self._class_of_seed(1)(context)
            differs = not np.array_equal(first_table, second_table)
        if not differs:
            raise ValueError(
                f"redraw_hypotheses needs a random class by its name, such as 'dirichlet', so that another "
                f"seed gives another class; got {source!r} with {self._class_options}"
            )
        if not self.observe_candidates:
            raise ValueError(
                "redraw_hypotheses needs observe_candidates=True: a learner must see the class it plays"
            )

    @cached_property
    def floor(self) -> ClassFloor | None:
        """Floor under the risk if the truth is a uniform member; None where no floor is proved."""
        is_private = self.channel.pure and self.channel.epsilon <= LARGEST_EPSILON
        has_silent_contexts = self.hypotheses.constant and not self.nature.leaks_truth
        has_independent_contexts = type(self.nature) is IID or has_silent_contexts
        has_member_truth = type(self.truth) is Member
        if self.redraws or not (is_private and has_independent_contexts and has_member_truth):
            return None
        return class_floor(self.hypotheses, self.horizon, self.channel.epsilon)

    def _class_of_seed(self, class_seed: int) -> HypothesisClass:
        """Make the class of hypotheses that another seed draws."""
        parameters = {**self._class_parameters, "class_seed": class_seed}
        return as_hypotheses(self._class_source, parameters, self._class_options)

    def valid_member(self, truth: object) -> int:
        """Check the index of a member that is to be the truth, instead of a random one."""
        if type(self.truth) is not Member:  # a subclass such as Contaminated is not a member
            raise ValueError(
                f"a member cannot be chosen where the rules have another truth, {self.truth!r}"
            )
        num_hypotheses = self.hypotheses.num_hypotheses
        if isinstance(truth, str):
            raise ValueError(
                f"truth must be an index in 0..{num_hypotheses - 1} here, got {describe(truth)}"
            )
        return validation.index("truth", truth, num_hypotheses)

    def start_episodes(
        self, generators: Sequence[np.random.Generator], member: int | None = None
    ) -> list[EpisodeStart]:
        """Draw the truths of episodes, and their classes if these are redrawn.

        Args:
            generators: a generator per episode.
            member: index of the hypothesis that is the truth of all episodes; None to draw them.
        """
        uniforms = open_uniforms(generators, (self.truth.num_episode_uniforms,))
        # Each episode's numbers side by side in memory: sums of them do not depend on the batch.
        truths = self.truth.draw_episode(np.ascontiguousarray(uniforms))
        if np.shape(truths)[:1] != (len(generators),):
            expected = f"({len(generators)}, ...)"
            raise ValueError(
                f"{self.truth!r} must draw {expected} episodes, got shape {np.shape(truths)}"
            )
        if member is not None:
            truths = np.full_like(truths, member)

        starts = []
        for generator, truth in zip(generators, truths, strict=True):
            hypotheses = self.hypotheses
            if self.redraws:
                class_seed = int(generator.integers(2**63))
                hypotheses = self._class_of_seed(class_seed)
            starts.append(EpisodeStart(generator, truth, hypotheses))
        return starts

    @property
    def observation_space(self) -> gym.spaces.Dict:
        """Space of observations before round t.

        These are t, the context ``x_t``, the last user's message, and on request the candidates: the
        hypotheses' distributions at ``x_t``.
        """
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
        """Space of actions: distributions over the labels."""
        return Simplex(self.hypotheses.num_labels)

    @property
    def shares_table(self) -> bool:
        """True if all rounds of all episodes have the same candidates."""
        return self.hypotheses.constant and not self.redraws

    @property
    def adaptive(self) -> bool:
        """True if the channel or the nature acts on the public posterior, so on earlier rounds."""
        return self.channel.adaptive or self.nature.adaptive

    @property
    def num_uniforms(self) -> int:
        """Number of uniform random numbers per round: for the context, truth, label and message."""
        for_label = 1
        for_truth = self.truth.num_uniforms
        return self.nature.num_uniforms + for_truth + for_label + self.channel.num_uniforms

    @property
    def constant_fields(self) -> frozenset[str]:
        """Fields of a tape that do not change within an episode."""
        if not self.hypotheses.constant:
            return frozenset()
        fields = {"candidates"}
        if self.truth.constant:
            fields |= {"distributions", "negentropies", "members"}
        return frozenset(fields)

    @property
    def footprint(self) -> int:
        """Approximate size, in numbers, of one round of one episode on a tape."""
        num_hypotheses = self.hypotheses.num_hypotheses
        num_labels = self.hypotheses.num_labels
        drawn = self.num_uniforms + self.hypotheses.context_dim
        if self.shares_table:
            return drawn + num_hypotheses + num_labels  # a weight or loss per hypothesis, and a law
        return drawn + num_hypotheses * num_labels  # and a table of candidates

    def rounds_at_a_time(self, episodes: int, cells: int) -> int:
        """Number of rounds that keep a tape of these episodes below about ``cells`` numbers; at least 1."""
        that_fit = cells // (episodes * self.footprint)
        return max(1, min(self.horizon, that_fit))


@dataclass(frozen=True)
class EpisodeStart:
    """Start of an episode: its generator of random numbers, the draw of its truth, and its class."""

    generator: np.random.Generator
    truth: npt.NDArray[Any]
    hypotheses: HypothesisClass


def episode_generator(root: np.random.Generator) -> np.random.Generator:
    """Spawn the next episode's generator from the environment's, whatever else was drawn from that."""
    return root.spawn(1)[0]


def first_generator(seed: int) -> np.random.Generator:
    """Generator of the episode that ``reset(seed=seed)`` begins."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))
