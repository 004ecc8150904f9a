"""Bayes' rule, the posterior that the public transcript implies, and messages that depend on it.

Anyone can compute this public posterior, so Nature's adversary and the adaptive channels may act on it.
"""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from ldp_gym.channels.base import Channel
from ldp_gym.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Messages,
    read_only,
    relative_weights,
    sums_in_order,
)
from ldp_gym.core.registry import is_builtin

_RULED_OUT = -1e6
"""Log-likelihood of a message that a hypothesis rules out; below ``log`` of any float above 0."""

_AHEAD = 32
"""Number of rounds, over all games, that one look-ahead guesses; one call costs little more than a round."""


def bayes_rule(weights: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Posterior ``w_k L_k / sum_j w_j L_j``, ``(..., K)``; in log space, add :func:`log_ratios`."""
    posterior: FloatArray = weights * likelihoods
    posterior /= np.add.reduce(posterior, axis=-1, keepdims=True)
    return posterior


def log_ratios(log_likelihoods: FloatArray, rate: float = 1.0) -> FloatArray:
    """Log-likelihoods ``(..., K)`` times ``rate``, less the largest: Bayes' rule adds them to log weights.

    The likeliest hypothesis has 0, so that sums stay small.
    """
    ratios = rate * finite(log_likelihoods)
    ratios -= np.maximum.reduce(ratios, axis=-1, keepdims=True)
    return ratios


def finite(log_likelihoods: FloatArray) -> FloatArray:
    """Log-likelihoods that can be summed: -1e6 for a message that a hypothesis rules out.

    Without privacy, a truth outside the class can send messages that every hypothesis rules out at some time.
    Then the hypothesis that was wrong least often is left.
    """
    return np.maximum(log_likelihoods, _RULED_OUT)


def spread_evenly(weights: FloatArray, share: float) -> FloatArray:
    """Weights ``(1 - share) w_k + share / K``: spread a share of them evenly over all K hypotheses."""
    return (1.0 - share) * weights + share / weights.shape[-1]


def weights_of(log_weights: FloatArray) -> FloatArray:
    """Posterior ``(..., K)`` from log weights: the same to the last bit, alone and in a batch."""
    weights = relative_weights(log_weights)
    weights /= sums_in_order(weights)
    return weights


class PublicPosterior:
    """The posterior of several games under a uniform prior, advanced message by message.

    With ``batch=n`` the :attr:`weights` change only after every n messages; in between they stay as they were
    before the batch.

    Args:
        num_hypotheses: K.
        batch_shape: shape of the batch of games.
        rate: exponent of the likelihoods.
        share: share of the weight that is spread over all hypotheses after every message.
        batch: number of users who answer under one public posterior.

    Example:
        >>> posterior = PublicPosterior(2)
        >>> posterior.advance(np.log([0.2, 0.6]))
        >>> posterior.weights.round(2).tolist()
        [0.25, 0.75]
    """

    def __init__(
        self,
        num_hypotheses: int,
        batch_shape: tuple[int, ...] = (),
        *,
        rate: float = 1.0,
        share: float = 0.0,
        batch: int = 1,
    ) -> None:
        self._rate = rate
        self._share = share
        self._batch = batch
        # Games are side by side in memory: elementwise work on the weights runs along them.
        self._log_weights = np.moveaxis(np.zeros((num_hypotheses, *batch_shape)), 0, -1)
        self._shown = self._log_weights.copy()  # log weights before the batch
        self._pending = np.zeros(batch_shape, dtype=np.int64)  # messages of the batch so far

    @property
    def weights(self) -> FloatArray:
        """The public weights ``(..., K)``, summing to one: those before the current batch."""
        return weights_of(self._log_weights if self._batch == 1 else self._shown)

    def advance(self, log_likelihood: FloatArray) -> None:
        """Apply Bayes' rule, with rate and share, for messages of log-likelihoods ``(..., K)``.

        The public weights follow only when a batch of messages is complete.
        """
        self._log_weights = self._after(self._log_weights, log_ratios(log_likelihood, self._rate))
        if self._batch > 1:
            self._pending = (self._pending + 1) % self._batch
            complete = (self._pending == 0)[..., None]
            self._shown = np.where(complete, self._log_weights, self._shown)

    def along(self, log_likelihoods: FloatArray) -> FloatArray:
        """The public weights before each of n rounds ``(B, n, K)``; advances past them."""
        path = self.path(log_likelihoods)
        weights = weights_of(self.shown_on(path)[:, :-1])
        self.move_along(path, path.shape[1] - 1)
        return weights

    def path(self, log_likelihoods: FloatArray, games: IntArray | EllipsisType = ...) -> FloatArray:
        """The log weights before each of n rounds and after the last, ``(B, n + 1, K)``, up to constants."""
        num_games, rounds, num_hypotheses = log_likelihoods.shape
        path = np.empty((num_hypotheses, num_games, rounds + 1)).transpose(1, 2, 0)
        path[:, 0] = self._log_weights[games]
        path[:, 1:] = log_ratios(log_likelihoods, self._rate)
        if not self._share and rounds > num_games:
            return np.add.accumulate(path, axis=1, out=path)
        for t in range(1, path.shape[1]):
            path[:, t] = self._after(path[:, t - 1], path[:, t])
        return path

    def latest_along(self, log_likelihoods: FloatArray, games: IntArray) -> FloatArray:
        """Weights after each of n rounds of some games ``(B, n, K)``, incomplete batches included.

        It advances the log weights past these rounds, but not what a batch shows.
        """
        path = self.path(log_likelihoods, games)
        self._log_weights[games] = path[:, -1]
        return weights_of(path[:, 1:])

    def shown_on(self, path: FloatArray) -> FloatArray:
        """The public log weights before each round of a :meth:`path`, in its shape."""
        if self._batch == 1:
            return path
        # Round t of a game shows the log weights of (pending + t) % batch rounds ago, or those shown now.
        rounds = np.arange(path.shape[1])
        since = rounds - (self._pending[:, None] + rounds) % self._batch
        earlier = np.take_along_axis(path, np.maximum(since, 0)[..., None], axis=1)
        return np.where((since < 0)[..., None], self._shown[:, None], earlier)

    def move_along(self, path: FloatArray, rounds: int) -> None:
        """Advance past the first ``rounds`` rounds of a :meth:`path`."""
        if self._batch > 1:
            self._shown = self.shown_on(path)[:, rounds]
            self._pending = (self._pending + rounds) % self._batch
        np.copyto(self._log_weights, path[:, rounds])

    def _after(self, log_weights: FloatArray, ratios: FloatArray) -> FloatArray:
        """Log weights after one more message."""
        after = log_weights + ratios
        if not self._share:
            return after
        return np.log(spread_evenly(weights_of(after), self._share))

    def restart(self, games: BoolArray | IntArray) -> None:
        """Go back to the prior in those games."""
        self._log_weights[games] = 0.0
        self._shown[games] = 0.0
        self._pending[games] = 0

    def keep(self, games: BoolArray | IntArray) -> None:
        """Go on with only those games."""
        self._log_weights = self._log_weights[games]
        self._shown = self._shown[games]
        self._pending = self._pending[games]


def encode(
    channel: Channel,
    labels: IntArray,
    candidates: FloatArray,
    uniforms: FloatArray,
    posterior: FloatArray | None = None,
) -> Messages:
    """Return the messages of a channel, as :meth:`Channel.encode` does.

    A user's channel may not write into what it is shown, and its messages are copied: it may write
    to its array again.
    """
    if is_builtin(type(channel)):
        return channel.encode(labels, candidates, uniforms, posterior)
    if posterior is not None:
        posterior = read_only(posterior)
    messages = channel.encode(
        read_only(labels), read_only(candidates), read_only(uniforms), posterior
    )
    if not isinstance(messages, np.ndarray):
        raise ValueError(
            f"{channel!r} must give messages as an array of numbers, got {type(messages).__name__}"
        )
    return messages.copy()


def send_adaptively(
    channel: Channel,
    posterior: PublicPosterior,
    labels: IntArray,
    candidates: FloatArray,
    uniforms: FloatArray,
) -> tuple[Messages, FloatArray]:
    """Messages ``(B, n, ...)`` of labels ``(B, n)``, and their log-likelihoods ``(B, n, K)``.

    An adaptive channel acts on the public posterior, which the messages before a round make. Calling it for
    one round at a time is slow. So several rounds are worked out together, from a guess of the posterior
    before each; their messages make the next, better guess. All rounds up to the first wrong guess are what
    they are when played in turn: the same function of the same numbers. Guesses decide how many rounds a call
    is good for, and nothing else. A posterior moves little, and a message depends on it through a few
    comparisons: most guesses are soon right.

    The posterior of the B games advances past these rounds. Candidates are ``(B, n, K, M)``, with a round
    axis of 1 where they do not change, or one table for all.
    """
    # Example: one game, K = 3, and rounds 0, 1, 2 ahead. Round 0 has the known posterior (1/3, 1/3, 1/3), and
    # the first guess is the same for rounds 1 and 2. The channel sends three messages from it. Suppose that
    # they imply the posteriors (1/2, 1/4, 1/4) before round 1 and (2/3, 1/6, 1/6) before round 2. The guess
    # for round 1 was wrong, so only round 0 counts: `good` is 1, and the posterior moves to (1/2, 1/4, 1/4).
    # The next call starts at round 1, which is now known, and guesses (2/3, 1/6, 1/6) for round 2. Unless its
    # new message in round 1 implies something else, that guess is right and both rounds count.
    num_games, rounds = labels.shape
    rounds_ahead = max(1, _AHEAD // num_games)
    changing = candidates.ndim > 2 and candidates.shape[1] > 1
    guesses = posterior.weights[:, None]
    sent: list[tuple[Messages, FloatArray]] = []
    played = 0
    while played < rounds:
        ahead = slice(played, min(played + rounds_ahead, rounds))
        guesses = _lengthened(guesses, ahead.stop - ahead.start)
        here = candidates[:, ahead] if changing else candidates
        messages = encode(channel, labels[:, ahead], here, uniforms[:, ahead], guesses)
        log_likelihoods = channel.log_likelihood(messages, here, guesses)

        path = posterior.path(log_likelihoods)
        weights = weights_of(posterior.shown_on(path))
        good = _rounds_guessed(guesses, weights)
        posterior.move_along(path, good)
        sent.append((messages[:, :good], log_likelihoods[:, :good]))
        guesses = weights[:, good:]
        played += good
    all_messages = np.concatenate([messages for messages, _ in sent], axis=1)
    all_log_likelihoods = np.concatenate([values for _, values in sent], axis=1)
    return all_messages, all_log_likelihoods


def _lengthened(guesses: FloatArray, rounds: int) -> FloatArray:
    """Guesses ``(B, rounds, K)`` of the posterior; the last is repeated where there are too few."""
    missing = rounds - guesses.shape[1]
    if missing > 0:
        repeated = np.repeat(guesses[:, -1:], missing, axis=1)
        guesses = np.concatenate([guesses, repeated], axis=1)
    return guesses[:, :rounds]


def _rounds_guessed(guesses: FloatArray, weights: FloatArray) -> int:
    """Number of rounds up to the first wrong guess ``(B, n, K)``; the guess of the first is right."""
    rounds = guesses.shape[1]
    wrong = (guesses[:, 1:] != weights[:, 1:rounds]).any(axis=(0, 2))
    if wrong.any():
        return int(wrong.argmax()) + 1
    return rounds
