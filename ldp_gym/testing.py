"""Contract checks for hypothesis classes, natures, truths, channels and learners, built-in or custom.

Each check raises an ``AssertionError`` that says what broke.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel, require_channel
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, IntArray, Messages, at_round
from ldp_gym.core.errors import OutsideTrainingWarning, summarize
from ldp_gym.core.registry import is_builtin
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.engine.learners import (
    LearnerProtocol,
    MakeLearner,
    as_make_learner,
    begin_episodes,
    build_learner,
    example_rules,
    plays_blocks,
    predict_checked,
)
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.hypotheses.families import SoftmaxLinear
from ldp_gym.natures.base import Nature, NatureView
from ldp_gym.privacy.certificate import find_broken_promise
from ldp_gym.privacy.misfit import LEAST_SAMPLES, find_misfit
from ldp_gym.theory.information import MessageInformation
from ldp_gym.truths.base import Truth, TruthView, pick

_MADE = "(made, not its class or name)"

_CHECK_GAME = {
    "num_hypotheses": 4,
    "num_labels": 5,
    "context_dim": 2,
    "horizon": 12,
    "nature": "cycle",
}
"""Game on which a learner without ``example_rules`` is checked."""

_OF_PREDICTIONS = 1e-5, 1e-9
"""Relative and absolute tolerance of predictions; a network in single precision has seven digits."""

_MOST_ROUNDS = 40
"""Largest number of rounds that a learner plays in its check."""

_PROMISE_SAMPLES = 100_000
"""Number of messages for the check of a channel's promise, at each table of candidates."""


def check_hypotheses(hypotheses: HypothesisClass, seed: int = 0) -> None:
    """Check that candidates are distributions, deterministic, and the same for one context and a batch."""
    seed = validation.seed("seed", seed)
    hypotheses = validation.instance(
        "hypotheses", hypotheses, HypothesisClass, f"a HypothesisClass {_MADE}"
    )
    shape = hypotheses.num_hypotheses, hypotheses.num_labels
    dim = hypotheses.context_dim
    _require(min(shape) >= 2 and dim >= 1, f"K >= 2, M >= 2 and d >= 1, got {hypotheses!r}")
    contexts = np.random.default_rng(seed).standard_normal((2, 3, dim))
    contexts_before = contexts.copy()

    candidates = hypotheses(contexts)
    expected_shape = shape if hypotheses.constant else (2, 3, *shape)
    _require_array("candidates", candidates, expected_shape)
    _require_distributions("rows", candidates)

    candidates_before = candidates.copy()
    hypotheses(-contexts)
    is_kept = np.array_equal(candidates, candidates_before)
    _require(is_kept, "a new array of candidates from every call")
    is_repeated = np.array_equal(candidates, hypotheses(contexts))
    _require(is_repeated, "the same candidates when asked twice")
    _require(np.array_equal(contexts, contexts_before), "the contexts left as they were")

    alone = hypotheses(contexts[1, 2])
    batched = candidates if hypotheses.constant else candidates[1, 2]
    _require_array("candidates of one context", alone, shape)
    _require_close(alone, batched, "the same candidates alone and in a batch", absolute=1e-15)


def check_nature(nature: Nature, hypotheses: HypothesisClass | None = None, seed: int = 0) -> None:
    """Check that contexts are finite, and the same one round or episode at a time and in batches."""
    seed = validation.seed("seed", seed)
    nature = validation.instance("nature", nature, Nature, f"a Nature {_MADE}")
    hypotheses = hypotheses or SoftmaxLinear(4, 5, nature.context_dim)
    batch, rounds, dim = 3, 6, nature.context_dim
    rng = np.random.default_rng(seed)
    uniforms = open_uniforms([rng], (batch, rounds, nature.num_uniforms))[0]
    public = rng.dirichlet(np.ones(hypotheses.num_hypotheses), size=batch)
    members = rng.integers(hypotheses.num_hypotheses, size=(batch, 1))
    channel = RandomizedResponse(hypotheses.num_hypotheses, hypotheses.num_labels, rounds)
    prepared = nature.prepare(hypotheses, partial(MessageInformation, channel))

    def play(games: slice, length: int) -> FloatArray:
        previous, parts, copies = np.zeros((len(uniforms[games]), dim)), [], []
        for start in range(0, rounds, length):
            numbers = uniforms[games, start : start + length]
            indices = np.broadcast_to(np.arange(start, start + numbers.shape[1]), numbers.shape[:2])
            leak = (
                (lambda _, candidates: pick(candidates, members[games]))
                if nature.leaks_truth
                else None
            )
            view = NatureView(numbers, indices, previous, hypotheses, truth=leak)
            if nature.adaptive:
                view = replace(
                    view, posterior=public[games], rounds_left=rounds - start, prepared=prepared
                )
            part = nature.contexts(view)
            _require_array("contexts", part, (*numbers.shape[:2], dim))
            previous = part[:, -1]
            parts.append(part)
            copies.append(part.copy())
        _require(np.array_equal(parts, copies), "a new array of contexts from every call")
        return np.concatenate(parts, axis=1)

    one_by_one = play(slice(None), 1)
    _require(np.isfinite(one_by_one).all(), "finite contexts")
    if not nature.adaptive:
        _require_close(one_by_one, play(slice(None), rounds), "the same contexts in blocks")
    for game in range(batch):
        alone = play(slice(game, game + 1), 1)[0]
        _require_close(one_by_one[game], alone, "the same contexts alone and in a batch")


def check_truth(truth: Truth, hypotheses: HypothesisClass | None = None, seed: int = 0) -> None:
    """Check that a truth's distributions and members agree, one round or episode at a time and in batches.

    Args:
        truth: the truth.
        hypotheses: the class that it was made for; by default softmax-linear hypotheses, as many as it was
            made for (else 4), M = 5, d = 2.
        seed: seed of the episodes.
    """
    seed = validation.seed("seed", seed)
    truth = validation.instance("truth", truth, Truth, f"a Truth {_MADE}")
    hypotheses = hypotheses or SoftmaxLinear(max(getattr(truth, "num_hypotheses", 4), 2), 5, 2)
    batch, rounds = 3, min(6, truth.num_rounds or 6)
    rng = np.random.default_rng(seed)
    episode_uniforms = open_uniforms([rng], (batch, truth.num_episode_uniforms))[0]
    uniforms = open_uniforms([rng], (batch, rounds, truth.num_uniforms))[0]
    contexts = rng.standard_normal((batch, rounds, hypotheses.context_dim))
    shape = (batch, rounds, hypotheses.num_hypotheses, hypotheses.num_labels)
    candidates = np.broadcast_to(hypotheses(contexts), shape)
    indices = np.broadcast_to(np.arange(rounds), (batch, rounds))
    episode = truth.draw_episode(episode_uniforms)
    _require(
        len(episode) == batch,
        f"draw_episode() to give one row per episode, got shape {episode.shape}",
    )

    def view(games: slice, part: slice) -> TruthView:
        return TruthView(
            truth.draw_episode(episode_uniforms[games]),
            uniforms[games, part],
            indices[games, part],
            contexts[games, part],
            candidates[games, part],
        )

    def distributions(view: TruthView, expected: str) -> FloatArray:
        try:
            return truth.distributions(view)
        except Exception as error:  # whatever a truth raises
            raise AssertionError(f"expected {expected}, got {summarize(error)}") from error

    everything = view(slice(None), slice(None))
    made_for = f"distributions for {hypotheses!r} (pass the class that the truth was made for)"
    returned = distributions(everything, made_for)
    num_labels = hypotheses.num_labels
    _require_array("distributions", returned, (batch, rounds, num_labels), (batch, 1, num_labels))
    at_once = np.broadcast_to(returned, (batch, rounds, num_labels)).copy()
    _require_distributions("distributions", at_once)
    members = np.broadcast_to(truth.members(everything), shape[:2])
    _require((members < shape[2]).all(), f"members in 0..{shape[2] - 1} or -1, got {members.max()}")
    is_member = members >= 0
    named = pick(candidates, np.maximum(members, 0))
    _require_close(
        at_once[is_member], named[is_member], "the distribution of the member that is named"
    )
    if not truth.needs_contexts:
        needs = "needs_contexts = True where the contexts matter"
        _require_close(distributions(replace(everything, contexts=None), needs), at_once, needs)
    if truth.constant:
        still = truth.distributions(replace(everything, candidates=candidates[:, :1]))
        _require_close(still, still[:, :1], "constant = False where rounds or contexts matter")
    for game, t in np.ndindex(batch, rounds):
        alone = truth.distributions(view(slice(game, game + 1), slice(t, t + 1)))[0, 0]
        _require_close(alone, at_once[game, t], "the same distribution alone and in a batch")
    _require_close(returned, at_once, "a new array of distributions from every call")


def check_channel(
    channel: Channel, samples: int | None = None, seed: int = 0, *, promise: bool = True
) -> None:
    """Check that messages follow ``log_density``, and that batches agree with single draws.

    A custom channel's promise of eps and delta is checked too, at several tables of candidates, by its
    messages and their densities; its own ``delta_bounds`` and ``worst_case_messages`` are compared with them
    (:func:`ldp_gym.audit.certify`). Shipped channels are certified by the package's tests.

    A correct channel fails with probability at most 1e-6 for its messages (:mod:`ldp_gym.privacy.misfit`),
    and 2e-6 at each of six tables for its promise. A factor that a density of real numbers lacks for all
    labels alike is not seen: the base measure is the channel's choice. It changes no likelihood ratio, hence
    neither eps nor what a learner concludes.

    Args:
        channel: the channel.
        samples: number of messages to draw; by default as many as take a second or two.
        seed: seed of every random draw.
        promise: whether to check the promise of eps and delta.
    """
    seed = validation.seed("seed", seed)
    channel = require_channel(channel)
    promise = validation.flag("promise", promise)
    if samples is not None:
        samples = validation.whole("samples", samples, least=LEAST_SAMPLES)
        numbers = 1 + math.prod(channel.message_shape)
        validation.fits_memory("samples", samples, numbers, "messages")

    messages = _ChannelCalls.draw(channel, seed)
    messages.check_shapes()
    messages.check_single_draws()
    messages.check_broadcasting()
    messages.check_likelihood()
    misfit = find_misfit(channel, samples, seed)
    _require(misfit is None, str(misfit))
    messages.check_repetition()
    if promise and not is_builtin(type(channel)):
        check_promise(channel, seed)


@dataclass(frozen=True)
class _ChannelCalls:
    """A batch of 4 x 5 messages of a channel under one of two tables each, and what they were drawn from."""

    channel: Channel
    labels: IntArray  # (4, 5)
    tables: FloatArray  # (2, K, M)
    candidates: FloatArray  # (4, 5, K, M): one of the tables for each message
    uniforms: FloatArray  # (4, 5, num_uniforms)
    posterior: FloatArray | None  # (4, 5, K) if the channel is adaptive
    messages: Messages  # (4, 5, *message_shape)
    messages_at_first: Messages  # a copy

    @classmethod
    def draw(cls, channel: Channel, seed: int) -> _ChannelCalls:
        """Draw everything, and check that ``encode`` leaves its arguments as they were."""
        rng = np.random.default_rng(seed)
        size, num_labels = channel.num_hypotheses, channel.num_labels
        tables = rng.dirichlet(np.full(num_labels, 0.3), size=(2, size))
        candidates = tables[rng.integers(2, size=(4, 5))]
        posterior = rng.dirichlet(np.ones(size), size=(4, 5)) if channel.adaptive else None
        labels = rng.integers(num_labels, size=(4, 5))
        uniforms = open_uniforms([rng], (4, 5, channel.num_uniforms))[0]

        arguments = {
            "labels": labels,
            "candidates": candidates,
            "uniforms": uniforms,
            "posterior": posterior,
        }
        before = deepcopy(arguments)
        messages = channel.encode(labels, candidates, uniforms, posterior)
        for name, array in arguments.items():
            _require(np.array_equal(array, before[name]), f"{name} left as they were")
        _require_array("messages", messages, (4, 5, *channel.message_shape), floats=False)
        copied = messages.copy()
        return cls(channel, labels, tables, candidates, uniforms, posterior, messages, copied)

    @property
    def log_density(self) -> FloatArray:
        return self.channel.log_density(self.messages, self.candidates, self.posterior)

    @property
    def log_likelihood(self) -> FloatArray:
        return self.channel.log_likelihood(self.messages, self.candidates, self.posterior)

    def check_shapes(self) -> None:
        """Check that messages are points of their space, and that everything read from them has its shape."""
        channel = self.channel
        for message in self.messages.reshape(-1, *channel.message_shape):
            _require(
                channel.message_space.contains(np.asarray(message)),
                f"messages in {channel.message_space}, got {message!r} of type {message.dtype}",
            )
        log_density = self.log_density
        _require_array("log_density", log_density, (4, 5, channel.num_labels))
        _require(not np.isnan(log_density).any(), "a log_density without NaN")
        _require_array("log_likelihood", self.log_likelihood, (4, 5, channel.num_hypotheses))
        losses = channel.loss_estimates(self.messages, self.candidates, self.posterior)
        _require_array("loss_estimates", losses, (4, 5, channel.num_hypotheses))
        _require(np.isfinite(losses).all(), f"finite loss_estimates, got {losses}")

    def check_single_draws(self) -> None:
        """Check that messages and densities are the same one at a time."""
        log_density = self.log_density
        for i in np.ndindex(4, 5):
            posterior = None if self.posterior is None else self.posterior[i]
            message = self.channel.encode(
                self.labels[i], self.candidates[i], self.uniforms[i], posterior
            )
            _require_close(message, self.messages[i], "the same message alone and in a batch")
            alone = self.channel.log_density(self.messages[i], self.candidates[i], posterior)
            _require_close(alone, log_density[i], "the same log_density alone and in a batch")

    def check_broadcasting(self) -> None:
        """Check that one table and one posterior give the same messages as their copies."""
        table = self.tables[0]
        table_copies = np.broadcast_to(table, self.candidates.shape)
        posterior = None if self.posterior is None else self.posterior[0, 0]
        posterior_copies = posterior
        if posterior is not None and self.posterior is not None:
            posterior_copies = np.broadcast_to(posterior, self.posterior.shape)

        expected = self.channel.encode(self.labels, table, self.uniforms, posterior)
        what = "the same message for a table or posterior and for its copies"
        for candidates, public in (
            (table_copies, posterior),
            (table, posterior_copies),
            (table_copies, posterior_copies),
        ):
            messages = self.channel.encode(self.labels, candidates, self.uniforms, public)
            _require_close(messages, expected, what)

    def check_likelihood(self) -> None:
        """Check that the likelihood of a hypothesis is the mean of the density over its labels."""
        with np.errstate(divide="ignore"):
            log_joint = np.log(self.candidates) + self.log_density[..., None, :]
        by_hand = np.logaddexp.reduce(log_joint, axis=-1)
        what = "log_likelihood equal to log sum_y f_k[y] q(z | y)"
        _require_close(self.log_likelihood, by_hand, what, 1e-9, 1e-9)

    def check_repetition(self) -> None:
        """Check that later calls neither change earlier messages nor draw others."""
        unchanged = np.array_equal(self.messages, self.messages_at_first)
        _require(unchanged, "a new array of messages from every call")
        again = self.channel.encode(self.labels, self.candidates, self.uniforms, self.posterior)
        what = "the same message from the same label and uniforms, later on"
        _require(np.array_equal(again, self.messages_at_first), what)


def check_promise(channel: Channel, seed: int = 0) -> None:
    """Check the promise of eps and delta of a custom channel at six tables of candidates.

    Three are random; in the others hypotheses are equal, disjoint or nearly disjoint. A correct channel
    fails with probability at most 2e-6 at each of them. Adaptive channels are checked at the uniform
    posterior.
    """
    seed = validation.seed("seed", seed)
    channel = require_channel(channel)
    rng = np.random.default_rng(seed)
    shape = channel.num_hypotheses, channel.num_labels
    equal = np.full(shape, 1.0 / channel.num_labels)
    disjoint = np.eye(channel.num_labels)[np.arange(channel.num_hypotheses) % channel.num_labels]
    tables = [equal, disjoint, 0.9 * disjoint + 0.1 * equal]
    tables += [rng.dirichlet(np.full(shape[1], alpha), size=shape[0]) for alpha in (0.1, 0.3, 5.0)]
    for table in tables:
        try:
            fault = find_broken_promise(channel, table, _PROMISE_SAMPLES)
        except ValueError as error:
            fault = f"a certificate at the table {validation.shorten(table)}: {error}"
        _require(fault is None, f"a promise that is kept at every table of candidates: {fault}")


def check_learner(learner: str | MakeLearner, seed: int = 0, **rules: Any) -> None:
    """Check that a learner predicts distributions, the same alone, in a batch and on a tape.

    Args:
        learner: a factory from Game to Learner, such as its class; or its name.
        seed: seed of the rounds that it plays.
        **rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``. Other rules come from the learner's
            ``example_rules``, or from a small game.

    Example:
        >>> import ldp_agents
        >>> check_learner(ldp_agents.EXP3)
        >>> check_learner(ldp_agents.Bayes, channel="randomized-response", epsilon=3.0)
    """
    seed = validation.seed("seed", seed)
    make_learner = as_make_learner(learner) if isinstance(learner, str) else learner
    scenario = Rules.of(_rules_of_check(make_learner, rules)).scenario()
    batch, rounds = 3, min(scenario.horizon, _MOST_ROUNDS)
    starts = scenario.start_episodes([np.random.default_rng(seed + i) for i in range(batch)])
    tape = Episodes(scenario, starts).play(rounds)
    shared = tape.candidates.ndim == 2

    def begin(made: LearnerProtocol, games: Sequence[int]) -> None:
        begin_episodes(made, [starts[game].generator for game in games])

    def predict_stepwise(made: LearnerProtocol, games: list[int]) -> FloatArray:
        begin(made, games)
        predictions = []
        for t in range(rounds):
            candidates = tape.candidates if shared else at_round(tape.candidates, t)[games]
            messages = tape.messages[games, t]
            candidates_before = candidates.copy()
            messages_before = messages.copy()
            try:
                predictions.append(predict_checked(made, candidates, len(games)))
            except ValueError as error:
                raise AssertionError(str(error)) from error
            made.update(candidates, messages)
            is_same = np.array_equal(candidates_before, candidates)
            _require(is_same, "the candidates left as they were")
            _require(np.array_equal(messages_before, messages), "the messages left as they were")
        return np.stack(predictions, axis=1)

    def new_learner() -> LearnerProtocol:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideTrainingWarning)  # the contract holds there too
            return build_learner(make_learner, scenario.game)

    made = new_learner()
    together = predict_stepwise(made, list(range(batch)))
    _require_distributions("predictions", together, tolerance=1e-6)
    again = predict_stepwise(made, list(range(batch)))
    _require_close(again, together, "the same predictions after reset()", *_OF_PREDICTIONS)
    for one in range(batch):
        alone = predict_stepwise(new_learner(), [one])[0]
        _require_close(
            alone, together[one], "the same predictions alone and in a batch", *_OF_PREDICTIONS
        )
    if plays_blocks(made):
        begin(made, range(batch))
        halves = slice(0, rounds // 2), slice(rounds // 2, None)
        parts = [_play_part(made, tape, part) for part in halves]
        from_tape = np.concatenate(parts, axis=1)
        has_shape = from_tape.shape == together.shape
        _require(has_shape, f"play() to give (B, n, M), got {from_tape.shape}")
        _require_close(from_tape, together, "play() to predict as stepping does", *_OF_PREDICTIONS)
    if hasattr(made, "act") and not getattr(made, "randomized", False):
        _check_acting(made, scenario, tape, together)


def _play_part(learner: Any, tape: Tape, rounds: slice) -> FloatArray:
    """Let a learner play some rounds of a tape as one block; return its predictions ``(B, n, M)``."""
    is_constant = tape.candidates.ndim == 2 or tape.candidates.shape[1] == 1
    candidates = tape.candidates if is_constant else tape.candidates[:, rounds]
    log_likelihoods = None
    if tape.log_likelihoods is not None:
        log_likelihoods = tape.log_likelihoods[:, rounds]
    return learner.play(candidates, tape.messages[:, rounds], log_likelihoods)


def _rules_of_check(make_learner: MakeLearner, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given rules, completed by the learner's example or by a small game."""
    if "hypotheses" in given:
        return dict(given)
    rules = example_rules(make_learner) or _CHECK_GAME
    if "channel" in given:
        rules = {
            name: value for name, value in rules.items() if name not in ("channel_kwargs", "delta")
        }
    return {**rules, **given}


def _check_acting(learner: Any, scenario: Scenario, tape: Tape, expected: FloatArray) -> None:
    """Check that ``act`` predicts as stepping does, and that ``restart`` starts some games over."""
    batch, rounds = expected.shape[:2]
    nothing = np.broadcast_to(scenario.channel.placeholder, tape.messages[:, 0].shape)
    every = np.broadcast_to(tape.candidates, (batch, rounds, *tape.candidates.shape[-2:]))
    learner.reset((batch,))
    for t in range(rounds):
        message = nothing if t == 0 else tape.messages[:, t - 1]
        acted = learner.act(
            {"round": np.full((batch, 1), t), "message": message, "candidates": every[:, t]}
        )
        _require_close(acted, expected[:, t], "act() to predict as stepping does", *_OF_PREDICTIONS)
    again = np.arange(batch) % 2 == 0  # these games start over, the others go on
    reached = np.where(again, 0, rounds)[:, None]
    fresh = learner.act(
        {"round": reached, "message": tape.messages[:, -1], "candidates": every[:, 0]}
    )
    forgets = "restart() to forget the games it names"
    _require_close(fresh[again], expected[again, 0], forgets, *_OF_PREDICTIONS)


def _require(condition: bool | np.bool_, what: str) -> None:
    if not condition:
        raise AssertionError(f"expected {what}")


def _require_close(
    found: FloatArray,
    expected: FloatArray,
    what: str,
    relative: float = 1e-12,
    absolute: float = 1e-12,
) -> None:
    _require(np.allclose(found, expected, rtol=relative, atol=absolute), what)


def _require_array(what: str, array: object, *shapes: tuple[int, ...], floats: bool = True) -> None:
    """Require an array of one of these shapes, of float64 unless told otherwise; errors name the first."""
    if not isinstance(array, np.ndarray):
        raise AssertionError(f"expected an array of {what}, got {type(array).__name__}")
    _require(array.shape in shapes, f"{what} of shape {shapes[0]}, got {array.shape}")
    _require(array.dtype == np.float64 or not floats, f"float64 {what}, got {array.dtype}")


def _require_distributions(what: str, rows: FloatArray, tolerance: float = 1e-9) -> None:
    _require(np.isfinite(rows).all(), f"finite {what}")
    _require((rows >= 0.0).all(), f"no negative probability, got {rows.min()}")
    off = np.abs(rows.sum(axis=-1) - 1.0).max()
    _require(off <= tolerance, f"{what} that sum to one, off by up to {off:.3g}")
