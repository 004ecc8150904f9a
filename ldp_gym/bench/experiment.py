"""What a suite plays, the cells it is cut into, and their keys."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION, validation
from ldp_gym.core.errors import NoPrivacyWarning
from ldp_gym.core.registry import PACKAGES, Registry, import_object, is_address, is_own
from ldp_gym.engine.learners import LEARNERS, as_make_learner, is_directory
from ldp_gym.engine.rules import DEFAULTS, as_rules, rule_value
from ldp_gym.engine.scenario import Scenario
from ldp_gym.hypotheses.base import HYPOTHESES
from ldp_gym.natures.base import NATURES
from ldp_gym.truths.base import TRUTHS

BLOCK = 25
"""How many episodes of one truth a cell plays, unless its suite says otherwise."""

CHANNEL_RULES = ("channel", "channel_kwargs", "epsilon", "delta")
"""The rules that are about the channel: what it is, and what it promises."""

_PARTIES: dict[str, Registry[Any]] = {
    "hypotheses": HYPOTHESES,
    "truth": TRUTHS,
    "channel": CHANNELS,
    "nature": NATURES,
}
"""The rules that name a party of the game; the party's options stand beside it, in ``..._kwargs``."""


@dataclass(frozen=True)
class Experiment:
    """A learner in a game, for a number of episodes.

    Attributes:
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists, so that they go
            through JSON.
        learner: a learner's name, your own as ``module:Class``, or a trained model's directory.
        options: the learner's options.
        episodes: how many; episode i has seed ``seed + i``, for every learner.
        truth: as in :func:`ldp_gym.evaluate`.
        averages: whether to keep the average predictions too, as in :func:`ldp_gym.evaluate`.
        leaders: whether to keep the leader at each checkpoint too, as in :func:`ldp_gym.evaluate`.
        block: how many episodes a cell plays.
    """

    rules: Mapping[str, Any]
    learner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    episodes: int = 32
    truth: int | str | None = None
    averages: bool = False
    leaders: bool = False
    block: int = BLOCK

    def __post_init__(self) -> None:
        """Check what does not depend on the game."""
        as_rules("rules", self.rules)
        validation.text("learner", self.learner)
        validation.options("options", validation.instance("options", self.options, Mapping, "a dict"))
        if self.truth is not None and not isinstance(self.truth, str):
            validation.whole("truth", self.truth, least=0)
        validation.whole("episodes", self.episodes, least=1)
        validation.whole("block", self.block, least=1)
        validation.flag("averages", self.averages)
        validation.flag("leaders", self.leaders)

    @property
    def channel(self) -> str:
        """The channel's name."""
        return str(rule_value(self.rules, "channel"))

    @property
    def horizon(self) -> int:
        """T; all rows of a replay, where the rules do not say."""
        given = self.rules.get("horizon")
        return self._scenario.horizon if given is None else int(given)

    @property
    def num_hypotheses(self) -> int:
        """K."""
        return self._scenario.hypotheses.num_hypotheses

    @property
    def num_labels(self) -> int:
        """M."""
        return self._scenario.hypotheses.num_labels

    @property
    def _scenario(self) -> Scenario:
        irrelevant = ("channel", "channel_kwargs", "delta")  # to the class
        return _scenario(
            json.dumps({name: self.rules[name] for name in self.rules if name not in irrelevant})
        )

    @property
    def has_member_truth(self) -> bool:
        """Whether the truth is a member of the class: theorems and Bayes' optimality speak of no other."""
        truth = rule_value(self.rules, "truth")
        return truth == "uniform" or isinstance(truth, int)

    @property
    def hypotheses(self) -> str:
        """The class of the game in words, with K and M."""
        name = rule_value(self.rules, "hypotheses")
        family = name if isinstance(name, str) else "table"
        return f"{family}, K = {self.num_hypotheses}, M = {self.num_labels:,}"

    def describe_hypothesis(self, index: int) -> str:
        """A hypothesis in words: its index, and what it is where it is a fitted classifier."""
        models = getattr(self._scenario.hypotheses, "models", None)
        if models is None:
            return f"hypothesis {index}"
        last = getattr(models[index], "steps", [(None, models[index])])[-1][1]  # of a pipeline
        return f"hypothesis {index} ({type(last).__name__})"

    @cached_property
    def canonical_rules(self) -> str:
        """The rules in one line: a game with its defaults spelled out is the same game."""
        rules = {name: rule_value(self.rules, name) for name in DEFAULTS} | {"horizon": self.horizon}
        for party, registry in _PARTIES.items():
            options = dict(rules[f"{party}_kwargs"] or {})
            if isinstance(rules[party], str):
                for option, default in registry.defaults(rules[party]).items():
                    known = rules if option in rules else options
                    known[option] = default if known.get(option) is None else known[option]
            rules[f"{party}_kwargs"] = options
        rules |= {name: float(rules[name]) for name in ("epsilon", "delta", "max_loss")}
        return json.dumps(rules, sort_keys=True, default=repr)

    @property
    def setup(self) -> dict[str, Any]:
        """What is played; not how often, nor in which blocks."""
        return {
            "rules": json.loads(self.canonical_rules),
            "learner": self.learner,
            "options": dict(self.options),
            "truth": self.truth,
            "averages": self.averages,
            "leaders": self.leaders,
        }

    def cells(self, seed: int) -> list[Cell]:
        """Its episodes in blocks. They do not depend on the learner, or on how many are played at a time."""
        sources = _sources(self)
        return [
            Cell(replace(self, episodes=min(self.block, self.episodes - start)), seed + start, sources)
            for start in range(0, self.episodes, self.block)
        ]

    def __str__(self) -> str:
        return f"{self.learner} on {self.channel}, T = {self.horizon:,}"


@dataclass(frozen=True)
class Cell:
    """A block of an experiment's episodes: the unit of work, of storage and of resumption.

    Attributes:
        experiment: what is played.
        seed: the first episode's.
        sources: the fingerprints of the code and models that play it, by name.
    """

    experiment: Experiment
    seed: int
    sources: Mapping[str, str]

    @property
    def rounds(self) -> int:
        """How many rounds it plays: what its time goes with."""
        experiment = self.experiment
        truths = experiment.num_hypotheses if experiment.truth == "all" else 1
        return experiment.episodes * experiment.horizon * truths

    @cached_property
    def configuration(self) -> str:
        """Everything that its result depends on, in one canonical line."""
        played = {"episodes": self.experiment.episodes, "seed": self.seed}
        code = {"version": VERSION, "sources": dict(self.sources)}
        facts = {**self.experiment.setup, **played, **code}
        return json.dumps(facts, sort_keys=True, allow_nan=False)

    @cached_property
    def key(self) -> str:
        """The configuration's fingerprint."""
        return hashlib.sha256(self.configuration.encode()).hexdigest()


@cache  # the experiments of a suite share a few classes
def _scenario(rules: str) -> Scenario:
    return Scenario(**json.loads(rules))


def make_scenario(**rules: Any) -> Scenario:
    """The scenario of a game, with no warning where it has no privacy: here that is a reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoPrivacyWarning)
        return Scenario(**rules)


# -- The code that a result depends on ----------------------------------------------------------------------


def _sources(experiment: Experiment) -> dict[str, str]:
    """The fingerprints of all code and models that play: changed, they are another configuration."""
    sources = {"ldp-gym": own_code(), experiment.learner: learner_code(experiment.learner)}
    for party, registry in _PARTIES.items():
        name = rule_value(experiment.rules, party)
        if isinstance(name, str):
            sources[name] = package_code(registry, name)
            options = rule_value(experiment.rules, f"{party}_kwargs") or {}
            data = [value for value in (name, *options.values()) if is_address(value)]
            sources |= {f"{party} {address}": data_code(address) for address in data}
    return {name: code for name, code in sources.items() if code != own_code() or name == "ldp-gym"}


@cache  # it stays as it was imported
def own_code() -> str:
    """The fingerprint of this package, and of the weights that come with it."""
    folders = [folder for package in PACKAGES for folder in _places(package)]
    without_effect = {folder / name for folder in folders for name in ("bench", "cli", "rendering")}
    files = [path for folder in folders for path in folder.rglob("*")]
    files = [path for path in files if not without_effect & set(path.parents)]
    return _fingerprint(path for path in files if path.suffix != ".pyc")


def package_code(registry: Registry[Any], name: str) -> str:
    """The fingerprint of the package, or module outside of any, that offers a name. It is not imported.

    Raises:
        ValueError: if there is no such package.
    """
    if registry.is_builtin(name):
        return own_code()
    try:
        places = _places(registry.package_of(name))
    except (ImportError, ValueError) as error:
        raise ValueError(f"cannot import {registry.kind} {name!r}: {error}") from error
    return _modules_code(places)


@cache  # it stays as it was imported
def data_code(address: str) -> str:
    """The fingerprint of the module that ``"module:object"`` is in, and of the object where it is data.

    The module's package counts as a whole. A file that the module reads is not known here, but what it gives
    is, where that is an array, a list or a data frame.

    Raises:
        ValueError: if there is no such module or object.
    """
    found = import_object(address, "data")
    module = address.partition(":")[0]
    package = module.partition(".")[0]
    code = _modules_code(_places(module if is_own(module) else package))
    data = np.asarray(found) if _is_data(found) else np.zeros(0)
    values = repr(data.tolist()).encode() if data.dtype == object else data.tobytes()
    return hashlib.sha256(code.encode() + values).hexdigest()


def _is_data(found: object) -> bool:
    """Whether an object is an array, a data frame, or a list of numbers, names or rows."""
    if isinstance(found, list | tuple):
        return all(isinstance(row, int | float | str | list | tuple | np.ndarray) for row in found)
    return hasattr(found, "__array__")


def _modules_code(places: Iterable[Path]) -> str:
    return _fingerprint(
        path for place in places for path in ([place] if place.is_file() else place.rglob("*.py"))
    )


def learner_code(learner: str) -> str:
    """The fingerprint of a learner's package, or of a trained model's files."""
    if is_directory(learner):
        return _fingerprint(Path(learner).iterdir())
    return package_code(LEARNERS, learner)


def _places(package: str) -> list[Path]:
    """A package's folders, or the file of a module."""
    spec = find_spec(package)
    if spec is None:
        raise ImportError(f"No module named {package!r}")
    return [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]


def _fingerprint(paths: Iterable[Path]) -> str:
    files = sorted(path for path in paths if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def may_play_here(learner: str) -> bool:
    """Whether a learner's code comes with this package: others play in a process of their own.

    A trained model is numbers, and our code plays them; unless what is stored runs code when it is read.
    """
    return not runs_stored_code(learner) if is_directory(learner) else LEARNERS.is_builtin(learner)


def runs_stored_code(learner: str) -> bool:
    """Whether a learner is a trained model whose files run code when they are read; here they are not."""
    return is_directory(learner) and getattr(as_make_learner(learner, trust=True), "runs_stored_code", False)
