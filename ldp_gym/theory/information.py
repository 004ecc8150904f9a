"""Information of one message about the truth, under a posterior: the mutual information per round."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.core import game_arrays, validation
from ldp_gym.core.arrays import FloatArray, IntArray, uniform_distribution
from ldp_gym.core.sampling import Purpose, categorical, stream


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
    samples, seed = validation.whole("samples", samples, least=2), validation.seed("seed", seed)
    validation.fits_memory("samples", samples, candidates.size, "likelihoods")
    public = prior if channel.adaptive else None
    chances, ratios, draws = likelihood_ratios(channel, candidates, prior, public, samples, seed)
    from scipy.special import entr  # imported here: it would double the time of `import ldp_gym`

    terms = -chances * np.einsum("nk,k->n", entr(ratios), prior)
    if draws is None:
        return InformationRate(float(terms.sum()), 0.0)
    rates = np.bincount(draws, terms)  # the parts of the mean over draws
    return InformationRate(float(rates.sum()), float(rates.std(ddof=1) * np.sqrt(len(rates))))


def likelihood_ratios(
    channel: Channel,
    table: FloatArray,
    prior: FloatArray,
    public: FloatArray | None,
    samples: int,
    seed: int,
) -> tuple[FloatArray, FloatArray, IntArray | None]:
    """Messages of the mixture that ``prior`` makes of a table ``(K, M)``: listed, or drawn if they cannot be.

    Returns their chances ``(n,)``, the likelihoods of every hypothesis relative to the mixture's ``(n, K)``,
    and the random draw that each belongs to ``(n,)``, or None where the list is complete.
    """
    try:
        listed = channel.list_messages(table, public)
        messages, draws = listed.messages, None if listed.complete else listed.draws
    except TypeError:
        rng, listed, draws = stream(Purpose.INFORMATION, seed), None, np.arange(samples)
        labels = categorical(np.einsum("k,km->m", prior, table), rng.random(samples))
        messages = channel.privatize(labels, table, rng, public)
    log_likelihood = channel.log_likelihood(messages, table, public)
    peak = log_likelihood.max(axis=1, keepdims=True)
    likelihood = np.exp(log_likelihood - np.where(np.isfinite(peak), peak, 0.0))
    mixed = np.einsum("nk,k->n", likelihood, prior)
    possible = mixed > 0.0
    chances = np.full(len(mixed), 1.0 / len(mixed))
    if listed is not None:
        chances[possible] = mixed[possible] * np.exp(
            listed.log_weights[possible] + peak[possible, 0]
        )
    ratios = likelihood[possible] / mixed[possible, None]
    return chances[possible], ratios, None if draws is None else draws[possible]


_MESSAGES, _MESSAGES_ADAPTIVE = 64, 16
"""Largest number of messages that are all worked out, and number of random ones where there are more; the
second is for adaptive channels, whose messages are worked out again in every round."""


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
        self._reference = None if channel.adaptive else self._compare(None)

    def __call__(self, posterior: FloatArray) -> FloatArray:
        """The information ``(B, P)`` under posteriors ``(B, K)``."""
        weights = posterior[:, None]
        chances, ratios, surprises = self._reference or self._compare(weights)
        mixed = np.einsum("...ks,...k->...s", ratios, weights)
        told = np.einsum("...k,...k->...", surprises, weights)
        from scipy.special import entr

        told = told + np.einsum("...s,...s->...", chances, entr(mixed))
        return np.maximum(told, 0.0)

    def _compare(self, weights: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Messages: chances ``(..., S)``, ratios ``(..., K, S)``, and ``E_r l_k log l_k``, ``(..., K)``."""
        channel, candidates = self._channel, self._candidates[..., None, :, :]
        prior = (
            uniform_distribution(channel.num_hypotheses)
            if weights is None
            else weights[..., None, :]
        )
        public = prior if channel.adaptive else None
        space = channel.message_space
        if isinstance(space, gym.spaces.Discrete) and space.n <= _MESSAGES:
            messages = int(space.start) + np.arange(int(space.n))
            likelihoods = np.exp(channel.log_likelihood(messages, candidates, public))
            chances = mixed = np.einsum("...k,...k->...", likelihoods, prior)
        else:
            likelihoods = self._sample(candidates, prior, public)
            mixed = np.einsum("...k,...k->...", likelihoods, prior)
            chances = uniform_distribution(*mixed.shape)
        possible = mixed[..., None] > 0.0
        ratios = np.divide(
            likelihoods, mixed[..., None], where=possible, out=np.zeros_like(likelihoods)
        )
        ratios = np.ascontiguousarray(
            np.swapaxes(ratios, -1, -2)
        )  # sums over hypotheses run along messages
        from scipy.special import entr

        return chances, ratios, -np.einsum("...s,...ks->...k", chances, entr(ratios))

    def _sample(
        self, candidates: FloatArray, prior: FloatArray, public: FloatArray | None
    ) -> FloatArray:
        """The likelihoods ``(..., S, K)``, up to a factor, of messages of the mixture with fixed coins."""
        channel = self._channel
        num_messages = _MESSAGES_ADAPTIVE if channel.adaptive else _MESSAGES
        coins = _stratified_uniforms(num_messages, 1 + channel.num_uniforms)
        law = np.einsum("...k,...km->...m", prior, candidates)
        shape = np.broadcast_shapes(law.shape[:-1], coins.shape[:1])
        coins = np.broadcast_to(coins, (*shape, coins.shape[-1]))
        messages = channel.encode(
            categorical(law, coins[..., 0]), candidates, coins[..., 1:], public
        )
        log_likelihood = channel.log_likelihood(messages, candidates, public)
        return np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True))


@cache
def _stratified_uniforms(count: int, width: int) -> FloatArray:
    """``count`` rows of uniforms, every column with one in each of ``count`` equal parts of (0, 1)."""
    rng = stream(Purpose.INFORMATION, 0)
    parts = np.stack([rng.permutation(count) for _ in range(width)], axis=-1)
    return (parts + rng.random((count, width))) / count
