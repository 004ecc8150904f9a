"""A custom learner in a few lines, held to the contract and compared on the same episodes.

It adds up the log-likelihoods of the messages, and old messages fade.

    python examples/own_learner.py
"""

from __future__ import annotations

import numpy as np

import ldp_agents
import ldp_gym
from ldp_gym.testing import check_learner


class Fading(ldp_agents.Learner):
    """Bayes' rule with a fading memory: a message counts 1% less in every later round."""

    def __init__(self, game: ldp_gym.Game) -> None:
        super().__init__(game)
        if game.channel.adaptive:  # then the likelihood needs the public posterior
            raise ldp_agents.IncompatibleChannelError(
                f"{game.channel!r} depends on earlier messages"
            )
        self.reset()

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        super().reset(batch_shape)
        self.evidence = np.zeros((*batch_shape, self.game.num_hypotheses))

    def restart(self, mask: np.ndarray) -> None:
        super().restart(mask)
        self.evidence[mask] = 0.0

    def predict(self, candidates: np.ndarray) -> np.ndarray:
        weights = np.exp(self.evidence - self.evidence.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return np.einsum("...k,...km->...m", weights, candidates)

    def update(self, candidates: np.ndarray, message: np.ndarray) -> None:
        self.evidence = 0.99 * self.evidence + self.game.channel.log_likelihood(message, candidates)


def main(episodes: int = 100) -> None:
    check_learner(Fading)
    rules = {"hypotheses": "dirichlet", "channel": "split", "horizon": 1000}
    for learner in (ldp_agents.Uniform, Fading, ldp_agents.Bayes):
        result = ldp_gym.evaluate(learner, rules, episodes=episodes)
        low, high = result.interval()
        interval = f"95% interval {low:.1f} to {high:.1f}"
        print(f"{learner.__name__:8s} total KL {result.risk:7.1f}   {interval}")


if __name__ == "__main__":
    main()
