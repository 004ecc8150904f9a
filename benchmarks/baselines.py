"""`make baselines`: plain agents of stable-baselines3 and sb3-contrib on the named games.

Default networks; all other settings are in one dataclass per algorithm. docs/data/curves/baselines.csv has
the learning curve of every run, a row per point. A finished run is written at once. It is not run again,
unless it has fewer rounds than the settings ask for. The tables docs/data/baselines.csv and
docs/data/defaults.csv, made from the last point of each run, and the figure come from that file.

    python benchmarks/baselines.py                        # every missing run: some 70 minutes on two cores
    python benchmarks/baselines.py --algorithms ppo --games easy --seeds 1 --share 0.1 --out /tmp/try
    python benchmarks/baselines.py --show                 # tables and figure, no training
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
import pandas as pd
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.noise import NormalActionNoise

from ldp_agents.rl import make_sb3_env, score_policy
from ldp_gym.core.seed_ranges import VALIDATION

DOCS = Path(__file__).parent.parent / "docs"

GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "easy": ("LDPDistBox-easy-v0", {}),
    "medium": ("LDPDistBox-medium-v0", {}),
    "hard": ("LDPDistBox-hard-v0", {}),
}
"""Id and rules of each game."""

CURVE = (32, 32, 32, 32, 128)
"""Number of episodes that score each point of a learning curve. The last has other episodes."""

CURVE_SEED, LAST_SEED = VALIDATION.start, 2 * 10**6
"""Seed of the first episode that scores a point of a learning curve, and its last point."""


@dataclass(frozen=True)
class PPO:
    """PPO on 64 games at once."""

    kind: ClassVar[Any] = stable_baselines3.PPO
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 64
    steps: ClassVar[int] = 150_000
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
    steps: ClassVar[int] = 300_000
    gamma: float = 0.0
    n_steps: int = 16


@dataclass(frozen=True)
class SAC:
    """SAC on 16 games at once, one gradient step for each round of all games."""

    kind: ClassVar[Any] = stable_baselines3.SAC
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 16
    steps: ClassVar[int] = 64_000
    gamma: float = 0.0
    batch_size: int = 256


@dataclass(frozen=True)
class TD3:
    """TD3 on 16 games at once, one gradient step for each round of all games.

    Actions get normal noise in training, of 0.3 of their bound: without it TD3 explores nothing.
    """

    noise: ClassVar[float] = 0.3
    kind: ClassVar[Any] = stable_baselines3.TD3
    policy: ClassVar[str] = "MlpPolicy"
    num_envs: ClassVar[int] = 16
    steps: ClassVar[int] = 64_000
    gamma: float = 0.0
    batch_size: int = 256


@dataclass(frozen=True)
class RecurrentPPO:
    """RecurrentPPO on the raw messages of 64 games at once."""

    kind: ClassVar[Any] = sb3_contrib.RecurrentPPO
    policy: ClassVar[str] = "MlpLstmPolicy"
    num_envs: ClassVar[int] = 64
    steps: ClassVar[int] = 200_000
    gamma: float = 0.0
    n_steps: int = 64
    batch_size: int = 1024
    n_epochs: int = 5
    learning_rate: float = 1e-3


ALGORITHMS = {"ppo": PPO, "a2c": A2C, "sac": SAC, "td3": TD3, "recurrent-ppo": RecurrentPPO}

DEFAULTS: dict[str, tuple[Any, int, dict[str, Any]]] = {
    "default-ppo": (stable_baselines3.PPO, 100_000, {}),
    "default-a2c": (stable_baselines3.A2C, 100_000, {}),
    "default-sac": (stable_baselines3.SAC, 10_000, {}),
    "default-td3": (stable_baselines3.TD3, 10_000, {}),
    "gamma-0-ppo": (stable_baselines3.PPO, 100_000, {"gamma": 0.0}),
}
"""Class, rounds and settings of runs on one game by its id; all other settings are the library's defaults."""

RUN = ["algorithm", "game", "seed"]
"""Columns that identify a run."""

DEFAULTS_GAMES, DEFAULTS_SEEDS = ("easy", "medium"), 3
"""Games and number of training seeds of the runs with default settings."""


def make_model(name: str, game: str, seed: int) -> tuple[Any, int, dict[str, Any]]:
    """Untrained model of a run, the rounds to train it for, and the rules of its game."""
    env_id, rules = GAMES[game]
    if name in DEFAULTS:
        kind, steps, options = DEFAULTS[name]
        return kind("MlpPolicy", env_id, seed=seed, device="cpu", **options), steps, rules
    settings = ALGORITHMS[name]()
    if settings.policy == "MlpLstmPolicy":  # a memory is for raw messages; the hard game has nothing else
        rules = {**rules, "observation": "message"}
    env = make_sb3_env(env_id, settings.num_envs, **rules)
    options = asdict(settings)
    if isinstance(settings, TD3):
        shape = env.action_space.shape
        options["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, settings.noise))
    model = settings.kind(settings.policy, env, seed=seed, device="cpu", **options)
    env.seed(10**7 * (seed + 1))  # SB3 gave game i the seed + i, which other runs have too
    return model, settings.steps, rules


def train(name: str, game: str, seed: int, share: float) -> pd.DataFrame:
    """Learning curve of one run: rounds, CPU seconds and score of each point."""
    torch.set_num_threads(1)
    env_id, _ = GAMES[game]
    model, steps, rules = make_model(name, game, seed)
    points, seconds = [], 0.0
    for i, episodes in enumerate(CURVE):
        start = time.process_time()
        model.learn(int(share * steps / len(CURVE)), reset_num_timesteps=i == 0)
        seconds += time.process_time() - start
        first = CURVE_SEED if i + 1 < len(CURVE) else LAST_SEED
        score = score_policy(model, env_id, episodes=episodes, seed=first, **rules)
        points.append((name, game, seed, model.num_timesteps, round(seconds, 1), round(score, 4)))
    return pd.DataFrame(points, columns=[*RUN, "rounds", "cpu_seconds", "score"])


def finished(points: pd.DataFrame, share: float) -> set[tuple[Any, ...]]:
    """The runs that were trained for as many rounds as asked for now."""
    return {
        run
        for run, rounds in points.groupby(RUN)["rounds"].max().items()
        if rounds > share * num_rounds(run[0]) - len(CURVE)
    }


def num_rounds(name: str) -> int:
    """Number of rounds that an algorithm is trained for."""
    return DEFAULTS[name][1] if name in DEFAULTS else ALGORITHMS[name].steps


def table(points: pd.DataFrame, names: Iterable[str], games: Iterable[str]) -> pd.DataFrame:
    """Last scores, a row per algorithm: mean and range over seeds in each game, and mean CPU seconds."""
    last = points.groupby(RUN).last().reset_index()
    rows = []
    for name in names:
        runs = last[last["algorithm"] == name]
        if runs.empty:
            continue
        scores = {game: runs["score"][runs["game"] == game] for game in games}
        cells = {
            game: f"{one.mean():z.2f} [{one.min():z.2f}, {one.max():z.2f}]" if len(one) else "-"
            for game, one in scores.items()
        }
        seconds = round(runs["cpu_seconds"].mean())
        rows.append({"algorithm": name, **cells, "CPU s": seconds})
    return pd.DataFrame(rows)


def draw(points: pd.DataFrame, path: Path) -> None:
    """Learning curves, one panel per game: score against CPU seconds, a line per seed."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(GAMES), figsize=(14, 3.4), sharey=True, layout="constrained")
    for panel, game in zip(panels, GAMES, strict=True):
        for i, name in enumerate(ALGORITHMS):
            panel.plot([], [], color=f"C{i}", label=name)
            runs = points[(points["algorithm"] == name) & (points["game"] == game)]
            for _, run in runs.groupby("seed"):
                panel.plot([0, *run["cpu_seconds"]], [0, *run["score"]], color=f"C{i}", lw=1)
        panel.axhline(1.0, color="0.6", lw=0.8, ls="--")
        panel.set(title=game, xlabel="CPU seconds", ylim=(-0.6, 1.05))
    panels[0].set_ylabel("score (0 uniform, 1 Bayes)")
    panels[list(GAMES).index("hard")].legend(fontsize=8, loc="upper right")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*ALGORITHMS, *DEFAULTS]
    parser.add_argument("--algorithms", nargs="*", default=names, choices=names)
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument(
        "--seeds", type=int, default=5, help="number of training seeds (default 5; 3 with default settings)"
    )
    parser.add_argument("--share", type=float, default=1.0, help="share of the rounds (default 1)")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes (default 2)")
    parser.add_argument("--out", type=Path, default=DOCS, help="directory of data and pictures")
    parser.add_argument("--show", action="store_true", help="only print the table and draw the figure")
    options = parser.parse_args()
    curves, pictures = options.out / "data" / "curves" / "baselines.csv", options.out / "pictures"
    points = pd.read_csv(curves) if curves.exists() else pd.DataFrame(columns=[*RUN, "rounds"])
    done = finished(points, options.share)
    wanted = [
        (name, game, seed)
        for seed in range(options.seeds)
        for game in options.games
        for name in options.algorithms
        if name in ALGORITHMS or (game in DEFAULTS_GAMES and seed < DEFAULTS_SEEDS)
    ]
    missing = [] if options.show else [run for run in wanted if run not in done]
    curves.parent.mkdir(parents=True, exist_ok=True)
    pictures.mkdir(exist_ok=True)
    runs = joblib.Parallel(options.jobs, return_as="generator_unordered")(
        joblib.delayed(train)(*run, options.share) for run in missing
    )
    for i, run in enumerate(runs, 1):
        others = points[(points[RUN] != run[RUN].iloc[0]).any(axis=1)]
        points = pd.concat([others, run]).sort_values(["game", "algorithm", "seed", "rounds"])
        points.to_csv(curves, index=False)
        print(f"{i}/{len(missing)}", run.tail(1).to_string(index=False, header=False), flush=True)
    for name, algorithms, games in (
        ("baselines", ALGORITHMS, GAMES),
        ("defaults", DEFAULTS, DEFAULTS_GAMES),
    ):
        made = table(points, algorithms, games)
        if not made.empty:
            made.to_csv(options.out / "data" / f"{name}.csv", index=False)
            print(made.to_string(index=False))
    draw(points, pictures / "baselines.png")


if __name__ == "__main__":
    main()
