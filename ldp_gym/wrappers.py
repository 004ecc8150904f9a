"""Views of LDPDist-v0 for RL agents, each for the single and for the vector environment.

``MixtureAction`` and ``SoftmaxAction`` turn logits into distributions. ``EvidenceObservation`` shows an agent
without a memory the evidence so far, ``MessageObservation`` shows an agent with a memory the last message.
None of them sees the label, the truth or the reward. LDPDistBox-v0 is faster, and has all of this built in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.core.arrays import BoolArray, FloatArray, mixture
from ldp_gym.core.simplex import Simplex
from ldp_gym.core.validation import describe
from ldp_gym.engine.game import game_of
from ldp_gym.envs.features import DEFAULT_LOGIT_RANGE, FloatRow, Logits, RawRow, RunningEvidence

__all__ = [
    "EvidenceObservation",
    "MessageObservation",
    "MixtureAction",
    "SoftmaxAction",
    "VectorEvidenceObservation",
    "VectorMessageObservation",
    "VectorMixtureAction",
    "VectorSoftmaxAction",
]

Observation = Mapping[str, npt.NDArray[Any]]


class _VectorView(gym.vector.VectorWrapper):
    """Vector wrapper that hands on ``autoreset_mode``, which Gymnasium's own wrappers do not."""

    @property
    def autoreset_mode(self) -> gym.vector.AutoresetMode:
        """When a game that is over begins again."""
        return self.env.unwrapped.autoreset_mode  # type: ignore[attr-defined]


def _checked(wrapper: object, env: Any, kind: type[Any]) -> Any:
    """``env``, checked to be an environment of LDPDist-v0 of this kind, single or vector."""
    if not isinstance(env, kind):
        name = type(wrapper).__name__.removeprefix("Vector")
        raise TypeError(
            f"around a single environment goes {name}, around a vector environment goes Vector{name}; "
            f"{type(wrapper).__name__} got {describe(env)}"
        )
    game_of(env)
    return env


# -- Actions ------------------------------------------------------------------------------------------------


def _require_distributions(env: Any, space: gym.Space[Any]) -> None:
    if not isinstance(space, Simplex):
        raise TypeError(f"a view of the action goes around what takes distributions; {env} takes {space}")


class SoftmaxAction(gym.ActionWrapper[Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Action wrapper: M logits of the labels.

    Args:
        env: an LDPDist environment.
        logit_range: bound of the action space; a larger logit is accepted.
    """

    _size = "num_labels"

    def __init__(self, env: gym.Env[Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, logit_range=logit_range)
        gym.ActionWrapper.__init__(self, _checked(self, env, gym.Env))
        _require_distributions(env, env.action_space)
        self._logits = Logits(getattr(game_of(env), self._size), logit_range)
        self.action_space = self._logits.space

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """The distribution over the labels that an action stands for."""
        return self._logits.distribution(action)


class MixtureAction(SoftmaxAction):
    """Action wrapper: K logits of a mixture of the hypotheses. 0 is the uniform mixture.

    Args:
        env: an LDPDist environment.
        logit_range: bound of the action space; a larger logit is accepted.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = MixtureAction(gym.make("LDPDist-v0"))
        >>> env.action_space
        Box(-5.0, 5.0, (8,), float32)
    """

    _size = "num_hypotheses"

    def action(self, action: npt.ArrayLike) -> FloatArray:
        """The mixture that an action stands for."""
        return mixture(super().action(action), self.unwrapped.candidates)  # type: ignore[attr-defined]


class VectorSoftmaxAction(_VectorView, gym.vector.VectorActionWrapper):
    """:class:`SoftmaxAction` for the vector environment."""

    _size = "num_labels"

    def __init__(
        self, env: gym.vector.VectorEnv[Any, Any, Any], logit_range: float = DEFAULT_LOGIT_RANGE
    ) -> None:
        super().__init__(_checked(self, env, gym.vector.VectorEnv))
        _require_distributions(env, env.single_action_space)
        self._logits = Logits(getattr(game_of(env), self._size), logit_range, (env.num_envs,))
        self.single_action_space, self.action_space = self._logits.space, self._logits.batched_space

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """The distributions over the labels that actions stand for."""
        return self._logits.distribution(actions)


class VectorMixtureAction(VectorSoftmaxAction):
    """:class:`MixtureAction` for the vector environment."""

    _size = "num_hypotheses"

    def actions(self, actions: npt.ArrayLike) -> FloatArray:
        """The mixtures that actions stand for."""
        return mixture(super().actions(actions), self.env.unwrapped.candidates)  # type: ignore[attr-defined]


# -- Observations -------------------------------------------------------------------------------------------


class _MessageView:
    """The raw observation as one row."""

    def __init__(self, env: Any) -> None:
        self.game = game_of(env)
        shown = getattr(env, "single_observation_space", env.observation_space)
        if not (isinstance(shown, gym.spaces.Dict) and "message" in shown.spaces):
            raise TypeError(f"a view goes around what shows messages; {env} shows {shown}")
        self._row = RawRow(shown, self.game.horizon)
        self.space: gym.spaces.Box = self._row.space

    def begin(self, observation: Observation, mask: BoolArray | None) -> FloatRow:
        """Features after a reset of every game, or of those of ``mask``."""
        return self._row(observation)

    def step(
        self, observation: Observation, final: Observation | None = None
    ) -> tuple[FloatRow, FloatRow | None]:
        """Features after a step; ``final`` has the last observation of games that began again in it."""
        return self._row(observation), None if final is None else self._row(final)


class _EvidenceView(_MessageView):
    """The evidence of all messages so far, kept up to date while games are stepped."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.space = RunningEvidence.space(self.game)
        self._evidence: RunningEvidence | None = None

    def begin(self, observation: Observation, mask: BoolArray | None) -> FloatRow:
        if mask is None or self._evidence is None:
            self._evidence = RunningEvidence(self.game, np.shape(observation["context"])[:-1])
        else:
            self._evidence.restart(mask)
        return self._show(observation)

    def step(
        self, observation: Observation, final: Observation | None = None
    ) -> tuple[FloatRow, FloatRow | None]:
        assert self._evidence is not None, "a step comes after a reset"
        # A message belongs to the candidates of the step before.
        self._evidence.update(self._candidates, (final or observation)["message"])
        last = None if final is None else self._evidence.features.copy()
        self._evidence.restart(np.asarray(observation["round"])[..., 0] == 0)  # these begin a new episode
        return self._show(observation), last

    def _show(self, observation: Observation) -> FloatRow:
        assert self._evidence is not None
        self._candidates: FloatArray = (
            np.asarray(observation["candidates"])
            if self.game.hypotheses is None
            else self.game.hypotheses(np.asarray(observation["context"]))
        )
        return self._evidence.features.copy()


class MessageObservation(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Observation wrapper for agents with a memory: t / T, context and last message in one row.

    Candidates that the environment shows are appended. A message from a ``Discrete`` space is one-hot; any
    other is shown as it is.

    Args:
        env: an LDPDist environment.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> MessageObservation(gym.make("LDPDist-v0")).observation_space.shape
        (13,)
    """

    _view_type: type[_MessageView] = _MessageView

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, _checked(self, env, gym.Env))
        self._view = self._view_type(env)
        self.observation_space = self._view.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._view.begin(observation, None), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play a round."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._view.step(observation)[0], reward, terminated, truncated, info


class EvidenceObservation(MessageObservation):
    """Observation wrapper for agents without a memory: evidence for each hypothesis, and t / T.

    See :class:`ldp_gym.envs.features.RunningEvidence`.

    Args:
        env: an LDPDist environment.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> EvidenceObservation(gym.make("LDPDist-v0")).observation_space.shape
        (9,)
    """

    _view_type = _EvidenceView


class VectorMessageObservation(_VectorView):
    """:class:`MessageObservation` for the vector environment."""

    _view_type: type[_MessageView] = _MessageView

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(_checked(self, env, gym.vector.VectorEnv))
        self._view = self._view_type(env)
        self.single_observation_space = self._view.space
        self.observation_space = batch_space(self._view.space, env.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every game, or in those of ``options["reset_mask"]``."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return self._view.begin(observations, (options or {}).get("reset_mask")), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play a round in every game."""
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" not in infos:
            return self._view.step(observations)[0], rewards, terminations, truncations, infos
        ended = np.flatnonzero(infos["_final_obs"])
        final = {key: np.array(values) for key, values in observations.items()}
        for game in ended:
            for key, value in infos["final_obs"][game].items():
                final[key][game] = value
        shown, last = self._view.step(observations, final)
        assert last is not None
        rows = np.full(self.num_envs, None, dtype=object)
        for game in ended:
            rows[game] = last[game]
        return shown, rewards, terminations, truncations, {**infos, "final_obs": rows}


class VectorEvidenceObservation(VectorMessageObservation):
    """:class:`EvidenceObservation` for the vector environment."""

    _view_type = _EvidenceView
