"""Many games in lock step: the vector environment at full speed, against the same games one by one.

Game i of the vector environment under seed s is the single environment's under seed s + i, so all
three ways of playing below charge the same losses and differ only in speed. ``evaluate`` is the
fastest: messages do not depend on predictions, so it plays whole blocks of rounds at once.

    python examples/vector.py --games 1024 --horizon 1000
"""

from __future__ import annotations

import argparse
import time

import gymnasium as gym
import numpy as np

import ldp_agents
import ldp_gym


def one_by_one(rules: dict, games: int) -> np.ndarray:
    env = gym.make("LDPDist-v0", **rules).unwrapped
    learner = ldp_agents.make("bayes", env)
    totals = np.zeros(games)
    for game in range(games):
        observation, _ = env.reset(seed=game)
        over = False
        while not over:
            observation, _, over, _, info = env.step(learner.act(observation))
            totals[game] += info["kl"]
    return totals


def in_lock_step(rules: dict, games: int) -> np.ndarray:
    envs = gym.make_vec("LDPDist-v0", num_envs=games, **rules).unwrapped
    learner = ldp_agents.make("bayes", envs)
    observations, _ = envs.reset(seed=0)
    totals = np.zeros(games)
    for _ in range(rules["horizon"]):
        observations, _, _, _, infos = envs.step(learner.act(observations))
        totals += infos["kl"]
    return totals


def at_once(rules: dict, games: int) -> np.ndarray:
    return ldp_gym.evaluate("bayes", rules, episodes=games, seed=0).kl[:, -1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=1024)
    parser.add_argument("--horizon", type=int, default=1000)
    arguments = parser.parse_args()
    rules = {"hypotheses": "dirichlet", "channel": "split", "horizon": arguments.horizon}

    few = min(arguments.games, 8)
    reference = one_by_one(rules, few)
    slowest = None
    ways = {"one by one": one_by_one, "in lock step": in_lock_step, "evaluate": at_once}
    for name, play in ways.items():
        games = few if play is one_by_one else arguments.games
        start = time.perf_counter()
        totals = play(rules, games)
        rate = games * arguments.horizon / (time.perf_counter() - start)
        slowest = slowest or rate
        assert np.allclose(totals[:few], reference), "the same seeds are the same games"
        half = 1.96 * totals.std(ddof=1) / np.sqrt(games)
        print(
            f"{name:12s} {games:5d} games  {rate:12,.0f} rounds/s, {rate / slowest:5.1f} x   "
            f"total KL {totals.mean():.1f} ± {half:.1f}"
        )


if __name__ == "__main__":
    main()
