"""`make perf`: speed as ratios against references measured in the same run, one thread.

Absolute times depend on the machine; ratios hardly do. Every line says what is measured, the reference, the
ratio (1 = as fast as the reference) and the least ratio that we promise; exit status 1 if one falls short.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np

import ldp_agents
import ldp_gym
from ldp_gym import bench
from ldp_gym.privacy import audit
from ldp_gym.wrappers import Evidence, MixtureAction, VectorEvidence, VectorMixtureAction

GAME = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 16}


def compare(ours: Callable[[], int], reference: Callable[[], int], repeats: int = 9) -> float:
    """The ratio of the two best rates of work, the runs taking turns on a noisy machine."""

    def rate(play: Callable[[], int]) -> float:
        start = time.perf_counter()
        return play() / (time.perf_counter() - start)

    ours(), reference()
    pairs = [(rate(ours), rate(reference)) for _ in range(repeats)]
    return max(mine for mine, _ in pairs) / max(theirs for _, theirs in pairs)


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


def floor(rounds: int = 2**17, block: int = 2**12) -> int:
    """A loop that only draws the noise, multiplies weights by candidates and takes logs."""
    rng = np.random.default_rng(0)
    table = ldp_gym.HYPOTHESES["dirichlet"](8, 16)(np.zeros(1))
    weights = np.full((block, 8), 1 / 8)
    for _ in range(rounds // block):
        rng.laplace(size=block)
        np.log(weights @ table)
    return rounds


def evaluated(name: str, episodes: int = 4, horizon: int = 100_000, **game: object) -> int:
    settings = {**GAME, "horizon": horizon, **game}
    ldp_gym.evaluate(partial(ldp_agents.make, name), settings, episodes=episodes)
    return episodes * horizon


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

    envs = gym.make_vec("LDPDist-v0", num_envs=games, autoreset_mode="SameStep", **GAME)
    env = SB3VecEnv(VectorEvidence(VectorMixtureAction(envs)))
    env.reset()
    return env


def one_by_one(games: int) -> object:
    """As many single environments, in turn."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([lambda: Evidence(MixtureAction(gym.make("LDPDist-v0", **GAME)))] * games)
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
    line("single environment", ratio, 0.5, "CartPole-v1")

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

    line("evaluate EXP3, KL and TV", compare(partial(evaluated, "exp3"), floor), 0.3, "noise-multiply-log")

    ratio = compare(partial(evaluated, "bayes", channel="split"), floor, repeats=5)
    line("evaluate Bayes on split", ratio, 0.15, "noise-multiply-log")
    for channel in ("adaptive-split", "adaptive-scheffe", "adaptive-wheel", "adaptive-groups"):
        ratio = compare(partial(evaluated, "bayes", 256, 200, channel=channel), floor, repeats=5)
        line(f"evaluate Bayes on {channel}, 256 episodes", ratio, 0.03, "noise-multiply-log")

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
        ratio = answers_per_second(name) / 2000.0
        line(f"a client's answers on {name}, K = 8, M = 16", ratio, 1.0, "2,000 a second")

    ratio = compare(benchmarked, only_evaluated, repeats=3)
    line("benchmark suite quick, one job", ratio, 0.9, "evaluate alone")

    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
