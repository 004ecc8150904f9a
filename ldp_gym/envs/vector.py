"""B games in lock step as a Gymnasium vector environment, for any role."""

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
from ldp_gym.engine.referee import Info, member_option
from ldp_gym.engine.rules import rule, takes
from ldp_gym.engine.scenario import episode_generator
from ldp_gym.envs.base import EnvArguments, RefereedEnv
from ldp_gym.envs.rendering.frames import Frame


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


class LockStepEnv(RefereedEnv, VectorEnv[Any, Any, npt.NDArray[Any]]):
    """B games in which an agent plays a role, in NumPy throughout.

    A subclass names its :class:`~ldp_gym.engine.role.Role`, and its arguments if there are any of its own.
    """

    metadata: dict[str, Any] = {
        "render_modes": ["rgb_array", "ansi"],
        "render_fps": 8,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    @takes(VectorArguments)
    def __init__(self, arguments: VectorArguments) -> None:
        self._make(arguments)

    def _make(self, arguments: Any) -> None:
        self.num_envs = validation.whole("num_envs", arguments.num_envs, least=1)
        mode = getattr(arguments.autoreset_mode, "value", arguments.autoreset_mode)
        known = [known_mode.value for known_mode in AutoresetMode]
        self.autoreset_mode = AutoresetMode(validation.choice("autoreset_mode", mode, known))
        self.metadata = {**type(self).metadata, "autoreset_mode": self.autoreset_mode}
        self._roots: list[np.random.Generator | None] = [None] * self.num_envs

        self._make_games(arguments, self.num_envs)
        self._actions = self._referee.role.actions((self.num_envs,))
        self.single_observation_space = self._observation.space
        self.single_action_space = self._actions.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those of ``options["reset_mask"]``.

        Args:
            seed: game i gets ``seed + i``, or the i-th of a list; without one, its next episode begins.
            options: ``{"truth": j}`` chooses the truth; ``{"reset_mask": mask}`` the games.
        """
        options = validation.options_dict("options", options)
        mask = self._reset_mask(options.pop("reset_mask", None))
        seeds = validation.seeds("seed", seed, self.num_envs)
        infos = self._begin(mask, seeds, member_option(self.scenario, options))
        return self._observation.observe(), infos

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Any, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Play the agents' turns of this round, ``(B, ...)``, and the round to its end."""
        resetting = self._referee.over.copy()
        playing = ~resetting
        any_resets = resetting.any()
        if any_resets:
            actions = self._without(actions, resetting)

        rewards, info = self._referee.judge(self._actions.read(actions))
        over = self._referee.over & playing
        infos = _masked(info, playing)
        if any_resets:
            rewards[resetting] = 0.0
            infos = _merged(infos, self._begin(resetting))
        if over.any():
            infos = self._end(infos, info, over)
        never_truncated = np.zeros(self.num_envs, dtype=np.bool_)
        return self._observation.observe(), rewards, over, never_truncated, infos

    def _end(self, infos: dict[str, Any], info: Info, over: BoolArray) -> dict[str, Any]:
        """The infos of a step in which games ended, with what is shown at their ends."""
        ended = self._referee.role.end_info()
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = self._final(over, _masked(info | ended, over))
            return _merged(_masked(info, ~over), self._begin(over)) | final
        return infos | _masked(ended, over)

    def _without(self, actions: npt.ArrayLike, resetting: BoolArray) -> npt.NDArray[Any]:
        """The actions, with a placeholder where a game starts over and its action is not played."""
        may_reset = self.autoreset_mode is AutoresetMode.NEXT_STEP
        if not may_reset or not self._referee.begun[resetting].all():
            games = np.flatnonzero(resetting).tolist()
            raise ResetNeeded(f"games {games} are over, or have not begun: reset them first")
        copied = np.array(validation.numbers("an action", actions))
        if copied.shape == self.action_space.shape:  # else the shape is refused later
            copied[resetting] = self._actions.placeholder
        return copied

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
        """The generator of a game's next episode, under a new seed or the last."""
        root = self._roots[game]
        if seed is not None or root is None:
            root, _ = seeding.np_random(seed)
            self._roots[game] = root
        return episode_generator(root)

    def _final(self, over: BoolArray, infos: dict[str, Any]) -> dict[str, Any]:
        """Last observations and infos of games that are over, before they begin again in the same step."""
        shown = self._observation.observe()
        last = np.full(self.num_envs, None, dtype=object)
        for game in np.flatnonzero(over).tolist():
            if isinstance(shown, dict):
                last[game] = {key: values[game] for key, values in shown.items()}
            else:
                last[game] = shown[game]
        return {
            "final_obs": last,
            "_final_obs": over.copy(),
            "final_info": infos,
            "_final_info": over.copy(),
        }

    def _reset_mask(self, mask: object) -> BoolArray:
        """The games to reset, from ``options["reset_mask"]``; all if there is none."""
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


def _masked(info: Info, mask: BoolArray) -> dict[str, Any]:
    """Vector infos in Gymnasium's form: each key with a mask of its games."""
    infos: dict[str, Any] = {}
    all_games = mask.all()
    for key, values in info.items():
        shown = values
        if not all_games:
            shown = np.where(_along(mask, values), values, np.zeros_like(values))
        infos[key] = shown
        infos[f"_{key}"] = mask.copy()
    return infos


def _merged(infos: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """Merge info dicts with disjoint masks."""
    merged = dict(infos)
    for key in [key for key in others if f"_{key}" in others]:
        mask = others[f"_{key}"]
        before = infos.get(key, others[key])
        merged[key] = np.where(_along(mask, others[key]), others[key], before)
        merged[f"_{key}"] = mask | infos.get(f"_{key}", False)
    return merged


def _along(mask: BoolArray, values: npt.NDArray[Any]) -> BoolArray:
    """Reshape a mask of games so that it broadcasts with their values."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))
