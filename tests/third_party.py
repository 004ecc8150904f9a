"""Third-party parts, good and bad, as somebody else would write them."""

import os
import signal
import sys
import time

import numpy as np
from helpers import Stepwise

import ldp_agents
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.engine.learners import play_stepwise
from ldp_gym.hypotheses.families import Dirichlet
from ldp_gym.natures.base import IID
from ldp_gym.truths.base import Truth


class Centred(ldp_agents.CentredEXP3):
    """A learner for every channel under another name; it prints."""

    def reset(self, batch_shape=()):
        print("I begin!")
        super().reset(batch_shape)


class Coin(Stepwise):
    """Has coins of its own: it mixes the first two labels at random, and reads nothing."""

    randomized = True
    track = "uninformed"

    def reset(self, batch_shape=(), generators=None):
        super().reset(batch_shape)
        self.generators = generators

    def predict(self, candidates):
        share = np.array([generator.random() for generator in self.generators])
        prediction = np.full((*self.batch_shape, self.game.num_labels), 0.1 / self.game.num_labels)
        prediction[:, 0] += 0.9 * share
        prediction[:, 1] += 0.9 * (1 - share)
        return prediction


class Picky(Stepwise):
    """Plays one game alone, like a policy that was trained for it, and says which."""

    example_rules = {
        "hypotheses": "dirichlet",
        "num_hypotheses": 8,
        "num_labels": 3,
        "horizon": 2000,
    }
    track = "uninformed"

    def __init__(self, game):
        super().__init__(game)
        if (game.num_hypotheses, game.num_labels) != (8, 3):
            raise IncompatibleChannelError(f"Picky was trained for K = 8 and M = 3, not {game!r}")


class Late(ldp_agents.Uniform):
    """Behaves in a small game and misbehaves in a long one: the contract check does not see it."""

    def predict(self, candidates):
        if self.game.horizon > 12:
            self.misbehave()
        return super().predict(candidates)

    def play(self, candidates, messages, log_likelihoods=None):
        return play_stepwise(self, candidates, messages)


def late(misbehave):
    """The class of a learner that does something in its first long game."""
    return type("Misbehaves", (Late,), {"misbehave": misbehave})


def crash(self):
    raise ZeroDivisionError("I divided by <b>zero</b> \x1b[2J")


Sleeper, Crasher = late(lambda self: time.sleep(3600)), late(crash)
Exits, Quitter = late(lambda self: sys.exit(3)), late(lambda self: os._exit(7))
Segfault = late(lambda self: os.kill(os.getpid(), signal.SIGSEGV))
NotANumber = late(lambda self: self._state.fill(np.nan))


class Negative(ldp_agents.Uniform):
    def _predict(self, weights, candidates):
        return 2 * super()._predict(weights, candidates) - 1


class RandomClass(Dirichlet):
    def __call__(self, contexts):
        return np.random.default_rng().dirichlet(np.ones(self.num_labels), self.num_hypotheses)


class RandomNature(IID):
    def contexts(self, view):
        return super().contexts(view) + np.random.default_rng().random()


class RandomTruth(Truth):
    def distributions(self, view):
        drawn = np.random.default_rng().integers(view.candidates.shape[-2])
        return view.candidates[..., drawn, :]


class Moody(ldp_agents.Uniform):
    made = 0

    def __init__(self, game):
        Moody.made += 1
        if Moody.made % 2 == 0:
            raise IncompatibleChannelError("not today")
        super().__init__(game)
