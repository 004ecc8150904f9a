"""The tape: what Nature and the users do, for any number of episodes and rounds at a time.

Nothing here depends on what the learner predicts. So the single environment, the vector environment and
``evaluate`` all play from this one implementation, and agree on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ldp_gym import posterior
from ldp_gym.arrays import FloatArray, IntArray, Messages, at
from ldp_gym.hypotheses import HypothesisClass
from ldp_gym.nature import Stretch
from ldp_gym.sampling import categorical, open_uniforms
from ldp_gym.scenario import Opening, Scenario


@dataclass(frozen=True)
class Tape:
    """n rounds of B episodes.

    Attributes:
        contexts: ``x_t``, ``(B, n, d)``.
        candidates: ``f_j(x_t)``: ``(B, n, K, M)``; a round axis of 1 where they do not change within an
            episode, and the bare ``(K, M)`` table where all episodes share it.
        distributions: the truth's ``f(x_t)``, ``(B, n or 1, M)``. For the referee alone.
        labels: ``Y_t``, ``(B, n)``. For the referee alone.
        messages: ``Ytilde_t``, ``(B, n, *message_shape)``.
    """

    contexts: FloatArray
    candidates: FloatArray
    distributions: FloatArray
    labels: IntArray
    messages: Messages


class Episodes:
    """B episodes under way: what Nature and the users need to go on.

    Args:
        scenario: the game that is played.
        openings: how each episode begins.
    """

    def __init__(self, scenario: Scenario, openings: Iterable[Opening]) -> None:
        self.scenario = scenario
        self.openings = list(openings)
        batch = len(self.openings)
        self.truths = np.array([opening.truth for opening in self.openings], dtype=np.int64)
        self._hypotheses: HypothesisClass | Redrawn = (
            Redrawn([opening.hypotheses for opening in self.openings])
            if scenario.redraws
            else scenario.hypotheses
        )
        self._round = 0
        self._context = np.zeros((batch, scenario.hypotheses.context_dim))
        self._log_posterior = posterior.prior((batch,), scenario.hypotheses.num_hypotheses)

    def play(self, rounds: int) -> Tape:
        """The next rounds of every episode."""
        scenario = self.scenario
        width = scenario.nature.num_uniforms + 1 + scenario.channel.num_uniforms
        uniforms = np.stack(
            [open_uniforms(opening.generator, (rounds, width)) for opening in self.openings]
        )
        if not scenario.one_round_at_a_time:
            return self._play(uniforms, None)
        tapes = []
        for t in range(rounds):
            tape = self._play(uniforms[:, t : t + 1], posterior.weights(self._log_posterior))
            self._learn(tape)
            tapes.append(tape)
        return _joined(tapes)

    def _play(self, uniforms: FloatArray, public: FloatArray | None) -> Tape:
        """The rounds whose uniforms ``(B, n, width)`` are given, under the public posterior ``(B, K)``."""
        nature, channel = self.scenario.nature, self.scenario.channel
        for_nature, for_label, for_channel = np.split(
            uniforms, [nature.num_uniforms, nature.num_uniforms + 1], axis=-1
        )
        rounds = uniforms.shape[1]
        contexts = nature.contexts(
            Stretch(
                uniforms=for_nature,
                rounds=np.broadcast_to(np.arange(self._round, self._round + rounds), uniforms.shape[:2]),
                previous=self._context,
                hypotheses=self._hypotheses,
                posterior=public if nature.adaptive else None,
                truths=self.truths if nature.leaks_truth else None,
            )
        )
        self._round += rounds
        self._context = contexts[:, -1]
        candidates = self._hypotheses(contexts)
        distributions = at(candidates, self.truths[:, None], slice(None))
        labels = categorical(distributions, for_label[..., 0])
        shown = public[:, None] if public is not None and channel.interactive else None
        messages = channel.encode(labels, candidates, for_channel, shown)
        return Tape(contexts, candidates, distributions, labels, messages)

    def _learn(self, tape: Tape) -> None:
        """Advance the public posterior by the tape's one round."""
        channel = self.scenario.channel
        shown = posterior.weights(self._log_posterior)[:, None] if channel.interactive else None
        likelihood = channel.log_likelihood(tape.messages, tape.candidates, shown)
        self._log_posterior = posterior.advance(self._log_posterior, likelihood[:, 0])


class Redrawn:
    """The classes of B episodes that each drew their own, as one map from contexts to candidates."""

    def __init__(self, classes: list[HypothesisClass]) -> None:
        self.classes = classes

    def __call__(self, contexts: FloatArray) -> FloatArray:
        """Candidates ``(B, n, K, M)`` at contexts ``(B or 1, n, d)``; a round axis of 1 if constant."""
        contexts = np.broadcast_to(contexts, (len(self.classes), *contexts.shape[1:]))
        candidates = np.stack([f(x) for f, x in zip(self.classes, contexts, strict=True)])
        return candidates[:, None] if self.classes[0].constant else candidates


def _joined(tapes: list[Tape]) -> Tape:
    """Tapes of consecutive rounds as one."""

    def join(parts: list[FloatArray]) -> FloatArray:
        return np.concatenate(parts, axis=1)

    first = tapes[0]
    steady = first.candidates.ndim == 2 or first.candidates is tapes[-1].candidates
    return Tape(
        contexts=join([tape.contexts for tape in tapes]),
        candidates=first.candidates if steady else join([tape.candidates for tape in tapes]),
        distributions=first.distributions if steady else join([tape.distributions for tape in tapes]),
        labels=np.concatenate([tape.labels for tape in tapes], axis=1),
        messages=join([tape.messages for tape in tapes]),
    )
