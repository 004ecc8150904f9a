"""A pool of contexts that an agent picks from: its rules, its actions, and what Bayes pays there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.core.divergences import mean_loss, negentropy
from ldp_gym.engine.role import Actions
from ldp_gym.engine.rules import Rules, rule
from ldp_gym.engine.scenario import EpisodeStart, Scenario
from ldp_gym.engine.seats import Moves
from ldp_gym.engine.tape import ClassPerEpisode
from ldp_gym.natures.base import PoolNature


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolRules(Rules):
    """Arguments of environments in which an agent picks the contexts from a pool."""

    redraw_hypotheses: bool = rule(
        True,
        "draw a new class of the named family in each episode, and a new pool unless the pool is given.",
    )
    nature: str = rule("cycle", "the nature that has the pool.")
    pool: npt.ArrayLike | None = rule(
        None,
        'the contexts to pick from, ``(P, d)``, or their address as ``"module:object"``; ``pool_size`` '
        "standard normal ones when not given.",
    )
    pool_size: int = rule(32, "P.")
    pool_seed: int = rule(0, "seed of a pool that is neither given nor redrawn.")

    def __post_init__(self) -> None:
        """Check the values, and hand the pool to the nature."""
        super().__post_init__()
        pool = {"contexts": self.pool, "pool_size": self.pool_size, "pool_seed": self.pool_seed}
        object.__setattr__(self, "nature_kwargs", pool)
        object.__setattr__(self, "observe_candidates", self.redraw_hypotheses)


class Pool:
    """The pool of contexts of B games: their candidates, and the loss that Bayes expects at each.

    Args:
        scenario: the game, whose nature has the pool.
        num_games: B.
        rules: the rules that say whether the pool is given.

    Attributes:
        contexts: ``(P, d)``, or ``(B, P, d)`` if each game has its own.
        candidates: of the contexts, ``(B, P, K, M)``, or ``(1, P, K, M)`` if all games share them.
        losses: expected loss ``J_x(w) = sum_k w_k KL(f_k(x), f_w(x))`` at each context, ``(B, P)``.
    """

    contexts: FloatArray
    candidates: FloatArray

    def __init__(self, scenario: Scenario, num_games: int, rules: PoolRules) -> None:
        nature = scenario.nature
        assert isinstance(nature, PoolNature), "the rules say so"
        if scenario.hypotheses.constant:
            raise ValueError(
                f"{rules.env_id} needs a class with contexts, got {scenario.hypotheses!r}, to which all "
                f"contexts are the same: use 'softmax-linear', or a list of callables"
            )
        self._own_classes = scenario.redraws
        self._own_contexts = scenario.redraws and rules.pool is None
        self.size = len(nature.pool)
        self.contexts = nature.pool
        if self._own_contexts:
            self.contexts = np.zeros((num_games, *nature.pool.shape))

        if self._own_classes:
            num_hypotheses, num_labels = scenario.game.num_hypotheses, scenario.game.num_labels
            table_size = self.size * num_hypotheses * num_labels
            validation.fits_memory("num_envs", num_games, 2 * table_size, "candidates")
            shape = (num_games, self.size, num_hypotheses, num_labels)
            self.candidates = np.full(shape, 1.0 / num_labels)
        else:
            self.candidates = np.array(scenario.hypotheses(self.contexts)[None])
        self._by_hypothesis = _hypotheses_first(self.candidates)
        self._negentropies = negentropy(self.candidates)
        self.losses = np.zeros((num_games, self.size))

    def begin(self, games: IntArray, starts: Sequence[EpisodeStart]) -> None:
        """Draw the pools of new episodes, and take their classes, if they have their own."""
        if self._own_contexts:
            shape = self.contexts.shape[1:]
            drawn = [start.generator.standard_normal(shape) for start in starts]
            self.contexts[games] = np.stack(drawn)
        if self._own_classes:
            classes = ClassPerEpisode([start.hypotheses for start in starts])
            contexts = self.contexts[games] if self._own_contexts else self.contexts[None]
            self.candidates[games] = classes(contexts)
            self._by_hypothesis[games] = _hypotheses_first(self.candidates[games])
            self._negentropies[games] = negentropy(self.candidates[games])

    def update(self, weights: FloatArray) -> None:
        """Work out the losses under posteriors ``(B, K)``."""
        means = np.matmul(weights[:, None], self._by_hypothesis)
        means = means.reshape(len(weights), self.size, -1)
        self.losses = mean_loss(weights[:, None], means, self._negentropies)

    def pick(self, choices: IntArray) -> Moves:
        """Nature's move to the contexts of indices ``(B,)``, with their candidates."""
        games = np.arange(len(choices))
        classes = games if self._own_classes else 0
        contexts = self.contexts[games, choices] if self._own_contexts else self.contexts[choices]
        return Moves(contexts=contexts, candidates=self.candidates[classes, choices])

    def losses_at(self, choices: IntArray) -> FloatArray:
        """The expected losses ``(B,)`` at the contexts of indices ``(B,)``."""
        return self.losses[np.arange(len(choices)), choices]


def _hypotheses_first(candidates: FloatArray) -> FloatArray:
    """Candidates ``(B, P, K, M)`` as ``(B, K, P M)``: all mixtures of a game are one product."""
    num_games, size, num_hypotheses, num_labels = candidates.shape
    by_hypothesis = np.ascontiguousarray(np.swapaxes(candidates, 1, 2))
    return by_hypothesis.reshape(num_games, num_hypotheses, size * num_labels)


class Choices(Actions):
    """Indices of the contexts of a pool."""

    def __init__(self, size: int, batch_shape: tuple[int, ...]) -> None:
        self.space = gym.spaces.Discrete(size)
        self._size = size
        self._shape = batch_shape

    def read(self, action: npt.ArrayLike) -> IntArray:
        """The indices, checked."""
        choices = np.asarray(action)
        expected = f"indices of contexts, whole numbers in 0..{self._size - 1}"
        if choices.shape != self._shape or choices.dtype.kind not in "iuf":
            raise ValueError(
                f"an action is {expected}, of shape {self._shape}, got {validation.describe(action)}"
            )
        indices = choices.astype(np.int64)
        if (indices != choices).any() or (indices < 0).any() or (indices >= self._size).any():
            raise ValueError(f"an action is {expected}, got {validation.describe(action)}")
        return indices
