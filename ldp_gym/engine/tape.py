"""The tape: what Nature and the users do, for any number of episodes and rounds at a time.

Nothing here depends on what the learner predicts. So the single environment, the vector environment and
``evaluate`` all play from this one implementation, and agree on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.sampling import cumulative, inverse, open_uniforms
from ldp_gym.engine.lookahead import send_adaptively
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.natures.base import NatureView
from ldp_gym.truths.base import TruthView


@dataclass(frozen=True)
class Tape:
    """n rounds of B episodes.

    Attributes:
        contexts: ``x_t``, ``(B, n, d)``; None if nothing needs them.
        candidates: ``f_j(x_t)``: ``(B, n, K, M)``; a round axis of 1 where they do not change within an
            episode, and the bare ``(K, M)`` table where all episodes share it.
        distributions: the truth's, ``(B, n or 1, M)``. For the referee alone.
        negentropies: of these distributions, ``(B, n or 1)``; the KL needs it. For the referee alone.
        members: which hypothesis the truth is, -1 where it is none, ``(B, n or 1)``. For the referee alone.
        labels: ``Y_t``, ``(B, n)``. For the referee alone.
        messages: ``Ytilde_t``, ``(B, n, *message_shape)``.
        log_likelihoods: of each hypothesis, ``(B, n, K)``; None if nothing acts on the public posterior,
            which they make up.
    """

    contexts: FloatArray | None
    candidates: FloatArray
    distributions: FloatArray
    negentropies: FloatArray
    members: IntArray
    labels: IntArray
    messages: Messages
    log_likelihoods: FloatArray | None = None


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
        self._needs_contexts = (
            show_contexts or scenario.truth.needs_contexts or not scenario.hypotheses.constant
        )
        self.starts = list(starts)
        self._truth = np.stack([start.truth for start in self.starts])
        self._prepared: Any = None
        self._constant: tuple[dict[str, Any], FloatArray] | None = None
        self._round = 0
        self._context = np.zeros((len(self.starts), scenario.hypotheses.context_dim))
        self._posterior = scenario.game.public_posterior((len(self.starts),))

    def keep(self, which: BoolArray) -> None:
        """Go on with some of the episodes alone."""
        kept = np.flatnonzero(which)
        self.starts = [self.starts[i] for i in kept]
        self._truth, self._context = self._truth[kept], self._context[kept]
        self._posterior.keep(kept)
        self._constant = None
        if self.scenario.redraws:
            self._prepared = None

    @property
    def _hypotheses(self) -> HypothesisClass | ClassPerEpisode:
        """The class that all episodes share, or those that they have drawn."""
        if self.scenario.redraws:
            return ClassPerEpisode([start.hypotheses for start in self.starts])
        return self.scenario.hypotheses

    def play(self, rounds: int) -> Tape:
        """The next rounds of every episode."""
        scenario = self.scenario
        generators = [start.generator for start in self.starts]
        uniforms = open_uniforms(generators, (rounds, scenario.num_uniforms))
        if not self._nature_adapts:
            return self._play(uniforms)
        tapes = [self._play(uniforms[:, t : t + 1]) for t in range(rounds)]
        return _concatenate(tapes, scenario.constant_fields)

    @property
    def _nature_adapts(self) -> bool:
        """Whether a context depends on the messages before it."""
        return self._needs_contexts and self.scenario.nature.adaptive

    def _play(self, uniforms: FloatArray) -> Tape:
        """The rounds whose uniforms ``(B, n, num_uniforms)`` are given."""
        rounds = np.broadcast_to(self._round + np.arange(uniforms.shape[1]), uniforms.shape[:2])
        # A round's row: the context's uniforms, the truth's, the label's one, the channel's.
        ends = np.cumsum([self.scenario.nature.num_uniforms, self.scenario.truth.num_uniforms, 1])
        of_nature, of_truth, of_label, of_channel = np.split(uniforms, ends, axis=-1)
        contexts = self._contexts(of_nature, of_truth, rounds) if self._needs_contexts else None
        now, behind = self._laws(of_truth, rounds, contexts)
        labels = inverse(behind, of_label[..., 0])
        self._round += uniforms.shape[1]
        messages, log_likelihoods = self._send(labels, now["candidates"], of_channel)
        return Tape(
            contexts=contexts, labels=labels, messages=messages, log_likelihoods=log_likelihoods, **now
        )

    def _send(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[Messages, FloatArray | None]:
        """The users' messages, and their log-likelihoods if someone acts on the public posterior."""
        channel = self.scenario.channel
        if channel.adaptive:
            return send_adaptively(channel, self._posterior, labels, candidates, uniforms)
        if not self._nature_adapts:
            return channel.encode(labels, candidates, uniforms), None
        messages, log_likelihoods = channel.send(labels, candidates, uniforms)
        self._posterior.advance(log_likelihoods[:, 0])
        return messages, log_likelihoods

    def _laws(
        self, uniforms: FloatArray, rounds: IntArray, contexts: FloatArray | None
    ) -> tuple[dict[str, Any], FloatArray]:
        """What labels come from: fields of :class:`Tape`, and the truth's distribution functions.

        They are worked out once where nothing changes.
        """
        if self._constant is not None:
            return self._constant
        candidates = self._hypotheses(self._context if contexts is None else contexts)
        if not is_builtin(type(self.scenario.hypotheses)):
            self._check_candidates(_as_array(candidates, self.scenario.hypotheses), contexts)
        truth = self.scenario.truth
        view = TruthView(self._truth, uniforms, rounds, contexts, _with_rounds(candidates))
        distributions = truth.distributions(view)
        if not is_builtin(type(truth)):
            distributions = self._check_truth(_as_array(distributions, truth), rounds.shape)
        now = {
            "candidates": candidates,
            "distributions": distributions,
            "negentropies": negentropy(distributions),
            "members": truth.members(view),
        }
        laws = now, cumulative(distributions)
        if "distributions" in self.scenario.constant_fields:
            self._constant = laws
        return laws

    def _check_candidates(self, candidates: FloatArray, contexts: FloatArray | None) -> None:
        """Check that a third-party class gives distributions, in the right shape."""
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
            game_arrays.distributions(candidates)
        except ValueError as error:
            raise ValueError(f"{hypotheses!r} gives wrong candidates: {error}") from error

    def _check_truth(self, distributions: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The distributions of a third-party truth, checked, and whether they stay the same if it says so."""
        truth, num_labels = self.scenario.truth, self.scenario.hypotheses.num_labels
        expected = (*shape, num_labels), (shape[0], 1, num_labels)
        if distributions.shape not in expected:
            raise ValueError(
                f"{truth!r} must give distributions of shape {expected[0]}, got {distributions.shape}"
            )
        if "distributions" in self.scenario.constant_fields and (distributions != distributions[:, :1]).any():
            raise ValueError(
                f"{truth!r} says that it is constant, and its distributions change from round to round: set "
                f"constant = False"
            )
        return game_arrays.distributions(distributions, f"{truth!r} in round")

    def _contexts(self, uniforms: FloatArray, of_truth: FloatArray, rounds: IntArray) -> FloatArray:
        """Nature's move."""
        nature, shape = self.scenario.nature, rounds.shape
        if nature.adaptive and self._prepared is None:
            scenario = self.scenario
            self._prepared = (
                scenario.prepare_nature(self._hypotheses) if scenario.redraws else scenario.prepared_nature
            )

        def truth_at(contexts: FloatArray, candidates: FloatArray) -> FloatArray:
            """The truth of this round at other contexts, side by side on the axis of the rounds."""
            pool = (shape[0], contexts.shape[1])
            return self.scenario.truth.distributions(
                TruthView(
                    self._truth,
                    np.broadcast_to(of_truth, (*pool, of_truth.shape[-1])),
                    np.broadcast_to(rounds, pool),
                    np.broadcast_to(contexts, (*pool, contexts.shape[-1])),
                    _with_rounds(candidates),
                )
            )

        contexts = nature.contexts(
            NatureView(
                uniforms=uniforms,
                rounds=rounds,
                previous=self._context,
                hypotheses=self._hypotheses,
                posterior=self._posterior.weights if nature.adaptive else None,
                rounds_left=self.scenario.horizon - self._round if nature.adaptive else None,
                prepared=self._prepared,
                truth=truth_at if nature.leaks_truth else None,
                episode=self._truth if nature is self.scenario.truth.nature else None,
            )
        )
        if not is_builtin(type(nature)):
            contexts, expected = _as_array(contexts, nature), (*shape, nature.context_dim)
            if contexts.shape != expected or not np.isfinite(contexts).all():
                raise ValueError(
                    f"{nature!r} must give finite contexts of shape {expected}, got {contexts!r}"
                )
        self._context = contexts[:, -1]
        return contexts


@cache
def _keep_freed_memory() -> None:
    """Spare every block the page faults of its temporaries, a fifth of its time.

    glibc keeps freed memory for reuse up to twice the largest piece, of at most 32 MiB, ever freed. Once
    such a piece has been freed, never touched, memory goes round without the system.
    """
    np.empty(4_000_000)


class ClassPerEpisode:
    """The redrawn classes of B episodes, as one map from contexts to candidates."""

    def __init__(self, classes: list[HypothesisClass]) -> None:
        self.classes = classes

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Candidates ``(B, n, K, M)`` at contexts ``(B or 1, n, d)``; a round axis of 1 if constant."""
        contexts = np.broadcast_to(contexts, (len(self.classes), *contexts.shape[1:]))
        each = [f(x) for f, x in zip(self.classes, contexts, strict=True)]
        candidates = np.stack([table[None] for table in each] if self.classes[0].constant else each)
        candidates.flags.writeable = False  # shared with every learner
        return candidates


def _as_array(values: object, source: object) -> FloatArray:
    """What a third party gives, which must be an array."""
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{source!r} must give an array, got an object of type {type(values).__name__}")
    return values


def _with_rounds(candidates: FloatArray) -> FloatArray:
    """Candidates ``(B or 1, n or 1, K, M)``, also where all episodes share one table ``(K, M)``."""
    return candidates[None, None] if candidates.ndim == 2 else candidates


def _concatenate(tapes: list[Tape], unchanged: frozenset[str]) -> Tape:
    """Tapes of one round each, in a row. What does not change from round to round stays as it is."""
    changed = {
        name: np.concatenate([getattr(tape, name) for tape in tapes], axis=1)
        for name, values in vars(tapes[0]).items()
        if name not in unchanged and values is not None
    }
    return replace(tapes[0], **changed)
