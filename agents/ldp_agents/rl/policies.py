"""Any policy that stable-baselines3 has trained, as a learner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ldp_agents.base import Learner
from ldp_agents.rl.config import differences, write_card
from ldp_agents.rl.model import CARD
from ldp_gym import Game
from ldp_gym.core.arrays import BoolArray, FloatArray, Messages, softmax
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.core.files import replacing
from ldp_gym.engine.learners import Track
from ldp_gym.engine.scenario import Scenario
from ldp_gym.wrappers.features.sums import FEATURES

POLICY = "policy.zip"
"""The file of a stored policy, as SB3 saves it."""


def game_parameters(game: Game) -> dict[str, Any]:
    """What of a game a policy may depend on that was trained on it alone, as JSON has it."""
    channel = game.channel
    return {
        "channel": type(channel).__name__,
        "epsilon": channel.epsilon,
        "delta": channel.delta,
        "calibration": getattr(channel, "calibration", None),
        "K": game.num_hypotheses,
        "M": game.num_labels,
        "T": game.horizon,
        "class": _fingerprint(game),
    }


def _fingerprint(game: Game) -> str:
    """A short name of the class itself, from its candidates at a few contexts."""
    if game.hypotheses is None:
        return "redrawn"
    contexts = np.random.default_rng(0).standard_normal((4, game.hypotheses.context_dim))
    candidates = np.ascontiguousarray(game.hypotheses(contexts).round(6))
    return hashlib.sha256(candidates.tobytes()).hexdigest()[:12]


def check_fit(needs: Mapping[str, Any], game: Game) -> None:
    """See whether a game has the parameters that such a policy needs.

    Raises:
        IncompatibleChannelError: if it has not, saying what differs.
    """
    if differ := differences(needs, game_parameters(game)):
        raise IncompatibleChannelError(
            f"the policy was trained for {differ}: train one for this game with 'ldp-gym train'; "
            f"the learner 'bayes' reads every channel"
        )


@dataclass(frozen=True)
class Scaling:
    """What was done to observations before the policy saw them: numbers, as they stood when it was stored.

    Attributes:
        mean: what is subtracted from each feature.
        deviation: what it is then divided by.
        clip: the largest magnitude that is left.
    """

    mean: Sequence[Any]
    deviation: Sequence[Any]
    clip: float

    def __call__(self, seen: FloatArray) -> FloatArray:
        """The features as the policy sees them."""
        return np.clip((seen - np.array(self.mean)) / np.array(self.deviation), -self.clip, self.clip)


class PolicyLearner(Learner):
    """Plays an SB3 model, with or without a memory, that acts by ``MixtureAction`` on features by name.

    Args:
        game: the public rules.
        algorithm: the SB3 model.
        features: a name of ``ldp_gym.wrappers.features.sums.FEATURES``: what the policy observes.
        logit_range: that of ``MixtureAction``.
        scaling: what is done to the features first, if anything.
    """

    def __init__(
        self,
        game: Game,
        algorithm: Any,
        features: str,
        logit_range: float = 10.0,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__(game)
        self.algorithm = algorithm
        self._features = FEATURES[features](game)
        self._range, self._scaling = logit_range, scaling
        self.reset()

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Begin without evidence or memory."""
        super().reset(batch_shape)
        self._features.reset(batch_shape)
        self._begins = np.ones(batch_shape, dtype=np.bool_)
        self._memory: Any = None
        self._weights: FloatArray | None = None

    def restart(self, mask: BoolArray) -> None:
        """Begin without evidence or memory in the games of ``mask``."""
        self._features.restart(mask)
        self._begins = self._begins | mask
        self._weights = None

    def predict(self, candidates: FloatArray) -> FloatArray:
        """The mixture of the candidates by the policy's mean action."""
        if self._weights is None:  # the policy acts, and remembers, once per round
            seen, batch = self._features.read(candidates), self._begins.shape
            seen = seen.reshape(-1, *self.algorithm.observation_space.shape)
            scaled = seen if self._scaling is None else self._scaling(seen)
            action, self._memory = self.algorithm.predict(
                scaled.astype(np.float32),
                state=self._memory,
                episode_start=self._begins.reshape(-1),
                deterministic=True,
            )
            self._begins = np.zeros(batch, dtype=np.bool_)
            self._weights = softmax(self._range * action.astype(np.float64).reshape(*batch, -1))
        return self.game.clipping.smooth(self._weights, candidates)

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Take the message into the features."""
        self._features.update(candidates, message)
        self._weights = None


@dataclass(frozen=True)
class TrainedPolicy:
    """An SB3 model, and what it was trained for.

    Attributes:
        algorithm: the SB3 model.
        features: what it observes, by name.
        logit_range: that of its actions.
        card: the configuration and the versions that made it.
        scaling: what is done to what it observes first, if anything.
    """

    track: ClassVar[Track] = "uninformed"

    algorithm: Any
    features: str
    logit_range: float
    card: Mapping[str, Any]
    scaling: Scaling | None = None

    @cached_property
    def trained_on(self) -> dict[str, Any]:
        """The parameters of the game that it was trained on, all of which a game must share."""
        return game_parameters(Scenario(**self.card["config"]["rules"]).game)

    def __call__(self, game: Game) -> PolicyLearner:
        """The policy as a learner of the game."""
        check_fit(self.trained_on, game)
        return PolicyLearner(game, self.algorithm, self.features, self.logit_range, self.scaling)

    def save(self, directory: Path) -> None:
        """Write the policy, and beside it what made it."""
        plays = {name: getattr(self, name) for name in ("features", "logit_range", "trained_on")}
        plays |= {} if self.scaling is None else {"scaling": asdict(self.scaling)}
        directory.mkdir(parents=True, exist_ok=True)
        with replacing(directory / POLICY) as part:
            self.algorithm.save(part)
        write_card(directory / CARD, {**plays, **self.card})
