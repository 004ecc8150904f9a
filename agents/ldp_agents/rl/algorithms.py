"""The algorithms that train, by name. Importing them needs the extra ``rl``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ldp_agents.rl import amortized, any_truth_training, ppo, recurrent, sac, saved
from ldp_agents.rl.run import Run, TrainedModel
from ldp_gym.core.errors import extra
from ldp_gym.core.registry import import_object

with extra("rl", "training"):
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import SAC


@dataclass(frozen=True)
class Algorithm:
    """A way to train.

    Attributes:
        settings: the dataclass of its settings.
        steps: how many rounds it plays by default.
        fit: trains, or goes on from a checkpoint, and returns the model.
        policy: the class of stable-baselines3 that its models are stored as; none if they are arrays,
            or if the settings name it.
        stores_code: whether its checkpoints run code when they are read, as those of stable-baselines3 do.
        goes_on: whether it begins nothing of its own, and goes on with what ``ldp_agents.rl.save`` has left.
    """

    settings: type[Any]
    steps: int
    fit: Callable[[Run[Any]], TrainedModel]
    policy: Any = None
    stores_code: bool = True
    goes_on: bool = False


ALGORITHMS = {
    "ppo": Algorithm(ppo.Settings, ppo.STEPS, ppo.fit),
    "amortized": Algorithm(amortized.Settings, amortized.STEPS, amortized.fit, stores_code=False),
    "any-truth": Algorithm(
        any_truth_training.Settings, any_truth_training.STEPS, any_truth_training.fit, stores_code=False
    ),
    "recurrent": Algorithm(recurrent.Settings, recurrent.STEPS, recurrent.fit, RecurrentPPO),
    "sac": Algorithm(sac.Settings, sac.STEPS, sac.fit, SAC),
    "sb3": Algorithm(saved.Settings, saved.STEPS, saved.fit, goes_on=True),
}


def policy_class(config: Mapping[str, Any]) -> Any:
    """The class of stable-baselines3 that the policy of a configuration was stored by."""
    known = algorithm_of(config["algorithm"]).policy
    return import_object(config["settings"]["policy"], "algorithm") if known is None else known


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of a name.

    Raises:
        ValueError: if there is none.
    """
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
