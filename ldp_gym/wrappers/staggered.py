"""Games of a vector environment in different rounds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from ldp_gym.spaces import Simplex
from ldp_gym.wrappers.sources import VectorView, vector_env


class StaggeredStart(VectorView):
    """After a reset the B games are in rounds spread evenly over the episode, not all in the first.

    An on-policy learner that collects a few rounds of every game then sees all parts of an episode in every
    update. The rounds before are played with the uniform mixture. Put it outside of the views of the
    observation, so that they see the messages of these rounds.

    Args:
        env: an LDPDist vector environment, in a view of the action or bare.
    """

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(vector_env(self, env))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, and play each to its own round."""
        observations, infos = self.env.reset(seed=seed, options=options)
        space, horizon = self.env.action_space, self.env.unwrapped.game.horizon  # type: ignore[attr-defined]
        assert space.shape is not None
        idle = np.full(space.shape, 1.0 / space.shape[-1] if isinstance(space, Simplex) else 0.0)
        begins = np.arange(self.num_envs) * horizon // self.num_envs
        for t in range(1, int(begins[-1]) + 1):
            self.env.step(idle)
            mask = begins == t
            if mask.any():
                observations, infos = self.env.reset(options={"reset_mask": mask})
        return observations, infos
