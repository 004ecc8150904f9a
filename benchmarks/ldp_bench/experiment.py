"""Experiments, the cells they are cut into, and the keys of cells."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION, validation
from ldp_gym.core.errors import NoPrivacyWarning
from ldp_gym.core.registry import PACKAGES, Registry, import_object, is_address
from ldp_gym.engine.learners import LEARNERS, is_directory
from ldp_gym.engine.rules import CHANNEL_RULES, Rules, canonical, describe_object
from ldp_gym.engine.scenario import Scenario
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.natures.base import NATURES
from ldp_gym.truths.base import TRUTHS

_CELL_ROUNDS = 10**6
"""Largest number of rounds of a cell with more than one episode."""

PARTY_REGISTRIES: dict[str, Registry[Any]] = {
    "hypotheses": HYPOTHESES,
    "truth": TRUTHS,
    "channel": CHANNELS,
    "nature": NATURES,
}
"""Registries of the parties of a game, by the rule that names the party."""


@dataclass(frozen=True)
class Experiment:
    """A learner in a game, for a number of episodes.

    Attributes:
        rules: rules of the game; a dict of keyword arguments of ``gym.make("LDPDist-v0", ...)`` becomes one.
        learner: a learner's name, ``module:Class``, or a trained model's directory.
        options: the learner's options.
        episodes: number of episodes; episode i has seed ``seed + i``, for every learner.
        truth, leaders: as in :func:`ldp_gym.evaluate`.
        block: largest number of episodes of a cell; long games have fewer.
    """

    rules: Rules
    learner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 32
    truth: int | str | None = None
    leaders: bool = False
    block: int = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", Rules.of(self.rules))
        validation.text("learner", self.learner)
        validation.options_dict("options", self.options)
        if self.truth is not None and not isinstance(self.truth, str):
            validation.whole("truth", self.truth, least=0)
        for count in ("episodes", "block"):
            validation.whole(count, getattr(self, count), least=1)
        validation.flag("leaders", self.leaders)

    @property
    def channel(self) -> str:
        return str(self.rules.channel)

    @property
    def channel_rules(self) -> dict[str, Any]:
        """The given rules about the channel."""
        return {name: self.rules.given[name] for name in CHANNEL_RULES if name in self.rules.given}

    @property
    def epsilon(self) -> float:
        return float(self.rules.promise["epsilon"])

    @property
    def num_hypotheses(self) -> int:
        return _sizes(self.rules)[0]

    @property
    def num_labels(self) -> int:
        return _sizes(self.rules)[1]

    @property
    def horizon(self) -> int:
        return self.rules.rounds or _sizes(self.rules)[2]

    @property
    def has_member_truth(self) -> bool:
        """True if the truth is a member of the class, which theorems and Bayes' optimality assume."""
        return isinstance(self.rules.truth, int) or "truth" not in self.rules.given

    @property
    def family(self) -> str:
        """Name of the class of hypotheses; "table" if it has none."""
        return self.rules.hypotheses if isinstance(self.rules.hypotheses, str) else "table"

    @property
    def hypotheses(self) -> str:
        """The hypotheses in words: their family, K and M."""
        return f"{self.family}, K = {self.num_hypotheses}, M = {self.num_labels:,}"

    @cached_property
    def setup(self) -> dict[str, Any]:
        """Everything that identifies the experiment but the number of episodes and their blocks."""
        played = {"learner": self.learner, "truth": self.truth, "leaders": self.leaders}
        return {"rules": json.loads(self.rules.key), "options": dict(self.options), **played}

    def cells(self, seed: int) -> list[Cell]:
        """Cut the episodes into blocks, which are the same for every learner."""
        sources, block = _sources(self), max(1, min(self.block, _CELL_ROUNDS // self.horizon))
        return [
            Cell(replace(self, episodes=min(block, self.episodes - start)), seed + start, sources)
            for start in range(0, self.episodes, block)
        ]

    def __str__(self) -> str:
        return f"{self.learner} on {self.channel}, T = {self.horizon:,}"


@dataclass(frozen=True)
class Cell:
    """A block of an experiment's episodes, with the first seed and fingerprints of the code that plays it."""

    experiment: Experiment
    seed: int
    sources: Mapping[str, str]

    @property
    def rounds(self) -> int:
        """Number of rounds to play, to which the time is proportional."""
        truths = self.experiment.num_hypotheses if self.experiment.truth == "all" else 1
        return self.experiment.episodes * self.experiment.horizon * truths

    @cached_property
    def configuration(self) -> str:
        """Everything that the result of the cell depends on, as one line of JSON."""
        played = {"episodes": self.experiment.episodes, "seed": self.seed}
        code = {"version": VERSION, "sources": dict(self.sources)}
        return canonical({**self.experiment.setup, **played, **code})

    @cached_property
    def key(self) -> str:
        """Hash of the configuration."""
        return fingerprint(self.configuration.encode())


@lru_cache(maxsize=32)
def make_scenario(rules: Rules) -> Scenario:
    """The scenario of a game, built once; without a warning on channels without privacy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoPrivacyWarning)
        return rules.scenario()


@lru_cache(maxsize=64)  # rules hold a user's data
def _sizes(rules: Rules) -> tuple[int, int, int]:
    """K, M and T of a game, from the same game on a channel that fits every class."""
    others = {name: value for name, value in rules.given.items() if name not in CHANNEL_RULES}
    scenario = make_scenario(Rules(**others, channel="randomized-response"))
    return scenario.game.num_hypotheses, scenario.game.num_labels, scenario.horizon


# -- The code that a result depends on ----------------------------------------------------------------------


def _sources(experiment: Experiment) -> dict[str, str]:
    """Fingerprints of this package, and of the modules, data and models that an experiment names."""

    def described(value: Any) -> Any:  # what is neither data nor fitted to data by its class
        has_data = hasattr(value, "__array__") or hasattr(value, "predict_proba")
        return describe_object(value if has_data else type(value))

    sources = {"ldp-gym": own_code(), experiment.learner: learner_code(experiment.learner)}
    for party, registry in PARTY_REGISTRIES.items():
        name = getattr(experiment.rules, party)
        if isinstance(name, str):
            sources[name] = _part_code(registry, name)
        options = getattr(experiment.rules, f"{party}_kwargs") or {}
        for address in filter(is_address, (name, *options.values())):
            data = import_object(address, "data")
            if hasattr(data, "__array__") or isinstance(data, list | tuple):
                sources[f"values of {address}"] = fingerprint(
                    json.dumps(data, default=described).encode()
                )
            sources[address] = _part_code(registry, address)
    return {name: code for name, code in sources.items() if code != own_code() or name == "ldp-gym"}


@cache  # imported code is fixed
def own_code() -> str:
    """Fingerprint of this package, and of the weights that come with it."""
    folders = [folder for package in ("ldp_gym", "ldp_agents") for folder in _places(package)]
    without_effect = {folder / "envs" / "rendering" for folder in folders}
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc"]
    return _files_hash(path for path in files if not without_effect & set(path.parents))


def learner_code(learner: str) -> str:
    """Fingerprint of a learner's package (without importing it), or of a trained model's files."""
    return (
        _files_hash(Path(learner).iterdir())
        if is_directory(learner)
        else _part_code(LEARNERS, learner)
    )


def _part_code(registry: Registry[Any], name: str) -> str:
    """Fingerprint of the package that defines the part of this name."""
    package = registry.package_of(name)
    if package in PACKAGES:
        return own_code()
    try:
        return _files_hash(
            path for place in _places(package) for path in (place, *place.rglob("*.py"))
        )
    except (ImportError, ValueError) as error:
        raise ValueError(f"cannot import {registry.kind} {name!r}: {error}") from error


def _places(package: str) -> list[Path]:
    """A package's folders, or the file of a module."""
    spec = find_spec(package)
    if spec is None:
        raise ImportError(f"No module named {package!r}")
    return [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]


def _files_hash(paths: Iterable[Path]) -> str:
    files = sorted(path for path in paths if path.is_file())
    return fingerprint(b"".join(path.read_bytes() for path in files))


def fingerprint(content: bytes) -> str:
    """SHA-256 hash of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
