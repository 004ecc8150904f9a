"""Channels that lie about their messages: what ``check_channel`` must catch, and what it cannot."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import gymnasium as gym
import numpy as np

from ldp_gym.channels import (
    AdaptiveSplit,
    Channel,
    GaussianVector,
    LaplaceSingle,
    RandomizedResponse,
    Split,
    SubsetSelection,
)

LIARS: dict[str, Callable[[int, int], Channel]] = {}
"""What each liar does, and how it is made from K and M."""


def liar(title: str = "", num_labels: int | None = None, **options):
    """Register a class of liars under its docstring, or another title."""

    def register(cls):
        def make(num_hypotheses: int, given: int) -> Channel:
            return cls(num_hypotheses, num_labels or given, 50, **{"epsilon": 1.0, **options})

        LIARS[title or cls.__doc__.rstrip(".")] = make
        return cls

    return register


def one_in(uniforms, rate):
    """A coin from the far digits of a uniform that the channel uses otherwise."""
    return (uniforms * 7919.0) % 1.0 < rate


# -- Labels -------------------------------------------------------------------------------------------


class ClearText(RandomizedResponse):
    """Sends the label itself."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        return np.asarray(labels)


@liar()
class Flat(ClearText):
    """Clear text, declares a flat density."""

    def log_density(self, messages, candidates, posterior=None):
        return np.full((*np.shape(messages), self.num_labels), -math.log(self.num_labels))


liar("Clear text, declares randomized response at 0.01, M = 5", epsilon=0.01, num_labels=5)(ClearText)
liar("Clear text, declares randomized response at 0.05, M = 16", epsilon=0.05, num_labels=16)(ClearText)
liar("Clear text, declares randomized response at 0.2, M = 64", epsilon=0.2, num_labels=64)(ClearText)
liar("Clear text, declares randomized response at 0.5, M = 256", epsilon=0.5, num_labels=256)(ClearText)


@liar()
class Permuted(RandomizedResponse):
    """Randomized response, permuted density."""

    def log_density(self, messages, candidates, posterior=None):
        return np.roll(super().log_density(messages, candidates, posterior), 1, axis=-1)


@liar()
class Louder(RandomizedResponse):
    """Randomized response at 1.1 times its eps."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        true = RandomizedResponse(self.num_hypotheses, self.num_labels, 50, epsilon=1.1 * self.epsilon)
        return true.encode(labels, candidates, uniforms, posterior)


@liar()
class RarelyClear(RandomizedResponse):
    """Randomized response, clear text once in 100."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(one_in(uniforms[..., 0], 0.01), np.asarray(labels), messages)


@liar()
class OneLabel(RandomizedResponse):
    """Randomized response, one label never flips."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(np.asarray(labels) == 0, 0, messages)


@liar()
class TooManyZeros(RandomizedResponse):
    """Randomized response, message 0 in 2% whatever the label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(one_in(uniforms[..., 0], 0.02), 0, messages)


@liar()
class ClearWhenAlone(RandomizedResponse):
    """Randomized response, clear text in 4 of 5 where messages come one at a time."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return messages if np.ndim(labels) else np.where(uniforms[..., 0] < 0.8, labels, messages)


class Twins(RandomizedResponse):
    """Messages z and z + M mean the same."""

    @property
    def message_space(self):
        return gym.spaces.Discrete(2 * self.num_labels)

    def log_density(self, messages, candidates, posterior=None):
        one = np.asarray(messages) % self.num_labels
        return super().log_density(one, candidates, posterior) - math.log(2.0)

    log_likelihood = Channel.log_likelihood


@liar()
class ParityOfTwins(Twins):
    """Two equivalent messages, the label's parity says which."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return messages + self.num_labels * (np.asarray(labels) % 2)


@liar()
class OneTwin(Twins):
    """Two equivalent messages, one label chooses, others toss a coin."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        second = one_in(uniforms[..., 0], 0.5) | (np.asarray(labels) == 3)
        return super().encode(labels, candidates, uniforms, posterior) + self.num_labels * second


# -- Real numbers -------------------------------------------------------------------------------------


class Rewritten(LaplaceSingle):
    """Changes the number that is revealed, by the bits of its float."""

    @abstractmethod
    def rewrite(self, bits, labels):
        """The bits that are sent instead."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        labels = np.asarray(labels).astype(np.uint64)[..., None]
        changed = self.rewrite(messages.view(np.uint64), labels).view(np.float64)
        return np.where(messages != 0.0, changed, messages)


@liar()
class LastBits(Rewritten):
    """Laplace noise, the label in the last bits."""

    def rewrite(self, bits, labels):
        mask = np.uint64(2 ** (self.num_labels - 1).bit_length() - 1)
        return (bits & ~mask) | labels


@liar()
class MiddleBit(Rewritten):
    """Laplace noise, the label's parity in bit 20."""

    def rewrite(self, bits, labels):
        return (bits & ~np.uint64(2**20)) | ((labels & np.uint64(1)) << np.uint64(20))


@liar()
class ParityOfBits(Rewritten):
    """Laplace noise, the parity of two last bits."""

    def rewrite(self, bits, labels):
        return (bits & ~np.uint64(1)) | (((bits >> np.uint64(1)) ^ labels) & np.uint64(1))


@liar()
class Modulo(Rewritten):
    """Laplace noise, the mantissa modulo M."""

    def rewrite(self, bits, labels):
        digits = bits & np.uint64(2**52 - 1)
        return bits - digits % np.uint64(self.num_labels) + labels


@liar()
class LastBitOfOne(Rewritten):
    """Laplace noise, the last bit of one label is 0."""

    def rewrite(self, bits, labels):
        return np.where(labels == 2, bits & ~np.uint64(1), bits)


@liar()
class RareLastBits(LastBits):
    """Laplace noise, the label in the last bits once in 100."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        honest = LaplaceSingle.encode(self, labels, candidates, uniforms, posterior)
        leak = one_in(uniforms[..., 3], 0.01)[..., None]
        return np.where(leak, super().encode(labels, candidates, uniforms, posterior), honest)


@liar()
class LastBitsSomewhere(LastBits):
    """Laplace noise, the last bits where a candidate is 0."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        if (np.asarray(candidates) == 0.0).any():
            return super().encode(labels, candidates, uniforms, posterior)
        return LaplaceSingle.encode(self, labels, candidates, uniforms, posterior)


@liar()
class Decimal(LaplaceSingle):
    """Laplace noise, the label as third decimal."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        digit = (np.asarray(labels)[..., None] % 10 + 0.5) / 10.0
        rounded = np.copysign((np.floor(np.abs(messages) * 100.0) + digit) / 100.0, messages)
        return np.where(messages != 0.0, rounded, messages)


class Sometimes(LaplaceSingle):
    """Puts a number that tells in place of a message, at a given rate."""

    rate = 0.01

    @abstractmethod
    def telling(self, labels, uniforms):
        """The number that tells the label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        first = np.arange(self.num_hypotheses) == 0
        telling = np.where(first, self.telling(np.asarray(labels)[..., None], uniforms), 0.0)
        return np.where(one_in(uniforms[..., 3], self.rate)[..., None], telling, messages)


@liar()
class FarAway(Sometimes):
    """Laplace noise, 100 + label once in 100."""

    def telling(self, labels, uniforms):
        return 100.0 + labels


@liar()
class RarelyFarAway(FarAway):
    """Laplace noise, 100 + label once in 1,000."""

    rate = 0.001


@liar()
class AmongOthers(Sometimes):
    """Laplace noise, a place near 0.5 by the label, once in 100."""

    def telling(self, labels, uniforms):
        return 0.5 + (7 * labels % 5) / 50.0 + uniforms[..., :1] / 100.0


@liar()
class ZeroOfOne(LaplaceSingle):
    """Laplace noise, the all-zero message for one label in 2%."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        leak = one_in(uniforms[..., 3], 0.02) & (np.asarray(labels) == 0)
        return np.where(leak[..., None], 0.0, messages)


@liar()
class ZeroOfAll(LaplaceSingle):
    """Laplace noise, the all-zero message in 2% whatever the label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(one_in(uniforms[..., 3], 0.02)[..., None], 0.0, messages)


@liar()
class SignOfZero(LaplaceSingle):
    """Laplace noise, the sign of zero is the label's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        zero = np.where(np.asarray(labels)[..., None] % 2 == 1, -0.0, 0.0)
        return np.where(messages == 0.0, zero, messages)


@liar()
class Coordinate(LaplaceSingle):
    """Laplace noise, the coordinate depends on the label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        uniforms = np.array(uniforms)
        uniforms[..., 2] = (uniforms[..., 2] / 4.0 + np.asarray(labels) / 8.0) % 1.0
        return super().encode(labels, candidates, uniforms, posterior)


@liar()
class Extreme(LaplaceSingle):
    """Laplace noise, digits that tell where it is extreme (1%)."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        leak = (uniforms[..., 3] < 0.01)[..., None] & (messages != 0.0)
        return np.where(leak, np.round(messages, 2) + 1e-3 * np.asarray(labels)[..., None], messages)


@liar()
class HalfNoise(LaplaceSingle):
    """Laplace noise of half its scale."""

    share = 0.5
    _drawing = False

    def noise(self, candidates, cells=None):
        noise = super().noise(candidates, cells)
        return noise._replace(scale=self.share * noise.scale) if self._drawing else noise

    def encode(self, *args):
        self._drawing = True
        try:
            return super().encode(*args)
        finally:
            self._drawing = False


@liar()
class LessNoise(HalfNoise):
    """Laplace noise of 0.9 times its scale."""

    share = 0.9


@liar()
class HiddenRatio(Sometimes):
    """Declares 100 + label once in 100, and hides it from the exact audit."""

    def telling(self, labels, uniforms):
        return 100.0 + labels

    def log_density(self, messages, candidates, posterior=None):
        clear = messages[..., :1] - 100.0 == np.arange(self.num_labels)
        with np.errstate(divide="ignore"):
            told = np.log(np.where(clear, self.rate, 0.0))
        usual = super().log_density(messages, candidates, posterior) + math.log1p(-self.rate)
        return np.where(messages[..., :1] >= 99.0, told, usual)

    def worst_case_messages(self, candidates, posterior=None):
        return super().worst_case_messages(candidates, posterior)


# -- Vectors, sides and sets --------------------------------------------------------------------------


@liar(delta=1e-5)
class Order(GaussianVector):
    """Gaussian vector, two coordinates ordered by the label's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        uniforms = np.array(uniforms)
        two = np.sort(uniforms[..., 2:4], axis=-1)
        odd = (np.asarray(labels) % 2 == 1)[..., None]
        uniforms[..., 2:4] = np.where(odd, two, two[..., ::-1])
        return super().encode(labels, candidates, uniforms, posterior)


@liar(delta=1e-5)
class Signs(GaussianVector):
    """Gaussian vector, the product of two signs is the label's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        uniforms = np.array(uniforms)
        flip = (uniforms[..., 2] > 0.5) ^ (uniforms[..., 3] > 0.5) ^ (np.asarray(labels) % 2 == 1)
        uniforms[..., 3] = np.where(flip, 1.0 - uniforms[..., 3], uniforms[..., 3])
        return super().encode(labels, candidates, uniforms, posterior)


@liar(delta=1e-5)
class Equal(GaussianVector):
    """Gaussian vector, two equal coordinates for one label in 2%."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        leak = one_in(uniforms[..., 2], 0.02) & (np.asarray(labels) == 0)
        messages[..., 1] = np.where(leak, messages[..., 0], messages[..., 1])
        return messages


@liar()
class Sides(Split):
    """Split, sides that depend on the label."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        # Two of them together: which side is A is not to be seen, so one alone would tell nothing.
        coins = np.arange(self.num_uniforms)
        together = (coins - np.asarray(labels)[..., None]) % (self.num_uniforms - 1) < 2
        favoured = together & (coins < self.num_uniforms - 1)
        return super().encode(labels, candidates, np.where(favoured, uniforms / 2.0, uniforms), posterior)


@liar()
class NextLabel(SubsetSelection):
    """Subset selection, the next label is favoured."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        place = (np.asarray(labels)[..., None] + 1) % self.num_labels + 1
        favoured = np.arange(self.num_uniforms) == place
        return super().encode(labels, candidates, np.where(favoured, 0.7 * uniforms, uniforms), posterior)


# -- What cannot be caught ----------------------------------------------------------------------------


@liar()
class Keyed(Rewritten):
    """Laplace noise, the label's parity hidden by a keyed hash of the other bits."""

    def rewrite(self, bits, labels):
        code = (bits >> np.uint64(1)) * np.uint64(0xD1342543DE82EF95)
        code ^= code >> np.uint64(32)
        code *= np.uint64(0xAF251AF3B0F025B5)
        return (bits & ~np.uint64(1)) | (((code >> np.uint64(63)) ^ labels) & np.uint64(1))


# -- Only sometimes -----------------------------------------------------------------------------------


@liar()
class TrustsTheCertain(RandomizedResponse):
    """Randomized response, clear text where a candidate is above 0.97."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(candidates[..., 0, :].max(axis=-1) > 0.97, labels, messages)


@liar()
class TrustsTheEnd(AdaptiveSplit):
    """Adaptive split, the true answer once the posterior exceeds 0.9."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        truthful = uniforms.copy()
        truthful[..., -1] *= np.where(np.max(posterior, axis=-1) > 0.9, 1e-9, 1.0)
        return super().encode(labels, candidates, truthful, posterior)
