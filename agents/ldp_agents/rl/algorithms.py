"""The algorithms that train, by name. Importing them needs the extra ``rl``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sb3_contrib import RecurrentPPO
from stable_baselines3 import SAC

from ldp_agents.rl import amortized, ppo, recurrent, sac
from ldp_agents.rl.run import Run, TrainedModel


@dataclass(frozen=True)
class Algorithm:
    """A way to train.

    Attributes:
        settings: the dataclass of its settings.
        steps: how many rounds it plays by default.
        fit: trains, or goes on from a checkpoint, and returns the model.
        policy: the class of stable-baselines3 that its models are stored as; none if they are arrays.
        stores_code: whether its checkpoints run code when they are read, as those of stable-baselines3 do.
    """

    settings: type[Any]
    steps: int
    fit: Callable[[Run[Any]], TrainedModel]
    policy: Any = None
    stores_code: bool = True


ALGORITHMS = {
    "ppo": Algorithm(ppo.Settings, ppo.STEPS, ppo.fit),
    "amortized": Algorithm(amortized.Settings, amortized.STEPS, amortized.fit, stores_code=False),
    "recurrent": Algorithm(recurrent.Settings, recurrent.STEPS, recurrent.fit, RecurrentPPO),
    "sac": Algorithm(sac.Settings, sac.STEPS, sac.fit, SAC),
}


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of a name.

    Raises:
        ValueError: if there is none.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
