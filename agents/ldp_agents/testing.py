"""The contract check for learners, ours or yours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ldp_agents
from ldp_gym import Game
from ldp_gym.arrays import FloatArray, at_round
from ldp_gym.learners import Learner, TapeLearner
from ldp_gym.scenario import Scenario
from ldp_gym.tape import Episodes, Tape


def check_learner(learner: Callable[[Game], Learner], seed: int = 0, **game: Any) -> None:
    """Play a learner alone, in a batch and on a tape; raise an AssertionError that says what broke.

    Args:
        learner: makes the learner from a game, such as its class.
        seed: of the rounds that it plays.
        **game: keyword arguments of ``gym.make("LDPDist-v0", ...)``; a small game when not given.

    Example:
        >>> import ldp_agents
        >>> check_learner(ldp_agents.EXP3)
        >>> check_learner(ldp_agents.Bayes, channel="randomized-response", epsilon=3.0)
    """
    small = {"num_hypotheses": 4, "num_labels": 5, "context_dim": 2, "horizon": 12}
    settings = game if "hypotheses" in game else {**small, **game}
    scenario = Scenario(**settings)
    batch, rounds = 3, scenario.horizon
    openings = [scenario.opening(np.random.default_rng(seed + i)) for i in range(batch)]
    tape = Episodes(scenario, openings).play(rounds)
    shared = tape.candidates.ndim == 2

    def stepped(player: Learner, games: list[int]) -> FloatArray:
        player.reset((len(games),))
        predictions = []
        for t in range(rounds):
            candidates = tape.candidates if shared else at_round(tape.candidates, t)[games]
            messages = tape.messages[games, t]
            seen, heard = candidates.copy(), messages.copy()
            predictions.append(np.array(player.predict(candidates)))
            player.update(candidates, messages)
            _demand(np.array_equal(seen, candidates), "the candidates left as they were")
            _demand(np.array_equal(heard, messages), "the messages left as they were")
        return np.stack(predictions, axis=1)

    player = learner(scenario.game)
    together = stepped(player, list(range(batch)))
    shape = (batch, rounds, scenario.game.num_labels)
    _demand(together.shape == shape, f"predictions of shape {shape}, got {together.shape}")
    _demand(bool(np.isfinite(together).all()), "finite predictions")
    _demand(bool((together >= 0.0).all()), f"no negative probability, got {together.min()}")
    off = np.abs(together.sum(axis=-1) - 1.0).max()
    _demand(off <= 1e-6, f"predictions that sum to one, off by up to {off:.3g}")
    again = stepped(player, list(range(batch)))
    _demand(np.allclose(again, together, atol=1e-9), "the same predictions after reset()")
    for one in range(batch):
        alone = stepped(learner(scenario.game), [one])[0]
        _demand(np.allclose(alone, together[one], atol=1e-9), "the same predictions alone and in a batch")
    if isinstance(player, TapeLearner):
        player.reset((batch,))
        half = rounds // 2
        parts = [
            player.play(
                tape.candidates if shared or tape.candidates.shape[1] == 1 else tape.candidates[:, part],
                tape.messages[:, part],
            )
            for part in (slice(0, half), slice(half, None))
        ]
        played = np.concatenate(parts, axis=1)
        _demand(np.allclose(played, together, atol=1e-9), "play() to predict as stepping does")
    if isinstance(player, ldp_agents.Learner):
        _check_acting(player, scenario, tape, together)


def _check_acting(player: ldp_agents.Learner, scenario: Scenario, tape: Tape, expected: FloatArray) -> None:
    """``act`` predicts as stepping does, and ``restart`` begins some games anew."""
    batch, rounds = expected.shape[:2]
    nothing = np.zeros_like(tape.messages[:, 0])
    every = np.broadcast_to(
        tape.candidates, (batch, rounds, scenario.game.num_hypotheses, scenario.game.num_labels)
    )

    def observation(t: int) -> dict[str, Any]:
        return {"message": nothing if t == 0 else tape.messages[:, t - 1], "candidates": every[:, t]}

    player.reset((batch,))
    for t in range(rounds):
        acted = player.act(observation(t))
        _demand(np.allclose(acted, expected[:, t], atol=1e-9), "act() to predict as stepping does")
    again = np.arange(batch) % 2 == 0
    last = tape.messages[:, -1].copy()
    last[again] = 0  # some games begin anew, the others go on
    fresh = player.act({"message": last, "candidates": every[:, 0]})
    _demand(
        np.allclose(fresh[again], expected[again, 0], atol=1e-9), "restart() to forget the games it names"
    )


def _demand(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(f"expected {what}")
