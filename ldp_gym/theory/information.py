"""Information of one message about the truth, under a posterior: the mutual information per round."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.listing import MessageList
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, uniform_distribution
from ldp_gym.core.sampling import Purpose, categorical, stream

_FEW_MESSAGES = 64
"""Largest number of messages that are all worked out, and number of random ones where there are more."""

_FEW_MESSAGES_ADAPTIVE = 16
"""Number of random messages of an adaptive channel: they are worked out again in every round."""


class InformationRate(NamedTuple):
    """``I(truth; message)`` in nats, and its standard error if by Monte Carlo; 0 where it is exact."""

    rate: float
    error: float


def information_rate(
    channel: Channel,
    candidates: FloatArray,
    weights: FloatArray | None = None,
    *,
    samples: int = 100_000,
    seed: int = 0,
) -> InformationRate:
    """The information that a round's message carries about a truth drawn with the given weights.

    Exact where the messages can be listed. If public coins make them too many, the exact values given
    random coins are averaged: never above :func:`ldp_gym.theory.capacity`. Real-valued messages are sampled.

    Args:
        channel: the channel.
        candidates: the class at the context, ``(K, M)``.
        weights: the posterior, ``(K,)``; uniform when not given. An adaptive channel acts on it.
        samples: number of messages to draw where they are real-valued.
        seed: seed of those messages.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> rate, error = information_rate(RandomizedResponse(2, 2, 10, epsilon=1.0), np.eye(2))
        >>> round(rate, 4), error
        (0.1109, 0.0)
    """
    num_hypotheses = require_channel(channel).num_hypotheses
    candidates = game_arrays.one_context(candidates, num_hypotheses, channel.num_labels)
    if weights is None:
        weights = uniform_distribution(num_hypotheses)
    prior = game_arrays.one_posterior(weights, num_hypotheses)
    samples = validation.whole("samples", samples, least=2)
    seed = validation.seed("seed", seed)
    validation.fits_memory("samples", samples, candidates.size, "likelihoods")

    public = prior if channel.adaptive else None
    messages = likelihood_ratios(channel, candidates, prior, public, samples, seed)
    from scipy.special import entr  # imported here: it would double the time of `import ldp_gym`

    # I = E_message sum_k w_k r_k log r_k, with r_k the likelihood relative to the mixture's.
    terms = -messages.chances * np.einsum("nk,k->n", entr(messages.ratios), prior)
    if messages.draws is None:
        return InformationRate(float(terms.sum()), 0.0)
    terms_by_draw = np.bincount(messages.draws, terms)
    error = terms_by_draw.std(ddof=1) * np.sqrt(len(terms_by_draw))
    return InformationRate(float(terms_by_draw.sum()), float(error))


class LikelihoodRatios(NamedTuple):
    """Messages of a mixture of the hypotheses, by what they say about each hypothesis.

    Attributes:
        chances: probabilities of the messages, ``(n,)``.
        ratios: likelihood of every hypothesis relative to the mixture's, ``(n, K)``.
        draws: random draw that a message belongs to, ``(n,)``; None where all messages are listed.
    """

    chances: FloatArray
    ratios: FloatArray
    draws: IntArray | None


def likelihood_ratios(
    channel: Channel,
    table: FloatArray,
    prior: FloatArray,
    public: FloatArray | None,
    samples: int,
    seed: int,
) -> LikelihoodRatios:
    """Messages of the mixture that ``prior`` makes of a table ``(K, M)``: listed, or drawn if they cannot be.

    Args:
        channel: the channel.
        table: the class at one context, ``(K, M)``.
        prior: weights of the mixture, ``(K,)``.
        public: the public posterior ``(K,)`` of an adaptive channel, else None.
        samples: number of messages to draw where they cannot be listed.
        seed: seed of these messages.
    """
    draws: IntArray | None
    listed = _list_messages(channel, table, public)
    if listed is None:
        messages = _draw_messages(channel, table, prior, public, samples, seed)
        draws = np.arange(samples)
    else:
        messages = listed.messages
        draws = listed.draws
        if listed.complete:
            draws = None

    log_likelihood = channel.log_likelihood(messages, table, public)
    # Likelihoods are scaled so that the largest is 1; a message that no hypothesis sends has -inf.
    peak = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.exp(log_likelihood - np.where(np.isfinite(peak), peak, 0.0))
    mixed = np.einsum("nk,k->n", likelihood, prior)

    possible = mixed > 0.0
    # Drawn messages count equally; a listed one has the probability of the mixture, with the scale restored.
    chances = np.full(len(mixed), 1.0 / len(mixed))
    if listed is not None:
        log_scale = listed.log_weights[possible] + peak[possible, 0]
        chances[possible] = mixed[possible] * np.exp(log_scale)
    ratios = likelihood[possible] / mixed[possible, None]
    if draws is not None:
        draws = draws[possible]
    return LikelihoodRatios(chances[possible], ratios, draws)


def _draw_messages(
    channel: Channel,
    table: FloatArray,
    prior: FloatArray,
    public: FloatArray | None,
    samples: int,
    seed: int,
) -> Messages:
    """Draw messages ``(samples, *message_shape)`` of labels of the mixture ``sum_k prior_k table_k``."""
    rng = stream(Purpose.INFORMATION, seed)
    mixture_law = np.einsum("k,km->m", prior, table)
    labels = categorical(mixture_law, rng.random(samples))
    return channel.privatize(labels, table, rng, public)


def _list_messages(
    channel: Channel, table: FloatArray, public: FloatArray | None
) -> MessageList | None:
    """All messages, or those of random coins; None where messages are real numbers."""
    try:
        return channel.list_messages(table, public)
    except TypeError:
        return None


_GAMES_AT_ONCE = 8
"""Number of games whose messages are mixed at a time."""

_SMALLEST_RATIO = float(np.finfo(np.float64).tiny)
"""Likelihood ratio in place of 0, whose logarithm is finite."""


class MessageInformation:
    """Information of a message about the truth at given candidates, in nats, as a function of the posterior.

    Made to be called in every round, for many posteriors at once. With r any law of messages,
    ``l_k = q_k / r`` the likelihood ratios and ``m = sum_k w_k l_k`` that of the mixture,

    ``I(truth; message) = E_r [ sum_k w_k l_k log l_k - m log m ]``.

    The expectation is exact where the messages are few numbers. Else it is over a few messages with
    fixed coins, the same at all candidates, drawn from the uniform mixture (for an adaptive channel, from the
    posterior's). Every message contributes its information, which is never negative.

    Args:
        channel: the channel.
        candidates: ``(..., P, K, M)``.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> information = MessageInformation(RandomizedResponse(2, 2, 10, epsilon=1.0), np.eye(2)[None, None])
        >>> information(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
        [[0.1109], [0.0]]
    """

    def __init__(self, channel: Channel, candidates: FloatArray) -> None:
        self._channel = require_channel(channel)
        self._candidates = game_arrays.candidates(
            candidates, channel.num_hypotheses, channel.num_labels
        )
        self._reference: _ReferenceMessages | None = None
        if not channel.adaptive:
            self._reference = self._fixed_messages(self._candidates)

    def replace(self, games: IntArray, candidates: FloatArray) -> None:
        """Take other candidates ``(n, P, K, M)`` in n of the games."""
        self._candidates[games] = candidates
        if self._reference is not None:
            new = self._fixed_messages(candidates)
            self._reference.chances[games] = new.chances
            self._reference.ratios[games] = new.ratios
            self._reference.surprises[games] = new.surprises

    def _fixed_messages(self, candidates: FloatArray) -> _ReferenceMessages:
        """Messages of the uniform mixtures of candidates ``(..., K, M)``, made once for all posteriors.

        For B games at P contexts each, ``(B, P, K, M)``, their ratios are ``(B, K, P S)``, for S messages.
        """
        prior = uniform_distribution(self._channel.num_hypotheses)
        if candidates.ndim != 4:
            return self._reference_messages(candidates, prior)
        parts = []
        for first in range(0, len(candidates), _GAMES_AT_ONCE):
            of_games = self._reference_messages(candidates[first : first + _GAMES_AT_ONCE], prior)
            parts.append(_hypotheses_first(of_games))
        return _ReferenceMessages(
            np.concatenate([part.chances for part in parts]),
            np.concatenate([part.ratios for part in parts]),
            np.concatenate([part.surprises for part in parts]),
        )

    def __call__(self, posterior: FloatArray) -> FloatArray:
        """The information ``(B, P)`` under posteriors ``(B, K)``."""
        # Imported here: it would double the time of `import ldp_gym`.
        from scipy.special import entr

        weights = posterior[:, None]
        reference = self._reference
        if reference is None:
            reference = self._reference_messages(self._candidates, weights[..., None, :])
        elif self._candidates.ndim == 4:
            return self._along_games(posterior, reference)
        mixed = np.einsum("...ks,...k->...s", reference.ratios, weights)
        of_hypotheses = np.einsum("...k,...k->...", reference.surprises, weights)
        of_mixture = np.einsum("...s,...s->...", reference.chances, entr(mixed))
        return np.maximum(of_hypotheses + of_mixture, 0.0)

    def _along_games(self, posterior: FloatArray, reference: _ReferenceMessages) -> FloatArray:
        """The information ``(B, P)`` in B games at P contexts, a few games at a time.

        The arrays of a few games stay in the processor's cache.

        Args:
            posterior: the public posteriors, ``(B, K)``.
            reference: S messages, with ratios ``(B or 1, K, P S)``.
        """
        of_hypotheses = np.einsum("...k,...k->...", reference.surprises, posterior[:, None])
        information = np.empty(of_hypotheses.shape)
        all_share_candidates = len(reference.ratios) == 1
        mixed_shape = (-1, *reference.chances.shape[-2:])  # (games, P, S)
        for first in range(0, len(posterior), _GAMES_AT_ONCE):
            games = slice(first, first + _GAMES_AT_ONCE)
            rows = games
            if all_share_candidates:
                rows = slice(None)
            mixed = np.matmul(posterior[games, None], reference.ratios[rows]).reshape(mixed_shape)
            x_log_x = np.log(np.maximum(mixed, _SMALLEST_RATIO))
            x_log_x *= mixed
            chances = np.broadcast_to(reference.chances[rows], mixed.shape)
            of_mixture = np.einsum("bps,bps->bp", chances, x_log_x)
            information[games] = of_hypotheses[games] - of_mixture
        return np.maximum(information, 0.0)

    def _reference_messages(self, candidates: FloatArray, prior: FloatArray) -> _ReferenceMessages:
        """Messages of the mixtures of candidates ``(..., K, M)``: all if they are few, else random ones.

        Args:
            candidates: the classes.
            prior: weights of the mixtures, ``(K,)`` or ``(B, 1, 1, K)``.
        """
        # Imported here: it would double the time of `import ldp_gym`.
        from scipy.special import entr

        channel = self._channel
        candidates = candidates[..., None, :, :]
        public = prior if channel.adaptive else None
        space = channel.message_space
        if isinstance(space, gym.spaces.Discrete) and space.n <= _FEW_MESSAGES:
            messages = int(space.start) + np.arange(int(space.n))
            likelihoods = np.exp(channel.log_likelihood(messages, candidates, public))
            mixed = np.einsum("...k,...k->...", likelihoods, prior)
            chances = mixed
        else:
            likelihoods = self._sampled_likelihoods(candidates, prior, public)
            mixed = np.einsum("...k,...k->...", likelihoods, prior)
            chances = uniform_distribution(*mixed.shape)

        possible = mixed[..., None] > 0.0
        ratios = np.divide(
            likelihoods, mixed[..., None], where=possible, out=np.zeros_like(likelihoods)
        )
        # Messages last: sums over hypotheses then run along neighbours in memory.
        ratios = np.ascontiguousarray(np.swapaxes(ratios, -1, -2))
        surprises = -np.einsum("...s,...ks->...k", chances, entr(ratios))
        return _ReferenceMessages(chances, ratios, surprises)

    def _sampled_likelihoods(
        self, candidates: FloatArray, prior: FloatArray, public: FloatArray | None
    ) -> FloatArray:
        """The likelihoods ``(..., S, K)``, up to a factor, of messages of the mixture with fixed coins."""
        channel = self._channel
        num_messages = _FEW_MESSAGES_ADAPTIVE if channel.adaptive else _FEW_MESSAGES
        coins = _stratified_uniforms(num_messages, 1 + channel.num_uniforms)
        mixture_law = np.einsum("...k,...km->...m", prior, candidates)
        shape = np.broadcast_shapes(mixture_law.shape[:-1], coins.shape[:1])
        coins = np.broadcast_to(coins, (*shape, coins.shape[-1]))
        labels = categorical(mixture_law, coins[..., 0])
        messages = channel.encode(labels, candidates, coins[..., 1:], public)
        log_likelihood = channel.log_likelihood(messages, candidates, public)
        return np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))


def _hypotheses_first(messages: _ReferenceMessages) -> _ReferenceMessages:
    """The same messages, with the axis of the hypotheses before that of the contexts.

    The ratios of B games, P contexts, K hypotheses and S messages, ``(B, P, K, S)``, become ``(B, K, P S)``:
    all mixtures of a game are then one product of its posterior and a matrix.
    """
    games, contexts, num_hypotheses, num_messages = messages.ratios.shape
    ratios = np.ascontiguousarray(np.swapaxes(messages.ratios, 1, 2))
    return messages._replace(ratios=ratios.reshape(games, num_hypotheses, contexts * num_messages))


class _ReferenceMessages(NamedTuple):
    """Messages of a law r that the expectation is over.

    Attributes:
        chances: their probabilities, ``(..., S)``.
        ratios: ``l_k``, the likelihoods relative to r, ``(..., K, S)``.
        surprises: ``E_r l_k log l_k``, ``(..., K)``.
    """

    chances: FloatArray
    ratios: FloatArray
    surprises: FloatArray


@cache
def _stratified_uniforms(count: int, width: int) -> FloatArray:
    """``count`` rows of uniforms, every column with one in each of ``count`` equal parts of (0, 1)."""
    rng = stream(Purpose.INFORMATION, 0)
    columns = [rng.permutation(count) for _ in range(width)]
    parts = np.stack(columns, axis=-1)
    return (parts + rng.random((count, width))) / count
