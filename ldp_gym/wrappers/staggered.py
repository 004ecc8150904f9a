"""Games of a vector environment in different rounds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

from ldp_gym.core import validation
from ldp_gym.core.arrays import IntArray
from ldp_gym.core.simplex import Simplex
from ldp_gym.wrappers.sources import VectorView, vector_env


class StaggeredStart(VectorView):
    """After a reset the B games are in rounds spread evenly over the episode, not all in the first.

    An on-policy learner that collects a few rounds of every game then sees all parts of an episode in every
    update. The rounds before are played with the uniform mixture. Put it outside of the views of the
    observation, so that they see the messages of these rounds.

    Args:
        env: an LDPDist vector environment, in a view of the action or bare.
        copies: so many games after one another are the same: they have the seed of the first, and are in the
            same round. An action never changes a message, so they stay the same, and their rewards differ by
            the actions alone.
    """

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any], copies: int = 1) -> None:
        super().__init__(vector_env(self, env))
        self.copies = validation.whole("copies", copies, least=1)
        if self.num_envs % self.copies:
            raise ValueError(f"{self.num_envs} games cannot be {self.copies} copies each: use a multiple")

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, and play each to its own round.

        With ``options["reset_mask"]`` some games begin a new episode, and the others stay where they are.
        """
        first = np.arange(self.num_envs) // self.copies * self.copies
        if self.copies > 1:
            seed = self._seeds_of_copies(seed, first)
        options = validation.options_dict("options", options)
        observations, infos = self.env.reset(seed=seed, options=options)
        if options.get("reset_mask") is not None:
            return observations, infos
        space, horizon = self.env.action_space, self.env.unwrapped.game.horizon  # type: ignore[attr-defined]
        assert space.shape is not None
        idle = np.full(space.shape, 1.0 / space.shape[-1] if isinstance(space, Simplex) else 0.0)
        begins = first * horizon // self.num_envs
        for t in range(1, int(begins[-1]) + 1):
            self.env.step(idle)
            mask = begins == t
            if mask.any():
                observations, infos = self.env.reset(options={**options, "reset_mask": mask})
        return observations, infos

    def _seeds_of_copies(self, seed: Any, first: IntArray) -> list[int | None]:
        """For every game the seed of its first copy; without one, a new one where no game has begun."""
        seeds = validation.seeds("seed", seed, self.num_envs)
        for game in np.unique(first):
            if seeds[game] is None and self.env.np_random_seed[game] == -1:  # type: ignore[index]
                seeds[game] = seeding.np_random()[1]
        return [seeds[game] for game in first]
