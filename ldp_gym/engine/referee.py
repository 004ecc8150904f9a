"""The referee of B games: shows what the learners may see, and charges them for what they predict.

One game is the case B = 1. Single and vector environment are thin views of this class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.engine.playback import Playback
from ldp_gym.engine.scenario import Scenario
from ldp_gym.numerics.arrays import BoolArray, FloatArray, IntArray
from ldp_gym.numerics.divergences import kl, tv
from ldp_gym.rendering.history import FrameHistory, Round


class Referee:
    """Plays B games of a scenario.

    Args:
        scenario: the game.
        num_games: B.
        watched: whether to seat a spectator, who sees what a frame shows.
    """

    def __init__(self, scenario: Scenario, num_games: int, *, watched: bool = False) -> None:
        self.scenario = scenario
        self.spectator = FrameHistory(scenario, num_games) if watched else None
        self._playback = Playback(scenario, num_games)
        space = scenario.channel.message_space
        self._messages = np.zeros((num_games, *scenario.channel.message_shape), dtype=space.dtype)

    def begin(
        self, games: IntArray, generators: Sequence[np.random.Generator], truth: int | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Begin new episodes in the given games, each with its own generator; returns their info."""
        self._playback.begin(games, [self.scenario.start_episode(rng, truth) for rng in generators])
        self._messages[games] = 0
        if self.spectator is not None:
            self.spectator.begin(games, self._playback.truths, self._playback.now("distributions"))
        return {"truth": self._playback.truths.copy()} if self.scenario.reveal else {}

    def observe(self) -> dict[str, npt.NDArray[Any]]:
        """What the learners see now, theirs to keep: contexts, last messages, and candidates on request."""
        observations = {"context": self._playback.now("contexts").copy(), "message": self._messages.copy()}
        if self.scenario.observe_candidates:
            observations["candidates"] = self._playback.candidates
        return observations

    def judge(self, predictions: FloatArray) -> dict[str, npt.NDArray[Any]]:
        """Charge the predictions ``(B, M)`` of the current round, and go on to the next; returns the info."""
        truth = self._playback.now("distributions")
        info: dict[str, npt.NDArray[Any]] = {
            "kl": kl(truth, predictions, self._playback.now("negentropies")),
            "tv": tv(truth, predictions),
        }
        if self.scenario.reveal:
            info |= {"truth": self._playback.truths.copy(), "label": self._playback.now("labels").copy()}
        np.copyto(self._messages, self._playback.now("messages"))
        if self.spectator is not None:
            seen = self._playback.now("candidates" if self.scenario.redraws else "contexts")
            self.spectator.watch(
                Round(seen.copy(), truth.copy(), predictions.copy(), self._messages.copy(), info["kl"])
            )
        self._playback.advance()
        return info

    @property
    def over(self) -> BoolArray:
        """Which games have played all their rounds, ``(B,)``."""
        return self._playback.over

    @property
    def candidates(self) -> FloatArray:
        """The public ``f_j(x_t)`` of the current round, ``(B, K, M)``."""
        return self._playback.candidates


def episode_generator(root: np.random.Generator) -> np.random.Generator:
    """The next episode's own generator, a child of the environment's.

    It depends on the seed and on how many came before: not on how far earlier tapes were recorded, nor on
    what a wrapper draws from the environment's generator.
    """
    return root.spawn(1)[0]


def first_generator(seed: int) -> np.random.Generator:
    """The generator of the episode that ``reset(seed=seed)`` begins."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0]))


def truth_option(scenario: Scenario, options: Mapping[str, Any] | None) -> int | None:
    """The truth that ``reset(options={"truth": j})`` asks for."""
    unknown = set(options or {}) - {"truth"}
    if unknown:
        raise ValueError(f"unknown reset options {sorted(unknown)}; the known one is 'truth'")
    return scenario.valid_truth(options["truth"]) if options and "truth" in options else None
