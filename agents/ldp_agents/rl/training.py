"""Train an agent, score it on held-out episodes, and store the model in a directory."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import ldp_gym
from ldp_agents.rl import amortized, ppo
from ldp_agents.rl.learner import Model
from ldp_agents.rl.policies import PolicyLearner, game_parameters
from ldp_agents.rl.storage import CARD, MODEL_PACKAGES, load, save
from ldp_gym.core import validation
from ldp_gym.core.errors import IncompatibleChannelError, OutsideTrainingWarning, extra
from ldp_gym.core.files import versions, write_text
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.core.seed_ranges import VALIDATION
from ldp_gym.engine.learners import MakeLearner
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.box import BoxArguments

with extra("rl", "training"):
    from rich.console import Console


ProgressCallback = Callable[[int, Callable[[], Any]], None]
"""Callback of a training run: rounds played, and a function that returns the current model."""


class Algorithm(NamedTuple):
    """An algorithm: settings class, training function, and default number of rounds."""

    settings: type[Any]
    fit: Callable[..., Any]
    steps: int


ALGORITHMS = {
    "ppo": Algorithm(ppo.PPOSettings, ppo.fit_ppo, 300_000),
    "amortized": Algorithm(amortized.AmortizedSettings, amortized.fit_amortized, 30_000_000),
}

COMPARED = ("uniform", "exp3", "bayes")
"""Learners whose total KL is shown next to that of the agent."""

CONFIG, SCORES = "config.json", "scores.jsonl"
"""Files in the directory of a run, next to its model."""


def algorithm_of(name: str) -> Algorithm:
    """Look up a training algorithm by name."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


@dataclass(frozen=True)
class Config:
    """Configuration of one training run.

    Attributes:
        algorithm: ``ppo`` or ``amortized``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``. ``ppo`` trains on this game;
            ``amortized`` trains on random games, and is only scored on this one.
        steps: number of rounds to play.
        seed: seed of the episodes and of the network.
        settings: settings of the algorithm that differ from its defaults.
    """

    algorithm: str
    rules: Mapping[str, Any]
    steps: int
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the configuration, and complete the rules."""
        validation.text("algorithm", self.algorithm)
        validation.whole("steps", self.steps, least=1)
        validation.seed("seed", self.seed)
        validation.options_dict("settings", self.settings)
        object.__setattr__(
            self, "rules", json.loads(BoxArguments.of(Rules.of(self.rules)).to_json())
        )

    def read(self, kind: type[Any]) -> Any:
        """The settings of the algorithm, completed by its defaults."""
        known = vars(kind())
        for name, value in self.settings.items():
            if name not in known:
                has = ", ".join(f"{setting}={default}" for setting, default in known.items())
                raise ValueError(f"{self.algorithm} has no setting {name!r}; it has {has}")
            default = known[name]
            if isinstance(default, tuple):
                if not isinstance(value, list) or not all(
                    type(one) is type(default[0]) for one in value
                ):
                    raise ValueError(
                        f"{name} must be a list such as {list(default)}, got {value!r}"
                    )
            elif isinstance(default, int):
                validation.whole(name, value, least=1)
            elif isinstance(default, float):
                validation.real(name, value)
        return kind(
            **{name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()}
        )

    def card(self, settings: Any) -> dict[str, Any]:
        """Entries of a model's card: the configuration with all settings, and the versions of packages."""
        config = {**asdict(self), "settings": asdict(settings)}
        return {"config": config, "versions": versions(*MODEL_PACKAGES)}


def train_agent(
    config: Config,
    out: Path,
    *,
    console: Console | None = None,
    scores: int = 20,
    episodes: int = 64,
) -> MakeLearner:
    """Train an agent, save it in a directory, and load it from there.

    The directory gets the model, which :func:`ldp_agents.rl.load` reads, at every score, so that a run that
    is stopped leaves the last one; ``config.json``; and ``scores.jsonl``, total KL on held-out episodes.

    Args:
        config: the configuration.
        out: the directory.
        console: console that shows the scores; without one nothing is shown.
        scores: number of times that the model is scored.
        episodes: number of held-out episodes of a score.

    Raises:
        FileExistsError: if there is a model in the directory.
        ValueError: if the algorithm or a setting is unknown, or a rule names code: a stored model may only
            name registered parts.
    """
    algorithm = algorithm_of(config.algorithm)
    refuse_addresses(config.rules, CONFIG)
    settings = config.read(algorithm.settings)
    if (out / CARD).exists():
        raise FileExistsError(
            f"{out} holds a model already: choose another directory, or delete it"
        )
    progress = _Recorder(config, out, scores, episodes, console or Console(quiet=True))
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / CONFIG, json.dumps(config.card(settings), indent=2) + "\n")
    save(algorithm.fit(config, settings, progress), out)
    model = load(out, trust=True)  # it was written here
    progress.score(config.steps, model)
    return model


def _risk(learner: str | MakeLearner, rules: Mapping[str, Any], episodes: int) -> float | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", OutsideTrainingWarning
            )  # the score says how it does there
            return ldp_gym.evaluate(learner, rules, episodes=episodes, seed=VALIDATION.start).risk
    except IncompatibleChannelError:
        return None


@dataclass
class _Recorder:
    """Progress callback of a run: scores the model now and then, next to the reference learners."""

    config: Config
    out: Path
    scores: int
    episodes: int
    console: Console
    lines: list[str] = field(default_factory=list)
    num_scored: int = 0

    def __post_init__(self) -> None:
        self.references = {name: _risk(name, self.config.rules, self.episodes) for name in COMPARED}
        self.start_time = time.process_time()

    def __call__(self, steps: int, make_model: Callable[[], Any]) -> None:
        due = steps * self.scores // self.config.steps
        if due > self.num_scored and steps < self.config.steps:
            self.num_scored, model = due, make_model()
            save(model, self.out)
            live = lambda game: PolicyLearner(game, model, game_parameters(game))  # noqa: E731
            self.score(
                steps, model if isinstance(model, Model) else live
            )  # loading would reseed PPO

    def score(self, steps: int, model: MakeLearner) -> None:
        """Play held-out episodes, print their total KL, and write it down."""
        risks = {"kl": _risk(model, self.config.rules, self.episodes), **self.references}
        shown = ", ".join(f"{name} {risk:.1f}" for name, risk in risks.items() if risk is not None)
        self.console.print(f"{steps:,} rounds: {shown}")
        cpu_seconds = round(time.process_time() - self.start_time, 1)
        self.lines.append(json.dumps({"steps": steps, "cpu_seconds": cpu_seconds, **risks}))
        write_text(self.out / SCORES, "\n".join(self.lines) + "\n")
