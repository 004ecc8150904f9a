"""Channels that do not keep their contract, for tests of the checks and audits."""

import math

import gymnasium as gym
import numpy as np

import ldp_gym
from ldp_gym.channels import LaplaceSingle, RandomizedResponse
from ldp_gym.core.sampling import laplace


class ClearText(RandomizedResponse):
    """Sends the label, declares randomized response."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        return np.asarray(labels)


class FlatClearText(ClearText):
    """Sends the label, declares a density that is the same for all labels."""

    def log_density(self, messages, candidates, posterior=None):
        return np.full((*np.shape(messages), self.num_labels), -math.log(self.num_labels))


class FlatReal(LaplaceSingle):
    """Sends the label as a real number, declares a density that is the same for all labels."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.zeros((*uniforms.shape[:-1], self.num_hypotheses))
        messages[..., 0] = 1.0 + labels
        return messages

    def log_density(self, messages, candidates, posterior=None):
        return np.zeros((*np.shape(messages)[:-1], self.num_labels))

    log_likelihood = ldp_gym.Channel.log_likelihood
    possible = ldp_gym.Channel.possible


def permuted(kind):
    """A channel whose declared density belongs to the next label."""

    class Permuted(kind):
        def log_density(self, messages, candidates, posterior=None):
            return np.roll(super().log_density(messages, candidates, posterior), 1, axis=-1)

    return Permuted


def less_noise(kind, share):
    """The channel with this share of its noise, and the density of all of it."""

    class LessNoise(kind):
        drawing = False

        def noise(self, candidates, cells=None):
            noise = super().noise(candidates, cells)
            if not self.drawing:
                return noise
            return noise._replace(scale=share * noise.scale)

        def encode(self, *args):
            self.drawing = True
            messages = super().encode(*args)
            self.drawing = False
            return messages

    return LessNoise


def sharper(kind, drawn=2.0, declared=1.0):
    """A channel that promises eps, and draws and declares messages of these multiples of eps."""

    class Sharper(kind):
        def other(self, factor):
            return kind(
                self.num_hypotheses, self.num_labels, self.horizon, epsilon=factor * self.epsilon
            )

        def encode(self, *args):
            return self.other(drawn).encode(*args)

        def log_density(self, *args):
            return self.other(declared).log_density(*args)

        log_likelihood = ldp_gym.Channel.log_likelihood
        loss_estimates = ldp_gym.Channel.loss_estimates

    return Sharper


class TooFar(LaplaceSingle):
    """Sends messages beyond its message space."""

    message_space = gym.spaces.Box(0.0, 0.5, (3,), dtype=np.float64)


class Denied(LaplaceSingle):
    """Declares that label 2 sends nothing."""

    def log_density(self, messages, candidates, posterior=None):
        density = super().log_density(messages, candidates, posterior)
        density[..., 2] = -np.inf
        return density

    log_likelihood = ldp_gym.Channel.log_likelihood


class Nameless(RandomizedResponse):
    """Declares NaN as its density."""

    def log_density(self, messages, candidates, posterior=None):
        return np.full((*np.shape(messages), self.num_labels), np.nan)


class ListedElsewhere(RandomizedResponse):
    """Keeps its promise, except where all hypotheses are equal: its eps is twice as large there."""

    def factor(self, candidates):
        """Factor of eps at candidates ``(..., K, M)``."""
        is_equal = np.ptp(candidates, axis=-2).max(axis=-1) < 1e-9
        return np.where(is_equal, 2.0, 1.0)

    def log_density(self, messages, candidates, posterior=None):
        labels = np.arange(self.num_labels)
        is_label = messages[..., None] == labels
        scores = np.where(is_label, self.epsilon * self.factor(candidates)[..., None], 0.0)
        total = np.exp(self.epsilon * self.factor(candidates)) + self.num_labels - 1
        return scores - np.log(total)[..., None]

    def encode(self, labels, candidates, uniforms, posterior=None):
        strength = np.exp(self.epsilon * self.factor(candidates))
        keep = strength / (strength + self.num_labels - 1)
        uniform = uniforms[..., 0]
        steps = np.floor((uniform - keep) / (1.0 - keep) * (self.num_labels - 1)).astype(int)
        others = (labels + 1 + np.clip(steps, 0, self.num_labels - 2)) % self.num_labels
        return np.where(uniform < keep, labels, others)

    log_likelihood = ldp_gym.Channel.log_likelihood
    loss_estimates = ldp_gym.Channel.loss_estimates


LEAK = 1e-9
"""Probability with which :class:`RareClearText` sends its label."""


class RareClearText(ldp_gym.Channel):
    """Laplace noise; with probability 1e-9 the label itself, beyond 1,000. Its density says so."""

    num_uniforms = 2
    message_space = gym.spaces.Box(-np.inf, np.inf, (), dtype=np.float64)

    def encode(self, labels, candidates, uniforms, posterior=None):
        noisy = labels + (self.num_labels - 1) / self.epsilon * laplace(uniforms[..., 0])
        return np.where(uniforms[..., 1] < LEAK, 1000.5 + 2.0 * np.asarray(labels), noisy)

    def log_density(self, messages, candidates, posterior=None):
        scale = (self.num_labels - 1) / self.epsilon
        labels = np.arange(self.num_labels)
        noisy = -np.abs(messages[..., None] - labels) / scale - math.log(2.0 * scale)
        is_label = messages[..., None] == 1000.5 + 2.0 * labels
        in_the_clear = np.where(is_label, math.log(LEAK), -60.0)
        return np.where((messages > 1000.0)[..., None], in_the_clear, noisy)

    def worst_case_messages(self, candidates, posterior=None):
        return np.array([0.0, self.num_labels - 1.0])


class HonestLaplace(RareClearText):
    """The label with Laplace noise: it keeps its promise."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        return labels + (self.num_labels - 1) / self.epsilon * laplace(uniforms[..., 0])

    def log_density(self, messages, candidates, posterior=None):
        scale = (self.num_labels - 1) / self.epsilon
        distances = np.abs(messages[..., None] - np.arange(self.num_labels)) / scale
        return -distances - math.log(2.0 * scale)
