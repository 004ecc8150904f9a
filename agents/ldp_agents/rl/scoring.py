"""Scores of policies of stable-baselines3 on fresh episodes, and a callback that keeps the best model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from ldp_agents.rl.vec_env import SB3VecEnv
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TEST, VALIDATION, untrained_seed
from ldp_gym.envs.ask import PrivateCoin
from ldp_gym.evaluation import Recording, evaluate
from ldp_gym.statistics import score_totals

with extra("rl", "a score"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

Wrapper = Callable[[VecEnv], VecEnv]
"""Function that puts the wrappers of training around games, such as ``lambda env: VecFrameStack(env, 4)``."""


def score_policy(
    model: Any,
    env: str | VecEnv = "LDPDistBox-v0",
    wrapper: Wrapper | None = None,
    *,
    episodes: int = 64,
    seed: int = TEST.stop // 2,
    deterministic: bool = True,
    **rules: Any,
) -> float:
    """Score of a policy on fresh episodes: 0 is the uniform mixture, 1 is Bayes on the same episodes.

    In LDPAsk-v0 it is the mean of ``info["score"]``: 0 for random questions, 1 for greedy ones.

    Args:
        model: a trained algorithm of stable-baselines3 or sb3-contrib, or any object with their
            ``predict(observations, state, episode_start, deterministic)``. A ``VecNormalize`` that it has
            scales what it sees; one that was lost when the model was stored is an error (not noticed in
            algorithms with a replay buffer).
        env: the id of the game; or an SB3 ``VecEnv`` of its games with the wrappers of training, not the one
            that trains: it is reset, and plays one episode in each game.
        wrapper: puts the wrappers of training around the games.
        episodes: number of episodes, played in lock step; those of a ``VecEnv`` are its games.
        seed: seed of the first episode: none of those for training, and by default far from the small ones
            that people train with by hand.
        deterministic: whether to play the mean action.
        **rules: keyword arguments of ``gym.make``.

    Raises:
        ValueError: if the episodes do not show that Bayes beats the uniform mixture, or are for training; if
            the policy was trained with wrappers that are missing here.
    """
    validation.flag("deterministic", deterministic)
    return Scoring(env, wrapper, episodes, seed, rules)(model, deterministic)


class Scoring:
    """Episodes that score any number of policies; the arguments are those of :func:`score_policy`."""

    def __init__(
        self,
        env: str | VecEnv,
        wrapper: Wrapper | None,
        episodes: int,
        seed: int,
        rules: dict[str, Any],
    ) -> None:
        self._references: list[FloatArray] | None = None
        if isinstance(env, VecEnv):
            if rules:
                raise TypeError(
                    f"an environment has its rules already, got {', '.join(rules)} next to it"
                )
            games, episodes = env, env.num_envs
        else:
            name = validation.instance(
                "env", env, str, "the id of a game or a VecEnv of stable-baselines3"
            )
            games = SB3VecEnv(gym.make_vec(name, episodes, autoreset_mode="SameStep", **rules))
        self._seed = untrained_seed(seed, episodes)
        self._env = games if wrapper is None else wrapper(games)
        self._first_seed = getattr(self._env.unwrapped, "first_seed", 0)
        if (normalizer := unwrap_vec_normalize(self._env)) is not None:
            normalizer.training = False
        scenario = self._env.get_attr("scenario")[0]
        self._horizon = scenario.horizon
        if not isinstance(scenario.channel, PrivateCoin):  # LDPAsk-v0 scores its episodes itself
            recording = Recording(scenario)
            self._references = [
                evaluate(name, recording, episodes=episodes, seed=seed).kl[:, -1]
                for name in ("uniform", "bayes")
            ]

    def __call__(self, model: Any, deterministic: bool = True) -> float:
        """Play a policy on the episodes."""
        env, normalizer = self._env, self._normalizer(model)
        env.seed(self._seed - self._first_seed)
        observations, memory = env.reset(), None
        begins, totals = np.ones(env.num_envs, dtype=np.bool_), np.zeros(env.num_envs)
        for _ in range(self._horizon):
            seen = observations if normalizer is None else normalizer.normalize_obs(observations)
            actions, memory = model.predict(
                seen, state=memory, episode_start=begins, deterministic=deterministic
            )
            observations, _, begins, infos = env.step(actions)
            totals += [info["kl"] for info in infos]
        if self._references is None:
            ended = [info["score"] for info in infos if "score" in info]
            score = float(np.mean(ended)) if ended else None
        else:
            uniform, bayes = self._references
            score = score_totals(uniform, totals, bayes)
        if score is None:
            raise ValueError(
                f"there is no score: {env.num_envs} episodes do not show that Bayes beats the uniform "
                "mixture (in LDPAsk-v0, greedy questions random ones)"
            )
        return score

    def _normalizer(self, model: Any) -> VecNormalize | None:
        """The model's ``VecNormalize`` if it has to scale the observations; checks that the wrappers fit."""
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"model must have predict() as in SB3, got {validation.describe(model)}"
            )
        shown, trained = self._env.observation_space, getattr(model, "observation_space", None)
        if trained is not None and trained.shape != shown.shape:
            raise ValueError(
                f"the policy was trained on observations of shape {trained.shape}, not {shown.shape}: name "
                "its game, and its wrappers if it has any, as in wrapper=lambda env: VecFrameStack(env, 4)"
            )
        if unwrap_vec_normalize(self._env) is not None:
            return None
        own: VecNormalize | None = getattr(model, "get_vec_normalize_env", lambda: None)()
        scaled = isinstance(model, OnPolicyAlgorithm) and model._last_original_obs is not None
        if (scaled and own is None) or (
            own is not None and own.observation_space.shape != shown.shape
        ):
            raise ValueError(
                "the policy was trained with VecNormalize, whose statistics are missing: hand them over with "
                "the other wrappers, as in wrapper=lambda env: VecNormalize.load('statistics.pkl', env)"
            )
        return own


class ScoreEvalCallback(BaseCallback):
    """SB3 callback that scores the policy on fixed episodes, logs ``eval/score``, and keeps the best model.

    The score is :func:`score_policy`'s. In LDPDistBox-v0 it is paired with uniform and Bayes: its standard
    error is a fraction of that of the mean return of as many episodes.

    Args:
        env: the id of the game, or an SB3 ``VecEnv`` that is not the one that trains.
        every: rounds of training between two scores; the model is scored at the end too.
        directory: where ``best_model.zip`` goes, with ``vecnormalize.pkl`` if the model has one.
        wrapper: puts the wrappers of training around the games.
        episodes: number of episodes of a score.
        seed: seed of the first of them; by default from those for choices between agents.
        **rules: keyword arguments of ``gym.make``.

    Attributes:
        scores: all scores, as ``(steps, score)``.
    """

    def __init__(
        self,
        env: str | VecEnv = "LDPDistBox-v0",
        every: int = 20_000,
        directory: str | Path | None = None,
        *,
        wrapper: Wrapper | None = None,
        episodes: int = 64,
        seed: int = VALIDATION.start,
        **rules: Any,
    ) -> None:
        super().__init__()
        self._every = validation.whole("every", every, least=1)
        self._directory = None if directory is None else validation.path("directory", directory)
        self._scoring = Scoring(env, wrapper, episodes, seed, rules)
        self.scores: list[tuple[int, float]] = []

    def _on_training_start(self) -> None:
        self._due = self.num_timesteps + self._every  # a former training may have counted otherwise

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._due:
            self._due = self.num_timesteps + self._every
            self._score()
        return True

    def _on_training_end(self) -> None:
        if not self.scores or self.scores[-1][0] != self.num_timesteps:
            self._score()

    def _score(self) -> None:
        score = self._scoring(self.model)
        best = all(score > other for _, other in self.scores)
        self.scores.append((self.num_timesteps, score))
        self.logger.record("eval/score", score)
        if best and self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self.model.save(self._directory / "best_model.zip")
            if (normalizer := self.model.get_vec_normalize_env()) is not None:
                normalizer.save(str(self._directory / "vecnormalize.pkl"))
