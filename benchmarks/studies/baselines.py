"""`make baselines`: agents on the named games, by one protocol that anyone can follow.

The protocol: an agent trains on seeds from 3,000,000 on, once for each training seed 0, 1, 2, ...,
for as many rounds as it likes (the table states them). It is then scored once, by its mean action
on the 128 episodes from seed 500,000 on, against the references of the game on the same episodes
(uniform and Bayes in LDPDistBox). Every agent has one JSON file with its runs. A cell of the table
is the interquartile mean over training seeds (of at most three, the mean), with a 95% interval from
a bootstrap over training seeds and test episodes.

    python benchmarks/studies/baselines.py           # runs that are missing in docs/data/baselines
    python benchmarks/studies/baselines.py --show    # table and figure from the files, no training
    python benchmarks/studies/baselines.py --agent mine:train --games memory hard --seeds 5

The last command trains, checks and scores your agent, and writes mine-train.json: `train(env_id,
seed)` in mine.py yields `baseline_agents.Trained(rounds, policy, wrapper)` once or more, the trained
policy last. Put the file into docs/data/baselines, and its row is in the table.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import baseline_agents as agents
import numpy as np
import pandas as pd
import torch
from baseline_agents import Agent
from matplotlib import rc_context
from matplotlib.figure import Figure

from ldp_agents.rl import score_policy
from ldp_agents.rl.scoring import Scoring
from ldp_bench import figures
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.files import versions, write_text
from ldp_gym.core.seed_ranges import TEST, VALIDATION
from ldp_gym.statistics import score_of_runs

DOCS = Path(__file__).parents[2] / "docs"

EPISODES = 128
"""Number of test episodes of the protocol."""

POINT_EPISODES = 32
"""Number of validation episodes of a point of a learning curve."""

GAMES = {
    "easy": "LDPDistBox-easy-v0",
    "medium": "LDPDistBox-medium-v0",
    "memory": "LDPDistBox-memory-v0",
    "hard": "LDPDistBox-hard-v0",
}
"""Ids of the games, by the name of their column."""

REFERENCES = "references.json"
"""File of the references' totals on the test episodes, next to the agents' files."""


@dataclass(frozen=True)
class Entry:
    """An agent that comes with the package.

    Attributes:
        agent: trains it.
        trained_by: what trains it.
        games: the games that it plays.
        seeds: number of training seeds.
    """

    agent: Agent
    trained_by: str
    games: Sequence[str]
    seeds: int


EVIDENCE = ("easy", "medium")
RAW = ("memory", "hard")

ENTRIES = {
    "uniform mixture": Entry(agents.uniform, "-", (*EVIDENCE, *RAW), 1),
    "c * evidence, from -5 to 5": Entry(agents.evidence_rule, "-", EVIDENCE, 1),
    "-0.3 * sum of messages": Entry(agents.sum_rule, "-", ("memory",), 1),
    "PPO": Entry(agents.ppo, "reward", (*EVIDENCE, *RAW), 5),
    "PPO, sum of products": Entry(agents.sum_of_products_ppo, "reward", RAW, 5),
    "RecurrentPPO, chrono LSTM": Entry(agents.chrono_recurrent_ppo, "reward", RAW, 3),
    "pooling, gradient": Entry(agents.pooling_by_gradient, "simulator's gradient", RAW, 2),
}
"""Agents by name, rules first."""


class Point(NamedTuple):
    """A point of a learning curve."""

    rounds: int
    cpu_seconds: float
    score: float


@dataclass(frozen=True)
class Run:
    """A trained agent's result.

    Attributes:
        game: name of the game.
        seed: training seed.
        rounds: rounds of training.
        cpu_seconds: CPU seconds of training.
        totals: total loss of each test episode.
        curve: scores on validation episodes in training.
    """

    game: str
    seed: int
    rounds: int
    cpu_seconds: float
    totals: list[float]
    curve: list[Point]


@dataclass
class AgentFile:
    """All runs of an agent, as its JSON file has them."""

    agent: str
    trained_by: str
    versions: dict[str, str]
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> AgentFile:
        """Read a file; an error names it."""
        try:
            content = json.loads(path.read_text("utf-8"))
            runs = [_run_of(part) for part in content.pop("runs")]
            return cls(**content, runs=runs)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{path} is not a file of this program: {error}") from error

    def write(self, path: Path) -> None:
        write_text(path, json.dumps(asdict(self)) + "\n")

    def runs_of(self, game: str) -> list[Run]:
        return [run for run in self.runs if run.game == game]


def _run_of(content: dict[str, Any]) -> Run:
    """A run from its JSON, with checks of what the table is made from."""
    run = Run(**{**content, "curve": [Point(*point) for point in content["curve"]]})
    totals = np.asarray(run.totals, dtype=np.float64)
    if run.game not in GAMES or totals.shape != (EPISODES,) or not np.isfinite(totals).all():
        raise ValueError(f"a run of {run.game!r} needs {EPISODES} finite totals")
    return run


def train_and_score(name: str, agent: Agent, game: str, seed: int) -> Run:
    """Train an agent once, and score it by the protocol."""
    torch.set_num_threads(1)
    env_id = GAMES[game]
    curve = []
    seconds = 0.0
    start = time.process_time()
    for trained in agent(env_id, seed):
        seconds += time.process_time() - start
        score = score_policy(
            trained.policy,
            env_id,
            trained.wrapper,
            episodes=POINT_EPISODES,
            seed=VALIDATION.start,
        )
        curve.append(Point(trained.rounds, round(seconds, 1), round(float(score), 4)))
        start = time.process_time()
    if not curve:
        raise ValueError(f"{name} must yield its trained policy, and yielded nothing in {env_id}")

    first = score_policy(trained.policy, env_id, trained.wrapper, episodes=EPISODES)
    second = score_policy(trained.policy, env_id, trained.wrapper, episodes=EPISODES)
    if float(first) != float(second):
        raise ValueError(
            f"{name} scores {float(first)} and then {float(second)} on the same episodes: a policy "
            f"must keep all that it remembers in the state that predict() returns, and play its "
            f"mean action"
        )
    totals = [round(total, 5) for total in first.totals.tolist()]
    return Run(game, seed, trained.rounds, round(seconds, 1), totals, curve)


class References(NamedTuple):
    """Totals of the references of a game on the test episodes."""

    worst: FloatArray  # scores 0
    best: FloatArray  # scores 1


def references_of(directory: Path) -> dict[str, References]:
    """The references of all games, from their file; those that are missing are played now."""
    path = directory / REFERENCES
    stored: dict[str, Any] = {}
    if path.exists():
        stored = json.loads(path.read_text("utf-8"))
    missing = [game for game in GAMES if game not in stored]
    for game in missing:
        scoring = Scoring(GAMES[game], None, EPISODES, TEST.stop // 2, {})
        worst, best = scoring.references
        stored[game] = {"worst": worst.round(5).tolist(), "best": best.round(5).tolist()}
    if missing:
        write_text(path, json.dumps(stored) + "\n")
    return {
        game: References(np.array(totals["worst"]), np.array(totals["best"]))
        for game, totals in stored.items()
    }


def cell(runs: Sequence[Run], references: References) -> str:
    """Score of the runs in a game, with its interval."""
    if not runs:
        return "-"
    totals = np.array([run.totals for run in runs])
    score = score_of_runs(references.worst, totals, references.best)
    if score is None:
        return "-"
    if score.high - score.low < 1e-6:
        return f"{score.value:z.2f}"
    return f"{score.value:z.2f} [{score.low:z.2f}, {score.high:z.2f}]"


def row(file: AgentFile, references: dict[str, References]) -> dict[str, str]:
    """Row of the table; rounds and CPU seconds are the largest of its games."""
    scores = {game: cell(file.runs_of(game), references[game]) for game in GAMES}
    seeds = max(len(file.runs_of(game)) for game in GAMES)
    rounds = max(run.rounds for run in file.runs)
    means = [
        np.mean([run.cpu_seconds for run in file.runs_of(game)])
        for game in GAMES
        if file.runs_of(game)
    ]
    cost = {"seeds": "-", "rounds": "-", "CPU s": "-"}
    if rounds > 0:
        cost = {"seeds": str(seeds), "rounds": f"{rounds:,}", "CPU s": f"{max(means):.0f}"}
    return {"agent": file.agent, "trained by": file.trained_by, **scores, **cost}


def read_files(directory: Path) -> list[AgentFile]:
    """All agents' files: ours in the order of :data:`ENTRIES`, then others."""
    paths = [path for path in sorted(directory.glob("*.json")) if path.name != REFERENCES]
    files = {file.agent: file for file in map(AgentFile.read, paths)}
    ours = [files.pop(name) for name in ENTRIES if name in files]
    return [*ours, *files.values()]


def table(directory: Path) -> pd.DataFrame:
    """The table of all agents' files, with Bayes at its end."""
    references = references_of(directory)
    rows = [row(file, references) for file in read_files(directory)]
    bayes = {"agent": "Bayes", "trained by": "-"} | dict.fromkeys(GAMES, "1.00")
    return pd.DataFrame([*rows, bayes]).fillna("-")


def draw(files: Sequence[AgentFile], path: Path) -> None:
    """Draw learning curves: score against CPU seconds, a panel per game, a line per training seed."""
    with rc_context(figures.STYLE):
        drawing = Figure(figsize=(7.8, 5.2), layout="constrained")
        panels = drawing.subplots(2, 2, sharey=True)
        for panel, game in zip(panels.flat, GAMES, strict=True):
            for i, file in enumerate(files):
                colour = figures.colour(file.agent, i)
                for run in file.runs_of(game):
                    scores = [point.score for point in run.curve]
                    if run.rounds == 0:
                        panel.axhline(scores[-1], color=colour, ls=":", label=file.agent)
                    else:
                        seconds = [point.cpu_seconds for point in run.curve]
                        panel.plot(seconds, scores, color=colour, lw=1.2, label=file.agent)
            panel.axhline(1.0, color=figures.colour("bayes"), ls="--", lw=1.0, label="Bayes")
            panel.set(title=game, xlim=(0.4, 150.0), ylim=(-0.25, 1.05))
            figures.set_log_scale(panel, "x")
        drawing.supxlabel("CPU seconds of training")
        drawing.supylabel("score")
        figures.add_legend(drawing)
        drawing.savefig(path, dpi=150)


def file_name(agent: str) -> str:
    """Name of an agent's file.

    >>> file_name("c * evidence, from -5 to 5"), file_name("mine:train")
    ('c-evidence-from-5-to-5.json', 'mine-train.json')
    """
    letters = [letter if letter.isalnum() else " " for letter in agent.lower()]
    return "-".join("".join(letters).split()) + ".json"


def complete(directory: Path, names: Sequence[str], games: Sequence[str], seeds: int) -> None:
    """Train the runs that are missing, seed by seed, and write every file as soon as it grows."""
    for seed in range(seeds):
        for name in names:
            entry = ENTRIES[name]
            path = directory / file_name(name)
            file = AgentFile(name, entry.trained_by, versions("ldp-gym", "stable-baselines3"))
            if path.exists():
                file = AgentFile.read(path)
            done = {(run.game, run.seed) for run in file.runs}
            for game in games:
                if seed < entry.seeds and game in entry.games and (game, seed) not in done:
                    run = train_and_score(name, entry.agent, game, seed)
                    file.runs.append(run)
                    file.write(path)
                    print(f"{name}, {game}, seed {seed}: {run.curve[-1]}", flush=True)


def train_users_agent(address: str, trained_by: str, games: Sequence[str], seeds: int) -> AgentFile:
    """Train the agent of ``module:function`` in the working directory."""
    sys.path.insert(0, "")
    module, _, function = address.partition(":")
    agent = getattr(import_module(module), function)
    file = AgentFile(address, trained_by, versions("ldp-gym", "stable-baselines3"))
    for game in games:
        for seed in range(seeds):
            run = train_and_score(address, agent, game, seed)
            file.runs.append(run)
            print(f"{address}, {game}, seed {seed}: {run.curve[-1]}", flush=True)
    return file


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--agents", nargs="*", default=list(ENTRIES), choices=list(ENTRIES), metavar="NAME"
    )
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--seeds", type=int, default=5, help="largest number of training seeds")
    parser.add_argument("--agent", metavar="MODULE:FUNCTION", help="your agent: train and check it")
    parser.add_argument("--trained-by", default="reward", help="what trains your agent")
    parser.add_argument("--out", type=Path, default=DOCS, help="directory of data and pictures")
    parser.add_argument("--show", action="store_true", help="only make the table and the figure")
    options = parser.parse_args(arguments)

    directory = options.out / "data" / "baselines"
    directory.mkdir(parents=True, exist_ok=True)
    if options.agent:
        file = train_users_agent(options.agent, options.trained_by, options.games, options.seeds)
        path = Path(file_name(options.agent))
        file.write(path)
        print(pd.DataFrame([row(file, references_of(directory))]).to_string(index=False))
        print(f"{path}: put it into docs/data/baselines, and its row is in the table")
        return

    if not options.show:
        complete(directory, options.agents, options.games, options.seeds)
    made = table(directory)
    made.to_csv(options.out / "data" / "baselines.csv", index=False)
    print(made.to_string(index=False))
    pictures = options.out / "pictures"
    pictures.mkdir(exist_ok=True)
    draw(read_files(directory), pictures / "baselines.png")


if __name__ == "__main__":
    main()
