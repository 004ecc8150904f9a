"""Scores of policies of stable-baselines3 on fresh episodes, and a callback that keeps the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_agents.adversaries import CostliestToLearn, RandomContexts
from ldp_agents.designers import GreedyQuestions, RandomQuestions
from ldp_agents.rl.vec_env import SB3VecEnv
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.divergences import mixture_loss, negentropy
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TEST, VALIDATION, untrained_seed
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.seats import Seat
from ldp_gym.evaluation import Recording, evaluate
from ldp_gym.statistics import score_estimate
from ldp_gym.truths.base import Member

with extra("rl", "a score"):
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

Wrapper = Callable[[VecEnv], VecEnv]
"""Puts the wrappers of training around games, such as ``lambda env: VecFrameStack(env, 4)``."""


@dataclass(frozen=True)
class Score:
    """A score, with its 95% interval over test episodes.

    Attributes:
        value: the score; ``float(score)`` is this number.
        low: lower end of the interval.
        high: upper end of the interval.
        totals: the total loss of each episode, ``(episodes,)``.

    Example:
        >>> score = Score(0.931, 0.904, 0.957, np.zeros(64))
        >>> print(score)
        0.931 [0.904, 0.957]
        >>> f"{score:.2f}", float(score)
        ('0.93', 0.931)
    """

    value: float
    low: float
    high: float
    totals: FloatArray = field(repr=False, compare=False)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        return format(self.value, spec)


def score_policy(
    model: Any,
    env: str | VecEnv = "LDPDistBox-v0",
    wrapper: Wrapper | None = None,
    *,
    episodes: int = 64,
    seed: int = TEST.stop // 2,
    deterministic: bool = True,
    **rules: Any,
) -> Score:
    """Score a policy on fresh episodes: 0 is the uniform mixture, 1 is Bayes on the same episodes.

    In LDPAsk-v0 the score is 0 for random questions and 1 for greedy ones; in LDPNature-v0 it is 0
    for random contexts and 1 for those of ``adversary``, and may be larger. There a total is a sum
    of expected losses J(w), negated in LDPNature-v0: it varies far less than the KL. (In LDPAsk-v0
    it is the KL where the truth is not drawn from the class.)

    Args:
        model: a trained algorithm of stable-baselines3 or sb3-contrib, or any object with their
            ``predict(observations, state, episode_start, deterministic)``. A ``VecNormalize`` that
            it has scales what it sees; one that was lost when the model was stored is an error (not
            noticed in algorithms with a replay buffer).
        env: the id of the game; or an SB3 ``VecEnv`` of its games with the wrappers of training,
            not the one that trains: it is reset, and plays one episode in each game.
        wrapper: puts the wrappers of training around the games.
        episodes: number of episodes, played in lock step; those of a ``VecEnv`` are its games.
        seed: seed of the first episode: none of those for training, and by default far from the
            small ones that people train with by hand.
        deterministic: whether to play the mean action.
        **rules: keyword arguments of ``gym.make``.

    Raises:
        ValueError: if the episodes do not show that Bayes beats the uniform mixture, or are for
            training; if the policy was trained with wrappers that are missing here.
    """
    validation.flag("deterministic", deterministic)
    scoring = Scoring(env, wrapper, episodes, seed, rules)
    return scoring(model, deterministic)


class References(NamedTuple):
    """Totals ``(episodes,)`` of what scores 0 and of what scores 1."""

    worst: FloatArray
    best: FloatArray


class Scoring:
    """Episodes that score any number of policies, made with the arguments of :func:`score_policy`.

    Attributes:
        references: totals of what scores 0, and of what scores 1.
    """

    def __init__(
        self,
        env: str | VecEnv,
        wrapper: Wrapper | None,
        episodes: int,
        seed: int,
        rules: dict[str, Any],
    ) -> None:
        if isinstance(env, VecEnv):
            if rules:
                raise TypeError(
                    f"an environment has its rules already, got {', '.join(rules)} next to it"
                )
            games = env
        else:
            what = "the id of a game or a VecEnv of stable-baselines3"
            env_id = validation.instance("env", env, str, what)
            games = SB3VecEnv(gym.make_vec(env_id, episodes, autoreset_mode="SameStep", **rules))
        self._seed = untrained_seed(seed, games.num_envs)

        self._env = games
        if wrapper is not None:
            self._env = wrapper(games)
        normalizer = unwrap_vec_normalize(self._env)
        if normalizer is not None:
            normalizer.training = False

        self._scenario: Scenario = self._env.get_attr("scenario")[0]
        self._seats: frozenset[Seat] = self._env.get_attr("seats")[0]
        if Seat.NATURE in self._seats:
            game = self._env.get_attr("game")[0]
            self.references = self._played(RandomContexts(game), CostliestToLearn(game))
        elif Seat.DESIGNER in self._seats:
            game = self._env.get_attr("game")[0]
            self.references = self._played(RandomQuestions(game), GreedyQuestions(game))
        else:
            self.references = self._learners()

    def _learners(self) -> References:
        """Total KL ``(episodes,)`` of the uniform mixture, and of Bayes."""
        recording = Recording(self._scenario)
        episodes = self._env.num_envs
        uniform = evaluate("uniform", recording, episodes=episodes, seed=self._seed)
        bayes = evaluate("bayes", recording, episodes=episodes, seed=self._seed)
        return References(uniform.kl[:, -1], bayes.kl[:, -1])

    def _played(self, worst: Any, best: Any) -> References:
        """Totals ``(episodes,)`` of two rules for what the agent does."""
        games = self._env.unwrapped
        if not isinstance(games, SB3VecEnv):
            raise TypeError(
                f"policies of this game are scored on its id or on make_sb3_env(...), got {games!r}"
            )
        return References(self._play(games, worst), self._play(games, best))

    def __call__(self, model: Any, deterministic: bool = True) -> Score:
        """Play a policy on the episodes."""
        normalizer = self._normalizer(model)
        totals = self._play(self._env, model, normalizer, deterministic)
        worst, best = self.references
        estimate = score_estimate(worst, totals, best)
        if estimate is None:
            raise ValueError(
                f"there is no score: {len(totals)} episodes do not show that Bayes beats the "
                f"uniform mixture (greedy questions random ones, the adversary random contexts)"
            )
        return Score(estimate.value, estimate.low, estimate.high, totals)

    def _play(
        self,
        env: VecEnv,
        policy: Any,
        normalizer: VecNormalize | None = None,
        deterministic: bool = True,
    ) -> FloatArray:
        """Total losses ``(episodes,)`` of a policy."""
        games = env.unwrapped
        if isinstance(games, SB3VecEnv):
            games.seed_games(self._seed)
        else:
            env.seed(self._seed)

        observations = env.reset()
        memory: Any = None
        begins: npt.NDArray[np.bool_] = np.ones(env.num_envs, dtype=np.bool_)
        totals = np.zeros(env.num_envs)
        for _ in range(self._scenario.horizon):
            expected_losses = self._losses_before(games)
            if normalizer is not None:
                observations = normalizer.normalize_obs(observations)
            actions, memory = policy.predict(
                observations, state=memory, episode_start=begins, deterministic=deterministic
            )
            observations, _, begins, infos = env.step(actions)
            if Seat.NATURE in self._seats:
                totals -= games.rewards
            elif expected_losses is not None:
                totals += expected_losses
            else:
                totals += [info["kl"] for info in infos]
        return totals

    def _losses_before(self, games: Any) -> FloatArray | None:
        """In LDPAsk-v0, ``J(w)`` of this round, ``(episodes,)``, if it is the expected KL."""
        truth = self._scenario.truth
        drawn_from_class = type(truth) is Member and truth.member is None
        if Seat.DESIGNER not in self._seats or not drawn_from_class:
            return None
        weights = games.observations[:, : self._scenario.game.num_hypotheses].astype(np.float64)
        candidates = games.get_attr("candidates", indices=0)[0]
        return mixture_loss(weights, candidates, negentropy(candidates))

    def _normalizer(self, model: Any) -> VecNormalize | None:
        """The model's ``VecNormalize``, if it has to scale the observations.

        Raises:
            TypeError: if the model is no policy.
            ValueError: if wrappers of its training are missing.
        """
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"model must have predict() as in SB3, got {validation.describe(model)}"
            )
        shown = self._env.observation_space
        trained = getattr(model, "observation_space", None)
        if trained is not None and trained.shape != shown.shape:
            raise ValueError(
                f"the policy was trained on observations of shape {trained.shape}, not "
                f"{shown.shape}: name its game, and its wrappers if it has any, as in "
                f"wrapper=lambda env: VecFrameStack(env, 4)"
            )
        if unwrap_vec_normalize(self._env) is not None:
            return None

        normalizer: VecNormalize | None = None
        if hasattr(model, "get_vec_normalize_env"):
            normalizer = model.get_vec_normalize_env()
        # SB3 keeps the original observations only where a VecNormalize scales them.
        was_scaled = isinstance(model, OnPolicyAlgorithm) and model._last_original_obs is not None
        lost = was_scaled and normalizer is None
        misfit = normalizer is not None and normalizer.observation_space.shape != shown.shape
        if lost or misfit:
            raise ValueError(
                "the policy was trained with VecNormalize, whose statistics are missing: hand them "
                "over with the other wrappers, as in wrapper=lambda env: "
                "VecNormalize.load('statistics.pkl', env)"
            )
        return normalizer


class ScoreEvalCallback(BaseCallback):
    """SB3 callback that scores the policy on fixed episodes and keeps the best model.

    It logs ``eval/score``, which is :func:`score_policy`'s. As the score is paired with its
    references on the same episodes, its standard error is a fraction of that of the mean return of
    as many episodes.

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
        self._directory: Path | None = None
        if directory is not None:
            self._directory = validation.path("directory", directory)
        self._scoring = Scoring(env, wrapper, episodes, seed, rules)
        self.scores: list[tuple[int, float]] = []

    def _on_training_start(self) -> None:
        # An earlier training of the model may have counted otherwise.
        self._due = self.num_timesteps + self._every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._due:
            self._due = self.num_timesteps + self._every
            self._score()
        return True

    def _on_training_end(self) -> None:
        if not self.scores or self.scores[-1][0] != self.num_timesteps:
            self._score()

    def _score(self) -> None:
        score = float(self._scoring(self.model))
        is_best = all(score > other for _, other in self.scores)
        self.scores.append((self.num_timesteps, score))
        self.logger.record("eval/score", score)
        if is_best and self._directory is not None:
            self._save(self._directory)

    def _save(self, directory: Path) -> None:
        """Write the model, and the statistics of its ``VecNormalize`` if it has one."""
        directory.mkdir(parents=True, exist_ok=True)
        self.model.save(directory / "best_model.zip")
        normalizer = self.model.get_vec_normalize_env()
        if normalizer is not None:
            normalizer.save(str(directory / "vecnormalize.pkl"))
