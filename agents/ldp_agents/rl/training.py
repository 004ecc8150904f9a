"""Train a baseline: progress against the reference learners, checkpoints, and what made the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch.utils.tensorboard import SummaryWriter

import ldp_gym
from ldp_agents.rl.config import Config, Player
from ldp_gym.errors import IncompatibleChannelError
from ldp_gym.features.decoding import decoder_of

ALGORITHMS = {
    "ppo": "ldp_agents.rl.ppo",
    "amortized": "ldp_agents.rl.amortized",
    "recurrent": "ldp_agents.rl.recurrent",
    "sac": "ldp_agents.rl.sac",
}
"""The baselines, and the modules that train them."""

REFERENCES = ("uniform", "exp3", "bayes")
CONFIG, CHECKPOINT, SCORES, LOGS = "config.json", "checkpoint.zip", "scores.jsonl", "tensorboard"

_HELD_OUT = 10**9
"""The seed of the first episode that scores a run: none that it trains on."""


def default_steps(algorithm: str) -> int:
    """How many rounds a baseline needs."""
    steps: int = import_module(ALGORITHMS[_known(algorithm)]).STEPS
    return steps


def _known(algorithm: str) -> str:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    return algorithm


class Trained(Protocol):
    """A trained model."""

    def __call__(self, game: ldp_gym.Game) -> Any:
        """The model as a learner."""

    def save(self, directory: Path) -> None:
        """Write its files."""


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    console: Console | None = None,
    scores: int = 20,
    episodes: int = 64,
) -> Trained:
    """Train a baseline and leave it in a directory.

    The directory gets the model, which :func:`ldp_agents.rl.load` reads; ``config.json`` with the versions;
    ``scores.jsonl``, the risk on held-out episodes as training went; the last checkpoint; TensorBoard logs.

    Args:
        config: what to train, on what.
        out: the directory.
        resume: go on from the checkpoint that is there, with the same configuration (more steps are fine).
        console: where to show progress; nowhere when not given.
        scores: how often to score the model, and keep a checkpoint.
        episodes: how many held-out episodes a score plays.

    Raises:
        FileExistsError: if there is a run in the directory and ``resume`` is not set.
        ValueError: if the run there has another configuration, or there is no such algorithm.
    """
    module = import_module(ALGORITHMS[_known(config.algorithm)])
    # What cannot be trained says so now, before anything is played or written.
    card = config.card(config.read(module.Settings))
    decoder_of(config.scenario.channel)
    checkpoint = _checkpoint(card["config"], out, resume)
    out.mkdir(parents=True, exist_ok=True)
    (out / CONFIG).write_text(json.dumps(card, indent=2) + "\n")
    risks = {name: _risk(name, config.rules, episodes) for name in REFERENCES}
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[score]}"),
        console=console or Console(quiet=True),
    )
    with bar, SummaryWriter(str(out / LOGS / "score")) as writer:
        task = bar.add_task(config.algorithm, total=config.steps, score=_told(None, risks))
        watch = _Scores(config, out, scores, episodes, risks, writer, bar, task)
        trained: Trained = module.fit(config, watch, checkpoint, out / LOGS)
        trained.save(out)
        watch.score(config.steps, trained)
    return trained


def _checkpoint(now: Mapping[str, Any], out: Path, resume: bool) -> Path | None:
    """The checkpoint to go on from."""
    if not (out / CONFIG).exists():
        return None
    if not resume:
        raise FileExistsError(f"{out} holds a run already: resume it, or choose another directory")
    before = json.loads((out / CONFIG).read_text())["config"]
    differ = [
        f"{key} {before[key]!r} (not {now[key]!r})"
        for key in now
        if key != "steps" and now[key] != before[key]
    ]
    if differ:
        raise ValueError(f"the run in {out} has {', '.join(differ)}: resume it as it was")
    return out / CHECKPOINT if (out / CHECKPOINT).exists() else None


def _risk(learner: str | Player, game: Mapping[str, Any], episodes: int) -> float | None:
    try:
        return ldp_gym.evaluate(learner, game, episodes=episodes, seed=_HELD_OUT).risk
    except IncompatibleChannelError:
        return None


def _told(risk: float | None, risks: Mapping[str, float | None]) -> str:
    references = ", ".join(f"{name} {value:.1f}" for name, value in risks.items() if value is not None)
    return f"KL {'-' if risk is None else f'{risk:.1f}'}  ({references})"


@dataclass
class _Scores:
    """Scores a run as it goes, and keeps its checkpoints."""

    config: Config
    out: Path
    scores: int
    episodes: int
    risks: Mapping[str, float | None]
    writer: Any
    bar: Progress
    task: Any
    scored: int = -1
    began: float = 0.0

    def __post_init__(self) -> None:
        earlier = (self.out / SCORES).read_text().splitlines() if (self.out / SCORES).exists() else []
        spent = json.loads(earlier[-1])["cpu_seconds"] if earlier else 0.0
        self.began = time.process_time() - spent

    def __call__(self, steps: int, player: Callable[[], Player], save: Callable[[Path], None]) -> None:
        self.bar.update(self.task, completed=min(steps, self.config.steps))
        due = steps * self.scores // self.config.steps
        if self.scored < 0:
            self.scored = due
        if due > self.scored:
            self.scored = due
            # Renamed when complete: a run that is stopped while it saves keeps the one before.
            part = self.out / f"part-{CHECKPOINT}"
            save(part)
            part.replace(self.out / CHECKPOINT)
            if steps < self.config.steps:
                self.score(steps, player())

    def score(self, steps: int, player: Player) -> None:
        """Play held-out episodes."""
        risk = _risk(player, self.config.rules, self.episodes)
        self.bar.update(self.task, score=_told(risk, self.risks))
        self.writer.add_scalar("score/kl", risk, steps)
        cpu = round(time.process_time() - self.began, 1)
        line = {"steps": steps, "kl": risk, "cpu_seconds": cpu, **self.risks}
        with (self.out / SCORES).open("a") as file:
            file.write(json.dumps(line) + "\n")
