"""What one message tells about the truth: the mutual information per round of a channel under a posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.numerics import validation
from ldp_gym.numerics.arrays import FloatArray
from ldp_gym.numerics.sampling import categorical


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
    """The information that a round's message carries about the truth, when it has the given weights.

    Exact where the messages can be listed. Where public coins make them too many, the mean over draws of the
    coins of what is exact given each: never above :func:`ldp_gym.theory.capacity`. Real-valued messages are
    sampled.

    Args:
        channel: the channel.
        candidates: the class at the context, ``(K, M)``.
        weights: the posterior, ``(K,)``; uniform when not given. An adaptive channel acts on it.
        samples: how many messages to draw where they are real-valued.
        seed: of those messages.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> rate, error = information_rate(RandomizedResponse(2, 2, 10, epsilon=1.0), np.eye(2))
        >>> round(rate, 4), error
        (0.1109, 0.0)
    """
    size = channel.num_hypotheses
    candidates = validation.one_context(candidates, size, channel.num_labels)
    prior = np.full(size, 1.0 / size) if weights is None else validation.row("weights", weights, size)
    samples = validation.whole("samples", samples, least=2)
    public = prior if channel.adaptive else None
    try:
        listed = channel.list_messages(candidates, public)
    except TypeError:
        return _sampled(channel, candidates, prior, public, samples, seed)
    log_likelihood = channel.log_likelihood(listed.messages, candidates, public)
    with np.errstate(invalid="ignore"):
        gain = log_likelihood - _log_mean(log_likelihood, prior)
    told = np.isfinite(log_likelihood) & (prior > 0.0)  # what a hypothesis never sends tells nothing
    chance = np.exp(log_likelihood + listed.log_weights[:, None], where=told, out=np.zeros_like(gain))
    terms = np.einsum("nk,k->n", chance * np.where(told, gain, 0.0), prior)
    if listed.complete:
        return InformationRate(float(terms.sum()), 0.0)
    rates = np.bincount(listed.draws, terms)  # the parts of the mean over draws
    error = rates.std(ddof=1) * np.sqrt(len(rates))
    return InformationRate(float(rates.sum()), float(error))


def _sampled(
    channel: Channel,
    candidates: FloatArray,
    prior: FloatArray,
    public: FloatArray | None,
    samples: int,
    seed: int,
) -> InformationRate:
    """The same from random messages."""
    rng = np.random.default_rng(seed)
    truths = categorical(prior, rng.random(samples))
    labels = categorical(candidates[truths], rng.random(samples))
    messages = channel.privatize(labels, candidates, rng, public)
    log_likelihood = channel.log_likelihood(messages, candidates, public)
    gain = log_likelihood[np.arange(samples), truths] - _log_mean(log_likelihood, prior)[:, 0]
    return InformationRate(float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(samples)))


def _log_mean(log_likelihood: FloatArray, prior: FloatArray) -> FloatArray:
    """The log-likelihood of the mixture, ``(..., 1)``."""
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(log_likelihood + np.log(prior), axis=-1, keepdims=True)
