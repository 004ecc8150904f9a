"""The tape: what Nature and the users do, for any number of episodes and rounds at a time.

Nothing here depends on what the learner predicts. So the single environment, the vector environment and
``evaluate`` all play from this one implementation, and agree on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache

import numpy as np

from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.natures.base import NatureView
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import BoolArray, FloatArray, IntArray, Messages, at
from ldp_gym.numerics.divergences import negentropy
from ldp_gym.numerics.sampling import cumulative, inverse, open_uniforms
from ldp_gym.registry import is_builtin


@dataclass(frozen=True)
class Tape:
    """n rounds of B episodes.

    Attributes:
        contexts: ``x_t``, ``(B, n, d)``; none where nobody looks at them.
        candidates: ``f_j(x_t)``: ``(B, n, K, M)``; a round axis of 1 where they do not change within an
            episode, and the bare ``(K, M)`` table where all episodes share it.
        distributions: the truth's ``f(x_t)``, ``(B, n or 1, M)``. For the referee alone.
        negentropies: of these distributions, ``(B, n or 1)``; the KL needs it. For the referee alone.
        labels: ``Y_t``, ``(B, n)``. For the referee alone.
        messages: ``Ytilde_t``, ``(B, n, *message_shape)``.
        log_likelihoods: of each hypothesis, ``(B, n, K)``; none where nobody acts on the public posterior,
            which they make up.
    """

    contexts: FloatArray | None
    candidates: FloatArray
    distributions: FloatArray
    negentropies: FloatArray
    labels: IntArray
    messages: Messages
    log_likelihoods: FloatArray | None = None


CONSTANT_FIELDS = frozenset({"candidates", "distributions", "negentropies"})
"""The fields that do not change within an episode of a constant class."""


class Episodes:
    """B episodes under way: what Nature and the users need to go on.

    Args:
        scenario: the game that is played.
        starts: how each episode begins.
        show_contexts: whether someone looks at the contexts themselves. Where no one does, those of a
            constant class are not worked out: they carry nothing.
    """

    def __init__(
        self, scenario: Scenario, starts: Iterable[EpisodeStart], *, show_contexts: bool = True
    ) -> None:
        _keep_freed_memory()
        self.scenario = scenario
        self._needs_contexts = show_contexts or not scenario.hypotheses.constant
        self.starts = list(starts)
        batch = len(self.starts)
        self.truths = np.array([opening.truth for opening in self.starts], dtype=np.int64)
        self._hypotheses: HypothesisClass | Redrawn = (
            Redrawn([opening.hypotheses for opening in self.starts])
            if scenario.redraws
            else scenario.hypotheses
        )
        self._constant: RoundDistributions | None = None
        self._round = 0
        self._context = np.zeros((batch, scenario.hypotheses.context_dim))
        self._posterior = scenario.game.public_posterior((batch,))

    def keep(self, which: BoolArray) -> None:
        """Go on with some of the episodes alone."""
        kept = np.flatnonzero(which)
        self.starts = [self.starts[i] for i in kept]
        self.truths, self._context = self.truths[kept], self._context[kept]
        self._posterior.keep(kept)
        self._constant = None
        if self.scenario.redraws:
            self._hypotheses = Redrawn([opening.hypotheses for opening in self.starts])

    def play(self, rounds: int) -> Tape:
        """The next rounds of every episode."""
        scenario = self.scenario
        width = scenario.nature.num_uniforms + 1 + scenario.channel.num_uniforms
        uniforms = open_uniforms([opening.generator for opening in self.starts], (rounds, width))
        if not (scenario.channel.adaptive or (self._needs_contexts and scenario.nature.adaptive)):
            return self._play(uniforms, None)
        tapes = [self._play(uniforms[:, t : t + 1], self._posterior.weights) for t in range(rounds)]
        return _concatenated(tapes, constant=scenario.hypotheses.constant)

    def _play(self, uniforms: FloatArray, public: FloatArray | None) -> Tape:
        """The rounds whose uniforms ``(B, n, width)`` are given, under the public posterior ``(B, K)``."""
        nature, channel = self.scenario.nature, self.scenario.channel
        label = nature.num_uniforms  # a round's row: the context's uniforms, the label's one, the channel's
        contexts = self._contexts(uniforms[..., :label], public) if self._needs_contexts else None
        now = self._round_distributions(contexts)
        labels = inverse(now.cumulative, uniforms[..., label])
        shown = public[:, None] if public is not None and channel.adaptive else None
        messages = channel.encode(labels, now.candidates, uniforms[..., label + 1 :], shown)
        log_likelihoods = None
        if public is not None:
            log_likelihoods = channel.log_likelihood(messages, now.candidates, shown)
            self._posterior.advance(log_likelihoods[:, 0])
        return Tape(
            contexts, now.candidates, now.distributions, now.negentropies, labels, messages, log_likelihoods
        )

    def _round_distributions(self, contexts: FloatArray | None) -> RoundDistributions:
        """What the candidates and the truth say at these contexts; worked out once for a constant class."""
        if self._constant is not None:
            return self._constant
        candidates = self._hypotheses(self._context if contexts is None else contexts)
        if not is_builtin(type(self.scenario.hypotheses)):
            self._check(candidates, contexts)
        distributions = at(candidates, self.truths[:, None], slice(None))
        now = RoundDistributions(
            candidates, distributions, negentropy(distributions), cumulative(distributions)
        )
        if self.scenario.hypotheses.constant:
            self._constant = now
        return now

    def _check(self, candidates: FloatArray, contexts: FloatArray | None) -> None:
        """Somebody else's class is held to its word: what it gives are distributions."""
        hypotheses = self.scenario.hypotheses
        expected: tuple[int, ...] = (hypotheses.num_hypotheses, hypotheses.num_labels)
        if not hypotheses.constant:
            assert contexts is not None, "contexts are left out for constant classes alone"
            expected = (*contexts.shape[:-1], *expected)
        elif self.scenario.redraws:
            expected = (len(self.starts), 1, *expected)
        if candidates.shape != expected:
            raise ValueError(
                f"{hypotheses!r} must give candidates of shape {expected}, got {candidates.shape}"
            )
        try:
            validation.distributions(candidates)
        except ValueError as error:
            raise ValueError(f"{hypotheses!r} gives wrong candidates: {error}") from error

    def _contexts(self, uniforms: FloatArray, public: FloatArray | None) -> FloatArray:
        """Nature's move."""
        nature, shape = self.scenario.nature, uniforms.shape[:2]
        contexts = nature.contexts(
            NatureView(
                uniforms=uniforms,
                rounds=np.broadcast_to(np.arange(self._round, self._round + shape[1]), shape),
                previous=self._context,
                hypotheses=self._hypotheses,
                posterior=public if nature.adaptive else None,
                truths=self.truths if nature.leaks_truth else None,
            )
        )
        if not is_builtin(type(nature)):
            expected = (*shape, nature.context_dim)
            if contexts.shape != expected or not np.isfinite(contexts).all():
                raise ValueError(
                    f"{nature!r} must give finite contexts of shape {expected}, got {contexts!r}"
                )
        self._round += shape[1]
        self._context = contexts[:, -1]
        return contexts


@cache
def _keep_freed_memory() -> None:
    """Spare every block the page faults of its temporaries: a fifth of the time.

    glibc keeps freed memory for reuse up to twice the largest piece, of at most 32 MiB, ever freed. Once
    such a piece has been freed, never touched, memory goes round without the system.
    """
    np.empty(4_000_000)


@dataclass(frozen=True)
class RoundDistributions:
    """What labels come from: fields of :class:`Tape`, and the truth's distribution functions."""

    candidates: FloatArray
    distributions: FloatArray
    negentropies: FloatArray
    cumulative: FloatArray


class Redrawn:
    """The classes of B episodes that each drew their own, as one map from contexts to candidates."""

    def __init__(self, classes: list[HypothesisClass]) -> None:
        self.classes = classes

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Candidates ``(B, n, K, M)`` at contexts ``(B or 1, n, d)``; a round axis of 1 if constant."""
        contexts = np.broadcast_to(contexts, (len(self.classes), *contexts.shape[1:]))
        each = [f(x) for f, x in zip(self.classes, contexts, strict=True)]
        candidates = np.stack([table[None] for table in each] if self.classes[0].constant else each)
        candidates.flags.writeable = False  # shared with every learner
        return candidates


def _concatenated(tapes: list[Tape], *, constant: bool) -> Tape:
    """Tapes of one round each, in a row. What does not change from round to round stays as it is."""
    first = tapes[0]
    unchanged = CONSTANT_FIELDS if constant else frozenset()
    return Tape(
        **{
            field.name: getattr(first, field.name)
            if field.name in unchanged or getattr(first, field.name) is None
            else np.concatenate([getattr(tape, field.name) for tape in tapes], axis=1)
            for field in fields(Tape)
        }
    )
