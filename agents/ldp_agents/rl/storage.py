"""Directories of trained models: saved, loaded, and the one that comes with the package."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ldp_agents.rl.learner import Model, NetworkLearner
from ldp_agents.rl.policies import PolicyLearner, algorithm_class, game_parameters
from ldp_gym.core import validation
from ldp_gym.core.errors import IncompatibleChannelError, UntrustedCodeError
from ldp_gym.core.files import pack_arrays, unpack_arrays, versions, write_bytes
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import MakeLearner, Track
from ldp_gym.envs.box import BoxArguments
from ldp_gym.envs.features import Logits, RawRow, RunningEvidence

MODEL = "model.ldp"
"""File of a model: its card, and arrays or a policy of stable-baselines3 (which is a pickle)."""

_POLICY = "policy"
"""Entry of a card that names a policy's algorithm, and array with the bytes of its file."""

SHIPPED = Path(__file__).parent / "weights" / "amortized"
"""Directory of the model that comes with the package."""

MODEL_PACKAGES = ("ldp-gym", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")
"""Packages whose versions are recorded on a model's card."""


def save(model: Any, directory: str | Path) -> None:
    """Store a trained model: ``evaluate`` and the benchmark then play it.

    A policy that reads raw messages is stored too, but it is no learner: learners see no contexts.

    Args:
        model: a :class:`Model`, or an algorithm of stable-baselines3 or sb3-contrib that was
            trained on LDPDistBox-v0.
        directory: where its files go.

    Raises:
        TypeError: if its environment is not LDPDistBox-v0, or has other spaces.
            A wrapper that changes values and keeps the spaces is not noticed.
        ValueError: if rules of the game cannot be written as JSON, or the algorithm is a custom
            one.
    """
    path = validation.path("directory", directory)
    arrays: dict[str, npt.NDArray[Any]]
    if isinstance(model, Model):
        card = {"trained_on": dict(model.trained_on), **model.card}
        arrays = {name: np.asarray(array, np.float32) for name, array in model.parameters.items()}
    else:
        card = _policy_card(model)
        policy = io.BytesIO()
        model.save(policy)
        arrays = {_POLICY: np.frombuffer(policy.getvalue(), np.uint8)}

    path.mkdir(parents=True, exist_ok=True)
    write_bytes(path / MODEL, pack_arrays(arrays, card))


def load(directory: str | Path, *, trust: bool = False) -> MakeLearner:
    """Load a trained model: a picklable function from Game to Learner.

    Args:
        directory: directory that ``ldp-gym train`` or :func:`save` has written.
        trust: whether to read a policy of stable-baselines3, which runs whatever code it holds.

    Raises:
        FileNotFoundError: if there is no model in the directory.
        ValueError: if its files are damaged.
        UntrustedCodeError: if it holds such a policy, and ``trust`` is not set.
    """
    path = validation.path("directory", directory)
    trust = validation.flag("trust", trust)
    if not (path / MODEL).exists():
        raise FileNotFoundError(f"no {MODEL} in {path}, which save() and 'ldp-gym train' write")

    card, arrays = read_model(path)
    holds_network = _POLICY not in card
    if holds_network:
        parameters = {name: array.astype(np.float64) for name, array in arrays.items()}
        return Model(parameters, card.pop("trained_on"), card)
    if not trust:
        raise UntrustedCodeError(
            f"{path / MODEL} runs whatever code it holds when it is read. If you trust whoever made it, "
            f"say so: trust=True, or --trust on the command line"
        )
    return StoredPolicy(path)


@dataclass(frozen=True)
class StoredPolicy:
    """A policy in a directory, read when it makes a learner: it can be sent to another process."""

    track: ClassVar[Track] = "informed"

    directory: Path

    @property
    def example_rules(self) -> dict[str, Any]:
        """The rules of the game that it was trained on."""
        card, _ = read_model(self.directory)
        return dict(card["config"]["rules"])

    def __call__(self, game: Game) -> PolicyLearner:
        """Read the policy, and return it as a learner of a game.

        Raises:
            IncompatibleChannelError: if the policy reads raw messages, or the game differs from
                the one that it was trained on.
        """
        card, _ = read_model(self.directory)
        if card["config"].get("observation") == "message":
            raise IncompatibleChannelError(
                f"the policy in {self.directory} reads raw messages next to their contexts, which "
                f"learners are not shown: score load({str(self.directory)!r}, trust=True).algorithm with "
                f'score_policy(model, "LDPDistBox-v0", observation="message", ...)'
            )
        return PolicyLearner(game, self.algorithm, card["trained_on"])

    @property
    def algorithm(self) -> Any:
        """The policy as the algorithm of stable-baselines3 that trained it, read from its file."""
        card, arrays = read_model(self.directory)
        policy = io.BytesIO(arrays[_POLICY].tobytes())
        return algorithm_class(card[_POLICY]).load(policy, device="cpu")


def _policy_card(model: Any) -> dict[str, Any]:
    """Describe an SB3 model that was trained on LDPDistBox-v0: its game, steps and versions.

    Raises:
        TypeError: if it is not a model of SB3, its environment is not LDPDistBox-v0, or a wrapper
            changes observations or actions.
        ValueError: if its class is not one of the libraries' own.
    """
    _check_algorithm(model)
    arguments = _box_arguments(model)
    _check_spaces(model, arguments)
    name = type(model).__name__
    return {
        _POLICY: name,
        "trained_on": game_parameters(arguments.scenario().game),
        "config": {
            "algorithm": name,
            "rules": json.loads(arguments.to_json()),
            "observation": arguments.observation,
            "steps": int(model.num_timesteps),
        },
        "versions": versions(*MODEL_PACKAGES),
    }


def _check_algorithm(model: Any) -> None:
    """Check that a model is an algorithm of the libraries, trained without ``VecNormalize``."""
    name = type(model).__name__
    if not callable(getattr(model, "get_env", None)):
        raise TypeError(
            f"model must be a Model or an algorithm of SB3, got {validation.describe(model)}"
        )
    if type(model) is not algorithm_class(name):
        raise ValueError(f"only the algorithms of the libraries can be stored, got a custom {name}")
    if model.get_vec_normalize_env() is not None:
        raise TypeError(
            "a learner cannot repeat VecNormalize: train without it, the features are scaled"
        )


def _box_arguments(model: Any) -> BoxArguments:
    """Return the arguments of the LDPDistBox-v0 that an SB3 model was trained on."""
    name = type(model).__name__
    env = model.get_env()
    spec = None
    if env is not None:
        spec = env.get_attr("spec")[0]
    if spec is None:
        raise TypeError(
            f"the model must have been trained on LDPDistBox-v0, got no game: a reloaded model needs "
            f"{name}.load(file, env=make_sb3_env(...))"
        )
    if not spec.id.startswith("LDPDistBox"):
        raise TypeError(f"the model must have been trained on LDPDistBox-v0, got {spec.id}")

    arguments: BoxArguments = env.get_attr("arguments")[0]
    return arguments


def _check_spaces(model: Any, arguments: BoxArguments) -> None:
    """Check that a model's observations and actions are those of the game, without wrappers.

    Raises:
        TypeError: if a space differs.
    """
    scenario = arguments.scenario()
    game = scenario.game
    if arguments.observation == "evidence":
        observations = RunningEvidence.space(game)
    else:
        observations = RawRow(scenario.observation_space, scenario.horizon).space
    logits = Logits(game.num_hypotheses, arguments.logit_range)
    if model.observation_space != observations or model.action_space != logits.space:
        raise TypeError(
            f"a learner cannot repeat wrappers that change observations or actions: train on the "
            f"environment as it is, got {model.observation_space} and {model.action_space}"
        )


class StoredModel(NamedTuple):
    """A model's card, with its training games and configuration, and its arrays by name."""

    card: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]


def read_model(directory: Path) -> StoredModel:
    """Read the file of a model without running what it holds. A card that names code is refused.

    Raises:
        ValueError: if the file is damaged, or not that of a model.
    """
    path = directory / MODEL
    try:
        arrays, card = unpack_arrays(path.read_bytes())
        # A card without training games fails this check: "missing" is not a dict.
        validation.options_dict("trained_on", card.get("trained_on", "missing"))
        refuse_addresses(card.get("config", {}).get("rules", {}), MODEL)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a model: {error}") from error
    return StoredModel(card, arrays)


_shipped: Any = cache(partial(load, SHIPPED))


class Amortized(NetworkLearner):
    """Network that judges how much a message says about labels; its risk is close to Bayes'.

    It was trained on simulated games: ``ldp-gym train amortized`` makes it; docs/learned.md says
    what it was trained on.

    Args:
        game: the public rules.
    """

    load = staticmethod(load)

    def __init__(self, game: Game) -> None:
        super().__init__(game, _shipped())
