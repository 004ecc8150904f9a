"""The tape: contexts, labels and messages of any number of episodes and rounds at a time.

Nothing here depends on the learner's predictions. So the single environment, the vector environment and
``evaluate`` all play from this one implementation, and agree on the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages, read_only
from ldp_gym.core.divergences import kl, negentropy
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.sampling import UniformStreams, cumulative, inverse
from ldp_gym.engine.posterior import encode, send_adaptively
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.natures.base import NatureView
from ldp_gym.truths.base import TruthView

View = TypeVar("View", NatureView, TruthView)


@dataclass(frozen=True)
class OpenRounds:
    """n rounds of B episodes up to the user's answer.

    Candidates have a round axis of 1 where they do not change within an episode, and are the bare ``(K, M)``
    table where all episodes share it. Distributions, negentropies, members, labels and coins are hidden from
    learners.
    """

    contexts: FloatArray | None  # x_t, (B, n, d); None if nothing needs them
    candidates: FloatArray  # f_j(x_t), (B, n or 1, K, M) or (K, M)
    distributions: FloatArray  # the truth's, (B, n or 1, M)
    negentropies: FloatArray  # of these distributions, (B, n or 1), for the KL
    members: IntArray  # index of the true hypothesis, -1 for a truth outside the class, (B, n or 1)
    labels: IntArray  # Y_t, (B, n)
    coins: FloatArray  # uniforms of the channel, (B, n, num_uniforms)


@dataclass(frozen=True)
class Tape:
    """n rounds of B episodes: the fields of :class:`OpenRounds` but the coins, and the messages.

    Log-likelihoods are None if nothing acts on the public posterior.
    """

    contexts: FloatArray | None
    candidates: FloatArray
    distributions: FloatArray
    negentropies: FloatArray
    members: IntArray
    labels: IntArray
    messages: Messages  # Ytilde_t, (B, n, *message_shape)
    log_likelihoods: FloatArray | None = None  # (B, n, K)

    @classmethod
    def of(cls, rounds: OpenRounds, messages: Messages, log_likelihoods: FloatArray | None) -> Tape:
        """Rounds with the users' messages."""
        return cls(
            contexts=rounds.contexts,
            candidates=rounds.candidates,
            distributions=rounds.distributions,
            negentropies=rounds.negentropies,
            members=rounds.members,
            labels=rounds.labels,
            messages=messages,
            log_likelihoods=log_likelihoods,
        )

    def uniform_losses(self) -> FloatArray:
        """The losses ``KL(p*_t, mean_j f_j(x_t))`` of the uniform mixture, ``(B, n)``."""
        mean = np.add.reduce(self.candidates, axis=-2) / self.candidates.shape[-2]
        losses = kl(self.distributions, mean, self.negentropies)
        return np.broadcast_to(losses, self.labels.shape)

    def read_by(self, channel: Channel, games: slice = slice(None)) -> FloatArray:
        """The log-likelihoods ``(B, n, K)`` of the channel's messages, in all games or some."""
        if self.log_likelihoods is not None:
            return self.log_likelihoods[games]
        if self.candidates.ndim == 2:
            return channel.log_likelihood(self.messages[games], self.candidates)
        return channel.log_likelihood(self.messages[games], self.candidates[games])


class ChosenContexts(NamedTuple):
    """Contexts of a block of rounds that Nature picks from outside."""

    contexts: FloatArray  # (B, n, d)
    candidates: FloatArray | None = None  # (B, n, K, M); None if they are to be worked out


class RoundUniforms(NamedTuple):
    """The uniforms of a block of rounds by their use, each ``(B, n, number)``."""

    nature: FloatArray
    truth: FloatArray
    label: FloatArray
    channel: FloatArray


class Laws(NamedTuple):
    """Laws of the labels of a block of rounds; the axes are those of :class:`OpenRounds`."""

    candidates: FloatArray
    distributions: FloatArray
    negentropies: FloatArray
    members: IntArray
    cumulative: FloatArray  # distribution functions of the labels, (B, n or 1, M)


class Episodes:
    """B episodes under way, with the state of Nature and the users.

    Args:
        scenario: the game.
        starts: the start of each episode.
        show_contexts: False if nobody reads contexts: those of a constant class are then not computed.
    """

    def __init__(
        self, scenario: Scenario, starts: Iterable[EpisodeStart], *, show_contexts: bool = True
    ) -> None:
        self.scenario = scenario
        self._needs_contexts = (
            show_contexts or scenario.truth.needs_contexts or not scenario.hypotheses.constant
        )
        self._nature_adapts = self._needs_contexts and scenario.nature.adaptive
        self.starts = list(starts)
        generators = [start.generator for start in self.starts]
        self._uniforms = UniformStreams(generators, scenario.num_uniforms)
        of_truth = scenario.nature.num_uniforms
        of_label = of_truth + scenario.truth.num_uniforms
        of_channel = of_label + 1
        # Columns of a round's uniforms, in the order of RoundUniforms.
        self._uses = (
            slice(0, of_truth),
            slice(of_truth, of_label),
            slice(of_label, of_channel),
            slice(of_channel, None),
        )
        self._truth = np.stack([start.truth for start in self.starts])
        self._prepared: Any = None
        self._constant_laws: Laws | None = None
        self._round = 0
        self._context = np.zeros((len(self.starts), scenario.hypotheses.context_dim))
        self._posterior = scenario.game.public_posterior((len(self.starts),))

    def keep(self, which: BoolArray) -> None:
        """Go on with only some of the episodes."""
        kept = np.flatnonzero(which)
        self.starts = [self.starts[i] for i in kept]
        self._uniforms.keep(kept)
        self._truth = self._truth[kept]
        self._context = self._context[kept]
        self._posterior.keep(kept)
        self._constant_laws = None
        if self.scenario.redraws:
            self._prepared = None

    @property
    def _hypotheses(self) -> HypothesisClass | ClassPerEpisode:
        """The class that all episodes share, or their own classes."""
        if self.scenario.redraws:
            return ClassPerEpisode([start.hypotheses for start in self.starts])
        return self.scenario.hypotheses

    def play(self, rounds: int, chosen: ChosenContexts | None = None) -> Tape:
        """Play the next rounds of every episode.

        Args:
            rounds: their number.
            chosen: the contexts, if Nature's seat is played from outside.
        """
        uniforms = self._take_uniforms(rounds)
        if chosen is not None or not self._nature_adapts:
            return self._play(uniforms, chosen)
        tapes = [self._play(uniforms[:, t : t + 1], None) for t in range(rounds)]
        return _concatenate(tapes, self.scenario.constant_fields)

    def open(self, rounds: int, chosen: ChosenContexts | None = None) -> OpenRounds:
        """Play the next rounds up to the users' answers, for a designer's seat played from outside.

        If nature is adaptive, ``rounds`` is 1, and :meth:`hear` tells her each answer.
        """
        return self._open(self._take_uniforms(rounds), chosen)

    def hear(self, log_likelihoods: FloatArray) -> None:
        """Advance what an adaptive nature knows by answers of log-likelihoods ``(B, K)``."""
        if self._nature_adapts:
            self._posterior.advance(log_likelihoods)

    def _take_uniforms(self, rounds: int) -> FloatArray:
        left = self.scenario.horizon - self._round
        return self._uniforms.take(rounds, most=max(rounds, left))

    def _play(self, uniforms: FloatArray, chosen: ChosenContexts | None) -> Tape:
        """Play the rounds of the given uniforms ``(B, n, num_uniforms)``."""
        rounds = self._open(uniforms, chosen)
        messages, log_likelihoods = self._send(rounds)
        self._check_messages(messages, rounds.labels.shape)
        return Tape.of(rounds, messages, log_likelihoods)

    def _open(self, uniforms: FloatArray, chosen: ChosenContexts | None) -> OpenRounds:
        """Play rounds up to the answers, with contexts that were chosen outside or by the nature."""
        num_rounds = uniforms.shape[1]
        rounds = np.empty(uniforms.shape[:2], dtype=np.int64)
        rounds[...] = np.arange(self._round, self._round + num_rounds)
        drawn = RoundUniforms(*[uniforms[..., columns] for columns in self._uses])

        contexts = None
        candidates = None
        if chosen is not None:
            contexts, candidates = chosen
            self._context = contexts[:, -1]
        elif self._needs_contexts:
            contexts = self._contexts(drawn, rounds)

        laws = self._laws(drawn.truth, rounds, contexts, candidates)
        labels = inverse(laws.cumulative, drawn.label[..., 0])
        self._round += num_rounds
        return OpenRounds(
            contexts=contexts,
            candidates=laws.candidates,
            distributions=laws.distributions,
            negentropies=laws.negentropies,
            members=laws.members,
            labels=labels,
            coins=drawn.channel,
        )

    def _send(self, rounds: OpenRounds) -> tuple[Messages, FloatArray | None]:
        """Send the users' messages; with their log-likelihoods if the public posterior is needed."""
        channel = self.scenario.channel
        if channel.adaptive:
            return send_adaptively(
                channel, self._posterior, rounds.labels, rounds.candidates, rounds.coins
            )
        messages = encode(channel, rounds.labels, rounds.candidates, rounds.coins)
        if not self._nature_adapts:
            return messages, None
        log_likelihoods = channel.log_likelihood(messages, rounds.candidates)
        self._posterior.advance(log_likelihoods[:, 0])
        return messages, log_likelihoods

    def _check_messages(self, messages: Any, shape: tuple[int, ...]) -> None:
        """Check a block's messages if the channel is the user's: points of its space, and no NaN."""
        channel = self.scenario.channel
        if is_builtin(type(channel)):
            return
        expected = (*shape, *channel.message_shape)
        if messages.shape != expected or messages.dtype.kind not in "iuf":
            raise ValueError(
                f"{channel!r} must give messages as an array of numbers, of shape {expected}, got "
                f"{messages.dtype} of shape {messages.shape}"
            )
        if channel.check_messages(messages) is not messages:
            raise ValueError(f"{channel!r} must give messages of integers, got {messages.dtype}")

    def _laws(
        self,
        uniforms: FloatArray,
        rounds: IntArray,
        contexts: FloatArray | None,
        candidates: FloatArray | None,
    ) -> Laws:
        """Laws of the labels of a block; kept if they are the same in all rounds."""
        if self._constant_laws is not None:
            return self._constant_laws

        if candidates is None:
            given = self._hypotheses(self._context if contexts is None else contexts)
            candidates = self._checked_candidates(given, rounds.shape)

        truth = self.scenario.truth
        view = TruthView(self._truth, uniforms, rounds, contexts, _with_rounds(candidates))
        if not is_builtin(type(truth)):
            view = _read_only_fields(view)
        distributions = self._checked_distributions(truth.distributions(view), rounds.shape)

        laws = Laws(
            candidates=candidates,
            distributions=distributions,
            negentropies=negentropy(distributions),
            members=truth.members(view),
            cumulative=cumulative(distributions),
        )
        if "distributions" in self.scenario.constant_fields:
            self._constant_laws = laws
        return laws

    def _checked_candidates(self, given: Any, shape: tuple[int, ...]) -> FloatArray:
        """Check a block's candidates; the rows of built-in classes only in the first round."""
        hypotheses = self.scenario.hypotheses
        expected: tuple[int, ...] = (hypotheses.num_hypotheses, hypotheses.num_labels)
        if not hypotheses.constant:
            expected = (*shape, *expected)
        elif self.scenario.redraws:
            expected = (len(self.starts), 1, *expected)
        candidates = game_arrays.returned_floats(hypotheses, "candidates", given, expected)

        ours = is_builtin(type(hypotheses))
        if ours and self._round > 0:
            return candidates
        rows = candidates[:, 0] if ours and candidates.ndim > 2 else candidates
        _check_rows(hypotheses, "candidates", rows, lambda row: f"hypothesis {row[-1]}")
        return candidates

    def _checked_distributions(self, given: Any, shape: tuple[int, ...]) -> FloatArray:
        """Check a block's distributions: the truth may be the user's."""
        truth = self.scenario.truth
        num_games, rounds = shape
        num_labels = self.scenario.hypotheses.num_labels
        if np.shape(given) == (num_games, 1, num_labels):
            rounds = 1
        expected = (num_games, rounds, num_labels)
        distributions = game_arrays.returned_floats(truth, "distributions", given, expected)
        _check_rows(
            truth, "distributions", distributions, lambda row: f"round {self._round + row[-1]}"
        )
        constant = "distributions" in self.scenario.constant_fields
        if constant and (distributions != distributions[:, :1]).any():
            raise ValueError(
                f"{truth!r} says that it is constant, and its distributions change from round to "
                f"round: set constant = False"
            )
        return distributions

    def _contexts(self, drawn: RoundUniforms, rounds: IntArray) -> FloatArray:
        """Contexts that nature picks for a block of rounds."""
        nature = self.scenario.nature

        def truth_at(contexts: FloatArray, candidates: FloatArray) -> FloatArray:
            """The truth of this round at other contexts, side by side on the axis of the rounds."""
            shape = (len(rounds), contexts.shape[1])
            view = TruthView(
                self._truth,
                np.broadcast_to(drawn.truth, (*shape, drawn.truth.shape[-1])),
                np.broadcast_to(rounds, shape),
                np.broadcast_to(contexts, (*shape, contexts.shape[-1])),
                _with_rounds(candidates),
            )
            return self.scenario.truth.distributions(view)

        view = NatureView(
            uniforms=drawn.nature,
            rounds=rounds,
            previous=self._context,
            hypotheses=self._hypotheses,
            posterior=self._posterior.weights if nature.adaptive else None,
            rounds_left=self.scenario.horizon - self._round if nature.adaptive else None,
            prepared=self._prepared_nature() if nature.adaptive else None,
            truth=truth_at if nature.leaks_truth else None,
            episode=self._truth if nature is self.scenario.truth.nature else None,
        )
        if not is_builtin(type(nature)):
            view = _read_only_fields(view)
        contexts = game_arrays.returned_floats(
            nature, "contexts", nature.contexts(view), (*rounds.shape, nature.context_dim)
        )
        if not np.isfinite(contexts).all():
            raise ValueError(f"{nature!r} must give finite contexts, got {contexts!r}")
        self._context = contexts[:, -1]
        return contexts

    def _prepared_nature(self) -> Any:
        """Preparation of an adaptive nature for the class, or for the own classes of the episodes."""
        if self._prepared is None:
            if self.scenario.redraws:
                self._prepared = self.scenario.prepare_nature(self._hypotheses)
            else:
                self._prepared = self.scenario.prepared_nature
        return self._prepared


class ClassPerEpisode:
    """The redrawn classes of B episodes, as one map from contexts to candidates."""

    def __init__(self, classes: list[HypothesisClass]) -> None:
        self.classes = classes

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Candidates ``(B, n, K, M)`` at contexts ``(B or 1, n, d)``; a round axis of 1 if constant."""
        contexts = np.broadcast_to(contexts, (len(self.classes), *contexts.shape[1:]))
        tables = [f(x) for f, x in zip(self.classes, contexts, strict=True)]
        if self.classes[0].constant:
            candidates = np.stack(tables)[:, None]
        else:
            candidates = np.stack(tables)
        candidates.flags.writeable = False  # shared with every learner
        return candidates


def _read_only_fields(view: View) -> View:
    """Return a view for a user's part, which may not write into the arrays that it is shown."""
    values: dict[str, Any] = {field.name: getattr(view, field.name) for field in fields(view)}
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            values[name] = read_only(value)
    return type(view)(**values)


def _check_rows(
    source: object, what: str, rows: FloatArray, name_row: Callable[[list[int]], str]
) -> None:
    """Check that rows of probabilities sum to one."""
    advice = "probabilities sum to one"
    try:
        game_arrays.row_totals(rows, game_arrays.ROW_TOLERANCE, name_row, advice)
    except ValueError as error:
        raise ValueError(f"{source!r} gives wrong {what}: {error}") from error


def _with_rounds(candidates: FloatArray) -> FloatArray:
    """Candidates ``(B or 1, n or 1, K, M)``, also where all episodes share one table ``(K, M)``."""
    return candidates[None, None] if candidates.ndim == 2 else candidates


def _concatenate(tapes: list[Tape], unchanged: frozenset[str]) -> Tape:
    """Join tapes of one round each; fields that do not change within an episode stay as they are."""
    joined: dict[str, Any] = {}
    for field in fields(Tape):
        first = getattr(tapes[0], field.name)
        if field.name in unchanged or first is None:
            joined[field.name] = first
        else:
            parts = [getattr(tape, field.name) for tape in tapes]
            joined[field.name] = np.concatenate(parts, axis=1)
    return Tape(**joined)
