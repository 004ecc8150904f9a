"""What one message tells about the truth: the mutual information per round of a channel under a posterior."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym
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

    Exact where the messages are few and can be listed; else from ``samples`` messages, with its error. For an
    eps-private channel it is never above :func:`ldp_gym.theory.capacity`.

    Args:
        channel: the channel.
        candidates: the class at the context, ``(K, M)``.
        weights: the posterior, ``(K,)``; uniform when not given. An adaptive channel acts on it.
        samples: how many messages to draw where they cannot be listed.
        seed: of those messages.

    Example:
        >>> from ldp_gym.channels import RandomizedResponse
        >>> rate, error = information_rate(RandomizedResponse(2, 2, 10, epsilon=1.0), np.eye(2))
        >>> round(rate, 4), error
        (0.1109, 0.0)
    """
    size = channel.num_hypotheses
    candidates = validation.one_context(candidates, size, channel.num_labels)
    prior = np.full(size, 1.0 / size) if weights is None else validation.one_posterior(weights, size)
    samples = validation.whole("samples", samples, least=2)
    public = prior if channel.adaptive else None
    if isinstance(channel.message_space, gym.spaces.Discrete):
        messages = np.arange(int(channel.message_space.n))
        log_likelihood = channel.log_likelihood(messages, candidates, public)
        with np.errstate(invalid="ignore"):
            gain = log_likelihood - _log_mean(log_likelihood, prior)
        told = np.isfinite(log_likelihood) & (
            prior > 0.0
        )  # a message that a hypothesis never sends tells none
        terms = np.exp(log_likelihood, where=told, out=np.zeros_like(gain)) * np.where(told, gain, 0.0)
        return InformationRate(float(terms.sum(axis=0) @ prior), 0.0)
    rng = np.random.default_rng(seed)
    truths = categorical(prior, rng.random(samples))
    labels = categorical(candidates[truths], rng.random(samples))
    log_likelihood = channel.log_likelihood(
        channel.privatize(labels, candidates, rng, public), candidates, public
    )
    gain = log_likelihood[np.arange(samples), truths] - _log_mean(log_likelihood, prior)[:, 0]
    return InformationRate(float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(samples)))


def _log_mean(log_likelihood: FloatArray, prior: FloatArray) -> FloatArray:
    """The log-likelihood of the mixture, ``(..., 1)``."""
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(log_likelihood + np.log(prior), axis=-1, keepdims=True)
