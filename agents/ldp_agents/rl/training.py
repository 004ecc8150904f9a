"""Train an agent, score it on held-out episodes, and store the model in a directory."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import ldp_gym
from ldp_agents.rl import amortized, sb3
from ldp_agents.rl.learner import Model
from ldp_agents.rl.policies import PolicyLearner, game_parameters
from ldp_agents.rl.scoring import SCORE_SEED, Score, Scoring
from ldp_agents.rl.settings import NUM_ROUNDS, settings_of
from ldp_agents.rl.storage import MODEL, MODEL_PACKAGES, load, save
from ldp_gym import Game
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import IncompatibleChannelError, OutsideTrainingWarning, extra
from ldp_gym.core.files import versions, write_text
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.core.seed_ranges import VALIDATION
from ldp_gym.engine.learners import MakeLearner
from ldp_gym.engine.rules import Rules
from ldp_gym.statistics import score_estimate

with extra("rl", "training"):
    from rich.console import Console


ProgressCallback = Callable[[int, Callable[[], Any]], None]
"""Callback of a training run: rounds played, and a function that returns the current model."""

COMPARED = ("uniform", "exp3", "bayes")
"""Learners whose total KL is shown next to that of the agent."""

CONFIG = "config.json"
"""File of a run's configuration, next to its model."""

SCORES = "scores.jsonl"
"""File of a run's scores, next to its model."""

FINAL_EPISODES = 128
"""Number of test episodes of the score at the end."""

FINAL_SEED = SCORE_SEED
"""Seed of the first test episode of the score at the end."""


def trainers() -> dict[str, Callable[[Config, ProgressCallback], Any]]:
    """Return the training function of each algorithm, by the algorithm's name."""
    by_reward = dict.fromkeys(sb3.SB3_ALGORITHMS, sb3.fit_sb3)
    return {**by_reward, "amortized": amortized.fit_amortized}


def default_steps(algorithm: str) -> int:
    """Number of rounds that an algorithm trains for, unless another is given."""
    return int(settings_of(algorithm)[NUM_ROUNDS])


@dataclass(frozen=True)
class Config:
    """Configuration of one training run.

    Attributes:
        algorithm: ``ppo``, ``a2c``, ``sac``, ``recurrent-ppo`` or ``amortized``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``. Reinforcement learning trains
            on this game; ``amortized`` trains on random games, and is only scored on this one.
        steps: number of rounds to play.
        seed: seed of the episodes and of the network.
        settings: settings that differ from those of ``settings.yaml``; completed by these.
        observation: ``"evidence"``, or ``"message"`` for raw messages.
    """

    algorithm: str
    rules: Mapping[str, Any]
    steps: int
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    observation: str = "evidence"

    def __post_init__(self) -> None:
        """Check the configuration, add default settings, and convert the rules to JSON's types."""
        validation.text("algorithm", self.algorithm)
        validation.whole("steps", self.steps, least=1)
        validation.seed("seed", self.seed)
        validation.options_dict("settings", self.settings)
        validation.choice("observation", self.observation, ("evidence", "message"))
        if self.algorithm == "amortized" and self.observation == "message":
            raise ValueError(
                "amortized is a learner, which reads messages by itself: leave observation out"
            )

        completed = settings_of(self.algorithm, self.settings)
        completed[NUM_ROUNDS] = self.steps
        if self.algorithm == "amortized":
            amortized.AmortizedSettings.of(completed)
        else:
            sb3.check_settings(completed)
        object.__setattr__(self, "settings", completed)

        # A model's card is JSON: the rules must be names, numbers and lists.
        rules = json.loads(Rules.of(self.rules).to_json())
        object.__setattr__(self, "rules", rules)

    @property
    def card(self) -> dict[str, Any]:
        """Entries of a model's card: the configuration, and the versions of packages."""
        return {"config": asdict(self), "versions": versions(*MODEL_PACKAGES)}


class Trained(NamedTuple):
    """A trained agent.

    Attributes:
        model: a :class:`Model`, or an algorithm of stable-baselines3.
        learner: makes a learner of it; None for a policy that reads raw messages, which learners
            are not shown next to their contexts.
        score: its score on test episodes; None where they do not show that Bayes learns anything,
            or where the model cannot play the game.
    """

    model: Any
    learner: MakeLearner | None
    score: Score | None


def train_agent(
    config: Config,
    out: Path,
    *,
    console: Console | None = None,
    scores: int = 20,
    episodes: int = 64,
) -> Trained:
    """Train an agent, save it in a directory, and score it.

    The directory gets the model, which :func:`ldp_agents.rl.load` reads, at every score on the way,
    so that a run that is stopped leaves the last one; ``config.json``; and ``scores.jsonl``, total
    KL on held-out episodes.

    Args:
        config: the configuration.
        out: the directory.
        console: console that shows the scores; without one nothing is shown.
        scores: number of times that the model is scored.
        episodes: number of held-out episodes of a score on the way.

    Raises:
        FileExistsError: if there is a model in the directory.
        ValueError: if the algorithm or a setting is unknown, or a rule names code: a stored model
            may only name registered parts.
    """
    fit = trainers()[config.algorithm]
    refuse_addresses(config.rules, CONFIG)
    if (out / MODEL).exists():
        raise FileExistsError(
            f"{out} holds a model already: choose another directory, or delete it"
        )
    console = console or Console(quiet=True)
    progress = _Progress(config, out, scores, episodes, console)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / CONFIG, json.dumps(config.card, indent=2) + "\n")

    model = fit(config, progress)
    save(model, out)
    progress.score(config.steps, model)

    learner: MakeLearner | None = None
    if config.observation == "evidence":
        learner = load(out, trust=True)  # it was written here
    score = final_score(config, model, learner)
    if score is None:
        console.print("no score: Bayes is not shown to gain anything, or this game is not played")
    else:
        console.print(
            f"score {score} on {FINAL_EPISODES} test episodes: 0 is the uniform mixture, 1 is Bayes"
        )
    return Trained(model, learner, score)


def final_score(config: Config, model: Any, learner: MakeLearner | None) -> Score | None:
    """Score a trained agent on the test episodes: 0 is the uniform mixture, 1 is Bayes.

    A policy that reads raw messages cannot be a learner (None), and plays the environment itself.
    Returns None if the agent, or a reference, cannot read the channel's messages, or if the
    episodes do not show that Bayes beats the uniform mixture.
    """
    if learner is None:
        scoring = _scoring_on_messages(config, FINAL_EPISODES, FINAL_SEED)
        return scoring(model)

    totals = _totals(learner, config.rules, FINAL_EPISODES, FINAL_SEED)
    uniform = _totals("uniform", config.rules, FINAL_EPISODES, FINAL_SEED)
    bayes = _totals("bayes", config.rules, FINAL_EPISODES, FINAL_SEED)
    if totals is None or uniform is None or bayes is None:
        return None
    estimate = score_estimate(uniform, totals, bayes)
    if estimate is None:
        return None
    return Score(estimate.value, estimate.low, estimate.high, totals)


def _scoring_on_messages(config: Config, episodes: int, seed: int) -> Scoring:
    """Return the scoring of policies that read raw messages, on the configuration's game."""
    rules = {**config.rules, "observation": config.observation}
    return Scoring(env="LDPDistBox-v0", wrapper=None, episodes=episodes, seed=seed, rules=rules)


def _totals(
    learner: str | MakeLearner, rules: Mapping[str, Any], episodes: int, seed: int
) -> FloatArray | None:
    """Total KL ``(episodes,)`` of a learner; None where it cannot read the channel's messages."""
    with warnings.catch_warnings():
        # The score shows whether the agent does well outside of its training.
        warnings.simplefilter("ignore", OutsideTrainingWarning)
        try:
            evaluation = ldp_gym.evaluate(learner, rules, episodes=episodes, seed=seed)
        except IncompatibleChannelError:
            return None
    return evaluation.kl[:, -1]


class _Progress:
    """Progress callback of a run: scores the model now and then, next to the reference learners."""

    def __init__(
        self, config: Config, out: Path, scores: int, episodes: int, console: Console
    ) -> None:
        self._config = config
        self._out = out
        self._scores = scores
        self._episodes = episodes
        self._console = console
        self._lines: list[str] = []
        self._num_scored = 0
        self._references = {name: self._risk(name) for name in COMPARED}
        self._start_time = time.process_time()

    def __call__(self, steps: int, make_model: Callable[[], Any]) -> None:
        """Save and score the model if a score is due after so many rounds."""
        num_due = steps * self._scores // self._config.steps
        # The score at the end is taken when the training is over, with the final model.
        is_finished = steps >= self._config.steps
        if num_due > self._num_scored and not is_finished:
            self._num_scored = num_due
            model = make_model()
            save(model, self._out)
            self.score(steps, model)

    def score(self, steps: int, model: Any) -> None:
        """Play held-out episodes; print the mean total KL and add it to the file of scores."""
        risks = {"kl": self._risk_of_model(model), **self._references}
        # A learner that cannot read the channel's messages has no risk.
        shown = [f"{name} {risk:.1f}" for name, risk in risks.items() if risk is not None]
        self._console.print(f"{steps:,} rounds: {', '.join(shown)}")

        cpu_seconds = round(time.process_time() - self._start_time, 1)
        line = {"steps": steps, "cpu_seconds": cpu_seconds, **risks}
        self._lines.append(json.dumps(line))
        write_text(self._out / SCORES, "\n".join(self._lines) + "\n")

    def _risk_of_model(self, model: Any) -> float | None:
        """Mean total KL of a model on the held-out episodes, if it can play them.

        The model itself plays, not the stored copy: stable-baselines3 seeds the global random
        generators when it reads a policy, which would change the training that follows.
        """
        if isinstance(model, Model):
            return self._risk(model)
        if self._config.observation == "message":
            return float(self._raw_scoring(model).totals.mean())

        def make_learner(game: Game) -> PolicyLearner:
            return PolicyLearner(game, model, game_parameters(game))

        return self._risk(make_learner)

    @cached_property
    def _raw_scoring(self) -> Scoring:
        """Held-out episodes for policies that read raw messages, made once for all scores."""
        return _scoring_on_messages(self._config, self._episodes, VALIDATION.start)

    def _risk(self, learner: str | MakeLearner) -> float | None:
        """Mean total KL of a learner on the held-out episodes, if it can play them."""
        totals = _totals(learner, self._config.rules, self._episodes, VALIDATION.start)
        if totals is None:
            return None
        return float(totals.mean())
