"""Contract checks: what the game relies on in a class, nature, truth, channel or learner, ours or yours.

Each check raises an ``AssertionError`` that says what broke; passing them is no proof of privacy.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ldp_gym.channels.base import Channel, as_channel
from ldp_gym.channels.randomized_response import RandomizedResponse
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, at_round
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.core.sampling import open_uniforms
from ldp_gym.engine.game import Game
from ldp_gym.engine.learners import (
    Learner,
    as_make_learner,
    begin_episodes,
    build_learner,
    example_rules,
    plays_blocks,
    predict_checked,
)
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes, Tape
from ldp_gym.hypotheses.base import HypothesisClass
from ldp_gym.hypotheses.families import Dirichlet, SoftmaxLinear
from ldp_gym.natures.base import Nature, NatureView
from ldp_gym.privacy.honesty import find_lie, list_few
from ldp_gym.theory.information import MessageInformation
from ldp_gym.truths.base import Truth, TruthView, pick

_MADE = "(made, not its class or name)"

_SMALL = {"num_hypotheses": 4, "num_labels": 5, "context_dim": 2, "horizon": 12, "nature": "cycle"}
"""The game on which a learner is checked that names none."""

_MOST_ROUNDS = 40
"""How many rounds of it."""


def check_hypotheses(hypotheses: HypothesisClass, seed: int = 0) -> None:
    """Candidates are distributions, deterministic, and the same for one context as for a batch."""
    seed = validation.seed("seed", seed)
    hypotheses = validation.instance("hypotheses", hypotheses, HypothesisClass, f"a HypothesisClass {_MADE}")
    num_hypotheses, labels, dim = hypotheses.num_hypotheses, hypotheses.num_labels, hypotheses.context_dim
    _require(
        num_hypotheses >= 2 and labels >= 2 and dim >= 1, f"K >= 2, M >= 2 and d >= 1, got {hypotheses!r}"
    )
    contexts = np.random.default_rng(seed).standard_normal((2, 3, dim))
    candidates = hypotheses(contexts)
    expected = (num_hypotheses, labels) if hypotheses.constant else (2, 3, num_hypotheses, labels)
    _require_array("candidates", candidates, expected)
    _require(candidates.dtype == np.float64, f"float64 candidates, got {candidates.dtype}")
    _require_distributions("rows", candidates)
    again = hypotheses(contexts)
    _require(np.array_equal(candidates, again), "the same candidates when asked twice")
    alone = hypotheses(contexts[1, 2])
    _require(
        alone.shape == (num_hypotheses, labels),
        f"candidates of one context of shape (K, M), got {alone.shape}",
    )
    batched = candidates if hypotheses.constant else candidates[1, 2]
    _require(np.allclose(alone, batched, rtol=1e-12, atol=1e-15), "the same candidates alone and in a batch")


def check_nature(nature: Nature, hypotheses: HypothesisClass | None = None, seed: int = 0) -> None:
    """Contexts are finite, and the same whether rounds and episodes come one at a time or many."""
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
        previous, parts = np.zeros((len(range(*games.indices(batch))), dim)), []
        for start in range(0, rounds, length):
            numbers = uniforms[games, start : start + length]
            indices = np.broadcast_to(np.arange(start, start + numbers.shape[1]), numbers.shape[:2])
            part = nature.contexts(
                NatureView(
                    numbers,
                    indices,
                    previous,
                    hypotheses,
                    public[games] if nature.adaptive else None,
                    rounds - start if nature.adaptive else None,
                    prepared if nature.adaptive else None,
                    (lambda _, candidates: pick(candidates, members[games])) if nature.leaks_truth else None,
                )
            )
            _require_array("contexts", part, (*numbers.shape[:2], dim))
            previous = part[:, -1]
            parts.append(part)
        return np.concatenate(parts, axis=1)

    one_by_one = play(slice(None), 1)
    _require(bool(np.isfinite(one_by_one).all()), "finite contexts")
    if not nature.adaptive:
        _require(
            np.allclose(one_by_one, play(slice(None), rounds), atol=1e-12), "the same contexts in blocks"
        )
    for game in range(batch):
        alone = play(slice(game, game + 1), 1)[0]
        _require(np.allclose(one_by_one[game], alone, atol=1e-12), "the same contexts alone and in a batch")


def check_truth(truth: Truth, hypotheses: HypothesisClass | None = None, seed: int = 0) -> None:
    """Distributions, the same whether rounds and episodes come one at a time or many; members are members.

    Args:
        truth: the truth.
        hypotheses: the class that it was made for; 4 softmax-linear hypotheses over 5 labels, d = 2, when not
            given.
        seed: of the episodes.
    """
    seed = validation.seed("seed", seed)
    truth = validation.instance("truth", truth, Truth, f"a Truth {_MADE}")
    hypotheses = hypotheses or SoftmaxLinear(4, 5, 2)
    batch, rounds = 3, min(6, truth.num_rounds or 6)
    rng = np.random.default_rng(seed)
    drawn = open_uniforms([rng], (batch, truth.num_episode_uniforms))[0]
    uniforms = open_uniforms([rng], (batch, rounds, truth.num_uniforms))[0]
    contexts = rng.standard_normal((batch, rounds, hypotheses.context_dim))
    shape = (batch, rounds, hypotheses.num_hypotheses, hypotheses.num_labels)
    candidates = np.broadcast_to(hypotheses(contexts), shape)
    episode = truth.draw_episode(drawn)
    _require(len(episode) == batch, f"draw_episode() to give one row per episode, got shape {episode.shape}")

    def view(games: slice, part: slice) -> TruthView:
        indices = np.broadcast_to(
            np.arange(rounds)[part], (len(range(batch)[games]), len(range(rounds)[part]))
        )
        return TruthView(
            truth.draw_episode(drawn[games]),
            uniforms[games, part],
            indices,
            contexts[games, part],
            candidates[games, part],
        )

    everything = view(slice(None), slice(None))
    at_once = truth.distributions(everything)
    _require_array("distributions", at_once, (batch, rounds, shape[-1]), (batch, 1, shape[-1]))
    at_once = np.broadcast_to(at_once, (batch, rounds, shape[-1]))
    _require_distributions("distributions", at_once)
    members = np.broadcast_to(truth.members(everything), shape[:2])
    _require(bool((members < shape[2]).all()), f"members in 0..{shape[2] - 1} or -1, got {members.max()}")
    is_member = members >= 0
    named = pick(candidates, np.maximum(members, 0))
    _require(
        np.allclose(at_once[is_member], named[is_member]),
        "the distribution of the member that members() names",
    )
    if not truth.needs_contexts:
        blind = truth.distributions(replace(everything, contexts=None))
        _require(np.allclose(blind, at_once, atol=1e-12), "needs_contexts where the contexts matter")
    if truth.constant:
        still = truth.distributions(replace(everything, candidates=candidates[:, :1]))
        _require(
            np.allclose(still, still[:, :1], atol=1e-12), "constant = False where rounds or contexts matter"
        )
    for game, t in np.ndindex(batch, rounds):
        alone = truth.distributions(view(slice(game, game + 1), slice(t, t + 1)))[0, 0]
        _require(
            np.allclose(alone, at_once[game, t], atol=1e-12), "the same distribution alone and in a batch"
        )


def check_channel(channel: Channel, samples: int | None = None, seed: int = 0) -> None:
    """Messages follow ``log_density``, and batches agree with single draws.

    No rule that is learned on some messages may tell the labels of others better than the density allows;
    :mod:`ldp_gym.privacy.bets` has the rules, and docs/privacy.md what they catch and what they cannot. The
    statistical part fails a correct channel with probability at most 1e-6.

    Args:
        channel: the channel.
        samples: how many messages to draw; by default as many as take a second or two, up to 4 10^6.
        seed: of all that is drawn.
    """
    seed, channel = validation.seed("seed", seed), as_channel(channel)
    if samples is not None:
        samples = validation.whole("samples", samples, least=1)
        validation.fits_memory("samples", samples, 1 + math.prod(channel.message_shape), "messages")
    num_hypotheses, labels = channel.num_hypotheses, channel.num_labels
    rng = np.random.default_rng(seed)
    table = Dirichlet(num_hypotheses, labels, class_seed=seed)(np.zeros(1))
    public = rng.dirichlet(np.ones(num_hypotheses)) if channel.adaptive else None
    drawn = rng.integers(labels, size=(4, 5))
    uniforms = open_uniforms([rng], (4, 5, channel.num_uniforms))[0]
    messages = channel.encode(drawn, table, uniforms, public)
    _require_array("messages", messages, (4, 5, *channel.message_shape))
    for i, j in np.ndindex(4, 5):
        alone = channel.encode(drawn[i, j], table, uniforms[i, j], public)
        _require(np.allclose(alone, messages[i, j], rtol=1e-12), "the same message alone and in a batch")
        fits = channel.message_space.contains(messages[i, j])
        _require(fits, f"messages in {channel.message_space}, got {messages[i, j]!r}")
    spread = np.broadcast_to(table, (4, 5, num_hypotheses, labels))
    everywhere = None if public is None else np.broadcast_to(public, (4, 5, num_hypotheses))
    for tables, posteriors in ((spread, public), (table, everywhere), (spread, everywhere)):
        _require(
            np.allclose(channel.encode(drawn, tables, uniforms, posteriors), messages, rtol=1e-12),
            "the same message for a table, or a posterior, and for its copies in every round",
        )

    density = channel.log_density(messages, table, public)
    _require(density.shape == (4, 5, labels), f"log_density of shape (..., M), got {density.shape}")
    likelihood = channel.log_likelihood(messages, table, public)
    _require(
        likelihood.shape == (4, 5, num_hypotheses),
        f"log_likelihood of shape (..., K), got {likelihood.shape}",
    )
    losses = channel.loss_estimates(messages, table, everywhere)
    _require(
        losses.shape == likelihood.shape and bool(np.isfinite(losses).all()),
        f"finite loss_estimates of shape (..., K), got {losses!r}",
    )
    with np.errstate(divide="ignore"):
        by_hand = np.logaddexp.reduce(np.log(table) + density[..., None, :], axis=-1)
    _require(
        np.allclose(likelihood, by_hand, rtol=1e-9, atol=1e-9),
        "log_likelihood equal to log sum_y f_k[y] q(z | y)",
    )
    every = list_few(channel)
    if every is not None:
        total = np.exp(channel.log_density(every, table, public)).sum(axis=0)
        _require(np.allclose(total, 1.0), f"a density that sums to one over the messages, got {total[0]}")
    lie = find_lie(channel, samples, seed)
    _require(lie is None, str(lie))
    _require(
        np.array_equal(channel.encode(drawn, table, uniforms, public), messages),
        "the same message from the same label and uniforms, however many messages there were before",
    )


def check_learner(learner: str | Callable[[Game], Learner], seed: int = 0, **rules: Any) -> None:
    """Play a learner alone, in a batch and on a tape; raise an AssertionError that says what broke.

    Args:
        learner: makes the learner from a game, such as its class; or its name.
        seed: of the rounds that it plays.
        **rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``. What is not given comes from the game
            that the learner says it can play, ``example_rules`` on its class or maker, or from a small one.

    Example:
        >>> import ldp_agents
        >>> check_learner(ldp_agents.EXP3)
        >>> check_learner(ldp_agents.Bayes, channel="randomized-response", epsilon=3.0)
    """
    seed = validation.seed("seed", seed)
    make_learner = as_make_learner(learner) if isinstance(learner, str) else learner
    scenario = Scenario(**_rules_of_check(make_learner, rules))
    batch, rounds = 3, min(scenario.horizon, _MOST_ROUNDS)
    starts = [scenario.start_episode(np.random.default_rng(seed + i)) for i in range(batch)]
    tape = Episodes(scenario, starts).play(rounds)
    shared = tape.candidates.ndim == 2

    def begin(made: Learner, games: Sequence[int]) -> None:
        begin_episodes(made, [starts[game].generator for game in games])

    def predict_stepwise(made: Learner, games: list[int]) -> FloatArray:
        begin(made, games)
        predictions = []
        for t in range(rounds):
            candidates = tape.candidates if shared else at_round(tape.candidates, t)[games]
            messages = tape.messages[games, t]
            seen, heard = candidates.copy(), messages.copy()
            try:
                predictions.append(predict_checked(made, candidates, len(games)))
            except ValueError as error:
                raise AssertionError(str(error)) from error
            _require(np.isrealobj(predictions[-1]), f"real predictions, got {predictions[-1].dtype}")
            made.update(candidates, messages)
            _require(np.array_equal(seen, candidates), "the candidates left as they were")
            _require(np.array_equal(heard, messages), "the messages left as they were")
        return np.stack(predictions, axis=1)

    def new_learner() -> Learner:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutsideTrainingWarning)  # the contract holds there too
            return build_learner(make_learner, scenario.game)

    made = new_learner()
    _require(isinstance(made, Learner), f"a learner, with reset, predict and update; got {made!r}")
    together = predict_stepwise(made, list(range(batch)))
    _require_array("predictions", together, (batch, rounds, scenario.game.num_labels))
    _require(bool(np.isfinite(together).all()), "finite predictions")
    _require_distributions("predictions", together, tolerance=1e-6)
    again = predict_stepwise(made, list(range(batch)))
    _require(np.allclose(again, together, atol=1e-9), "the same predictions after reset()")
    for one in range(batch):
        alone = predict_stepwise(new_learner(), [one])[0]
        _require(np.allclose(alone, together[one], atol=1e-9), "the same predictions alone and in a batch")
    if plays_blocks(made):
        begin(made, range(batch))
        half = rounds // 2
        parts = [
            made.play(  # type: ignore[attr-defined]
                tape.candidates if shared or tape.candidates.shape[1] == 1 else tape.candidates[:, part],
                tape.messages[:, part],
                None if tape.log_likelihoods is None else tape.log_likelihoods[:, part],
            )
            for part in (slice(0, half), slice(half, None))
        ]
        from_tape = np.concatenate(parts, axis=1)
        _require(np.allclose(from_tape, together, atol=1e-9), "play() to predict as stepping does")
    if hasattr(made, "act") and not getattr(made, "randomized", False):
        _check_acting(made, scenario, tape, together)


def _rules_of_check(make_learner: Callable[[Game], Learner], given: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that are given, and where they are silent those of the learner's example, or of a small game.

    What belongs together is taken together: a class with its size, a channel with its options.
    """
    if "hypotheses" in given:
        return dict(given)
    rules = example_rules(make_learner) or _SMALL
    if "channel" in given:
        rules = {name: value for name, value in rules.items() if name not in ("channel_kwargs", "delta")}
    return {**rules, **given}


def _check_acting(learner: Any, scenario: Scenario, tape: Tape, expected: FloatArray) -> None:
    """``act`` predicts as stepping does, and ``restart`` starts some games over."""
    batch, rounds = expected.shape[:2]
    nothing = np.broadcast_to(scenario.channel.placeholder, tape.messages[:, 0].shape)
    every = np.broadcast_to(
        tape.candidates, (batch, rounds, scenario.game.num_hypotheses, scenario.game.num_labels)
    )

    def observation(t: int) -> dict[str, Any]:
        message = nothing if t == 0 else tape.messages[:, t - 1]
        return {"round": np.full((batch, 1), t), "message": message, "candidates": every[:, t]}

    learner.reset((batch,))
    for t in range(rounds):
        acted = learner.act(observation(t))
        _require(np.allclose(acted, expected[:, t], atol=1e-9), "act() to predict as stepping does")
    again = np.arange(batch) % 2 == 0
    # Some games start over, the others go on.
    reached = np.where(again, 0, rounds)[:, None]
    fresh = learner.act({"round": reached, "message": tape.messages[:, -1], "candidates": every[:, 0]})
    _require(
        np.allclose(fresh[again], expected[again, 0], atol=1e-9), "restart() to forget the games it names"
    )


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(f"expected {what}")


def _require_array(what: str, array: object, *shapes: tuple[int, ...]) -> None:
    """An array of one of these shapes, of which the error names the first."""
    if not isinstance(array, np.ndarray):
        raise AssertionError(f"expected an array of {what}, got {type(array).__name__}")
    _require(array.shape in shapes, f"{what} of shape {shapes[0]}, got {array.shape}")


def _require_distributions(what: str, rows: FloatArray, tolerance: float = 1e-9) -> None:
    _require(bool((rows >= 0.0).all()), f"no negative probability, got {rows.min()}")
    off = np.abs(rows.sum(axis=-1) - 1.0).max()
    _require(off <= tolerance, f"{what} that sum to one, off by up to {off:.3g}")
