"""`make perf`: speed as ratios against references measured in the same run, one thread.

Absolute times depend on the machine. Ratios hardly do if the reference does work of the same kind: calls of
small NumPy functions against such calls, passes over blocks of memory against such passes. The two take
turns, and a ratio is the median of those of neighbouring runs, in CPU time. Every line says what is measured,
the reference, the ratio (1 = as fast as the reference) and the least ratio that we promise; exit status 1 if
one falls short. The last lines say what each piece of code that is there for speed alone gains.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import gymnasium as gym
import numpy as np

import ldp_agents
import ldp_gym
from ldp_gym import bench
from ldp_gym.channels import vote, votes, wheel
from ldp_gym.core import arrays
from ldp_gym.deploy import Entry, Ledger
from ldp_gym.engine import lookahead
from ldp_gym.privacy import audit
from ldp_gym.processes import count_jobs

PLAIN = "EXP3 by hand"
ADAPTIVE = ("adaptive-split", "adaptive-scheffe", "adaptive-wheel", "adaptive-groups")
ROOT = Path(__file__).parent.parent
GAME = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16}


def compare(
    ours: Callable[[], int],
    reference: Callable[[], int],
    repeats: int = 9,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """The ratio of the two rates of work: the median over runs that take turns on a noisy machine."""

    def rate(play: Callable[[], int]) -> float:
        start = clock()
        return play() / (clock() - start)

    ours(), reference()
    return median(rate(ours) / rate(reference) for _ in range(repeats))


def steps(env: gym.Env, action: object, count: int = 20_000) -> int:
    env.reset()
    for _ in range(count):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return count


def vector_steps(envs: gym.vector.VectorEnv, actions: np.ndarray, count: int = 1001) -> int:
    for _ in range(count):
        envs.step(actions)
    return count


def plain_play(rounds: int = 2**17, block: int = 2**12) -> int:
    """Exponential weights on one known table, as a user would write them for it: no checks, no batch.

    Labels, Laplace noise on the log-likelihood of one hypothesis, a cumulative sum, weights, the mixture, its
    KL and TV: block by block, with the temporaries that NumPy needs for it.
    """
    rng = np.random.default_rng(0)
    table = ldp_gym.HYPOTHESES["dirichlet"](8, 16)(np.zeros(1))
    truth, log_table, total = table[3], np.log(table + 1e-6), np.zeros(8)
    negentropy, edges = np.sum(truth * np.log(truth)), np.cumsum(truth)[:-1]
    for _ in range(rounds // block):
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
    return rounds


def evaluated(name: str, episodes: int = 4, horizon: int = 100_000, **game: object) -> int:
    settings = {**GAME, "horizon": horizon, **game}
    ldp_gym.evaluate(partial(ldp_agents.make, name), settings, episodes=episodes)
    return episodes * horizon


def evaluated_by(jobs: int) -> int:
    """About ten seconds of one core's work, which several processes share."""
    rules, episodes = {**GAME, "horizon": 100_000}, 400
    ldp_gym.evaluate("exp3", rules, episodes=episodes, jobs=jobs)
    return episodes


# -- What is there for speed alone ------------------------------------------------------------------------


@contextlib.contextmanager
def replaced(what: dict[tuple[object, str], object]) -> Iterator[None]:
    """Other attributes for a while."""
    kept = {place: getattr(*place) for place in what}
    try:
        for place, value in what.items():
            setattr(*place, value)
        yield
    finally:
        for place, value in kept.items():
            setattr(*place, value)


def gain(play: Callable[[], int], without: dict[tuple[object, str], object], repeats: int = 7) -> float:
    """How many times faster something is than without a piece of code."""

    def play_without() -> int:
        with replaced(without):
            return play()

    return compare(play, play_without, repeats)


def votes_each_time() -> dict[tuple[object, str], object]:
    names = ("votes", "ballots", "winners")
    places = [(module, name) for module in (votes, vote, wheel) for name in names if hasattr(module, name)]
    return {(module, name): getattr(module, name).__wrapped__ for module, name in places}


def summed_up(count: int = 20) -> int:
    block = np.ones((4, 8000, 16))
    for _ in range(count):
        arrays.row_sums(block)
    return count


EVALUATE_AFRESH = """
import time
from ldp_gym.engine import tape
if {without}:
    tape._keep_freed_memory = lambda: None
import benchmarks.perf as perf
perf.evaluated("exp3")
start = time.process_time()
for _ in range(3):
    perf.evaluated("exp3")
print(time.process_time() - start)
"""


def memory_gain(repeats: int = 5) -> float:
    """What ``_keep_freed_memory`` of the tape gains, in fresh interpreters."""

    def seconds(without: bool) -> float:
        code = EVALUATE_AFRESH.format(without=without)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)
        return float(done.stdout)

    return median(seconds(True) / seconds(False) for _ in range(repeats))


def benchmarked() -> int:
    """The suite ``quick`` through the runner, store and all."""
    with tempfile.TemporaryDirectory() as directory:
        return sum(
            result.experiment.episodes
            for result in bench.run("quick", episodes=10, jobs=1, out=directory).successes
        )


def only_evaluated() -> int:
    """The same experiments through ``evaluate`` alone."""
    episodes = 0
    for experiment in bench.SUITES["quick"]().experiments(episodes=10):
        with contextlib.suppress(ldp_agents.IncompatibleChannelError):
            ldp_gym.evaluate(experiment.learner, experiment.rules, episodes=10)
            episodes += 10
    return episodes


def in_lock_step(games: int) -> object:
    """The native vector environment in SB3's clothes."""
    from ldp_agents.rl import SB3VecEnv

    env = SB3VecEnv(gym.make_vec("LDPDistBox-v0", num_envs=games, autoreset_mode="SameStep", **GAME))
    env.reset()
    return env


def one_by_one(games: int) -> object:
    """As many single environments, in turn."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([lambda: gym.make("LDPDistBox-v0", **GAME)] * games)
    env.reset()
    return env


def sb3_steps(env: object, count: int = 60) -> int:
    actions = np.zeros((env.num_envs, 8), dtype=np.float32)
    for _ in range(count):
        env.step(actions)
    return count


def ppo_share(steps: int = 60_000) -> float:
    """The time that PPO takes with its networks over the time that the games take, in one training run."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    env, spent = in_lock_step(64), 0.0
    played = env.step_wait

    def timed() -> object:
        nonlocal spent
        start = time.process_time()
        result = played()
        spent += time.process_time() - start
        return result

    env.step_wait = timed
    model = PPO("MlpPolicy", env, n_steps=64, batch_size=1024, n_epochs=5, gamma=0.0, device="cpu")
    start = time.process_time()
    model.learn(steps)
    return (time.process_time() - start - spent) / spent


def peak_memory_ratio(code: str, baseline: int) -> float:
    """How many times ``baseline`` bytes a fresh interpreter needs for ``code``, above an idle one."""
    report = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    setup = "import gymnasium as gym, numpy as np, ldp_gym, ldp_agents, scipy.special"
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", f"{setup}\n{body}{report}"], capture_output=True, check=True
            ).stdout
        )
        for body in ("pass", code)
    ]
    return (peaks[1] - peaks[0]) * 1024 / baseline


def answers_per_second(channel: str, count: int = 400, repeats: int = 5) -> float:
    """How many questions a client answers in a second of processor time, its ledger on disk included."""
    rules = {"num_hypotheses": 8, "num_labels": 16, "channel": channel, "horizon": count * repeats}
    contexts = np.random.default_rng(0).standard_normal((count, 4))
    rates = []
    with tempfile.TemporaryDirectory() as folder, ldp_gym.deploy.Server(rules) as server:
        client = ldp_gym.deploy.Client(rules, budget=1e9, ledger=Path(folder) / "ledger.sqlite")
        for _ in range(repeats):
            questions = [json.loads(json.dumps(server.question(context))) for context in contexts]
            start = time.process_time()
            for question in questions:
                client.answer(question, 3)
            rates.append(count / (time.process_time() - start))
        client.close()
    return max(rates)


def bookings_per_second(count: int = 2000) -> float:
    """How many answers a ledger on disk books in a second of processor time, with nothing else to do."""
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        start = time.process_time()
        for t in range(count):
            ledger.book(Entry(f"question {t}", "a game", t, 1.0, "an answer"), budget=1e9)
        return count / (time.process_time() - start)


PLAY_A_MILLION_LABELS = """
env = gym.make("LDPDist-v0", hypotheses="dirichlet", num_hypotheses=16, num_labels=10**6, horizon=10)
env.reset(seed=0)
for _ in range(10):
    env.step(np.full(10**6, 1e-6))
"""


def main() -> int:
    failed = False
    warnings.simplefilter("ignore", ldp_gym.NoPrivacyWarning)

    def line(what: str, ratio: float, promised: float, reference: str) -> None:
        nonlocal failed
        failed |= ratio < promised
        mark = "" if ratio >= promised else "  <-- short"
        print(f"{what:54s} {ratio:6.2f} x {reference} (promised {promised:g}){mark}", flush=True)

    # First, while this process is small: a child's peak is no less than its parent's.
    table = 16 * 10**6 * 8
    ratio = 1 / peak_memory_ratio(PLAY_A_MILLION_LABELS, table)
    line("the table's share of peak memory, K = 16, M = 10^6", ratio, 0.25, "")

    uniform = np.full(16, 1 / 16)
    ratio = compare(
        partial(steps, gym.make("LDPDist-v0", **GAME), uniform), partial(steps, gym.make("CartPole-v1"), 0)
    )
    line("single environment", ratio, 0.45, "CartPole-v1")

    games = 1024
    poles, ours = (
        gym.make_vec("CartPole-v1", num_envs=games),
        gym.make_vec("LDPDist-v0", num_envs=games, **GAME),
    )
    poles.reset(seed=0)
    ours.reset(seed=0)
    left, actions = np.zeros(games, dtype=np.int64), np.tile(uniform, (games, 1))
    ratio = compare(partial(vector_steps, ours, actions), partial(vector_steps, poles, left))
    line("vector environment, 1,024 games", ratio, 0.25, "CartPoleVectorEnv")

    line("evaluate EXP3, KL and TV", compare(partial(evaluated, "exp3"), plain_play), 0.8, PLAIN)

    ratio = compare(partial(evaluated, "bayes"), partial(evaluated, "exp3"), repeats=5)
    line("evaluate Bayes on laplace-single", ratio, 0.5, "EXP3 there")
    ratio = compare(partial(evaluated, "bayes", channel="split"), plain_play, repeats=5)
    line("evaluate Bayes on split", ratio, 0.3, PLAIN)
    for channel in ADAPTIVE:
        ratio = compare(partial(evaluated, "bayes", 256, 200, channel=channel), plain_play, repeats=5)
        line(f"evaluate Bayes on {channel}, 256 episodes", ratio, 0.04, PLAIN)
    if count_jobs(-1) > 1:
        ratio = compare(partial(evaluated_by, 2), partial(evaluated_by, 1), 3, time.perf_counter)
        line("evaluate EXP3 with jobs=2, wall clock, idle machine", ratio, 1.8, "jobs=1")

    still = gym.make("LDPDist-v0", channel="split")
    for channel, promised in zip(ADAPTIVE, (0.4, 0.36, 0.25, 0.22), strict=True):
        env = gym.make("LDPDist-v0", channel=channel)
        ratio = compare(partial(steps, env, uniform, 4000), partial(steps, still, uniform, 4000), repeats=5)
        line(f"single environment on {channel}", ratio, promised, "on split")

    if importlib.util.find_spec("stable_baselines3"):
        ratio = compare(partial(sb3_steps, in_lock_step(64)), partial(sb3_steps, one_by_one(64)), repeats=5)
        line("SB3VecEnv, 64 games, evidence", ratio, 10.0, "DummyVecEnv")
        line("PPO's own share of a training run, over the games'", ppo_share(), 1.0, "")

    wide = ldp_gym.HYPOTHESES["dirichlet"](16, 1000)(np.zeros(1))
    channel = ldp_gym.CHANNELS["laplace-single"](16, 1000, 1000)
    ratio = compare(
        lambda: len(audit.exact_epsilon(channel, wide).labels) // 2,
        lambda: (
            len(channel.privatize(np.zeros(10**6, dtype=np.int64), wide, np.random.default_rng(0))) // 10**6
        ),
        repeats=3,
    )
    line("exact audit, K = 16, M = 1,000", ratio, 1.0, "drawing 10^6 of its messages")

    for name in ("split", "subset-selection", "one-bit", "adaptive-groups"):
        rate = answers_per_second(name)
        ratio = rate / bookings_per_second()
        line(f"a client's answers on {name} ({rate:,.0f}/s)", ratio, 0.07, "booking them in its ledger")

    ratio = compare(benchmarked, only_evaluated, repeats=5)
    line("benchmark suite quick, one job", ratio, 1.3, "evaluate alone")

    env = gym.make("LDPDist-v0", channel="adaptive-wheel")
    ratio = gain(partial(steps, env, uniform, 3000), {(lookahead, "_AHEAD"): 1})
    line("gain of rounds ahead, single adaptive-wheel", ratio, 1.5, "in turn")
    env = gym.make("LDPDist-v0", channel="adaptive-wheel", **GAME)
    ratio = gain(partial(steps, env, uniform, 3000), votes_each_time())
    line("gain of votes kept for a constant table", ratio, 1.0, "each time")
    sums = {(arrays, "row_sums"): lambda array: np.add.reduce(array, axis=-1)}
    line("gain of products with ones", gain(summed_up, sums), 1.5, "sums along rows")
    line("gain of memory that is kept", memory_gain(), 0.97, "returned")

    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
