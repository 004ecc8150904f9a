"""Running statistics of a transcript: what a policy without a memory can play on.

Messages do not depend on what was predicted, so all that a policy can know of the truth is in sums over the
messages so far. The wrappers keep these sums while an environment is stepped, and a trained learner keeps the
same ones when it plays: both through the classes of this module, for one game or a batch of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ldp_gym.channels.laplace_single import LaplaceSingle
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages
from ldp_gym.core.divergences import kl
from ldp_gym.engine.game import Game
from ldp_gym.wrappers.features.decoding import decode
from ldp_gym.wrappers.features.evidence import SLOPES, LabelEvidence, slope_weights

_CLIP = 0.7
"""Where a decoded message is clipped, in standard deviations of its noise.

Under Laplace noise the likelihood ratio of two close levels is bounded: what lies beyond one noise scale,
0.71 standard deviations, says no more than that.
"""


class Features(ABC):
    """Sums over the messages of an episode, and the view of them that a policy gets.

    Args:
        game: the public rules; the channel must not be adaptive.

    Attributes:
        num_sums: how many numbers are summed up.
        shape: the shape of one game's features.
    """

    num_sums: int
    shape: tuple[int, ...]

    def __init__(self, game: Game) -> None:
        if game.channel.adaptive:
            raise ValueError(
                f"what a message of {game.channel!r} means depends on the public posterior, which features "
                f"do not keep. Use a channel that is not adaptive, or the learner 'bayes'"
            )
        self.game = game
        self.reset()

    @abstractmethod
    def _terms(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        """What messages add to the sums, ``(..., num_sums)``."""

    @abstractmethod
    def _view(self, sums: FloatArray, candidates: FloatArray) -> FloatArray:
        """The features ``(..., *shape)`` of sums, before these candidates."""

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin an episode in each of a batch of games."""
        self._sums = np.zeros((*batch_shape, self.num_sums))

    def restart(self, mask: BoolArray) -> None:
        """Begin a new episode in those games of the batch that ``mask`` selects."""
        self._sums[mask] = 0.0

    def update(self, candidates: FloatArray, messages: Messages) -> None:
        """Take in the messages ``(..., *message_shape)`` of the round with these candidates."""
        self._sums = self._sums + self._terms(np.asarray(messages), candidates)

    def read(self, candidates: FloatArray) -> FloatArray:
        """The features ``(..., *shape)`` now, before the round with these candidates."""
        return self._view(self._sums, candidates)


class MessageFeatures(Features):
    """The last message, decoded: for a policy with a memory of its own."""

    def __init__(self, game: Game) -> None:
        self.num_sums, self.shape = game.num_hypotheses, (game.num_hypotheses,)
        super().__init__(game)

    def _terms(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        return decode(self.game.channel, messages, candidates).values

    def _view(self, sums: FloatArray, candidates: FloatArray) -> FloatArray:
        return sums

    def update(self, candidates: FloatArray, messages: Messages) -> None:
        """Forget what was before."""
        self._sums = self._terms(np.asarray(messages), candidates)


class EvidenceFeatures(Features):
    """For each coordinate of the message: the sum of its decoded values, of clipped ones, and their number.

    Sums are scaled by ``sqrt(K / T)`` where one coordinate of K is revealed per round (``1 / sqrt(T)`` where
    all are), so that their noise at the horizon is of size one; counts by their expectation there. The last
    feature is t / T. Enough for a constant class, whose coordinates always mean the same.
    """

    def __init__(self, game: Game) -> None:
        self.num_sums = 3 * game.num_hypotheses + 1
        self.shape = (self.num_sums,)
        super().__init__(game)
        share = 1.0 / game.num_hypotheses if isinstance(game.channel, LaplaceSingle) else 1.0
        expected = game.horizon * share
        scales = (expected**-0.5, expected**-0.5, 1.0 / expected)
        self._scale = np.repeat(scales, game.num_hypotheses)

    def _terms(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        values, shown = decode(self.game.channel, messages, candidates)
        rounds = np.ones((*values.shape[:-1], 1))
        return np.concatenate([values, np.clip(values, -_CLIP, _CLIP), shown, rounds], axis=-1)

    def _view(self, sums: FloatArray, candidates: FloatArray) -> FloatArray:
        return np.concatenate([sums[..., :-1] * self._scale, sums[..., -1:] / self.game.horizon], axis=-1)


class SlopeFeatures(Features):
    """For each hypothesis, the label evidence of the messages at several slopes, and what is at stake now.

    A weight ``q_b`` grows with slope b as a label fits a message better, in a shape that is given:
    :func:`ldp_gym.wrappers.features.evidence.slope_weights`. The features are the sums of
    ``log sum_y f_k[y] exp(q_b(r_y))`` over b, ``(K, slopes)``, and beside them the KL of each hypothesis'
    distribution from the uniform mixture of the candidates. Which slope is right depends on eps: that is for
    the policy to find out.
    """

    def __init__(self, game: Game) -> None:
        self.num_sums = game.num_hypotheses * len(SLOPES)
        self.shape = (game.num_hypotheses, len(SLOPES) + 1)
        super().__init__(game)
        self._evidence = LabelEvidence(game.channel, slope_weights(game.channel))

    def _terms(self, messages: Messages, candidates: FloatArray) -> FloatArray:
        evidence = self._evidence(messages, candidates) / SLOPES
        return evidence.reshape(*evidence.shape[:-2], -1)

    def _view(self, sums: FloatArray, candidates: FloatArray) -> FloatArray:
        evidence = sums.reshape(*sums.shape[:-1], self.game.num_hypotheses, len(SLOPES))
        stake = kl(candidates, candidates.mean(axis=-2, keepdims=True))
        stake = np.broadcast_to(stake, evidence.shape[:-1])[..., None]
        return np.concatenate([evidence - evidence.max(axis=-2, keepdims=True), stake], axis=-1)


FEATURES: dict[str, type[Features]] = {
    "evidence": EvidenceFeatures,
    "message": MessageFeatures,
    "slopes": SlopeFeatures,
}
"""The kinds of features by name, as a trained model's configuration has them."""
