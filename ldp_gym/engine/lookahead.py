"""Messages that depend on those before them, several rounds at a time.

An adaptive channel acts on the public posterior, which the messages before a round make. One game alone would
pay for every call of the channel with a single round. So rounds ahead are worked out together, from a guess
of the posterior before each of them; what they tell makes the next, better guess. All rounds up to the first
whose posterior was guessed wrong are what they are when played in turn: the same function of the same
numbers. Guesses decide how many rounds a call is good for, and nothing else. A posterior mostly moves little,
and what a message tells depends on it through a few comparisons: most guesses are soon right.
"""

from __future__ import annotations

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import FloatArray, IntArray, Messages
from ldp_gym.engine.posterior import PublicPosterior, weights_of

_AHEAD = 32
"""How many rounds of all games together are guessed at: a call takes little longer for them than for one."""


def send_adaptively(
    channel: Channel,
    posterior: PublicPosterior,
    labels: IntArray,
    candidates: FloatArray,
    uniforms: FloatArray,
) -> tuple[Messages, FloatArray]:
    """The messages ``(B, n, ...)`` of labels ``(B, n)``, and their log-likelihoods ``(B, n, K)``.

    Args:
        channel: an adaptive one.
        posterior: the public posterior of the B games, which advances past these rounds.
        labels: the users'.
        candidates: ``(B, n, K, M)``, a round axis of 1 where they do not change, or one table for all.
        uniforms: the channel's, ``(B, n, num_uniforms)``.
    """
    games, rounds = labels.shape
    ahead, played = max(1, _AHEAD // games), 0
    changing = candidates.ndim > 2 and candidates.shape[1] > 1
    guesses = posterior.weights[:, None]
    sent = []
    while played < rounds:
        now = slice(played, min(played + ahead, rounds))
        guesses = _extend(guesses, now.stop - played)
        here = candidates[:, now] if changing else candidates
        messages, log_likelihoods = channel.send(labels[:, now], here, uniforms[:, now], guesses)
        path = posterior.path(log_likelihoods)
        weights = weights_of(path)
        good = _count_right(guesses, weights)
        posterior.move_to(path[:, good])
        guesses = weights[:, good:]
        sent.append((messages[:, :good], log_likelihoods[:, :good]))
        played += good
    messages, log_likelihoods = (np.concatenate(parts, axis=1) for parts in zip(*sent, strict=True))
    return messages, log_likelihoods


def _extend(guesses: FloatArray, rounds: int) -> FloatArray:
    """Guesses ``(B, n, K)`` for so many rounds; the last stands for all that come after it."""
    missing = rounds - guesses.shape[1]
    if missing <= 0:
        return guesses[:, :rounds]
    return np.concatenate([guesses, np.repeat(guesses[:, -1:], missing, axis=1)], axis=1)


def _count_right(guesses: FloatArray, weights: FloatArray) -> int:
    """In how many of the first rounds all games had the right posterior; the first round is known."""
    wrong = (guesses[:, 1:] != weights[:, 1 : guesses.shape[1]]).any(axis=(0, 2))
    return int(wrong.argmax()) + 1 if wrong.any() else guesses.shape[1]
