"""`make perf`: speed as ratios against references measured in the same run, one thread.

Absolute times depend on the machine. Ratios hardly do if the reference does work of the same kind: calls of
small NumPy functions against such calls, passes over blocks of memory against such passes. The two take
turns, and a ratio is the median of neighbouring runs, in CPU time. Every line shows the ratio (1 = as fast as
the reference) and the smallest ratio that is promised; the exit status is 1 if one falls short. Lines without
a promise explain others. The last lines show the gain of code that exists only for speed. With --write all
lines go to docs/data/speed.csv, which docs/speed.md shows.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium as gym
import numpy as np

import ldp_agents
import ldp_bench
import ldp_gym
from ldp_gym import audit
from ldp_gym.core import arrays, sampling
from ldp_gym.engine import posterior

PLAIN = "EXP3 by hand"
ADAPTIVE = {"adaptive-split": 0.4, "adaptive-groups": 0.22}
"""Adaptive channels, and the promised speed of a single environment on them against one on split."""
BOX = {"laplace-single": {1: 0.4, 64: 0.3, 512: 0.3}, "hybrid": {1: 0.4, 64: 0.3, 512: 0.3}}
"""Promised speed of LDPDistBox-v0 against LDPDist-v0 by channel and number of games: on the default channel,
and on the one with the lowest ratio of all."""
NATURE = {1: 0.06, 64: 0.05}
"""Promised speed of LDPNature-v0 against LDPDistBox-v0 on the same channel by number of games."""
CONTEXTS = {"laplace-single": 3.0, "split": 2.0, "adaptive-split": 0.8}
"""Channels, and the promised speed of Bayes on a constant table against that with contexts."""
DATA = Path(__file__).resolve().parents[2] / "docs" / "data" / "speed.csv"
GAME = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16}
COINS = np.random.default_rng(0)
UNIFORM, LOGITS = np.full(16, 1 / 16), np.zeros(8, dtype=np.float32)

Work = Callable[[], object]


def compare(
    ours: Work, reference: Work, work: float = 1.0, repeats: int = 9, clock: Any = time.process_time
) -> float:
    """The ratio of two rates, the median of runs that take turns; ``work`` is ours over the reference's."""

    def seconds(play: Work) -> float:
        start = clock()
        play()
        return clock() - start

    ours(), reference()
    return work * median(seconds(reference) / seconds(ours) for _ in range(repeats))


def respond(label: int) -> int:
    """Randomized response in plain Python."""
    return label % 8 if COINS.random() < 0.28 else int(COINS.integers(8))


def draw_responses() -> None:
    for label in range(10**5):
        respond(label)


def single_steps(env: gym.Env, action: object, count: int = 10_000) -> None:
    env.reset()
    for _ in range(count):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()


def vector_steps(envs: Any, actions: np.ndarray, count: int = 1001) -> None:
    """Steps of a vector environment, Gymnasium's or SB3's; an episode of 1,000 rounds and its reset."""
    for _ in range(count):
        envs.step(actions)


def steps(
    name: str, games: int, action: object, channel: str = "laplace-single", game: Any = GAME
) -> Work:
    """A thousand steps or more of one environment, or of a vector environment of several games."""
    rules = {} if name.startswith("CartPole") else {**game, "channel": channel}
    if games == 1:
        return partial(single_steps, gym.make(name, **rules), action)
    envs = gym.make_vec(name, num_envs=games, **rules)
    envs.reset(seed=0)
    return partial(vector_steps, envs, np.stack([action] * games))


PLAIN_ROUNDS = 2**17


def play_by_hand(block: int = 2**12) -> None:
    """Exponential weights on one known table, as a user would write them for it: no checks, no batch.

    Labels, Laplace noise on the log-likelihood of one hypothesis, a cumulative sum, weights, the mixture, its
    KL and TV: block by block, with the temporaries that NumPy needs for it.
    """
    rng = np.random.default_rng(0)
    table = ldp_gym.HYPOTHESES["dirichlet"](8, 16)(np.zeros(1))
    truth, log_table, total = table[3], np.log(table + 1e-6), np.zeros(8)
    negentropy, edges = np.sum(truth * np.log(truth)), np.cumsum(truth)[:-1]
    for _ in range(PLAIN_ROUNDS // block):
        labels, hypotheses = np.searchsorted(edges, rng.random(block)), rng.integers(8, size=block)
        losses = np.zeros((block, 8))
        noise = rng.laplace(size=block)
        losses[np.arange(block), hypotheses] = log_table[hypotheses, labels] + noise
        totals = total + np.cumsum(losses, axis=0)
        weights = np.exp(0.01 * (totals - totals.max(axis=1, keepdims=True)))
        predictions = (weights / weights.sum(axis=1, keepdims=True)) @ table
        (negentropy - np.log(predictions) @ truth).sum()
        np.maximum(truth - predictions, 0.0).sum()
        total = totals[-1]


def play(
    learner: str,
    episodes: int = 4,
    horizon: int = 100_000,
    channel: str = "laplace-single",
    jobs: int = 1,
    game: Any = GAME,
) -> None:
    rules = {**game, "horizon": horizon, "channel": channel}
    ldp_gym.evaluate(learner, rules, episodes=episodes, jobs=jobs)


def play_suite() -> None:
    """The suite ``quick`` through the runner and the store."""
    with tempfile.TemporaryDirectory() as directory:
        ldp_bench.run("quick", episodes=10, jobs=1, out=directory)


def play_suite_by_evaluate() -> None:
    """The same experiments, each by a call of ``evaluate``."""
    for experiment in ldp_bench.SUITES["quick"]().experiments(episodes=10):
        with contextlib.suppress(ldp_agents.IncompatibleChannelError):
            ldp_gym.evaluate(experiment.learner, experiment.rules, episodes=10)


def gain(work: Work, module: object, name: str, value: object) -> float:
    """Speed of some work in multiples of its speed with another value of a module's attribute."""
    kept = getattr(module, name)

    def work_without() -> None:
        setattr(module, name, value)
        try:
            work()
        finally:
            setattr(module, name, kept)

    return compare(work, work_without, repeats=7)


def sum_rows() -> None:
    block = np.ones((4, 8000, 16))
    for _ in range(20):
        arrays.row_sums(block)


def sb3_steps(games: int = 64) -> tuple[Work, Work]:
    """Steps of the vector environment for stable-baselines3, and of its own loop over single environments."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    from ldp_agents.rl import SB3VecEnv

    ours = SB3VecEnv(
        gym.make_vec("LDPDistBox-v0", num_envs=games, autoreset_mode="SameStep", **GAME)
    )
    theirs = DummyVecEnv([lambda: gym.make("LDPDistBox-v0", **GAME)] * games)
    ours.reset(), theirs.reset()
    actions = np.stack([LOGITS] * games)
    return partial(vector_steps, ours, actions, 60), partial(vector_steps, theirs, actions, 60)


PLAY_A_MILLION_LABELS = """
env = gym.make("LDPDist-v0", hypotheses="dirichlet", num_hypotheses=16, num_labels=10**6, horizon=10)
env.reset(seed=0)
for _ in range(10):
    env.step(np.full(10**6, 1e-6))
"""


def default_game_parts(games: int, rounds: int = 14) -> tuple[Work, Work]:
    """Two parts of some rounds of the default game: its random numbers alone; these, and its class."""
    game = gym.make("LDPDist-v0").unwrapped.game
    generators = [np.random.default_rng(seed) for seed in range(games)]
    contexts = COINS.standard_normal((games, rounds, game.hypotheses.context_dim))
    numbers = (
        contexts.shape[-1] + 1 + game.channel.num_uniforms
    )  # of a context, a label and a message
    draw = partial(sampling.open_uniforms, generators, (rounds, numbers))
    return draw, lambda: (draw(), game.hypotheses(contexts))


def jobs_overhead() -> float:
    """CPU seconds that the second of two processes adds to a short `evaluate`."""

    def seconds(jobs: int) -> float:
        code = (
            f"import ldp_gym; ldp_gym.evaluate('exp3', {{'horizon': 10}}, episodes=64, jobs={jobs})"
        )
        start = sum(os.times()[2:4])
        subprocess.run([sys.executable, "-c", code], check=True)
        return sum(os.times()[2:4]) - start

    return median(seconds(2) - seconds(1) for _ in range(3))


def peak_memory(code: str) -> int:
    """Peak memory of a fresh interpreter that runs some code, in bytes."""
    setup = "import resource, gymnasium as gym, numpy as np, ldp_gym, ldp_agents, scipy.special\n"
    report = "\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [sys.executable, "-c", setup + code + report]
    return 1024 * int(subprocess.run(command, capture_output=True, check=True).stdout)


def measure() -> Iterator[tuple[str, float, float | None, str]]:
    """Every line: its name, the ratio, the promised one (None: no promise) and the name of the reference."""
    # First, while this process is small: the peak of a child is at least its parent's.
    memory = peak_memory(PLAY_A_MILLION_LABELS) - peak_memory("pass")
    yield "the table's share of peak memory, K = 16, M = 10^6", 16 * 10**6 * 8 / memory, 0.25, ""

    # The default game has contexts: a round is a softmax of 128 numbers for each game.
    for games, reference, by_class in (
        (1, "CartPole-v1", {"a constant table": 0.45, "contexts": 0.4}),
        (1024, "CartPoleVectorEnv", {"a constant table": 0.35, "contexts": 0.1}),
    ):
        for what, promised in by_class.items():
            game = {} if what == "contexts" else GAME
            ours = steps("LDPDist-v0", games, UNIFORM, game=game)
            ratio = compare(ours, steps("CartPole-v1", games, 0), repeats=5)
            yield f"LDPDist-v0 with {what}, games: {games:,}", ratio, promised, reference
    cart_poles = partial(steps("CartPole-v1", 1024, 0), count=14)
    names = ("its random numbers alone", "its random numbers and its class alone")
    for what, part in zip(names, default_game_parts(1024), strict=True):
        yield (
            f"LDPDist-v0 with contexts: {what}",
            compare(part, cart_poles, repeats=25),
            None,
            reference,
        )
    for channel, promises in BOX.items():
        for games, promised in promises.items():
            ours = steps("LDPDistBox-v0", games, LOGITS, channel)
            ratio = compare(ours, steps("LDPDist-v0", games, UNIFORM, channel), repeats=5)
            yield f"LDPDistBox-v0 on {channel}, games: {games}", ratio, promised, "LDPDist-v0"
    asked = gym.make_vec("LDPAsk-v0", num_envs=64, horizon=1000)
    asked.reset(seed=0)
    reference = steps("LDPDistBox-v0", 64, LOGITS, "adaptive-split")
    ratio = compare(partial(vector_steps, asked, asked.action_space.sample()), reference)
    yield "LDPAsk-v0, games: 64", ratio, 0.3, "LDPDistBox-v0 on adaptive-split"

    # Nature's rounds are played one by one, and each looks at all 32 contexts of the pool.
    for games, promised in NATURE.items():
        ours = steps("LDPNature-v0", games, 3, "split", game={})
        reference = steps("LDPDistBox-v0", games, LOGITS, "split", game={})
        ratio = compare(ours, reference, repeats=5)
        yield f"LDPNature-v0, games: {games}", ratio, promised, "LDPDistBox-v0 on split, contexts"

    work = 400_000 / PLAIN_ROUNDS
    yield "evaluate EXP3, KL and TV", compare(partial(play, "exp3"), play_by_hand, work), 0.8, PLAIN
    ratio = compare(partial(play, "bayes"), partial(play, "exp3"), repeats=5)
    yield "evaluate Bayes on laplace-single", ratio, 0.5, "EXP3 there"
    ratio = compare(partial(play, "bayes", channel="split"), play_by_hand, work, repeats=5)
    yield "evaluate Bayes on split", ratio, 0.3, PLAIN
    for channel, promised in CONTEXTS.items():
        table, contexts = (
            partial(play, "bayes", 64, 500, channel, game=game) for game in (GAME, {})
        )
        yield (
            f"Bayes on {channel}, constant table",
            compare(table, contexts, repeats=5),
            promised,
            "contexts",
        )
    for channel in ADAPTIVE:
        episodes = partial(play, "bayes", 256, 200, channel)
        ratio = compare(episodes, play_by_hand, 256 * 200 / PLAIN_ROUNDS, repeats=5)
        yield f"evaluate Bayes on {channel}, 256 episodes", ratio, 0.04, PLAIN
    if (os.cpu_count() or 1) > 1:
        one, two = (partial(play, "exp3", 800, jobs=jobs) for jobs in (1, 2))
        ratio = compare(two, one, repeats=3, clock=time.perf_counter)
        yield "evaluate EXP3 with jobs=2, wall clock, idle machine", ratio, 1.8, "jobs=1"
        yield "CPU seconds that jobs=2 adds to a call of evaluate", jobs_overhead(), None, ""

    on_split = partial(single_steps, gym.make("LDPDist-v0", channel="split"), UNIFORM, 4000)
    for channel, promised in ADAPTIVE.items():
        ours = partial(single_steps, gym.make("LDPDist-v0", channel=channel), UNIFORM, 4000)
        yield (
            f"single environment on {channel}",
            compare(ours, on_split, repeats=5),
            promised,
            "on split",
        )

    if importlib.util.find_spec("stable_baselines3"):
        yield "SB3VecEnv, 64 games", compare(*sb3_steps(), repeats=5), 10.0, "DummyVecEnv"

    wide, channel = (
        ldp_gym.HYPOTHESES["dirichlet"](16, 1000),
        ldp_gym.CHANNELS["laplace-single"](16, 1000, 1000),
    )
    # An audit has K M messages to look at, each for M labels: nothing else may cost much.
    table = wide(np.zeros(1))
    worst = channel.worst_case_messages(table)

    def evaluate_densities() -> None:
        for some in np.array_split(worst, 64):
            channel.log_density(some, table)

    ratio = compare(partial(audit.exact_epsilon, channel, table), evaluate_densities, repeats=3)
    yield "exact audit, K = 16, M = 1,000", ratio, 0.8, "its densities alone"
    ours = partial(audit.estimate_epsilon, respond, num_labels=8, trials=10**5)
    ratio = compare(ours, draw_responses, repeats=3)
    yield "black-box audit of randomized response, 10^5 messages", ratio, 0.4, "drawing them"

    ratio = compare(play_suite, play_suite_by_evaluate, repeats=5)
    yield "benchmark suite quick, one job", ratio, 1.3, "evaluate, learner by learner"

    ours = partial(single_steps, gym.make("LDPDist-v0", channel="adaptive-groups"), UNIFORM, 3000)
    yield (
        "gain of rounds ahead, single adaptive-groups",
        gain(ours, posterior, "_AHEAD", 1),
        1.5,
        "in turn",
    )
    ours = partial(play, "bayes", 2, 40, "split", game={**GAME, "num_labels": 10**5})
    yield (
        "gain of rows one by one, M = 10^5",
        gain(ours, arrays, "LONG_ROW", 10**9),
        1.1,
        "together",
    )
    plain_sum = partial(np.add.reduce, axis=-1)
    yield (
        "gain of products with ones",
        gain(sum_rows, arrays, "row_sums", plain_sum),
        1.5,
        "sums along rows",
    )


def main() -> int:
    warnings.simplefilter("ignore")
    short, rows = 0, [("ours", "reference", "ratio", "promised at least")]
    for what, ratio, promised, reference in measure():
        falls_short = promised is not None and ratio < promised
        short += falls_short
        promise = "-" if promised is None else f"{promised:g}"
        if "wall clock" not in what:  # which says something only of an idle machine
            rows.append((what, reference or "-", f"{ratio:.2f}", promise))
        mark = "  <-- short" if falls_short else ""
        print(
            f"{what:64s} {ratio:6.2f} x {reference or '-'} (promised {promise}){mark}", flush=True
        )
    if sys.argv[1:] == ["--write"]:
        with DATA.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    return int(short > 0)


if __name__ == "__main__":
    sys.exit(main())
