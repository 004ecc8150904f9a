"""A recorded tape, for tests that go through it line by line."""

import numpy as np

from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes


def record(rules, episodes=1, seed=0):
    """The game and one block with all rounds of some episodes."""
    scenario = Scenario(**rules)
    starts = [scenario.start_episode(np.random.default_rng(seed + i)) for i in range(episodes)]
    return scenario.game, Episodes(scenario, starts).play(scenario.horizon)


def likelihoods(game, tape):
    """Of each hypothesis and message, ``(B, T, K)``; of a channel that is not adaptive."""
    return np.exp(game.channel.log_likelihood(tape.messages, tape.candidates))


def message_losses(weights, likelihood):
    """The log-loss of messages, summed over rounds: weights ``(B, T, K)`` to ``(B,)``."""
    return -np.log(np.einsum("btk,btk->bt", weights, likelihood)).sum(axis=1)


def weights_along(learner, tape):
    """The learner's weights before each round, ``(B, T, K)``."""
    learner.reset((len(tape.messages),))
    along = []
    for t in range(tape.messages.shape[1]):
        along.append(np.array(learner.weights))
        candidates = (
            tape.candidates if tape.candidates.ndim == 2 else tape.candidates[:, t % tape.candidates.shape[1]]
        )
        learner.update(candidates, tape.messages[:, t])
    return np.stack(along, axis=1)
