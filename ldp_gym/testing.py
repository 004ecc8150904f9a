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
from ldp_gym.engine.scenario import EpisodeStart, Scenario
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

_PREDICTION_RELATIVE_ERROR = 1e-5
"""Largest relative error of predictions; a network in single precision has seven digits."""

_PREDICTION_ABSOLUTE_ERROR = 1e-9
"""Largest absolute error of predictions."""

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
    table_shape = (hypotheses.num_hypotheses, hypotheses.num_labels)
    dim = hypotheses.context_dim
    is_large_enough = min(table_shape) >= 2 and dim >= 1
    _require(is_large_enough, f"K >= 2, M >= 2 and d >= 1, got {hypotheses!r}")
    contexts = np.random.default_rng(seed).standard_normal((2, 3, dim))
    contexts_before = contexts.copy()

    candidates = hypotheses(contexts)
    # A constant class gives one table, without axes for the contexts.
    expected_shape: tuple[int, ...] = (2, 3, *table_shape)
    if hypotheses.constant:
        expected_shape = table_shape
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
    _require_array("candidates of one context", alone, table_shape)
    _require_close(alone, batched, "the same candidates alone and in a batch", absolute=1e-15)


# -- Natures ----------------------------------------------------------------------------------------------


def check_nature(nature: Nature, hypotheses: HypothesisClass | None = None, seed: int = 0) -> None:
    """Check that contexts are finite, and the same one round or episode at a time and in batches."""
    seed = validation.seed("seed", seed)
    nature = validation.instance("nature", nature, Nature, f"a Nature {_MADE}")
    hypotheses = hypotheses or SoftmaxLinear(4, 5, nature.context_dim)
    calls = _NatureCalls.draw(nature, hypotheses, seed)
    num_games, num_rounds = calls.uniforms.shape[:2]
    all_games = slice(None)

    one_by_one = calls.contexts(all_games, block_length=1)
    _require(np.isfinite(one_by_one).all(), "finite contexts")
    if not nature.adaptive:
        in_one_block = calls.contexts(all_games, block_length=num_rounds)
        _require_close(one_by_one, in_one_block, "the same contexts in blocks")
    for game in range(num_games):
        alone = calls.contexts(slice(game, game + 1), block_length=1)[0]
        _require_close(one_by_one[game], alone, "the same contexts alone and in a batch")


@dataclass(frozen=True)
class _NatureCalls:
    """Three games of six rounds of a nature: everything that its contexts may depend on."""

    nature: Nature
    hypotheses: HypothesisClass
    uniforms: FloatArray  # (games, rounds, num_uniforms)
    posterior: FloatArray  # (games, K): the public posterior in all rounds, for an adaptive nature
    members: IntArray  # (games, 1): the true hypotheses, for a nature that leaks the truth
    prepared: Any  # what Nature.prepare() returned, for an adaptive nature

    @classmethod
    def draw(cls, nature: Nature, hypotheses: HypothesisClass, seed: int) -> _NatureCalls:
        """Draw the uniforms, the posteriors and the true hypotheses of the games."""
        num_games = 3
        num_rounds = 6
        num_hypotheses = hypotheses.num_hypotheses
        rng = np.random.default_rng(seed)
        uniforms = open_uniforms([rng], (num_games, num_rounds, nature.num_uniforms))[0]
        posterior = rng.dirichlet(np.ones(num_hypotheses), size=num_games)
        members = rng.integers(num_hypotheses, size=(num_games, 1))
        channel = RandomizedResponse(num_hypotheses, hypotheses.num_labels, num_rounds)
        prepared = nature.prepare(hypotheses, partial(MessageInformation, channel))
        return cls(nature, hypotheses, uniforms, posterior, members, prepared)

    def contexts(self, games: slice, block_length: int) -> FloatArray:
        """Ask the nature for the contexts ``(games, rounds, d)`` of some games, a block of rounds at a time.

        Checks that the contexts of a block have their shape, and stay as they are when later ones are made.
        """
        num_games, num_rounds = self.uniforms[games].shape[:2]
        dim = self.nature.context_dim
        previous = np.zeros((num_games, dim))
        blocks = []
        copies = []
        for start in range(0, num_rounds, block_length):
            view = self._view(games, slice(start, start + block_length), previous)
            block = self.nature.contexts(view)
            _require_array("contexts", block, (*view.rounds.shape, dim))
            previous = block[:, -1]
            blocks.append(block)
            copies.append(block.copy())
        _require(np.array_equal(blocks, copies), "a new array of contexts from every call")
        return np.concatenate(blocks, axis=1)

    def _view(self, games: slice, rounds: slice, previous: FloatArray) -> NatureView:
        """Return the inputs of the nature in some rounds of some games, after the ``previous`` contexts."""
        uniforms = self.uniforms[games, rounds]
        num_rounds = self.uniforms.shape[1]
        indices = np.broadcast_to(np.arange(num_rounds)[rounds], uniforms.shape[:2])
        view = NatureView(uniforms, indices, previous, self.hypotheses)
        if self.nature.leaks_truth:
            # The truth is a member, so its distribution depends on the context only by the candidates.
            members = self.members[games]
            view = replace(view, truth=lambda contexts, candidates: pick(candidates, members))
        if self.nature.adaptive:
            view = replace(
                view,
                posterior=self.posterior[games],
                rounds_left=num_rounds - rounds.start,
                prepared=self.prepared,
            )
        return view


# -- Truths -----------------------------------------------------------------------------------------------


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
    if hypotheses is None:
        num_hypotheses = max(getattr(truth, "num_hypotheses", 4), 2)
        hypotheses = SoftmaxLinear(num_hypotheses, 5, 2)

    calls = _TruthCalls.draw(truth, hypotheses, seed)
    returned, distributions = calls.distributions_at_once()
    calls.check_members(distributions)
    calls.check_declarations(distributions)
    calls.check_single_rounds(distributions)
    _require_close(returned, distributions, "a new array of distributions from every call")


@dataclass(frozen=True)
class _TruthCalls:
    """Three episodes of up to six rounds of a truth: everything that its distributions may depend on."""

    truth: Truth
    hypotheses: HypothesisClass
    episode_uniforms: FloatArray  # (episodes, num_episode_uniforms)
    uniforms: FloatArray  # (episodes, rounds, num_uniforms)
    contexts: FloatArray  # (episodes, rounds, d)
    candidates: FloatArray  # (episodes, rounds, K, M)
    rounds: IntArray  # (episodes, rounds): indices of the rounds

    @classmethod
    def draw(cls, truth: Truth, hypotheses: HypothesisClass, seed: int) -> _TruthCalls:
        """Draw uniforms and contexts, and check that ``draw_episode`` gives one row per episode."""
        num_episodes = 3
        num_rounds = min(6, truth.num_rounds or 6)
        rng = np.random.default_rng(seed)
        episode_uniforms = open_uniforms([rng], (num_episodes, truth.num_episode_uniforms))[0]
        uniforms = open_uniforms([rng], (num_episodes, num_rounds, truth.num_uniforms))[0]
        contexts = rng.standard_normal((num_episodes, num_rounds, hypotheses.context_dim))
        table_shape = (hypotheses.num_hypotheses, hypotheses.num_labels)
        candidates = np.broadcast_to(hypotheses(contexts), (num_episodes, num_rounds, *table_shape))
        rounds = np.broadcast_to(np.arange(num_rounds), (num_episodes, num_rounds))

        episode = truth.draw_episode(episode_uniforms)
        _require(
            len(episode) == num_episodes,
            f"draw_episode() to give one row per episode, got shape {episode.shape}",
        )
        return cls(truth, hypotheses, episode_uniforms, uniforms, contexts, candidates, rounds)

    def view(self, episodes: slice, rounds: slice) -> TruthView:
        """Return the inputs of the truth in some rounds of some episodes."""
        return TruthView(
            self.truth.draw_episode(self.episode_uniforms[episodes]),
            self.uniforms[episodes, rounds],
            self.rounds[episodes, rounds],
            self.contexts[episodes, rounds],
            self.candidates[episodes, rounds],
        )

    @property
    def whole_view(self) -> TruthView:
        """The inputs of the truth in all rounds of all episodes."""
        return self.view(slice(None), slice(None))

    def distributions_at_once(self) -> tuple[FloatArray, FloatArray]:
        """Ask for the distributions of all rounds by one call, and check them.

        Returns:
            The truth's own array, and a copy of it with the full shape ``(episodes, rounds, M)``.
        """
        num_episodes, num_rounds = self.rounds.shape
        num_labels = self.hypotheses.num_labels
        expected = (
            f"distributions for {self.hypotheses!r} (pass the class that the truth was made for)"
        )
        returned = self._distributions(self.whole_view, expected)
        full_shape = (num_episodes, num_rounds, num_labels)
        _require_array("distributions", returned, full_shape, (num_episodes, 1, num_labels))
        distributions = np.broadcast_to(returned, full_shape).copy()
        _require_distributions("distributions", distributions)
        return returned, distributions

    def check_members(self, distributions: FloatArray) -> None:
        """Check that a member that the truth names has the distribution that labels are drawn from."""
        num_hypotheses = self.hypotheses.num_hypotheses
        members = np.broadcast_to(self.truth.members(self.whole_view), self.rounds.shape)
        is_in_range = (members < num_hypotheses).all()
        _require(is_in_range, f"members in 0..{num_hypotheses - 1} or -1, got {members.max()}")
        is_member = members >= 0
        named = pick(self.candidates, np.maximum(members, 0))
        _require_close(
            distributions[is_member],
            named[is_member],
            "the distribution of the member that is named",
        )

    def check_declarations(self, distributions: FloatArray) -> None:
        """Check that a truth without ``needs_contexts``, or with ``constant``, does as these say."""
        view = self.whole_view
        if not self.truth.needs_contexts:
            expected = "needs_contexts = True where the contexts matter"
            without_contexts = self._distributions(replace(view, contexts=None), expected)
            _require_close(without_contexts, distributions, expected)
        if self.truth.constant:
            same_candidates = replace(view, candidates=self.candidates[:, :1])
            still = self.truth.distributions(same_candidates)
            _require_close(still, still[:, :1], "constant = False where rounds or contexts matter")

    def check_single_rounds(self, distributions: FloatArray) -> None:
        """Check that the distribution of a round of an episode is the same when asked for alone."""
        for episode, t in np.ndindex(self.rounds.shape):
            view = self.view(slice(episode, episode + 1), slice(t, t + 1))
            alone = self.truth.distributions(view)[0, 0]
            what = "the same distribution alone and in a batch"
            _require_close(alone, distributions[episode, t], what)

    def _distributions(self, view: TruthView, expected: str) -> FloatArray:
        """Ask for the distributions; whatever the truth raises becomes an ``AssertionError``."""
        try:
            return self.truth.distributions(view)
        except Exception as error:
            raise AssertionError(f"expected {expected}, got {summarize(error)}") from error


# -- Channels ---------------------------------------------------------------------------------------------


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
        size = channel.num_hypotheses
        num_labels = channel.num_labels
        tables = rng.dirichlet(np.full(num_labels, 0.3), size=(2, size))
        candidates = tables[rng.integers(2, size=(4, 5))]
        posterior = None
        if channel.adaptive:
            posterior = rng.dirichlet(np.ones(size), size=(4, 5))
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
        """Log density ``(4, 5, M)`` of the messages given each label."""
        return self.channel.log_density(self.messages, self.candidates, self.posterior)

    @property
    def log_likelihood(self) -> FloatArray:
        """Log-likelihood ``(4, 5, K)`` of the hypotheses given each message."""
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
            posterior = None
            if self.posterior is not None:
                posterior = self.posterior[i]
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
        posterior = None
        posterior_copies = None
        if self.posterior is not None:
            posterior = self.posterior[0, 0]
            posterior_copies = np.broadcast_to(posterior, self.posterior.shape)

        expected = self.channel.encode(self.labels, table, self.uniforms, posterior)
        what = "the same message for a table or posterior and for its copies"
        equivalent_arguments = [
            (table_copies, posterior),
            (table, posterior_copies),
            (table_copies, posterior_copies),
        ]
        for candidates, public in equivalent_arguments:
            messages = self.channel.encode(self.labels, candidates, self.uniforms, public)
            _require_close(messages, expected, what)

    def check_likelihood(self) -> None:
        """Check that the likelihood of a hypothesis is the mean of the density over its labels."""
        with np.errstate(divide="ignore"):
            log_joint = np.log(self.candidates) + self.log_density[..., None, :]
        by_hand = np.logaddexp.reduce(log_joint, axis=-1)
        what = "log_likelihood equal to log sum_y f_k[y] q(z | y)"
        _require_close(self.log_likelihood, by_hand, what, relative=1e-9, absolute=1e-9)

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
    num_hypotheses = channel.num_hypotheses
    num_labels = channel.num_labels
    equal = np.full((num_hypotheses, num_labels), 1.0 / num_labels)
    # Hypothesis k is certain of label k; with fewer labels than hypotheses, labels repeat.
    disjoint = np.eye(num_labels)[np.arange(num_hypotheses) % num_labels]
    tables = [equal, disjoint, 0.9 * disjoint + 0.1 * equal]
    rng = np.random.default_rng(seed)
    for concentration in (0.1, 0.3, 5.0):
        tables.append(rng.dirichlet(np.full(num_labels, concentration), size=num_hypotheses))

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
    if isinstance(learner, str):
        make_learner = as_make_learner(learner)
    else:
        make_learner = learner
    calls = _LearnerCalls.record(make_learner, _rules_of_check(make_learner, rules), seed)

    made = calls.new_learner()
    predictions = calls.predict_stepwise(made, calls.all_games)
    _require_distributions("predictions", predictions, tolerance=1e-6)
    after_reset = calls.predict_stepwise(made, calls.all_games)
    _require_same_predictions(after_reset, predictions, "the same predictions after reset()")
    calls.check_single_games(predictions)
    if plays_blocks(made):
        calls.check_blocks(made, predictions)
    if hasattr(made, "act") and not getattr(made, "randomized", False):
        calls.check_acting(made, predictions)


def _rules_of_check(make_learner: MakeLearner, given: Mapping[str, Any]) -> dict[str, Any]:
    """The given rules, completed by the learner's example or by a small game."""
    if "hypotheses" in given:
        return dict(given)
    rules = example_rules(make_learner) or _CHECK_GAME
    if "channel" in given:
        # The example's options and delta belong to the channel that is replaced.
        options = ("channel_kwargs", "delta")
        rules = {name: value for name, value in rules.items() if name not in options}
    return {**rules, **given}


@dataclass(frozen=True)
class _LearnerCalls:
    """The recorded rounds of three games, on which a learner is called in several ways.

    Its messages do not depend on predictions, so all learners can be played on the same record.
    """

    make_learner: MakeLearner
    scenario: Scenario
    starts: Sequence[EpisodeStart]
    tape: Tape

    @classmethod
    def record(
        cls, make_learner: MakeLearner, rules: Mapping[str, Any], seed: int
    ) -> _LearnerCalls:
        """Play three games by these rules, at most 40 rounds of each."""
        scenario = Rules.of(rules).scenario()
        num_games = 3
        generators = [np.random.default_rng(seed + game) for game in range(num_games)]
        starts = scenario.start_episodes(generators)
        tape = Episodes(scenario, starts).play(min(scenario.horizon, _MOST_ROUNDS))
        return cls(make_learner, scenario, starts, tape)

    @property
    def all_games(self) -> list[int]:
        """Indices of the games."""
        return list(range(len(self.starts)))

    @property
    def num_rounds(self) -> int:
        """Number of recorded rounds of each game."""
        return self.tape.messages.shape[1]

    def new_learner(self) -> LearnerProtocol:
        """Make a learner for the game; learners keep the contract outside of their training too."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideTrainingWarning)
            return build_learner(self.make_learner, self.scenario.game)

    def begin(self, learner: LearnerProtocol, games: Sequence[int]) -> None:
        """Reset a learner for some of the games."""
        begin_episodes(learner, [self.starts[game].generator for game in games])

    def predict_stepwise(self, learner: LearnerProtocol, games: list[int]) -> FloatArray:
        """Play some games from their start, round by round; return the predictions ``(games, rounds, M)``.

        Checks that the learner leaves candidates and messages as they were.
        """
        self.begin(learner, games)
        predictions = []
        for t in range(self.num_rounds):
            candidates = self._candidates(games, t)
            messages = self.tape.messages[games, t]
            candidates_before = candidates.copy()
            messages_before = messages.copy()
            try:
                predictions.append(predict_checked(learner, candidates, len(games)))
            except ValueError as error:
                raise AssertionError(str(error)) from error
            learner.update(candidates, messages)

            is_same = np.array_equal(candidates_before, candidates)
            _require(is_same, "the candidates left as they were")
            is_same = np.array_equal(messages_before, messages)
            _require(is_same, "the messages left as they were")
        return np.stack(predictions, axis=1)

    def _candidates(self, games: list[int], t: int) -> FloatArray:
        """Candidates of round t, ``(games, K, M)``; ``(K, M)`` if they are the same in all rounds."""
        candidates = self.tape.candidates
        if candidates.ndim == 2:
            return candidates
        return at_round(candidates, t)[games]

    def check_single_games(self, predictions: FloatArray) -> None:
        """Check that a new learner predicts the same in one game as in a batch."""
        for game in self.all_games:
            alone = self.predict_stepwise(self.new_learner(), [game])[0]
            what = "the same predictions alone and in a batch"
            _require_same_predictions(alone, predictions[game], what)

    def check_blocks(self, learner: LearnerProtocol, predictions: FloatArray) -> None:
        """Check that ``play`` predicts in two blocks, the halves of the record, as stepping does."""
        self.begin(learner, self.all_games)
        middle = self.num_rounds // 2
        first_half = self._play_block(learner, slice(0, middle))
        second_half = self._play_block(learner, slice(middle, None))
        in_blocks = np.concatenate([first_half, second_half], axis=1)
        has_shape = in_blocks.shape == predictions.shape
        _require(has_shape, f"play() to give (B, n, M), got {in_blocks.shape}")
        _require_same_predictions(in_blocks, predictions, "play() to predict as stepping does")

    def _play_block(self, learner: Any, rounds: slice) -> FloatArray:
        """Let a learner play some rounds as one block; return its predictions ``(B, n, M)``."""
        tape = self.tape
        is_constant = tape.candidates.ndim == 2 or tape.candidates.shape[1] == 1
        candidates = tape.candidates if is_constant else tape.candidates[:, rounds]
        log_likelihoods = None
        if tape.log_likelihoods is not None:
            log_likelihoods = tape.log_likelihoods[:, rounds]
        return learner.play(candidates, tape.messages[:, rounds], log_likelihoods)

    def check_acting(self, learner: Any, predictions: FloatArray) -> None:
        """Check that ``act`` predicts as stepping does, and restarts the games whose round is 0."""
        num_games, num_rounds = predictions.shape[:2]
        messages = self.tape.messages
        table_shape = self.tape.candidates.shape[-2:]
        candidates = np.broadcast_to(self.tape.candidates, (num_games, num_rounds, *table_shape))
        no_message = np.broadcast_to(self.scenario.channel.placeholder, messages[:, 0].shape)

        learner.reset((num_games,))
        for t in range(num_rounds):
            message = no_message
            if t > 0:
                message = messages[:, t - 1]
            observation = {
                "round": np.full((num_games, 1), t),
                "message": message,
                "candidates": candidates[:, t],
            }
            acted = learner.act(observation)
            what = "act() to predict as stepping does"
            _require_same_predictions(acted, predictions[:, t], what)

        # The even games start over, the others go on. In round 0 the message must not matter, so all
        # games are given the last one.
        starts_over = np.arange(num_games) % 2 == 0
        observation = {
            "round": np.where(starts_over, 0, num_rounds)[:, None],
            "message": messages[:, -1],
            "candidates": candidates[:, 0],
        }
        acted = learner.act(observation)
        what = "restart() to forget the games it names"
        _require_same_predictions(acted[starts_over], predictions[starts_over, 0], what)


# -- Requirements -----------------------------------------------------------------------------------------


def _require(condition: bool | np.bool_, what: str) -> None:
    """Raise an ``AssertionError`` that says what was expected, unless the condition is true."""
    if not condition:
        raise AssertionError(f"expected {what}")


def _require_close(
    actual: FloatArray,
    expected: FloatArray,
    what: str,
    *,
    relative: float = 1e-12,
    absolute: float = 1e-12,
) -> None:
    """Require two arrays to agree within a relative or an absolute error."""
    _require(np.allclose(actual, expected, rtol=relative, atol=absolute), what)


def _require_same_predictions(actual: FloatArray, expected: FloatArray, what: str) -> None:
    """Require predictions to agree as far as a network in single precision can."""
    _require_close(
        actual,
        expected,
        what,
        relative=_PREDICTION_RELATIVE_ERROR,
        absolute=_PREDICTION_ABSOLUTE_ERROR,
    )


def _require_array(what: str, array: object, *shapes: tuple[int, ...], floats: bool = True) -> None:
    """Require an array of one of these shapes, of float64 unless told otherwise; errors name the first."""
    if not isinstance(array, np.ndarray):
        raise AssertionError(f"expected an array of {what}, got {type(array).__name__}")
    _require(array.shape in shapes, f"{what} of shape {shapes[0]}, got {array.shape}")
    _require(array.dtype == np.float64 or not floats, f"float64 {what}, got {array.dtype}")


def _require_distributions(what: str, rows: FloatArray, tolerance: float = 1e-9) -> None:
    """Require rows that are finite, have no negative entry, and sum to one within a tolerance."""
    _require(np.isfinite(rows).all(), f"finite {what}")
    _require((rows >= 0.0).all(), f"no negative probability, got {rows.min()}")
    off = np.abs(rows.sum(axis=-1) - 1.0).max()
    _require(off <= tolerance, f"{what} that sum to one, off by up to {off:.3g}")
