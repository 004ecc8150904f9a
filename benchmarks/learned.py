"""The table of docs/learned.md: every learned baseline against the references, on the same episodes.

python benchmarks/learned.py --out ldp-gym-results/learned

Each cell is trained once and kept: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import ldp_gym
from ldp_agents.base import SmoothedLearner
from ldp_agents.rl import load
from ldp_agents.rl.algorithms import algorithm_of
from ldp_agents.rl.config import Config
from ldp_agents.rl.model import CARD
from ldp_agents.rl.training import SCORES, train
from ldp_gym import Game
from ldp_gym.engine.scenario import Scenario
from ldp_gym.numerics.arrays import FloatArray, Messages

TABLE = {"hypotheses": "dirichlet"}
STRONG = {**TABLE, "epsilon": 4.0}
REDRAWN = {**TABLE, "redraw_hypotheses": True, "observe_candidates": True}
VECTOR = {"channel": "laplace-vector", "delta": 1e-5}
RATES = tuple(2.0**power for power in range(-18, 1))
"""The rates that centred EXP3 may choose from in hindsight."""


class FixedRateEXP3(SmoothedLearner):
    """Exponential weights on the centred estimates at a given rate.

    Args:
        game: the public rules; the channel must reveal losses.
        rate: the learning rate.
    """

    def __init__(self, game: Game, rate: float) -> None:
        self.rate = rate
        super().__init__(game)

    def losses(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """The channel's estimates, without the public offset."""
        return self.game.channel.loss_estimates(messages, candidates)


@dataclass(frozen=True)
class Row:
    """The rules of a game, the algorithms that train on it, and other games for the models as they are.

    Attributes:
        title: what the game is.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``.
        algorithms: names, or names with settings: ``"ppo flat"`` has ``network="flat"``.
        seeds: how many training seeds.
        unseen: the rules of further games, by title.
    """

    title: str
    rules: Mapping[str, Any]
    algorithms: Sequence[str] = ("amortized", "ppo")
    seeds: int = 3
    unseen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


MORE = {**TABLE, "num_hypotheses": 16}
ROWS = (
    Row("table, eps = 1", TABLE, unseen={"K = 16, trained at K = 8": MORE}),
    Row("table, eps = 4", STRONG),
    Row("default game", {}),
    Row(
        "redrawn tables",
        REDRAWN,
        unseen={
            "held-out family: Dirichlet(1)": {**REDRAWN, "hypotheses_kwargs": {"concentration": 1.0}},
            "K = 16, redrawn": {**REDRAWN, "num_hypotheses": 16},
        },
    ),
    Row("table, split", {**TABLE, "channel": "split"}, seeds=1),
    Row("table, laplace-vector", {**TABLE, **VECTOR}, seeds=1),
    Row("table, eps = 1", TABLE, ("ppo flat", "amortized flat", "sac", "recurrent"), seeds=1),
    Row("default game, split", {"channel": "split"}, seeds=1),
    Row("default game, randomized-response", {"channel": "randomized-response"}, seeds=1),
    Row("default game, wheel", {"channel": "wheel"}, seeds=1),
    Row("default game, laplace-vector", VECTOR, seeds=1),
)


def lines(rows: Sequence[Row], options: argparse.Namespace, console: Console) -> Iterator[str]:
    """The table in Markdown, line by line, as it is measured."""
    yield (
        "| game | learner | total KL | times Bayes, by training seed | CPU minutes |\n|---|---|---|---|---|"
    )
    episodes = options.episodes
    references: dict[str, FloatArray] = {}
    for row in rows:
        for name in row.algorithms:
            runs = [_run(row, name, seed, options) for seed in range(min(row.seeds, options.seeds))]
            trained = [path for path, config in runs if _is_trained(path, config, options, console)]
            if not trained:
                continue
            # A flat network plays the class that it was trained on, and no other.
            unseen = {} if name.endswith("flat") else row.unseen
            for title, rules in {row.title: row.rules, **unseen}.items():
                if title not in references:
                    references[title] = _total("bayes", rules, episodes)
                    yield from _references(title, rules, episodes, references[title])
                bayes = references[title]
                totals = [_total(load(path, trust=True), rules, episodes) for path in trained]
                ratios = [total.mean() / bayes.mean() for total in totals]
                minutes = [_minutes(path) for path in trained] if title == row.title else []
                yield _line(title, name, totals, ratios, minutes)


def _references(title: str, rules: Mapping[str, Any], episodes: int, bayes: FloatArray) -> Iterator[str]:
    totals = {"uniform": _total("uniform", rules, episodes)}
    if Scenario(**rules).channel.reveals_losses:
        totals |= {name: _total(name, rules, episodes) for name in ("exp3", "centred-exp3")}
        rate, totals_at_best = _best_rate(rules, episodes)
        totals[f"centred-exp3, best rate in hindsight ({rate:.3g})"] = totals_at_best
    totals["bayes"] = bayes
    for name, total in totals.items():
        yield _line(title, name, [total], [total.mean() / bayes.mean()], [])


def _best_rate(rules: Mapping[str, Any], episodes: int) -> tuple[float, FloatArray]:
    """The rate of the least risk: found on a few of the episodes, then among its neighbours on all."""

    def play(rate: float, count: int) -> FloatArray:
        return _total(partial(FixedRateEXP3, rate=rate), rules, count)

    risks = [play(rate, min(64, episodes)).mean() for rate in RATES]
    near = int(np.argmin(risks))
    tuned = {rate: play(rate, episodes) for rate in RATES[max(0, near - 1) : near + 2]}
    best = min(tuned, key=lambda rate: float(tuned[rate].mean()))
    return best, tuned[best]


def _line(
    title: str,
    name: str,
    totals: Sequence[FloatArray],
    ratios: Sequence[float],
    minutes: Sequence[float],
) -> str:
    mean = np.mean([total.mean() for total in totals])
    half = 1.96 * np.mean(totals, axis=0).std(ddof=1) / np.sqrt(len(totals[0]))
    times = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    spent = f"{min(minutes):.1f} to {max(minutes):.1f}" if minutes else ""
    return f"| {title} | {name} | {mean:.1f} ± {half:.1f} | {times} | {spent} |"


def _run(row: Row, name: str, seed: int, options: argparse.Namespace) -> tuple[Path, Config]:
    """The directory and the configuration of one run."""
    algorithm, _, network = name.partition(" ")
    settings = {"network": network} if network else {}
    config = Config(algorithm, row.rules, options.steps or algorithm_of(algorithm).steps, seed, settings)
    slug = "".join(letter if letter.isalnum() else "-" for letter in f"{row.title}-{name}")
    return options.out / f"{slug}-{seed}", config


def _is_trained(path: Path, config: Config, options: argparse.Namespace, console: Console) -> bool:
    """Whether the model is there; it is trained now if it is not."""
    if not (path / CARD).exists() and not options.kept:
        console.print(f"training {path.name}")
        train(config, path, resume=True, console=console, scores=5)
    return (path / CARD).exists()


def _minutes(path: Path) -> float:
    """How long a run took, scoring included."""
    last = (path / SCORES).read_text().splitlines()[-1]
    minutes: float = json.loads(last)["cpu_seconds"] / 60.0
    return minutes


def _total(learner: Any, rules: Mapping[str, Any], episodes: int) -> FloatArray:
    """The total KL of each episode."""
    totals: FloatArray = ldp_gym.evaluate(learner, rules, episodes=episodes).kl[:, -1]
    return totals


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("ldp-gym-results/learned"), help="where the models go"
    )
    parser.add_argument("--episodes", type=int, default=512, help="paired episodes per cell (default 512)")
    parser.add_argument("--seeds", type=int, default=3, help="training seeds at most (default 3)")
    parser.add_argument("--steps", type=int, help="rounds of training, the algorithms' own if not given")
    parser.add_argument("--kept", action="store_true", help="print what is trained already, train nothing")
    parser.add_argument("--rows", nargs="+", type=int, help="only these rows, counted from 0")
    options = parser.parse_args(arguments)
    rows = ROWS if options.rows is None else [ROWS[i] for i in options.rows]
    console = Console(stderr=True)
    for line in lines(rows, options, console):
        print(line, flush=True)


if __name__ == "__main__":
    main()
