"""A learner of your own in a few lines, held to the contract and compared on the same episodes.

python examples/own_learner.py
"""

from __future__ import annotations

import numpy as np

import ldp_agents
import ldp_gym
from ldp_gym.testing import check_learner


class Hedge(ldp_agents.ExponentialWeights):
    """Exponential weights on the exact log-likelihoods, at half the rate of Bayes."""

    rate = 0.5

    def losses(self, messages: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        return -self.game.channel.log_likelihood(messages, candidates)


def main(episodes: int = 100) -> None:
    check_learner(Hedge)
    rules = {"hypotheses": "dirichlet", "horizon": 1000}
    for learner in (ldp_agents.Uniform, Hedge, ldp_agents.Bayes):
        result = ldp_gym.evaluate(learner, rules, episodes=episodes)
        low, high = result.interval()
        print(f"{learner.__name__:8s} total KL {result.risk:7.1f}   95% interval {low:.1f} to {high:.1f}")


if __name__ == "__main__":
    main()
