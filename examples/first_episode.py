"""One game, round by round: the loop that every Gymnasium user knows.

python examples/first_episode.py
"""

from __future__ import annotations

import gymnasium as gym

import ldp_agents
import ldp_gym  # noqa: F401 - registers LDPDist-v0


def main() -> None:
    env = gym.make("LDPDist-v0", channel="randomized-response", epsilon=2.0, horizon=200)
    learner = ldp_agents.make("bayes", env)

    observation, _ = env.reset(seed=0)
    total = 0.0
    over = False
    while not over:
        observation, reward, over, _, _ = env.step(learner.act(observation))
        total -= reward  # the learner never sees it
    print(f"{env.unwrapped.game.channel}: total KL {total:.1f} nats over 200 rounds")


if __name__ == "__main__":
    main()
