"""`make baselines`: plain agents of stable-baselines3 and sb3-contrib on the named games.

Default networks; all other settings are in one dataclass per algorithm. Every run is one row of
benchmarks/data/baselines.json: algorithm, game, seed, score, CPU seconds, learning curve. A run that is there
already is not run again. The table and the figure are made from that file.

    python benchmarks/baselines.py                                  # all of it: at most 2 hours on two cores
    python benchmarks/baselines.py --algorithms ppo --games easy --seeds 1 --share 0.1 --out /tmp/try.json
    python benchmarks/baselines.py --show                           # table and figure, no training
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
import sb3_contrib
import stable_baselines3
import torch

from ldp_agents.rl import make_sb3_env, score_policy
from ldp_gym.core.files import write_text

DATA = Path(__file__).parent / "data" / "baselines.json"
FIGURE = Path(__file__).parent.parent / "docs" / "pictures" / "baselines.png"

GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "easy": ("LDPDistBox-easy-v0", {}),
    "medium": ("LDPDistBox-medium-v0", {}),
    "hard": ("LDPDistBox-hard-v0", {}),
    "adaptive": ("LDPDistBox-v0", {"channel": "adaptive-wheel"}),
}
"""Id and rules of each game."""

POINTS = 5
"""Number of points of a learning curve."""


@dataclass(frozen=True)
class PPO:
    """PPO on 64 games at once."""

    kind: ClassVar[Any] = stable_baselines3.PPO
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 64
    steps: ClassVar[int] = 300_000
    gamma: float = 0.0
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3


@dataclass(frozen=True)
class A2C:
    """A2C on 64 games at once."""

    kind: ClassVar[Any] = stable_baselines3.A2C
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 64
    steps: ClassVar[int] = 600_000
    gamma: float = 0.0
    n_steps: int = 16


@dataclass(frozen=True)
class SAC:
    """SAC on 16 games at once, one gradient step for each round of all games."""

    kind: ClassVar[Any] = stable_baselines3.SAC
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 16
    steps: ClassVar[int] = 100_000
    gamma: float = 0.0
    batch_size: int = 256


@dataclass(frozen=True)
class TD3:
    """TD3 on 16 games at once, one gradient step for each round of all games."""

    kind: ClassVar[Any] = stable_baselines3.TD3
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 16
    steps: ClassVar[int] = 100_000
    gamma: float = 0.0
    batch_size: int = 256


@dataclass(frozen=True)
class RecurrentPPO:
    """RecurrentPPO on the raw messages of 64 games at once."""

    kind: ClassVar[Any] = sb3_contrib.RecurrentPPO
    policy: ClassVar[str] = "MlpLstmPolicy"
    num_envs: ClassVar[int] = 64
    steps: ClassVar[int] = 150_000
    gamma: float = 0.0
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3


ALGORITHMS = {"ppo": PPO, "a2c": A2C, "sac": SAC, "td3": TD3, "recurrent-ppo": RecurrentPPO}


def train(name: str, game: str, seed: int, share: float) -> dict[str, Any]:
    """One run: its score, CPU seconds and learning curve."""
    torch.set_num_threads(1)
    settings = ALGORITHMS[name]()
    env_id, rules = GAMES[game]
    if settings.policy == "MlpLstmPolicy":  # a memory is for raw messages; the hard game has nothing else
        rules = {**rules, "observation": "message"}
    env = make_sb3_env(env_id, settings.num_envs, **rules)
    env.seed(10**7 * (seed + 1))
    model = settings.kind(settings.policy, env, seed=seed, device="cpu", **asdict(settings))
    curve, seconds = [], 0.0
    for _ in range(POINTS):
        start = time.process_time()
        model.learn(int(share * settings.steps / POINTS), reset_num_timesteps=not curve)
        seconds += time.process_time() - start
        curve.append((model.num_timesteps, round(score_policy(model, env_id, episodes=32, **rules), 4)))
    final = score_policy(model, env_id, episodes=128, seed=2 * 10**6, **rules)
    run = {"algorithm": name, "game": game, "seed": seed, "score": round(final, 4)}
    return {**run, "cpu_seconds": round(seconds, 1), "curve": curve}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    ordered = sorted(rows, key=lambda row: (row["game"], row["algorithm"], row["seed"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "[\n" + ",\n".join(json.dumps(row) for row in ordered) + "\n]\n")


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Mean score, spread over seeds and CPU seconds of every algorithm and game, as Markdown."""
    yield "| algorithm | " + " | ".join(GAMES) + " | CPU seconds |\n|---|" + "---|" * (len(GAMES) + 1)
    for name in ALGORITHMS:
        cells, seconds = [], [row["cpu_seconds"] for row in rows if row["algorithm"] == name]
        for game in GAMES:
            found = [row["score"] for row in rows if (row["algorithm"], row["game"]) == (name, game)]
            cells.append(f"{np.mean(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else "")
        if seconds:
            yield f"| {name} | " + " | ".join(cells) + f" | {np.mean(seconds):.0f} |"


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Learning curves, one panel per game: score against rounds, a line per seed."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(GAMES), figsize=(14, 3.4), sharey=True, layout="constrained")
    for panel, game in zip(panels, GAMES, strict=True):
        for i, name in enumerate(ALGORITHMS):
            panel.plot([], [], color=f"C{i}", label=name)
            for row in [row for row in rows if (row["algorithm"], row["game"]) == (name, game)]:
                panel.plot(*zip(*row["curve"], strict=True), color=f"C{i}", lw=1)
        panel.axhline(1.0, color="0.6", lw=0.8, ls="--")
        panel.set(title=game, xlabel="rounds", xlim=(1e3, 1e6), ylim=(-0.5, 1.05), xscale="log")
    panels[0].set_ylabel("score (0 uniform, 1 Bayes)")
    panels[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS), choices=list(ALGORITHMS))
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--seeds", type=int, default=5, help="number of training seeds (default 5)")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rounds (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default 2)")
    parser.add_argument("--out", type=Path, default=DATA, help="file of the results")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="file of the figure")
    parser.add_argument("--show", action="store_true", help="only print the table and draw the figure")
    options = parser.parse_args()
    rows = json.loads(options.out.read_text("utf-8")) if options.out.exists() else []
    done = {(row["algorithm"], row["game"], row["seed"]) for row in rows}
    wanted = [(a, g, s) for s in range(options.seeds) for g in options.games for a in options.algorithms]
    missing = [] if options.show else [run for run in wanted if run not in done]
    runs = joblib.Parallel(options.jobs, return_as="generator_unordered")(
        joblib.delayed(train)(*run, options.share) for run in missing
    )
    for row in runs:
        rows.append(row)
        write(options.out, rows)
        print({key: value for key, value in row.items() if key != "curve"}, flush=True)
    print("\n".join(table(rows)))
    draw(rows, options.figure)


if __name__ == "__main__":
    main()
