"""A search for the contexts on which a learner's risk is largest.

The theorems hold for every sequence of contexts, and the worst one is not known. The search is among
sequences that repeat one context or a few in turn. Its result is a lower bound on the worst case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ldp_gym.core.arrays import FloatArray, mixture, uniform_distribution
from ldp_gym.core.divergences import negentropy
from ldp_gym.core.sampling import Purpose, stream
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import LearnerProtocol
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Evaluation, as_scenario, evaluate
from ldp_gym.theory.information import MessageInformation

_SMALLEST = 0.3
"""Smallest scale of the first contexts, in units of an i.i.d. context."""

_LARGEST = 3.0
"""Largest scale of the first contexts."""

_LEAST_INFORMATION = 1e-9
"""Least information of a message, in nats: smaller values are rounding."""

_PROPOSALS = 32
"""Number of random sequences of which the most promising is tried."""

_PARENTS = 6
"""Number of sequences that a generation keeps."""

_CHILDREN = 3
"""Number of variants that it tries of each."""

_STEP = 0.4
"""Distance of a variant from its parent in the first generation, relative to its size."""

_SHRINKS = 0.85
"""Factor of this distance from generation to generation."""


@dataclass(frozen=True)
class HardContexts:
    """Contexts that a search found, and the learner's losses there on fresh episodes.

    Attributes:
        contexts: ``(P, d)``, repeated in turn.
        rules: the game with these contexts, by the nature ``cycle``.
        evaluation: the learner in that game, on seeds that the search has not used.
    """

    contexts: FloatArray
    rules: dict[str, Any]
    evaluation: Evaluation


def hardest_contexts(
    rules: Mapping[str, Any],
    learner: str | Callable[[Game], LearnerProtocol] = "bayes",
    *,
    length: int = 1,
    sequences: int = 96,
    episodes: int = 16,
    generations: int = 8,
    fresh: int = 4000,
    seed: int = 0,
) -> HardContexts:
    """Search for the repeated contexts on which a learner's risk is largest.

    It tries random sequences, every other one the most promising of several by the rule of
    :class:`~ldp_gym.natures.adversary.Adversary`, and then variants of the best ones. Every generation plays
    new episodes, and a sequence is judged by all its episodes. One to two minutes in the default game.

    Args:
        rules: the game, keyword arguments of ``gym.make("LDPDist-v0", ...)``; its nature is replaced.
        learner: a learner's name, or a callable from a Game to a learner.
        length: largest number of contexts that repeat; 1 for a constant context.
        sequences: number of random sequences to begin with.
        episodes: number of episodes that each of these plays; the better ones play four times as many.
        generations: number of times to vary the best ones.
        fresh: number of episodes that the winner plays in the end.
        seed: seed of the search and of its first episode.
    """
    num_better = -(-sequences // 4)  # rounded up
    num_parents = min(_PARENTS, num_better)
    search = _Search(rules, learner, seed)

    drawn = []
    for i in range(sequences):
        proposals = _PROPOSALS if i % 2 else 1
        drawn.append(search.draw(length, proposals))
    better = search.play(drawn, episodes)[:num_better]
    parents = search.play(better, 4 * episodes)[:num_parents]

    for generation in range(generations):
        step = _STEP * _SHRINKS**generation
        variants = []
        for parent in parents:
            variants += [search.vary(parent, step) for _ in range(_CHILDREN)]
        parents = search.play(parents + variants, 4 * episodes)[:num_parents]

    winner = parents[0].contexts
    evaluation = search.evaluate(winner, fresh, next(search.seeds))
    return HardContexts(winner, search.rules_at(winner), evaluation)


@dataclass(frozen=True)
class _Sequence:
    """A sequence of contexts ``(P, d)``, and the total KL of its episodes so far, ``(n,)``."""

    contexts: FloatArray
    totals: FloatArray

    @property
    def promise(self) -> float:
        """Mean minus standard error, so that a few lucky episodes count for little."""
        return float(self.totals.mean() - self.totals.std() / np.sqrt(len(self.totals)))


class _Search:
    """A search: its game and learner, its generator and its unused seeds."""

    def __init__(self, rules: Mapping[str, Any], learner: Any, seed: int) -> None:
        self._rules = Rules.of(rules).given
        self._learner = learner
        self._scenario = as_scenario(rules)
        hypotheses = self._scenario.hypotheses
        if hypotheses.constant:
            raise ValueError(
                f"no context is harder than another: {hypotheses!r} does not depend on it"
            )
        self._rng = stream(Purpose.SEARCH, seed)
        # Far enough apart for the episodes of one call.
        self.seeds: Iterator[int] = count(seed, 2**20)

    def draw(self, length: int, proposals: int) -> _Sequence:
        """The most promising of some random sequences of at most ``length`` contexts."""
        drawn = []
        for _ in range(proposals):
            shape = (int(self._rng.integers(1, length + 1)), self._scenario.hypotheses.context_dim)
            distance = np.exp(self._rng.uniform(np.log(_SMALLEST), np.log(_LARGEST)))
            drawn.append(distance * self._rng.standard_normal(shape))
        chosen = drawn[0]
        if proposals > 1:
            chosen = max(drawn, key=self._guess)
        return _Sequence(chosen, np.zeros(0))

    def _guess(self, contexts: FloatArray) -> float:
        """Guess of the risk of Bayes from the first round: ``E KL * min(T, log K / I)``."""
        candidates = self._scenario.hypotheses(contexts)
        prior = uniform_distribution(candidates.shape[-2])
        losses = negentropy(candidates) @ prior - negentropy(mixture(prior, candidates))
        information = MessageInformation(self._scenario.channel, candidates)(prior[None]).mean()
        rounds_to_learn = np.log(len(prior)) / max(information, _LEAST_INFORMATION)
        rounds = min(self._scenario.horizon, rounds_to_learn)
        return float(losses.mean() * rounds)

    def vary(self, parent: _Sequence, step: float) -> _Sequence:
        """A sequence near to the given one."""
        contexts = parent.contexts
        size = np.sqrt(np.mean(np.square(contexts)))
        noise = step * size * self._rng.standard_normal(contexts.shape)
        factor = np.exp(step * self._rng.standard_normal())
        return _Sequence(factor * contexts + noise, np.zeros(0))

    def play(self, pool: list[_Sequence], episodes: int) -> list[_Sequence]:
        """Play further episodes, the same for all, and sort the most promising first."""
        seed = next(self.seeds)
        played = []
        for sequence in pool:
            totals = self.evaluate(sequence.contexts, episodes, seed).kl[:, -1]
            all_totals = np.append(sequence.totals, totals)
            played.append(_Sequence(sequence.contexts, all_totals))
        return sorted(played, key=lambda sequence: -sequence.promise)

    def evaluate(self, contexts: FloatArray, episodes: int, seed: int) -> Evaluation:
        """Play the learner in the game with these contexts."""
        return evaluate(self._learner, self.rules_at(contexts), episodes=episodes, seed=seed)

    def rules_at(self, contexts: FloatArray) -> dict[str, Any]:
        """The game that repeats these contexts."""
        return {**self._rules, "nature": "cycle", "nature_kwargs": {"contexts": contexts.tolist()}}
