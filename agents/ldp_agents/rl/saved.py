"""Any policy of stable-baselines3 with its wrappers, left in a directory by one call."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_agents.rl import sb3
from ldp_agents.rl.config import CONFIG, Config, write_card
from ldp_agents.rl.policies import POLICY, Scaling, TrainedPolicy
from ldp_agents.rl.run import CHECKPOINT, Run
from ldp_agents.rl.training_env import make_training_env
from ldp_agents.rl.vec_env import SB3VecEnv
from ldp_gym.core import validation
from ldp_gym.core.errors import extra
from ldp_gym.core.registry import import_object
from ldp_gym.engine.rules import DEFAULTS
from ldp_gym.envs.single import LDPDistEnv
from ldp_gym.envs.vector import LDPDistVectorEnv
from ldp_gym.wrappers.actions import MixtureAction, VectorMixtureAction
from ldp_gym.wrappers.features.sums import FEATURES
from ldp_gym.wrappers.observations import ObservationView, VectorObservationView

with extra("rl", "reading a stored policy"):
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        VecEnv,
        VecEnvWrapper,
        VecExtractDictObs,
        VecNormalize,
    )


STEPS = 500_000
"""How many rounds in all, unless the command says."""

_CHANGE_NOTHING = (
    "DummyVecEnv",
    "FlattenObservation",
    "Monitor",
    "OrderEnforcing",
    "PassiveEnvChecker",
    "RecordEpisodeStatistics",
    "SB3VecEnv",
    "StaggeredStart",
    "TimeLimit",
    "VecMonitor",
)
"""Wrappers, by name, through which observations and actions go as they are, but for the shape."""


@dataclass(frozen=True)
class Settings:
    """What a saved policy was trained with, as :func:`save` reads it from the model and its environment.

    Attributes:
        policy: the class of its algorithm, as ``module:Class``.
        features: what it observes, by name.
        logit_range: that of its actions.
        num_envs: environments in lock step.
        scaling: what ``VecNormalize`` did to its observations, if it was there.
    """

    policy: str = ""
    features: str = "evidence"
    logit_range: float = 10.0
    num_envs: int = 64
    scaling: dict[str, Any] = field(default_factory=dict)


def save(model: BaseAlgorithm, env: Any, directory: str | Path) -> None:
    """Leave a policy with its wrappers in a directory: ``evaluate``, the benchmark and ``train`` take it.

    ``ldp-gym train sb3 --resume --trust --out DIRECTORY --steps N`` trains it further. The learner plays the
    policy's mean action on the game that the environment has.

    Args:
        model: the trained algorithm, such as ``PPO``, with a memory or without.
        env: what it was trained in: ``MixtureAction`` and one view of the observation around LDPDist-v0,
            single or vector, and around it what SB3 puts there; ``VecNormalize``, ``VecExtractDictObs`` and
            ``FlattenObservation`` are known.
        directory: where its files go.

    Raises:
        TypeError: if a wrapper does something to observations or actions that a learner could not repeat.
        ValueError: if rules of the game do not go through JSON.
    """
    path = validation.path("directory", directory)
    settings, rules, seed = _read(model, env)
    try:
        config = Config("sb3", rules, int(model.num_timesteps), seed, asdict(settings))
    except TypeError as error:
        raise ValueError(f"the rules must be names, numbers and lists, to be read again: {error}") from error
    card = config.card(settings)
    scaling = Scaling(**settings.scaling) if settings.scaling else None
    TrainedPolicy(model, settings.features, settings.logit_range, card, scaling).save(path)
    shutil.copyfile(path / POLICY, path / CHECKPOINT)
    write_card(path / CONFIG, card)


def fit(run: Run[Settings]) -> TrainedPolicy:
    """Train a saved policy further."""
    config, settings = run.config, run.settings
    scaling = Scaling(**settings.scaling) if settings.scaling else None
    env: VecEnv = make_training_env(config.rules, settings.features, settings.num_envs, settings.logit_range)
    if settings.features == "message":
        env = VecExtractDictObs(env, "message")
    if scaling is not None:  # the same as before: it does not move any more
        env = VecNormalize(env, training=False, norm_reward=False, clip_obs=scaling.clip, epsilon=0.0)
        env.obs_rms.mean, env.obs_rms.var = np.array(scaling.mean), np.square(scaling.deviation)
    agent = sb3.begin(import_object(settings.policy, "algorithm"), None, env, run)
    trained = TrainedPolicy(agent, settings.features, settings.logit_range, run.card, scaling)
    return sb3.learn(agent, run, lambda: trained, log_interval=10)


def _read(model: BaseAlgorithm, env: Any) -> tuple[Settings, dict[str, Any], int]:
    """What of a policy's environment a learner has to repeat, the rules of the game, and the seed."""
    validation.instance("model", model, BaseAlgorithm, "an algorithm of stable-baselines3")
    found: dict[str, Any] = {}
    shown_key: str | None = None
    rules: dict[str, Any] | None = None
    num_envs = getattr(env, "num_envs", 1)
    for layer in _layers(env):
        if isinstance(layer, VecNormalize):
            if layer.norm_obs and "scaling" in found:
                raise TypeError("one VecNormalize of the observation, got one inside of another")
            if layer.norm_obs:
                found["scaling"] = asdict(_scaling(layer))
        elif isinstance(layer, VecExtractDictObs):
            shown_key = layer.key
        elif isinstance(layer, ObservationView | VectorObservationView):
            if "features" in found:
                raise TypeError(f"one view of the observation, got {layer} inside of another")
            kind = layer.view.features
            found["features"] = next(name for name, known in FEATURES.items() if known is kind)
        elif isinstance(layer, MixtureAction | VectorMixtureAction):
            found["logit_range"] = layer.logit_range
        elif isinstance(layer, LDPDistEnv | LDPDistVectorEnv):
            spec = layer.spec
            if spec is None:
                raise TypeError(
                    "make the environment by gym.make or gym.make_vec, so that its rules are known"
                )
            rules = {name: value for name, value in spec.kwargs.items() if name in DEFAULTS}
        elif (name := type(layer).__name__) not in _CHANGE_NOTHING:
            raise TypeError(
                f"a learner cannot repeat what {name} does: known are a view of the observation "
                f"(Evidence, HypothesisFeatures, DecodedMessage), MixtureAction, VecNormalize, "
                f"VecExtractDictObs, and what changes nothing ({', '.join(_CHANGE_NOTHING)})"
            )
    for part, name in (("features", "a view of the observation"), ("logit_range", "MixtureAction")):
        if part not in found:
            raise TypeError(f"the environment needs {name} around LDPDist-v0, got {env}")
    if found["features"] == "message" and shown_key != "message":
        raise TypeError(
            "a learner gets candidates and messages, no contexts: let the policy see the message alone, "
            'VecExtractDictObs(env, "message")'
        )
    assert rules is not None, "the innermost layer has them"
    policy = f"{type(model).__module__}:{type(model).__qualname__}"
    return Settings(policy, num_envs=num_envs, **found), rules, int(model.seed or 0)


def _layers(env: Any) -> Iterator[Any]:
    """An environment and what it is around, from the outside in; of several alike, the first."""
    while env is not None:
        yield env
        if isinstance(env, VecEnvWrapper):
            env = env.venv
        elif isinstance(env, DummyVecEnv):
            env = env.envs[0]
        elif isinstance(env, SB3VecEnv):
            env = env.envs
        else:
            env = env.env if isinstance(env, gym.Wrapper | gym.vector.VectorWrapper) else None


def _scaling(layer: VecNormalize) -> Scaling:
    if isinstance(layer.obs_rms, dict):
        raise TypeError("VecNormalize around a Dict is not known: put VecExtractDictObs inside of it")
    deviation = np.sqrt(layer.obs_rms.var + layer.epsilon)
    return Scaling(layer.obs_rms.mean.tolist(), deviation.tolist(), float(layer.clip_obs))
