"""Views of the observation for RL agents: the transcript so far as a fixed number of float32 features.

Each comes for the single and for the vector environment, around one implementation. A view is made of public
things alone: the messages, and the candidates of the rounds they came from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space

from ldp_gym.core.arrays import BoolArray, FloatArray
from ldp_gym.engine.game import game_of
from ldp_gym.wrappers.features.sums import EvidenceFeatures, Features, MessageFeatures, SlopeFeatures
from ldp_gym.wrappers.sources import VectorView, single_env, vector_env

Observation = Mapping[str, npt.NDArray[Any]]
Shown = Any
"""What a view shows: an array, or a dict of arrays."""


class _View:
    """Features of a batch of games (of one, with no batch axes), kept up to date while they are stepped."""

    features: type[Features]

    def __init__(self, env: Any) -> None:
        self.game = game_of(env)
        shown = getattr(env, "single_observation_space", env.observation_space)
        if not (isinstance(shown, gym.spaces.Dict) and "message" in shown.spaces):
            raise TypeError(f"a view goes around what shows messages; {env} shows {shown}")
        self._features = self.features(self.game)
        self._candidates: FloatArray | None = None
        self.space = self._space(shown)

    def _space(self, shown: Any) -> gym.Space[Any]:
        return gym.spaces.Box(-np.inf, np.inf, self._features.shape, dtype=np.float32)

    def _compose(self, features: FloatArray, observation: Observation) -> Shown:
        return features.astype(np.float32)

    def begin(self, observation: Observation, mask: BoolArray | None) -> Shown:
        """A reset of every game, or of those of ``mask``, has shown this observation."""
        if mask is None or self._candidates is None:  # none has begun before
            self._features.reset(np.shape(observation["context"])[:-1])
        else:
            self._features.restart(mask)
        return self._show(observation)

    def step(self, observation: Observation, final: Observation | None = None) -> tuple[Shown, Shown]:
        """A step has shown this observation; ``final`` has the last of games that began again in it.

        Returns:
            What to show of both. A message belongs to the candidates of the step before.
        """
        assert self._candidates is not None, "a step comes after a reset"
        self._features.update(self._candidates, (final or observation)["message"])
        shown = None
        if final is not None:  # the last round is shown again, as the environment does
            shown = self._compose(self._features.read(self._candidates), final)
        self._features.restart(np.asarray(observation["round"])[..., 0] == 0)  # these begin a new episode
        return self._show(observation), shown

    def _show(self, observation: Observation) -> Shown:
        self._candidates = self._now(observation)
        return self._compose(self._features.read(self._candidates), observation)

    def _now(self, observation: Observation) -> FloatArray:
        if self.game.hypotheses is None:
            return np.asarray(observation["candidates"])
        return self.game.hypotheses(np.asarray(observation["context"]))


class _Evidence(_View):
    features = EvidenceFeatures


class _Slopes(_View):
    features = SlopeFeatures


class _SlopesRow(_Slopes):
    """The features of :class:`_Slopes` in one row."""

    def _space(self, shown: Any) -> gym.Space[Any]:
        return gym.spaces.Box(-np.inf, np.inf, (math.prod(self._features.shape),), dtype=np.float32)

    def _compose(self, features: FloatArray, observation: Observation) -> Shown:
        return features.reshape(*features.shape[:-2], -1).astype(np.float32)


class _DecodedMessage(_View):
    """The observation with its message decoded, everything else as it was, in float32."""

    features = MessageFeatures

    def _space(self, shown: Any) -> gym.Space[Any]:
        others = {
            key: gym.spaces.Box(np.float32(space.low), np.float32(space.high), dtype=np.float32)
            for key, space in shown.items()
            if key != "message"
        }
        return gym.spaces.Dict({**others, "message": super()._space(shown)})

    def _compose(self, features: FloatArray, observation: Observation) -> Shown:
        others = {key: np.asarray(value, dtype=np.float32) for key, value in observation.items()}
        return {**others, "message": features.astype(np.float32)}


class ObservationView(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """What the views of a single environment share."""

    view: type[_View]

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, single_env(self, env))
        self._view = self.view(env)
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


class VectorObservationView(VectorView):
    """What the views of a vector environment share."""

    view: type[_View]

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        super().__init__(vector_env(self, env))
        self._view = self.view(env)
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
        kept = np.full(self.num_envs, None, dtype=object)
        for game in ended:
            kept[game] = {k: v[game] for k, v in last.items()} if isinstance(last, dict) else last[game]
        return shown, rewards, terminations, truncations, {**infos, "final_obs": kept}


class DecodedMessage(ObservationView):
    """The observation with the public offset and scale of its message taken off, in float32.

    Args:
        env: an LDPDist environment; its channel must not be adaptive.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> env = DecodedMessage(gym.make("LDPDist-v0"))
        >>> _ = env.reset(seed=0)
        >>> observation, *_ = env.step(np.full(16, 1 / 16))
        >>> observation["message"].round(3).tolist()  # one of eight, in standard deviations of its noise
        [0.0, 0.0, 0.3160000145435333, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    view = _DecodedMessage


class Evidence(ObservationView):
    """The observation is the evidence so far: sums of decoded messages, of clipped ones, counts, and t / T.

    A class that ignores its context needs no more:
    see :class:`ldp_gym.wrappers.features.sums.EvidenceFeatures`.

    Args:
        env: an LDPDist environment; its channel must not be adaptive.

    Example:
        >>> import gymnasium as gym, ldp_gym
        >>> Evidence(gym.make("LDPDist-v0", hypotheses="dirichlet")).observation_space.shape
        (25,)
    """

    view = _Evidence


class HypothesisFeatures(ObservationView):
    """The observation is the label evidence for each hypothesis at several slopes, ``(K, 7)``.

    For classes whose contexts vary, or that are redrawn each episode: see
    :class:`ldp_gym.wrappers.features.sums.SlopeFeatures`.

    Args:
        env: an LDPDist environment; its channel must not be adaptive.
    """

    view = _Slopes


class HypothesisRow(ObservationView):
    """:class:`HypothesisFeatures` in one row, ``(7 K,)``, for networks that take no tables.

    Args:
        env: an LDPDist environment; its channel must not be adaptive.
    """

    view = _SlopesRow


class VectorDecodedMessage(VectorObservationView):
    """:class:`DecodedMessage` for the vector environment."""

    view = _DecodedMessage


class VectorEvidence(VectorObservationView):
    """:class:`Evidence` for the vector environment."""

    view = _Evidence


class VectorHypothesisFeatures(VectorObservationView):
    """:class:`HypothesisFeatures` for the vector environment."""

    view = _Slopes


class VectorHypothesisRow(VectorObservationView):
    """:class:`HypothesisRow` for the vector environment."""

    view = _SlopesRow
