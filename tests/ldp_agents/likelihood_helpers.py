"""What learners pay for messages, on a recorded tape."""

import numpy as np
from helpers import record


def record_all(rules, episodes=1):
    """A game, and a tape of all its rounds."""
    return record(rules, rules["horizon"], episodes)


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
