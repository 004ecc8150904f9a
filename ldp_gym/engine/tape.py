"""The tape: contexts, labels and messages of any number of episodes and rounds at a time.

Nothing here depends on the learner's predictions. So the single environment, the vector environment and
``evaluate`` all play from this one implementation, and agree on the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core import game_arrays
from ldp_gym.core.arrays import BoolArray, FloatArray, IntArray, Messages
from ldp_gym.core.divergences import kl, negentropy
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.sampling import UniformStreams, cumulative, inverse
from ldp_gym.engine.posterior import send_adaptively
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.natures.base import NatureView
from ldp_gym.truths.base import TruthView

# glibc hands large freed blocks back to the kernel, and every next block pays for fresh pages, up to a third
# of the time. Once an array this large was freed, it keeps those of the same size or less (31 MiB).
np.empty(31 * 2**20, dtype=np.uint8)


@dataclass(frozen=True)
class Tape:
    """n rounds of B episodes.

    Candidates have a round axis of 1 where they do not change within an episode, and are the bare ``(K, M)``
    table where all episodes share it. Distributions, negentropies, members and labels are hidden from
    learners. Log-likelihoods are None if nothing acts on the public posterior.
    """

    contexts: FloatArray | None  # x_t, (B, n, d); None if nothing needs them
    candidates: FloatArray  # f_j(x_t), (B, n or 1, K, M) or (K, M)
    distributions: FloatArray  # the truth's, (B, n or 1, M)
    negentropies: FloatArray  # of these distributions, (B, n or 1), for the KL
    members: IntArray  # index of the true hypothesis, -1 for a truth outside the class, (B, n or 1)
    labels: IntArray  # Y_t, (B, n)
    messages: Messages  # Ytilde_t, (B, n, *message_shape)
    log_likelihoods: FloatArray | None = None  # (B, n, K)

    def uniform_losses(self) -> FloatArray:
        """The losses ``KL(p*_t, mean_j f_j(x_t))`` of the uniform mixture, ``(B, n)``."""
        mean = np.add.reduce(self.candidates, axis=-2) / self.candidates.shape[-2]
        return np.broadcast_to(kl(self.distributions, mean, self.negentropies), self.labels.shape)

    def read_by(self, channel: Channel, games: slice = slice(None)) -> FloatArray:
        """The log-likelihoods ``(B, n, K)`` of the channel's messages, in all games or some."""
        if self.log_likelihoods is not None:
            return self.log_likelihoods[games]
        candidates = self.candidates if self.candidates.ndim == 2 else self.candidates[games]
        return channel.log_likelihood(self.messages[games], candidates)


class Episodes:
    """B episodes under way, with the state of Nature and the users.

    With ``show_contexts=False``, contexts of a constant class, which nobody reads, are not computed.
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
        self._uniforms = UniformStreams(
            [start.generator for start in self.starts], scenario.num_uniforms
        )
        self._truth = np.stack([start.truth for start in self.starts])
        self._prepared: Any = None
        self._constant: tuple[dict[str, Any], FloatArray] | None = None
        self._round = 0
        self._context = np.zeros((len(self.starts), scenario.hypotheses.context_dim))
        self._posterior = scenario.game.public_posterior((len(self.starts),))

    def keep(self, which: BoolArray) -> None:
        """Go on with only some of the episodes."""
        kept = np.flatnonzero(which)
        self.starts = [self.starts[i] for i in kept]
        self._uniforms.keep(kept)
        self._truth, self._context = self._truth[kept], self._context[kept]
        self._posterior.keep(kept)
        self._constant = None
        if self.scenario.redraws:
            self._prepared = None

    @property
    def _hypotheses(self) -> HypothesisClass | ClassPerEpisode:
        """The class that all episodes share, or their own classes."""
        if self.scenario.redraws:
            return ClassPerEpisode([start.hypotheses for start in self.starts])
        return self.scenario.hypotheses

    def play(self, rounds: int) -> Tape:
        """Play the next rounds of every episode."""
        uniforms = self._uniforms.take(
            rounds, most=max(rounds, self.scenario.horizon - self._round)
        )
        if not self._nature_adapts:
            return self._play(uniforms)
        tapes = [self._play(uniforms[:, t : t + 1]) for t in range(rounds)]
        return _concatenate(tapes, self.scenario.constant_fields)

    def _play(self, uniforms: FloatArray) -> Tape:
        """Play the rounds of the given uniforms ``(B, n, num_uniforms)``."""
        rounds = np.broadcast_to(self._round + np.arange(uniforms.shape[1]), uniforms.shape[:2])
        # A round's row: the context's uniforms, the truth's, the label's one, the channel's.
        ends = np.cumsum([self.scenario.nature.num_uniforms, self.scenario.truth.num_uniforms, 1])
        of_nature, of_truth, of_label, of_channel = np.split(uniforms, ends, axis=-1)
        contexts = self._contexts(of_nature, of_truth, rounds) if self._needs_contexts else None
        now, behind = self._laws(of_truth, rounds, contexts)
        labels = inverse(behind, of_label[..., 0])
        self._round += uniforms.shape[1]
        messages, log_likelihoods = self._send(labels, now["candidates"], of_channel)
        self._check_messages(messages, labels.shape)
        return Tape(
            contexts=contexts,
            labels=labels,
            messages=messages,
            log_likelihoods=log_likelihoods,
            **now,
        )

    def _send(
        self, labels: IntArray, candidates: FloatArray, uniforms: FloatArray
    ) -> tuple[Messages, FloatArray | None]:
        """Send the users' messages; with their log-likelihoods if the public posterior is needed."""
        channel = self.scenario.channel
        if channel.adaptive:
            return send_adaptively(channel, self._posterior, labels, candidates, uniforms)
        messages = channel.encode(labels, candidates, uniforms)
        if not self._nature_adapts:
            return messages, None
        log_likelihoods = channel.log_likelihood(messages, candidates)
        self._posterior.advance(log_likelihoods[:, 0])
        return messages, log_likelihoods

    def _check_messages(self, messages: Any, shape: tuple[int, ...]) -> None:
        """Check a block's messages if the channel is the user's: points of its space, and no NaN."""
        channel = self.scenario.channel
        if not is_builtin(type(channel)):
            _check_array(channel, "messages", messages, (*shape, *channel.message_shape))
            if channel.check_messages(messages) is not messages:
                raise ValueError(
                    f"{channel!r} must give messages of integers, got {messages.dtype}"
                )

    def _laws(
        self, uniforms: FloatArray, rounds: IntArray, contexts: FloatArray | None
    ) -> tuple[dict[str, Any], FloatArray]:
        """Fields of :class:`Tape` from which labels are drawn, and the cumulative distribution functions."""
        if self._constant is not None:
            return self._constant
        candidates = self._hypotheses(self._context if contexts is None else contexts)
        self._check_candidates(candidates, rounds.shape)
        truth = self.scenario.truth
        view = TruthView(self._truth, uniforms, rounds, contexts, _with_rounds(candidates))
        distributions = truth.distributions(view)
        self._check_distributions(distributions, rounds.shape)
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

    def _check_candidates(self, candidates: FloatArray, shape: tuple[int, ...]) -> None:
        """Check a block's candidates; the rows of built-in classes only in the first round."""
        hypotheses = self.scenario.hypotheses
        expected: tuple[int, ...] = (hypotheses.num_hypotheses, hypotheses.num_labels)
        if not hypotheses.constant:
            expected = (*shape, *expected)
        elif self.scenario.redraws:
            expected = (len(self.starts), 1, *expected)
        _check_array(hypotheses, "candidates", candidates, expected)
        ours = is_builtin(type(hypotheses))
        if self._round == 0 or not ours:
            rows = candidates[:, 0] if ours and candidates.ndim > 2 else candidates
            _check_rows(hypotheses, "candidates", rows, lambda row: f"hypothesis {row[-1]}")

    def _check_distributions(self, distributions: Any, shape: tuple[int, ...]) -> None:
        """Check a block's distributions: the truth may be the user's."""
        truth, num_labels = self.scenario.truth, self.scenario.hypotheses.num_labels
        short = getattr(distributions, "shape", None) == (shape[0], 1, num_labels)
        expected = (shape[0], 1 if short else shape[1], num_labels)
        _check_array(truth, "distributions", distributions, expected)
        _check_rows(
            truth, "distributions", distributions, lambda row: f"round {self._round + row[-1]}"
        )
        if (
            "distributions" in self.scenario.constant_fields
            and (distributions != distributions[:, :1]).any()
        ):
            raise ValueError(
                f"{truth!r} says that it is constant, and its distributions change from round to round: set "
                f"constant = False"
            )

    def _contexts(self, uniforms: FloatArray, of_truth: FloatArray, rounds: IntArray) -> FloatArray:
        """Contexts that nature picks for a block of rounds."""
        nature, shape = self.scenario.nature, rounds.shape
        if nature.adaptive and self._prepared is None:
            scenario = self.scenario
            self._prepared = (
                scenario.prepare_nature(self._hypotheses)
                if scenario.redraws
                else scenario.prepared_nature
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
        _check_array(nature, "contexts", contexts, (*shape, nature.context_dim))
        if not np.isfinite(contexts).all():
            raise ValueError(f"{nature!r} must give finite contexts, got {contexts!r}")
        self._context = contexts[:, -1]
        return contexts


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


def _check_array(source: object, what: str, array: Any, shape: tuple[int, ...]) -> None:
    """Check an array of floats, or of messages."""
    kind, found = getattr(getattr(array, "dtype", None), "kind", ""), getattr(array, "shape", None)
    if found != shape or kind not in ("iuf" if what == "messages" else "f"):
        got = type(array).__name__ if found is None else f"{array.dtype} of shape {found}"
        raise ValueError(
            f"{source!r} must give {what} as an array of floats, of shape {shape}, got {got}"
        )


def _check_rows(
    source: object, what: str, rows: FloatArray, name_row: Callable[[list[int]], str]
) -> None:
    try:
        game_arrays.row_totals(
            rows, game_arrays.ROW_TOLERANCE, name_row, "probabilities sum to one"
        )
    except ValueError as error:
        raise ValueError(f"{source!r} gives wrong {what}: {error}") from error


def _with_rounds(candidates: FloatArray) -> FloatArray:
    """Candidates ``(B or 1, n or 1, K, M)``, also where all episodes share one table ``(K, M)``."""
    return candidates[None, None] if candidates.ndim == 2 else candidates


def _concatenate(tapes: list[Tape], unchanged: frozenset[str]) -> Tape:
    """Join tapes of one round each; fields that do not change within an episode stay as they are."""
    changed = {
        name: np.concatenate([getattr(tape, name) for tape in tapes], axis=1)
        for name, values in vars(tapes[0]).items()
        if name not in unchanged and values is not None
    }
    return replace(tapes[0], **changed)
