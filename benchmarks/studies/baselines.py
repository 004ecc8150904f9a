"""Agents on the four named games, by one protocol that anyone can follow.

The protocol: an agent trains on seeds from 3,000,000 on, once for each training seed 0, 1, 2, ..., for as
many rounds as it likes (the table states them). It is then scored once, by its mean action on the 128
episodes from seed 500,000 on, against uniform (0) and Bayes (1) on the same episodes. A cell of the table is
the interquartile mean over training seeds (of at most three, the mean), with a 95% bootstrap interval.

    python benchmarks/studies/baselines.py      # every missing run: about 17 minutes of one core
    python benchmarks/studies/baselines.py --show               # table and figure, no training
    python benchmarks/studies/baselines.py --agent mine:train --games memory hard --seeds 5

The last command trains, checks and scores your agent: `train(env_id, seed)` in mine.py yields
`baseline_agents.Trained(rounds, policy, wrapper)` once or more, the trained policy last. It prints a row for
each run, as docs/data/curves/baselines.csv has them, and the row of the table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from baseline_agents import (
    Agent,
    chrono_recurrent_ppo,
    evidence_rule,
    pooling_by_gradient,
    pooling_by_reward,
    ppo,
    running_sum_ppo,
    sum_rule,
    uniform,
)
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy.stats import bootstrap, trim_mean

from ldp_agents.rl import score_policy
from ldp_bench import figures
from ldp_gym.core.seed_ranges import VALIDATION
from ldp_gym.envs.box import NAMED_GAMES

DOCS = Path(__file__).parents[2] / "docs"

EVIDENCE, RAW = ("easy", "medium"), ("memory", "hard")
"""Games that show the evidence of all messages so far, and games that show the last message."""


@dataclass(frozen=True)
class Entry:
    """Row of the table: an agent, what trains it, its games and its number of training seeds."""

    agent: Agent
    trained_by: str
    games: Sequence[str]
    seeds: int


ENTRIES = {
    "uniform": Entry(uniform, "-", (*EVIDENCE, *RAW), 1),
    "clip(2 evidence, ±5)": Entry(evidence_rule, "-", EVIDENCE, 1),
    "-0.3 sum of messages": Entry(sum_rule, "-", ("memory",), 1),
    "PPO": Entry(ppo, "reward", (*EVIDENCE, *RAW), 5),
    "PPO, running sum": Entry(running_sum_ppo, "reward", RAW, 5),
    "RecurrentPPO, chrono LSTM": Entry(chrono_recurrent_ppo, "reward", RAW, 5),
    "pooling, REINFORCE": Entry(pooling_by_reward, "reward", ("hard",), 5),
    "pooling, gradient": Entry(pooling_by_gradient, "simulator's gradient", RAW, 5),
}

RUN = ["agent", "game", "seed"]
"""Columns that identify a run."""

COLUMNS = [*RUN, "rounds", "cpu_seconds", "score"]


def run(name: str, agent: Agent, game: str, seed: int) -> pd.DataFrame:
    """Learning curve of one run, the score of the protocol last."""
    torch.set_num_threads(1)
    env_id, points, seconds, start = f"LDPDistBox-{game}-v0", [], 0.0, time.process_time()
    for rounds, policy, wrapper in agent(env_id, seed):
        seconds += time.process_time() - start
        on_the_way = float(
            score_policy(policy, env_id, wrapper, episodes=32, seed=VALIDATION.start)
        )
        points.append((name, game, seed, rounds, round(seconds, 1), round(on_the_way, 4)))
        start = time.process_time()
    if not points:
        raise ValueError(f"{name} must yield its trained policy, and yielded nothing in {env_id}")
    score = float(score_policy(policy, env_id, wrapper, episodes=128))
    again = float(score_policy(policy, env_id, wrapper, episodes=128))
    if score != again:
        raise ValueError(
            f"{name} scores {score} and then {again} on the same episodes: a policy must keep all that it "
            f"remembers in the state that predict() returns, and play its mean action"
        )
    points[-1] = (*points[-1][:-1], round(score, 4))
    return pd.DataFrame(points, columns=COLUMNS)


def cell(scores: np.ndarray) -> str:
    """Interquartile mean over training seeds, with its 95% bootstrap interval."""
    if not len(scores):
        return "-"
    if len(scores) == 1:
        return f"{scores[0]:z.2f}"
    resampled = bootstrap(
        (scores,),
        lambda x, axis: trim_mean(x, 0.25, axis=axis),
        method="percentile",
        rng=np.random.default_rng(0),
    )
    low, high = resampled.confidence_interval
    return f"{trim_mean(scores, 0.25):z.2f} [{low:z.2f}, {high:z.2f}]"


def table(points: pd.DataFrame, trained_by: dict[str, str]) -> pd.DataFrame:
    """Last scores, a row per agent; rounds and CPU seconds are the largest of its games."""
    last, rows = points.groupby(RUN).last().reset_index(), []
    for name, how in trained_by.items():
        runs = last[last["agent"] == name]
        if runs.empty:
            continue
        cells = {game: cell(runs["score"][runs["game"] == game].to_numpy()) for game in NAMED_GAMES}
        costs = runs.groupby("game")[["rounds", "cpu_seconds"]].mean().max()
        seeds = int(runs.groupby("game").size().max())
        cost = {
            "seeds": seeds,
            "rounds": f"{costs['rounds']:,.0f}",
            "CPU s": f"{costs['cpu_seconds']:.0f}",
        }
        learns = costs["rounds"] > 0
        rows.append(
            {
                "agent": name,
                "trained by": how,
                **cells,
                **(cost if learns else dict.fromkeys(cost, "-")),
            }
        )
    return pd.DataFrame(rows)


def draw(points: pd.DataFrame, path: Path) -> None:
    """Learning curves, a panel per game: score against CPU seconds, a line per training seed."""
    with rc_context(figures.STYLE):
        drawing = Figure(figsize=(7.8, 5.2), layout="constrained")
        panels = drawing.subplots(2, 2, sharey=True)
        for panel, game in zip(panels.flat, NAMED_GAMES, strict=True):
            for i, (name, entry) in enumerate(ENTRIES.items()):
                runs = points[(points["agent"] == name) & (points["game"] == game)]
                colour = figures.colour(name, i)
                for _, curve in runs.groupby("seed"):
                    if entry.trained_by == "-":
                        panel.axhline(curve["score"].iloc[-1], color=colour, ls=":", label=name)
                    else:
                        panel.plot(
                            curve["cpu_seconds"], curve["score"], color=colour, lw=1.2, label=name
                        )
            panel.axhline(1.0, color=figures.colour("bayes"), ls="--", lw=1.0, label="Bayes")
            panel.set(title=game, xlim=(0.4, 150.0), ylim=(-0.25, 1.05))
            figures.set_log_scale(panel, "x")
        drawing.supxlabel("CPU seconds of training")
        drawing.supylabel("score")
        figures.add_legend(drawing)
        drawing.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--agents", nargs="*", default=list(ENTRIES), choices=list(ENTRIES), metavar="NAME"
    )
    parser.add_argument("--games", nargs="*", default=list(NAMED_GAMES), choices=list(NAMED_GAMES))
    parser.add_argument(
        "--seeds", type=int, help="number of training seeds (default: that of each agent)"
    )
    parser.add_argument(
        "--agent", metavar="MODULE:FUNCTION", help="your agent: train, check, print its rows"
    )
    parser.add_argument(
        "--trained-by", default="reward", help="what trains your agent (default: reward)"
    )
    parser.add_argument("--out", type=Path, default=DOCS, help="directory of data and pictures")
    parser.add_argument(
        "--show", action="store_true", help="only print the table and draw the figure"
    )
    options = parser.parse_args()
    if options.agent:
        sys.path.insert(0, "")
        module, _, function = options.agent.partition(":")
        agent, runs = getattr(import_module(module), function), []
        for game in options.games:
            for seed in range(options.seeds or 5):
                runs.append(run(options.agent, agent, game, seed))
                print(runs[-1].to_csv(index=False, header=len(runs) == 1), end="", flush=True)
        print(table(pd.concat(runs), {options.agent: options.trained_by}).to_string(index=False))
        return
    curves, pictures = options.out / "data" / "curves" / "baselines.csv", options.out / "pictures"
    curves.parent.mkdir(parents=True, exist_ok=True)
    pictures.mkdir(exist_ok=True)
    points = pd.read_csv(curves) if curves.exists() else pd.DataFrame(columns=COLUMNS)
    done = set(points[RUN].itertuples(index=False, name=None))
    wanted = [
        (name, game, seed)
        for name in options.agents
        for game in options.games
        for seed in range(min(options.seeds or 99, ENTRIES[name].seeds))
        if game in ENTRIES[name].games and not options.show
    ]
    for name, game, seed in sorted(set(wanted) - done, key=lambda one: (one[2], wanted.index(one))):
        points = pd.concat([points, run(name, ENTRIES[name].agent, game, seed)])
        points.to_csv(curves, index=False)
        print(points.tail(1).to_string(index=False, header=False), flush=True)
    made = table(points, {name: entry.trained_by for name, entry in ENTRIES.items()})
    bayes = {"agent": "Bayes", "trained by": "-"} | dict.fromkeys(NAMED_GAMES, "1.00")
    made = pd.concat([made, pd.DataFrame([bayes])]).fillna("-")
    made.to_csv(options.out / "data" / "baselines.csv", index=False)
    print(made.to_string(index=False))
    draw(points, pictures / "baselines.png")


if __name__ == "__main__":
    main()
