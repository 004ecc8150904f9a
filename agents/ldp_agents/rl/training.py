"""Run the training of an agent: progress bar, scores on held-out episodes, checkpoints, resuming."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import ldp_gym
from ldp_agents.rl import amortized, ppo
from ldp_agents.rl.policies import differences
from ldp_agents.rl.settings import CONFIG, Config, Run, read_config
from ldp_agents.rl.storage import LearnerFactory, require_trust
from ldp_gym.core.errors import IncompatibleChannelError, OutsideTrainingWarning, extra
from ldp_gym.core.files import replacing, write_text

with extra("rl", "training"):
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class Algorithm(NamedTuple):
    """Dataclass of settings, training function, default number of rounds, whether checkpoints are pickles."""

    settings: type[Any]
    fit: Callable[[Run[Any]], Any]
    steps: int
    pickles: bool


ALGORITHMS = {
    "ppo": Algorithm(ppo.PPOSettings, ppo.fit_ppo, ppo.STEPS, True),
    "amortized": Algorithm(amortized.AmortizedSettings, amortized.fit_amortized, amortized.STEPS, False),
}

REFERENCES = ("uniform", "exp3", "bayes")
"""Learners whose total KL is shown next to that of the agent."""

CHECKPOINT, SCORES = "checkpoint.zip", "scores.jsonl"
"""Files in the directory of a run, next to its model and configuration."""

_HELD_OUT = 10**9
"""Seed of the first episode that scores a run; training uses other seeds."""


def algorithm_of(name: str) -> Algorithm:
    """The algorithm of a name."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; known: {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def train_agent(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    trust: bool = False,
    console: Console | None = None,
    scores: int = 20,
    episodes: int = 64,
) -> Any:
    """Train an agent and leave it in a directory.

    The directory gets the model, which :func:`ldp_agents.rl.load` reads; ``config.json`` with the versions;
    ``scores.jsonl``, total KL on held-out episodes during training; the last checkpoint.

    Args:
        config: the configuration.
        out: the directory.
        resume: go on from the checkpoint in the directory, with the same configuration (more steps are fine).
        trust: whether to read a checkpoint of stable-baselines3, which runs whatever code it holds.
        console: console that shows progress; without one nothing is shown.
        scores: number of times that the model is scored and a checkpoint kept.
        episodes: number of held-out episodes of a score.

    Raises:
        FileExistsError: if there is a run in the directory and ``resume`` is not set.
        ValueError: if the run there has another configuration, or the algorithm is unknown.
        UntrustedCodeError: if its checkpoint runs code, and ``trust`` is not set.
    """
    algorithm = algorithm_of(config.algorithm)
    settings = config.read(algorithm.settings)
    card = config.card(settings)
    checkpoint = _checkpoint(card["config"], out, resume)
    if checkpoint is not None and algorithm.pickles:
        require_trust(checkpoint, trust)
    references = {name: _risk(name, config.rules, episodes) for name in REFERENCES}
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / CONFIG, json.dumps(card, indent=2) + "\n")
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[score]}"),
        console=console or Console(quiet=True),
    )
    with bar:
        task = bar.add_task(config.algorithm, total=config.steps, score=_score_text(None, references))
        progress = _Recorder(config, out, scores, episodes, references, bar, task)
        model = algorithm.fit(Run(config, settings, card, progress, checkpoint))
        model.save(out)
        progress.score(config.steps, model)
    return model


def _checkpoint(now: Mapping[str, Any], out: Path, resume: bool) -> Path | None:
    """The checkpoint to go on from, if any."""
    if not (out / CONFIG).exists():
        return None
    if not resume:
        raise FileExistsError(f"{out} holds a run already: resume it, or choose another directory")
    if differ := differences(read_config(out) | {"steps": now["steps"]}, now):
        raise ValueError(f"the run in {out} has {differ}: resume it as it was")
    return out / CHECKPOINT if (out / CHECKPOINT).exists() else None


def _risk(learner: str | LearnerFactory, rules: Mapping[str, Any], episodes: int) -> float | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideTrainingWarning)  # the score says how it does there
            return ldp_gym.evaluate(learner, rules, episodes=episodes, seed=_HELD_OUT).risk
    except IncompatibleChannelError:
        return None


def _score_text(risk: float | None, references: Mapping[str, float | None]) -> str:
    others = ", ".join(f"{name} {value:.1f}" for name, value in references.items() if value is not None)
    return f"KL {'-' if risk is None else f'{risk:.1f}'}  ({others})"


@dataclass
class _Recorder:
    """Progress callback of a run: scores the model, and keeps checkpoints."""

    config: Config
    out: Path
    scores: int
    episodes: int
    references: Mapping[str, float | None]
    bar: Progress
    task: Any
    lines: list[str] = field(default_factory=list)
    num_scored: int = -1
    start_time: float = 0.0

    def __post_init__(self) -> None:
        path = self.out / SCORES
        self.lines = path.read_text("utf-8").splitlines() if path.exists() else []  # of a resumed run
        spent = json.loads(self.lines[-1])["cpu_seconds"] if self.lines else 0.0
        self.start_time = time.process_time() - spent

    def __call__(
        self, steps: int, make_model: Callable[[], LearnerFactory], save: Callable[[Path], None]
    ) -> None:
        self.bar.update(self.task, completed=min(steps, self.config.steps))
        due = steps * self.scores // self.config.steps
        if self.num_scored < 0:
            self.num_scored = due if self.lines else 0
        if due > self.num_scored:
            self.num_scored = due
            with replacing(self.out / CHECKPOINT) as part:
                save(part)
            if steps < self.config.steps:
                self.score(steps, make_model())

    def score(self, steps: int, model: LearnerFactory) -> None:
        """Play held-out episodes, and write down their total KL."""
        risk = _risk(model, self.config.rules, self.episodes)
        self.bar.update(self.task, score=_score_text(risk, self.references))
        cpu_seconds = round(time.process_time() - self.start_time, 1)
        line = {"steps": steps, "kl": risk, "cpu_seconds": cpu_seconds, **self.references}
        self.lines.append(json.dumps(line))
        write_text(self.out / SCORES, "\n".join(self.lines) + "\n")
