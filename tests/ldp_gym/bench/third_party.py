"""Third-party learners and channels, good and bad, for the tests of the benchmark to play."""

import gc
import inspect
import os
import subprocess
import sys
import time

import numpy as np
from helpers import Stepwise

import ldp_agents
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.engine.learners import play_stepwise
from ldp_gym.engine.tape import Episodes, Tape


class Honest(ldp_agents.EXP3):
    """EXP3 under another name."""


class Centred(ldp_agents.CentredEXP3):
    """A learner for every channel under another name."""


class Talker(ldp_agents.EXP3):
    """EXP3, and prints."""

    def predict(self, candidates):
        print("I predict!")
        return super().predict(candidates)


class Stepper(Stepwise):
    """A learner that is no subclass of ours."""


class Late(ldp_agents.Uniform):
    """Behaves in a small game, and misbehaves in a long one: the contract check does not see it."""

    def predict(self, candidates):
        if self.game.horizon > 12:
            self.misbehave()
        return super().predict(candidates)

    def play(self, candidates, messages, log_likelihoods=None):
        return play_stepwise(self, candidates, messages)


class Sleeper(Late):
    def misbehave(self):
        time.sleep(3600)


class Crasher(Late):
    def misbehave(self):
        raise ZeroDivisionError("I divided by <b>zero</b>")


class Quitter(Late):
    def misbehave(self):
        os._exit(7)


class NotANumber(Late):
    def misbehave(self):
        self._total[:] = np.nan


class Spy(Late):
    """Looks for the referee's tapes among all objects of its process."""

    def misbehave(self):
        loot = [thing for thing in gc.get_objects() if type(thing) in (Tape, Episodes)]
        if loot:
            raise RuntimeError(f"found {len(loot)} tapes")


class Prophet(Late):
    """Looks for messages of rounds to come: in a stretch of tape, or in whoever called it."""

    def misbehave(self):
        if any("messages" in frame.frame.f_locals for frame in inspect.stack()[1:]):
            raise RuntimeError("found the messages to come")


class Negative(ldp_agents.Uniform):
    """Breaks the contract."""

    def _predict(self, weights, candidates):
        return 2 * super()._predict(weights, candidates) - 1


class Broken(RandomizedResponse):
    """A channel that fails in games of more than 100 rounds."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        if self.horizon > 100:
            raise RuntimeError("out of order")
        return super().encode(labels, candidates, uniforms, posterior)


class Burglar(Late):
    """Sends code instead of numbers."""

    def predict(self, candidates):
        return self if self.game.horizon > 12 else super().predict(candidates)

    def __reduce__(self):
        return eval, ("__import__('sys').exit('the burglar is in')",)


class Parent(Late):
    """Has a child that outlives it."""

    def misbehave(self):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        time.sleep(3600)


class Reader(ldp_agents.ExponentialWeights):
    """Reads likelihoods, and does not think of adaptive channels."""

    rate = 0.5

    def losses(self, messages, candidates):
        return -self.game.channel.log_likelihood(messages, candidates)
