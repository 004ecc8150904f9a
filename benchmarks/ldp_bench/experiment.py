"""Experiments, the cells they are cut into, and the keys of cells."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ldp_bench.fingerprints import fingerprint, learner_code, own_code, part_code
from ldp_gym.channels.base import CHANNELS
from ldp_gym.core import VERSION, validation
from ldp_gym.core.errors import NoPrivacyWarning
from ldp_gym.core.registry import Registry, import_object, is_address
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
        """Check the values; rules that are a dict become Rules."""
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
        return _sizes(self.rules).num_hypotheses

    @property
    def num_labels(self) -> int:
        return _sizes(self.rules).num_labels

    @property
    def horizon(self) -> int:
        return self.rules.rounds or _sizes(self.rules).horizon

    @property
    def has_member_truth(self) -> bool:
        """True if the truth is a member of the class, which theorems and Bayes' optimality assume."""
        return isinstance(self.rules.truth, int) or "truth" not in self.rules.given

    @property
    def family(self) -> str:
        """Name of the class of hypotheses; "table" if it has none."""
        if isinstance(self.rules.hypotheses, str):
            return self.rules.hypotheses
        return "table"

    @property
    def hypotheses(self) -> str:
        """The hypotheses in words: their family, K and M."""
        return f"{self.family}, K = {self.num_hypotheses}, M = {self.num_labels:,}"

    @cached_property
    def setup(self) -> dict[str, Any]:
        """Everything that identifies the experiment but the number of episodes and their blocks."""
        return {
            "rules": json.loads(self.rules.key),
            "learner": self.learner,
            "options": dict(self.options),
            "truth": self.truth,
            "leaders": self.leaders,
        }

    def sources(self) -> dict[str, str]:
        """Fingerprints, by name, of our packages and of the user's code, data and models that are named."""
        ours = own_code()
        fingerprints = {self.learner: learner_code(self.learner), **_parts_code(self.rules)}
        of_others = {name: code for name, code in fingerprints.items() if code != ours}
        return {"ldp-gym": ours, **of_others}

    def cells(self, seed: int) -> list[Cell]:
        """Cut the episodes into blocks, which are the same for every learner; the first has this seed."""
        sources = self.sources()
        block = max(1, min(self.block, _CELL_ROUNDS // self.horizon))
        cells = []
        for start in range(0, self.episodes, block):
            episodes = min(block, self.episodes - start)
            cells.append(Cell(replace(self, episodes=episodes), seed + start, sources))
        return cells

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
        rounds = self.experiment.episodes * self.experiment.horizon
        if self.experiment.truth == "all":
            rounds *= self.experiment.num_hypotheses
        return rounds

    @cached_property
    def configuration(self) -> str:
        """Everything that the result of the cell depends on, as one line of JSON."""
        return canonical(
            {
                **self.experiment.setup,
                "episodes": self.experiment.episodes,
                "seed": self.seed,
                "version": VERSION,
                "sources": dict(self.sources),
            }
        )

    @cached_property
    def key(self) -> str:
        """Hash of the configuration."""
        return fingerprint(self.configuration.encode())


@lru_cache(maxsize=32)
def make_scenario(rules: Rules) -> Scenario:
    """Make the scenario of a game, once; without a warning on channels without privacy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoPrivacyWarning)
        return rules.scenario()


class _Sizes(NamedTuple):
    """Sizes K, M and T of a game."""

    num_hypotheses: int
    num_labels: int
    horizon: int


@lru_cache(maxsize=64)  # rules hold a user's data
def _sizes(rules: Rules) -> _Sizes:
    """Sizes of a game, read from the same game on a channel that fits every class."""
    others = {name: value for name, value in rules.given.items() if name not in CHANNEL_RULES}
    scenario = make_scenario(Rules(**others, channel="randomized-response"))
    return _Sizes(scenario.game.num_hypotheses, scenario.game.num_labels, scenario.horizon)


def _parts_code(rules: Rules) -> dict[str, str]:
    """Fingerprints, by name, of the packages and the data that the rules of a game name."""
    codes = {}
    for party, registry in PARTY_REGISTRIES.items():
        part = getattr(rules, party)
        if isinstance(part, str):
            codes[part] = part_code(registry, part)

        options = getattr(rules, f"{party}_kwargs") or {}
        for address in filter(is_address, [part, *options.values()]):
            codes[address] = part_code(registry, address)
            data = import_object(address, "data")
            if hasattr(data, "__array__") or isinstance(data, list | tuple):
                values = json.dumps(data, default=_describe_datum)
                codes[f"values of {address}"] = fingerprint(values.encode())
    return codes


def _describe_datum(value: Any) -> Any:
    """Describe an array or a fitted classifier by its contents, and anything else by its class."""
    has_data = hasattr(value, "__array__") or hasattr(value, "predict_proba")
    if has_data:
        return describe_object(value)
    return describe_object(type(value))
