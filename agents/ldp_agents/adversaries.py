"""Policies of LDPNature-v0 that do not learn: which context of the pool the learner is to see."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray
from ldp_gym.engine.game import game_of
from ldp_gym.natures.adversary import first_of_best, learning_costs


class PoolRows(NamedTuple):
    """The numbers of B observations of LDPNature-v0."""

    weights: FloatArray  # posterior, (B, K)
    progress: FloatArray  # t / T, (B,)
    losses: FloatArray  # expected loss of a round at each context of the pool, (B, P)
    information: FloatArray  # expected information of a message there, in nats, (B, P)


def read_pool_rows(rows: npt.NDArray[Any], num_hypotheses: int) -> PoolRows:
    """Split observations ``(B, 2 K + 1 + 2 P)`` of LDPNature-v0, K hypotheses and P contexts, into parts.

    A row holds the posterior twice (its weights and their logarithms), the progress, and for each
    context the logarithms of the expected loss and of the expected information.
    """
    numbers = np.asarray(rows, dtype=np.float64)
    first_loss = 2 * num_hypotheses + 1
    pool_size = (numbers.shape[1] - first_loss) // 2
    first_information = first_loss + pool_size
    return PoolRows(
        weights=numbers[:, :num_hypotheses],
        progress=numbers[:, first_loss - 1],
        losses=np.exp(numbers[:, first_loss:first_information]),
        information=np.exp(numbers[:, first_information:]),
    )


class PoolPolicy(ABC):
    """Base of rules that pick contexts, with the ``predict`` of stable-baselines3.

    Define :meth:`pick`.

    Args:
        game: an environment of LDPNature-v0, single or vector, or its Game.
    """

    def __init__(self, game: Any) -> None:
        self.game: Game = game_of(game)

    @abstractmethod
    def pick(self, rows: PoolRows) -> IntArray:
        """Indices ``(B,)`` of the contexts for these observations."""

    def __call__(self, observations: npt.NDArray[Any]) -> IntArray:
        """Indices ``(B,)`` of the contexts for observations ``(B, 2 K + 1 + 2 P)``."""
        return self.pick(read_pool_rows(observations, self.game.num_hypotheses))

    def predict(
        self,
        observations: npt.NDArray[Any],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[IntArray, Any]:
        """The contexts, and no state, as stable-baselines3 has them."""
        return self(observations), None

    def learning_costs(self, rows: PoolRows) -> FloatArray:
        """Cost of learning at each context, ``(B, P)``: loss * min(rounds left, entropy / information)."""
        # Progress is t / T: rounding restores the whole number of rounds.
        rounds_left = np.rint((1.0 - rows.progress) * self.game.horizon)[:, None]
        return learning_costs(rows.losses, rows.information, rows.weights, rounds_left)


class RandomContexts(PoolPolicy):
    """A context of the pool at random.

    Args:
        game: an environment of LDPNature-v0, single or vector, or its Game.
        seed: seed of the choices.
    """

    def __init__(self, game: Any, seed: int = 0) -> None:
        super().__init__(game)
        self._rng = np.random.default_rng(validation.seed("seed", seed))

    def pick(self, rows: PoolRows) -> IntArray:
        """Draw an index for each game."""
        num_games, pool_size = rows.losses.shape
        return np.asarray(self._rng.integers(pool_size, size=num_games))


class LargestLoss(PoolPolicy):
    """The context of the largest expected loss in this round: greedy, as with gamma = 0."""

    def pick(self, rows: PoolRows) -> IntArray:
        return first_of_best(rows.losses)


class CostliestToLearn(PoolPolicy):
    """The rule of the nature ``adversary``: the context on which learning costs most from now on."""

    def pick(self, rows: PoolRows) -> IntArray:
        return first_of_best(self.learning_costs(rows))


class KeptContext(CostliestToLearn):
    """The context on which learning costs most at the start of an episode, kept to its end."""

    def predict(
        self,
        observations: npt.NDArray[Any],
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[IntArray, Any]:
        """Indices ``(B,)`` of the contexts, as the action and as the state for the next round."""
        chosen = self(observations)
        if state is not None:  # games that do not begin now keep their context
            chosen = np.where(episode_start, chosen, state)
        return chosen, chosen


class ConstantContext(PoolPolicy):
    """The context of one index in all rounds.

    Args:
        game: an environment of LDPNature-v0, single or vector, or its Game.
        index: index of the context in the pool.
    """

    def __init__(self, game: Any, index: int) -> None:
        super().__init__(game)
        self._index = validation.whole("index", index, least=0)

    def pick(self, rows: PoolRows) -> IntArray:
        return np.full(len(rows.weights), self._index)
