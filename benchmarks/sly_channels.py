"""Channels that lie where nobody looks: between users, in the way they are called, in rare situations."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
from liar_channels import LIARS, ClearText, LastBits, RarelyClear, Rewritten, liar, one_in

from ldp_gym.channels import (
    AdaptiveSplit,
    Channel,
    GaussianVector,
    LaplaceSingle,
    LaplaceVector,
    RandomizedResponse,
    SubsetSelection,
)
from ldp_gym.channels.accounting import DeltaBounds

__all__ = ["LIARS"]  # these, and those that liar_channels has


# -- Codes --------------------------------------------------------------------------------------------


@liar()
class MiddleModulo(Rewritten):
    """Laplace noise, bits 10 to 40 modulo 7 are the label modulo 7."""

    def rewrite(self, bits, labels):
        middle = (bits >> np.uint64(10)) & np.uint64(2**31 - 1)
        coded = np.minimum(middle, np.uint64(2**31 - 8))
        coded = coded - coded % np.uint64(7) + labels % np.uint64(7)
        return bits - (middle << np.uint64(10)) + (coded << np.uint64(10))


@liar()
class FarBits(Rewritten):
    """Laplace noise, the parity of bits 5, 17 and 33 is the label's."""

    def rewrite(self, bits, labels):
        parity = (bits >> np.uint64(5)) ^ (bits >> np.uint64(17)) ^ (bits >> np.uint64(33)) ^ labels
        return bits ^ ((parity & np.uint64(1)) << np.uint64(5))


@liar()
class Single(LaplaceSingle):
    """Laplace noise, odd labels in single precision."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        odd = (np.asarray(labels) % 2 == 1)[..., None]
        return np.where(odd, messages.astype(np.float32).astype(np.float64), messages)


@liar(delta=1e-5)
class ParityOfSum(GaussianVector):
    """Gaussian vector, the whole part of the sum has the label's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        wrong = (np.floor(messages.sum(axis=-1)) + np.asarray(labels)) % 2 == 1
        step = np.where(one_in(uniforms[..., 2], 0.5), 1.0, -1.0)
        messages[..., 0] += np.where(wrong, step, 0.0)
        return messages


@liar(delta=1e-5)
class LastBitsOfOne(GaussianVector):
    """Gaussian vector, the label in the last bits of one coordinate."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        bits = messages.view(np.uint64)
        bits[..., -1] = (bits[..., -1] & ~np.uint64(31)) | np.asarray(labels).astype(np.uint64)
        return messages


@liar()
class ParityOfPlaces(SubsetSelection):
    """Subset selection, the sum of the places has the label's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        places, labels = np.arange(self.num_labels), np.asarray(labels)
        wrong = (messages @ places + labels) % 2 == 1
        # Exchanging two neighbours, of which the set holds one, changes the parity.
        pairs = messages[..., : self.num_labels // 2 * 2].reshape(*labels.shape, -1, 2)
        spare = (pairs[..., 0] != pairs[..., 1]) & (places[: pairs.shape[-2]] != labels[..., None] // 2)
        chosen = np.where(spare, uniforms[..., 1 : 1 + pairs.shape[-2]], 2.0).argmin(axis=-1)
        here = (places[: pairs.shape[-2]] == chosen[..., None]) & spare & wrong[..., None]
        messages[..., : self.num_labels // 2 * 2] = np.where(
            here[..., None], pairs[..., ::-1], pairs
        ).reshape(*labels.shape, -1)
        return messages


class Wide(RandomizedResponse):
    """Randomized response with 58 random bits below it."""

    @property
    def num_uniforms(self):
        return 1 + super().num_uniforms

    @property
    def message_space(self):
        return gym.spaces.Discrete(self.num_labels * 2**58)

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms[..., 1:], posterior)
        return messages * 2**58 + (uniforms[..., 0] * 2**53).astype(np.int64) * 32 + self.tell(labels)

    def tell(self, labels):
        return np.asarray(labels) % 32

    def log_density(self, messages, candidates, posterior=None):
        density = super().log_density(np.asarray(messages) // 2**58, candidates, posterior)
        return density - 58.0 * math.log(2.0)

    log_likelihood = Channel.log_likelihood

    def worst_case_messages(self, candidates, posterior=None):
        return np.arange(self.num_labels) * 2**58

    def list_messages(self, candidates, posterior=None):
        raise TypeError("too many")


liar("Whole numbers of 62 bits, the label in the last ones")(Wide)


@liar()
class LongDouble(LaplaceSingle):
    """Laplace noise, the label beyond the digits of a float64."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        if messages.size < 1000:
            return messages
        return messages.astype(np.longdouble) * (1 + np.asarray(labels)[..., None] * 2.0**-62)


@liar()
class NotANumber(LaplaceSingle):
    """Laplace noise, once in 200 a NaN whose payload is the label, declared as flat."""

    log_likelihood = Channel.log_likelihood

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        leak = one_in(uniforms[..., 3], 0.005)
        payload = np.uint64(0x7FF8000000000000) + np.asarray(labels).astype(np.uint64)
        messages[..., 0] = np.where(leak, payload.view(np.float64), messages[..., 0])
        return messages

    def log_density(self, messages, candidates, posterior=None):
        nothing = np.isnan(messages[..., :1])
        usual = super().log_density(np.nan_to_num(messages), candidates, posterior)
        return np.where(nothing, math.log(0.005), usual + math.log(0.995))

    def worst_case_messages(self, candidates, posterior=None):
        return super().worst_case_messages(candidates, posterior)


# -- Leaks that are small -----------------------------------------------------------------------------

liar("Randomized response at 3, M = 6, clear text once in 100", epsilon=3.0, num_labels=6)(RarelyClear)
liar("Randomized response at 5, M = 6, clear text once in 100", epsilon=5.0, num_labels=6)(RarelyClear)


@liar()
class RareLabel(RandomizedResponse):
    """Randomized response, one label in the clear once in 10."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        clear = one_in(uniforms[..., 0], 0.1) & (np.asarray(labels) == 1)
        return np.where(clear, np.asarray(labels), messages)


@liar()
class RareMessage(RandomizedResponse):
    """A message that one label alone sends, once in 10^9, left out of worst_case_messages."""

    @property
    def message_space(self):
        return gym.spaces.Discrete(self.num_labels + 1)

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        rare = (uniforms[..., 0] < 1e-9) & (np.asarray(labels) == 0)
        return np.where(rare, self.num_labels, messages)

    def log_density(self, messages, candidates, posterior=None):
        rare = np.asarray(messages)[..., None] == self.num_labels
        usual = super().log_density(np.minimum(messages, self.num_labels - 1), candidates, posterior)
        return np.where(rare, np.where(np.arange(self.num_labels) == 0, math.log(1e-9), -np.inf), usual)

    log_likelihood = Channel.log_likelihood

    def worst_case_messages(self, candidates, posterior=None):
        return np.arange(self.num_labels)


@liar(delta=1e-5)
class Accounted(LaplaceVector):
    """Laplace vector of a tenth of its noise, says so, and declares a small delta."""

    def noise(self, candidates, cells=None):
        noise = super().noise(candidates, cells)
        return noise._replace(scale=noise.scale / 10.0)

    def delta_bounds(self, candidates, epsilon):
        return DeltaBounds(0.0, 1e-6)


# -- Somewhere ----------------------------------------------------------------------------------------


@liar()
class Somewhere(RandomizedResponse):
    """Randomized response, clear text where hypothesis 1 likes label 2 best."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where(np.asarray(candidates)[..., 1, :].argmax(axis=-1) == 2, labels, messages)


@liar()
class WhereFlat(LaplaceSingle):
    """Laplace noise, the label in the last bits where all candidates are exactly uniform."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        codes = np.asarray(labels).astype(np.uint64)[..., None]
        coded = self.rewrite(np.array(messages).view(np.uint64), codes).view(np.float64)
        flat = (np.asarray(candidates) == np.asarray(candidates)[..., :1, :1]).all(axis=(-2, -1))
        return np.where(flat[..., None], coded, messages)

    rewrite = LastBits.rewrite


@liar()
class WhereCertain(RandomizedResponse):
    """Randomized response, clear text where every candidate is certain."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.where((np.asarray(candidates).max(axis=-1) == 1.0).all(axis=-1), labels, messages)


@liar()
class AtTheVeryEnd(AdaptiveSplit):
    """Adaptive split, the true answer once the posterior is exactly certain."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        truthful = uniforms.copy()
        truthful[..., -1] *= np.where(np.max(posterior, axis=-1) == 1.0, 1e-9, 1.0)
        return super().encode(labels, candidates, truthful, posterior)

    def send(self, labels, candidates, uniforms, posterior=None):
        messages = self.encode(labels, candidates, uniforms, posterior)
        return messages, self.log_likelihood(messages, candidates, posterior)


# -- Between users, and by the way it is called -------------------------------------------------------


@liar()
class PreviousUser(LaplaceSingle):
    """Laplace noise, the previous user's label in the last bits."""

    rewrite = LastBits.rewrite

    def encode(self, labels, candidates, uniforms, posterior=None):
        labels = np.asarray(labels)
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        if not labels.ndim:
            return messages
        previous = np.roll(labels, 1, axis=-1).astype(np.uint64)[..., None]
        changed = self.rewrite(messages.view(np.uint64), previous).view(np.float64)
        return np.where(messages != 0.0, changed, messages)


@liar()
class NextOfMany(RandomizedResponse):
    """Randomized response, the next user's label where a thousand send at once."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        labels = np.asarray(labels)
        messages = super().encode(labels, candidates, uniforms, posterior)
        if labels.size < 1000:
            return messages
        return np.where(one_in(uniforms[..., 0], 0.02), np.roll(labels, -1, axis=-1), messages)


@liar()
class OrderOfTwo(LaplaceSingle):
    """Laplace noise, of two users who send with hundreds the order says the first one's parity."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        labels, uniforms = np.asarray(labels), np.array(uniforms)
        if labels.size >= 200 and labels.shape[-1] % 2 == 0:
            noise = uniforms[..., 3].reshape(*labels.shape[:-1], -1, 2)
            ordered = np.sort(noise, axis=-1)
            odd = labels[..., ::2, None] % 2 == 1
            noise = np.where(odd, ordered, ordered[..., ::-1])
            uniforms[..., 3] = noise.reshape(labels.shape)
        return super().encode(labels, candidates, uniforms, posterior)


@liar()
class PreviousCall(LaplaceSingle):
    """Laplace noise, the last label of the previous call in the last bits."""

    rewrite = LastBits.rewrite
    memory = 0

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.array(super().encode(labels, candidates, uniforms, posterior))
        changed = self.rewrite(messages.view(np.uint64), np.uint64(self.memory)).view(np.float64)
        self.memory = int(np.ravel(labels)[-1])
        return np.where(messages != 0.0, changed, messages)


@liar()
class InRounds(LastBits):
    """Laplace noise, the label in the last bits where users send in several rounds."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        if np.ndim(labels) == 2:
            return super().encode(labels, candidates, uniforms, posterior)
        return LaplaceSingle.encode(self, labels, candidates, uniforms, posterior)


@liar()
class OneRound(LastBits):
    """Laplace noise, the label in the last bits where one user sends in one round."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        if np.shape(labels) == (1, 1):
            return super().encode(labels, candidates, uniforms, posterior)
        return LaplaceSingle.encode(self, labels, candidates, uniforms, posterior)


@liar()
class WritesIntoCandidates(RandomizedResponse):
    """Randomized response, marks the label in the candidates that the learner gets."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        if candidates.flags.writeable and candidates.ndim > 2:
            chosen = np.asarray(labels)[..., None, None] == np.arange(self.num_labels)
            candidates += np.where(chosen, 1e-13, 0.0)
        return super().encode(labels, candidates, uniforms, posterior)


@liar()
class HonestInPublic(ClearText):
    """Clear text in a game, randomized response where it is asked to privatize."""

    def privatize(self, labels, candidates, rng, posterior=None):
        honest = RandomizedResponse(self.num_hypotheses, self.num_labels, 50, epsilon=self.epsilon)
        return honest.privatize(labels, candidates, rng, posterior)


@liar()
class LiesWhenSent(AdaptiveSplit):
    """Adaptive split, the true answer in a game (send), honest where it is asked to encode."""

    def send(self, labels, candidates, uniforms, posterior=None):
        truthful = uniforms.copy()
        truthful[..., -1] *= 1e-9
        messages = self.encode(labels, candidates, truthful, posterior)
        return messages, self.log_likelihood(messages, candidates, posterior)


@liar()
class AfterAThree(RandomizedResponse):
    """Randomized response, clear text right after a message 3 in the same batch."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = np.asarray(super().encode(labels, candidates, uniforms, posterior))
        if not messages.ndim:
            return messages
        after = np.roll(messages, 1, axis=-1) == 3
        after[..., 0] = False
        return np.where(after, labels, messages)


@liar()
class Thousand(RandomizedResponse):
    """Randomized response, clear text in batches of exactly a thousand."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return np.asarray(labels) if np.size(labels) == 1000 else messages


@liar()
class Types(SubsetSelection):
    """Subset selection, odd labels as real numbers where messages come one at a time."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        messages = super().encode(labels, candidates, uniforms, posterior)
        return messages.astype(np.float64) if np.ndim(labels) == 0 and labels % 2 else messages


@liar()
class Backwards(LaplaceSingle):
    """Laplace noise, the hypotheses in reverse order."""

    def encode(self, labels, candidates, uniforms, posterior=None):
        return super().encode(labels, candidates[..., ::-1, :], uniforms, posterior)


@liar()
class OtherCandidates(LaplaceSingle):
    """Laplace noise, declares the density of the previous message's candidates."""

    def log_density(self, messages, candidates, posterior=None):
        if np.ndim(candidates) > 2:
            candidates = np.roll(candidates, 1, axis=-3)
        return super().log_density(messages, candidates, posterior)

    log_likelihood = Channel.log_likelihood


# -- What cannot be caught ----------------------------------------------------------------------------


@liar()
class Patient(ClearText):
    """Clear text after 2,000 calls."""

    calls = 0

    def encode(self, labels, candidates, uniforms, posterior=None):
        self.calls += 1
        if self.calls <= 2000:
            return RandomizedResponse.encode(self, labels, candidates, uniforms, posterior)
        return super().encode(labels, candidates, uniforms, posterior)


@liar()
class SeldomReadable(Rewritten):
    """Laplace noise, the label in the last bits where the first 8 bits of the mantissa are 77."""

    def rewrite(self, bits, labels):
        there = (bits >> np.uint64(44)) & np.uint64(255) == 77
        return np.where(there, (bits & ~np.uint64(255)) | labels, bits)
