"""LDPDist-v0 for B games in lock step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ldp_gym.core import validation
from ldp_gym.core.arrays import BoolArray, FloatArray
from ldp_gym.engine.referee import member_option
from ldp_gym.engine.rules import rule, takes
from ldp_gym.engine.scenario import episode_generator
from ldp_gym.engine.simplex import Simplex
from ldp_gym.envs.rendering.frames import Frame
from ldp_gym.envs.single import EnvArguments, RefereedEnv

Observations = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class SeveralGames:
    """Arguments of a vector environment."""

    num_envs: int = field(default=1, kw_only=False, metadata={"sentence": "B."})
    autoreset_mode: str | AutoresetMode = rule(
        AutoresetMode.NEXT_STEP,
        'time at which a game that is over begins again: ``"NextStep"``, ``"SameStep"`` or ``"Disabled"`` '
        '(then ``reset(options={"reset_mask": mask})`` begins it).',
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorArguments(SeveralGames, EnvArguments):
    """Arguments of LDPDist-v0 for B games."""

    render_mode: str | None = rule(
        None,
        '``"rgb_array"`` or ``"ansi"``: ``render()`` is then a tuple of frames, one for each game.',
    )


class LDPDistVectorEnv(RefereedEnv, VectorEnv[Observations, FloatArray, npt.NDArray[Any]]):
    """B games of :class:`ldp_gym.LDPDistEnv` at once, in NumPy throughout.

    ``reset(seed=s)`` makes game i the one that the single environment plays under ``reset(seed=s + i)``. The
    arguments are ``num_envs``, ``autoreset_mode``, ``render_mode`` (:class:`VectorArguments`), and the rules
    of the game (:class:`ldp_gym.engine.rules.Rules`). For stable-baselines3, wrap it:
    ``ldp_agents.rl.SB3VecEnv(envs)``.

    Example:
        >>> import gymnasium as gym, numpy as np, ldp_gym
        >>> envs = gym.make_vec("LDPDist-v0", num_envs=3, horizon=10)
        >>> observations, _ = envs.reset(seed=0)
        >>> observations["context"].shape
        (3, 4)
        >>> _, rewards, *_ = envs.step(np.full((3, 16), 1 / 16))
        >>> rewards.shape
        (3,)
    """

    metadata: dict[str, Any] = {
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 8,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    @takes(VectorArguments)
    def __init__(self, arguments: VectorArguments) -> None:
        self._make_games(arguments)
        self.single_observation_space = self.scenario.observation_space
        self.single_action_space = self.scenario.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._actions: Any = Simplex(self.game.num_labels, (self.num_envs,))
        self.action_space = self._actions

    def _make_games(self, arguments: Any, num_games: int = 1) -> None:
        self.num_envs = validation.whole("num_envs", arguments.num_envs, least=1)
        mode = getattr(arguments.autoreset_mode, "value", arguments.autoreset_mode)
        known = [each.value for each in AutoresetMode]
        self.autoreset_mode = AutoresetMode(validation.choice("autoreset_mode", mode, known))
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self._roots: list[np.random.Generator | None] = [None] * self.num_envs
        super()._make_games(arguments, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin an episode in every game, or in those of ``options["reset_mask"]``.

        Args:
            seed: game i gets ``seed + i``, or the i-th of a list; without one, its next episode begins.
            options: ``{"truth": j}`` chooses the truth; ``{"reset_mask": mask}`` the games.
        """
        options = validation.options_dict("options", options)
        mask = self._reset_mask(options.pop("reset_mask", None))
        seeds = validation.seeds("seed", seed, self.num_envs)
        infos = self._begin(mask, seeds, member_option(self.scenario, options))
        return self._referee.observe(), infos

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Observations, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Predict the distributions of this round's labels, ``(B, M)``."""
        resetting = self._referee.over.copy()
        some_reset = resetting.any()
        if some_reset:
            actions = self._without(actions, resetting)
        rewards, info = self._referee.judge(self._actions.distribution(actions))
        over = self._referee.over & ~resetting
        infos = _masked(info, ~resetting)
        if some_reset:
            rewards[resetting] = 0.0
            infos = _merged(infos, self._begin(resetting))
        if over.any():
            ended = self._referee.episode_info()
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                final = self._final(over, _masked(info | ended, over))
                infos = _merged(_masked(info, ~over), self._begin(over)) | final
            else:
                infos |= _masked(ended, over)
        return self._referee.observe(), rewards, over, np.zeros_like(over), infos

    def _without(self, actions: npt.ArrayLike, resetting: BoolArray) -> FloatArray:
        """The actions, with a placeholder where a game starts over and its action is not played."""
        if (
            self.autoreset_mode is not AutoresetMode.NEXT_STEP
            or not self._referee.begun[resetting].all()
        ):
            raise ResetNeeded(
                f"games {np.flatnonzero(resetting).tolist()} are over, or have not begun: reset them first"
            )
        actions = np.array(validation.numbers("an action", actions))
        if actions.shape == self._actions.shape:  # else the shape is refused later
            actions[resetting] = 1.0 / actions.shape[-1]
        return actions

    def _begin(
        self, mask: BoolArray, seeds: Sequence[int | None] | None = None, member: int | None = None
    ) -> dict[str, Any]:
        """Begin an episode in the games of ``mask``; returns their infos."""
        games = np.flatnonzero(mask)
        generators = [
            self._generator(game, seeds[game] if seeds else None) for game in games.tolist()
        ]
        return _masked(self._referee.begin(games, generators, member), mask)

    def _generator(self, game: int, seed: int | None) -> np.random.Generator:
        root = self._roots[game]
        if seed is not None or root is None:
            root, _ = seeding.np_random(seed)
            self._roots[game] = root
        return episode_generator(root)

    def _final(self, over: BoolArray, infos: dict[str, Any]) -> dict[str, Any]:
        """Last observations and infos of games that are over, before they begin again in the same step."""
        shown = self._referee.observe()
        last = np.full(self.num_envs, None, dtype=object)
        for game in np.flatnonzero(over):
            last[game] = (
                {key: value[game] for key, value in shown.items()}
                if isinstance(shown, dict)
                else shown[game]
            )
        return {
            "final_obs": last,
            "_final_obs": over.copy(),
            "final_info": infos,
            "_final_info": over.copy(),
        }

    def _reset_mask(self, mask: object) -> BoolArray:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        expected = f"reset_mask must be a boolean array of shape ({self.num_envs},)"
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise TypeError(f"{expected}, got {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"{expected} that selects a game, got {mask!r}")
        return mask

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seeds of the games as Gymnasium reports them; -1 where a game has not begun."""
        seeds = []
        for root in self._roots:
            if root is None:
                seeds.append(-1)
            else:
                sequence: Any = root.bit_generator.seed_seq
                seeds.append(sequence.entropy)
        return tuple(seeds)

    def render(self) -> tuple[Frame | str | None, ...] | None:  # type: ignore[override]
        """A frame of each game, the hidden truth included."""
        return self._frames()


def _masked(info: dict[str, npt.NDArray[Any]], mask: BoolArray) -> dict[str, Any]:
    """Vector infos in Gymnasium's form: each key with a mask of its games."""
    infos: dict[str, Any] = {}
    everyone = mask.all()
    for key, values in info.items():
        infos[key] = (
            values if everyone else np.where(_along(mask, values), values, np.zeros_like(values))
        )
        infos[f"_{key}"] = mask.copy()
    return infos


def _merged(infos: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Merge info dicts with disjoint masks."""
    merged = dict(infos)
    for key in [key for key in others if f"_{key}" in others]:
        mask = others[f"_{key}"]
        merged[key] = np.where(_along(mask, others[key]), others[key], infos.get(key, others[key]))
        merged[f"_{key}"] = mask | infos.get(f"_{key}", False)
    return merged


def _along(mask: BoolArray, values: npt.NDArray[Any]) -> BoolArray:
    """Reshape a mask of games so that it broadcasts with their values."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))
