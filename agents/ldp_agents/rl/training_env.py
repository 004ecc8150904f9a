"""The vector environments of a training run, in the views that the algorithms take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_agents.rl.vec_env import SB3VecEnv
from ldp_gym.core.errors import extra
from ldp_gym.wrappers import (
    StaggeredStart,
    VectorDecodedMessage,
    VectorEvidence,
    VectorHypothesisFeatures,
    VectorMixtureAction,
)

with extra("rl", "training"):
    from stable_baselines3.common.vec_env import VecEnv


VIEWS = {"evidence": VectorEvidence, "message": VectorDecodedMessage, "slopes": VectorHypothesisFeatures}
"""The views by the name of their features."""

_FORGETTING = 0.003
"""By what share of a round's cost the running one is renewed."""

_LEAST_COST = 1e-3
"""A game that costs less per round, in nats, counts less."""


def make_training_env(
    rules: Mapping[str, Any], features: str, num_envs: int, logit_range: float, copies: int = 1
) -> SB3VecEnv:
    """B environments in lock step, in rounds spread over the episode; what ends begins again in that step.

    Args:
        rules: keyword arguments of ``gym.make``.
        features: a name of :data:`VIEWS`.
        num_envs: B.
        logit_range: that of ``MixtureAction``.
        copies: how many of them play the same episode, as :class:`ldp_gym.wrappers.StaggeredStart` has it.
    """
    envs = gym.make_vec("LDPDist-v0", num_envs=num_envs, autoreset_mode="SameStep", **rules)
    return SB3VecEnv(StaggeredStart(VIEWS[features](VectorMixtureAction(envs, logit_range)), copies))


class ManyGames(VecEnv):
    """Environments of several games, each in lock step, side by side; what describes a game is put in front.

    Rewards are divided by what the game has cost per round of late, so that every game counts. From them the
    mean of the other copies of the same episode is taken off: what is left is what the action has done
    (the leave-one-out baseline of Kool et al. 2019).

    Args:
        games: one vector environment per game; they share the shapes of observations and actions.
        descriptions: what a policy may know of each game, a row of numbers.
        copies: how many environments after one another play the same episode, two or more.
    """

    def __init__(
        self, games: Sequence[SB3VecEnv], descriptions: Sequence[npt.NDArray[Any]], copies: int
    ) -> None:
        self.games, self._copies = list(games), copies
        self._ends = np.cumsum([game.num_envs for game in games])
        self._rows = np.concatenate(
            [
                np.tile(np.float32(row), (game.num_envs, 1))
                for game, row in zip(games, descriptions, strict=True)
            ]
        )
        self._costs = np.ones(len(self.games))
        width = self._rows.shape[1] + int(np.prod(games[0].observation_space.shape or ()))
        space = gym.spaces.Box(-np.inf, np.inf, (width,), dtype=np.float32)
        super().__init__(int(self._ends[-1]), space, games[0].action_space)

    def _side_by_side(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        seen = np.concatenate([part.reshape(len(part), -1) for part in parts])
        return np.concatenate([self._rows, seen], axis=1)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed the games, one after another."""
        first = np.insert(self._ends[:-1], 0, 0)
        seeds = [
            game.seed(None if seed is None else seed + int(start))
            for game, start in zip(self.games, first, strict=True)
        ]
        return [one for each in seeds for one in each]

    def reset(self) -> npt.NDArray[Any]:
        """Begin an episode in every game."""
        shown = self._side_by_side([game.reset() for game in self.games])
        self.reset_infos = [info for game in self.games for info in game.reset_infos]
        return shown

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Keep the actions for :meth:`step_wait`."""
        for game, part in zip(self.games, np.split(actions, self._ends[:-1]), strict=True):
            game.step_async(part)

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Play a round in every game."""
        seen, rewards, over, infos = zip(*(game.step_wait() for game in self.games), strict=True)
        rows = [info for each in infos for info in each]
        for row, info in zip(self._rows, rows, strict=True):
            if "terminal_observation" in info:
                info["terminal_observation"] = np.append(row, info["terminal_observation"].reshape(-1))
        costs = np.array([-each.mean() for each in rewards])
        self._costs += _FORGETTING * (costs - self._costs)
        scaled = [each / max(cost, _LEAST_COST) for each, cost in zip(rewards, self._costs, strict=True)]
        advantages = _leave_one_out(np.concatenate(scaled), self._copies)
        return self._side_by_side(seen), advantages.astype(np.float32), np.concatenate(over), rows

    def close(self) -> None:
        """Close the games."""
        for game in self.games:
            game.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of the games."""
        values = [value for game in self.games for value in game.get_attr(attr_name)]
        return [values[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all games at once."""
        for game in self.games:
            game.set_attr(attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Not for games in lock step: they have no methods of their own."""
        return self.games[0].env_method(method_name, *args, **kwargs)

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether a wrapper of this class is around the games."""
        found = [value for game in self.games for value in game.env_is_wrapped(wrapper_class)]
        return [found[i] for i in self._get_indices(indices)]


def _leave_one_out(rewards: npt.NDArray[Any], copies: int) -> npt.NDArray[Any]:
    """By how much each reward exceeds the mean of the other copies' rewards."""
    groups = rewards.reshape(-1, copies)
    others = (groups.sum(axis=1, keepdims=True) - groups) / (copies - 1)
    difference: npt.NDArray[Any] = (groups - others).reshape(-1)
    return difference
