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

SCORE_SEED = TEST.stop // 2
"""Default seed of a score's first episode: far from the small seeds that people train with."""

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
    seed: int = SCORE_SEED,
    deterministic: bool = True,
    **rules: Any,
) -> Score:
    """Play a policy on fresh episodes, and return its score between two reference policies.

    The score is ``(L_0 - L) / (L_0 - L_1)``, where L is the policy's mean total loss, and L_0 and
    L_1 are those of two reference policies, which score 0 and 1, on the same episodes:

    - LDPDistBox-v0: the uniform mixture (0) and Bayes (1); a total is the KL of an episode.
    - LDPAsk-v0: random questions (0) and greedy ones (1); a total is the sum over rounds of the
      expected KL, given the public posterior, which varies far less than the KL itself. If the
      truth is not drawn from the class, a total is the KL.
    - LDPNature-v0: random contexts (0) and those of ``adversary`` (1), which may be surpassed; a
      total is the sum of expected KLs, negated as the policy wants losses to be large.

    Args:
        model: a trained algorithm of stable-baselines3 or sb3-contrib, or any object with their
            ``predict(observations, state, episode_start, deterministic)``. A ``VecNormalize`` that
            it has scales what it sees; one that was lost when the model was stored is an error (not
            noticed in algorithms with a replay buffer).
        env: the id of the game; or an SB3 ``VecEnv`` of its games with the wrappers of training,
            not the one that trains: it is reset, and plays one episode in each game.
        wrapper: puts the wrappers of training around the games.
        episodes: number of episodes, played in lock step; those of a ``VecEnv`` are its games.
        seed: seed of the first episode; seeds for training are refused.
        deterministic: whether to play the mean action, in place of a sampled one.
        **rules: keyword arguments of ``gym.make``.

    Raises:
        ValueError: if the episodes do not show that the reference that scores 1 beats the one that
            scores 0; if their seeds are for training; if the policy was trained with wrappers that
            are missing here.
    """
    validation.flag("deterministic", deterministic)
    scoring = Scoring(env, wrapper, episodes, seed, rules)
    return scoring(model, deterministic)


class References(NamedTuple):
    """Total losses of the two policies that define the scores 0 and 1.

    Attributes:
        worst: totals ``(episodes,)`` of the policy that scores 0.
        best: totals ``(episodes,)`` of the policy that scores 1.
    """

    worst: FloatArray
    best: FloatArray


class Scoring:
    """Episodes that score any number of policies, made with the arguments of :func:`score_policy`.

    Attributes:
        references: total losses of the policies that score 0 and 1.
    """

    def __init__(
        self,
        env: str | VecEnv,
        wrapper: Wrapper | None,
        episodes: int,
        seed: int,
        rules: dict[str, Any],
    ) -> None:
        games = _games_to_score(env, episodes, rules)
        self._seed = untrained_seed(seed, games.num_envs)

        self._env = games
        if wrapper is not None:
            self._env = wrapper(games)
        # A score must not change the statistics of the training's observations.
        normalizer = unwrap_vec_normalize(self._env)
        if normalizer is not None:
            normalizer.training = False

        self._scenario: Scenario = self._env.get_attr("scenario")[0]
        self._seats: frozenset[Seat] = self._env.get_attr("seats")[0]
        self.references = self._reference_totals()

    def _reference_totals(self) -> References:
        """Play the two references, which depend on the seat that the policy takes in the game."""
        if Seat.NATURE in self._seats:
            game = self._env.get_attr("game")[0]
            return self._totals_of_policies(RandomContexts(game), CostliestToLearn(game))
        if Seat.DESIGNER in self._seats:
            game = self._env.get_attr("game")[0]
            return self._totals_of_policies(RandomQuestions(game), GreedyQuestions(game))
        return self._totals_of_learners()

    def _totals_of_learners(self) -> References:
        """Return the total KL of the uniform mixture and of Bayes, which play on a recording."""
        recording = Recording(self._scenario)
        episodes = self._env.num_envs
        uniform = evaluate("uniform", recording, episodes=episodes, seed=self._seed)
        bayes = evaluate("bayes", recording, episodes=episodes, seed=self._seed)
        return References(uniform.kl[:, -1], bayes.kl[:, -1])

    def _totals_of_policies(self, worst: Any, best: Any) -> References:
        """Play two hand-made policies, which observe the game without the wrappers of training."""
        games = self._env.unwrapped
        if not isinstance(games, SB3VecEnv):
            raise TypeError(
                f"policies of this game are scored on its id or on make_sb3_env(...), got {games!r}"
            )
        return References(self._play(games, worst), self._play(games, best))

    def __call__(self, model: Any, deterministic: bool = True) -> Score:
        """Play a policy on the episodes, and return its score.

        Raises:
            ValueError: if the episodes do not tell the two references apart.
        """
        normalizer = self._normalizer(model)
        totals = self._play(self._env, model, normalizer, deterministic)
        estimate = score_estimate(self.references.worst, totals, self.references.best)
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
        """Play a policy for one episode in each game, and return its total losses ``(episodes,)``.

        A round's loss is the negated reward for Nature, the expected KL for a designer whose truth
        is drawn from the class, and the KL otherwise.
        """
        games = env.unwrapped
        if isinstance(games, SB3VecEnv):
            games.seed_games(self._seed)
        else:
            env.seed(self._seed)

        observations = env.reset()
        memory: Any = None
        episode_starts: npt.NDArray[np.bool_] = np.ones(env.num_envs, dtype=np.bool_)
        totals = np.zeros(env.num_envs)
        for _ in range(self._scenario.horizon):
            # Before the step, which replaces the posterior and the candidates.
            expected_losses = self._expected_losses(games)
            if normalizer is not None:
                observations = normalizer.normalize_obs(observations)
            actions, memory = policy.predict(
                observations,
                state=memory,
                episode_start=episode_starts,
                deterministic=deterministic,
            )

            # A game restarts at once when its episode ends, so its next observation is a start.
            observations, _, episode_starts, infos = env.step(actions)
            if Seat.NATURE in self._seats:
                totals -= games.rewards
            elif expected_losses is not None:
                totals += expected_losses
            else:
                totals += [info["kl"] for info in infos]
        return totals

    def _expected_losses(self, games: Any) -> FloatArray | None:
        """Return Bayes' expected KL in the next round of LDPAsk-v0, ``(episodes,)``.

        It is ``sum_k w_k KL(f_k, sum_j w_j f_j)``, where w is the public posterior and f_1 to f_K
        are the candidates. None in other games, and where the truth is not drawn from the class:
        then w is not the distribution of the truth.
        """
        truth = self._scenario.truth
        drawn_from_class = type(truth) is Member and truth.member is None
        if Seat.DESIGNER not in self._seats or not drawn_from_class:
            return None

        # An observation of LDPAsk-v0 begins with the posterior's K weights.
        num_hypotheses = self._scenario.game.num_hypotheses
        posterior = games.observations[:, :num_hypotheses].astype(np.float64)
        candidates = games.get_attr("candidates", indices=0)[0]
        return mixture_loss(posterior, candidates, negentropy(candidates))

    def _normalizer(self, model: Any) -> VecNormalize | None:
        """Return the model's ``VecNormalize``, if it has to scale the observations.

        None for a model that was trained without one, or if the environment has one itself.

        Raises:
            TypeError: if the model has no ``predict()``.
            ValueError: if wrappers of its training are missing.
        """
        if not callable(getattr(model, "predict", None)):
            raise TypeError(
                f"model must have predict() as in SB3, got {validation.describe(model)}"
            )

        space = self._env.observation_space
        trained_space = getattr(model, "observation_space", None)
        if trained_space is not None and trained_space.shape != space.shape:
            raise ValueError(
                f"the policy was trained on observations of shape {trained_space.shape}, not "
                f"{space.shape}: name its game, and its wrappers if it has any, as in "
                f"wrapper=lambda env: VecFrameStack(env, 4)"
            )
        if unwrap_vec_normalize(self._env) is not None:
            # The environment scales the observations itself.
            return None

        normalizer: VecNormalize | None = None
        if hasattr(model, "get_vec_normalize_env"):
            normalizer = model.get_vec_normalize_env()
        # SB3 keeps the original observations only where a VecNormalize scales them.
        was_scaled = isinstance(model, OnPolicyAlgorithm) and model._last_original_obs is not None
        is_lost = was_scaled and normalizer is None
        # A frame stack around the VecNormalize, say, changes the shape after the scaling.
        is_misfit = normalizer is not None and normalizer.observation_space.shape != space.shape
        if is_lost or is_misfit:
            raise ValueError(
                "the policy was trained with VecNormalize, whose statistics are missing: hand them "
                "over with the other wrappers, as in wrapper=lambda env: "
                "VecNormalize.load('statistics.pkl', env)"
            )
        return normalizer


def _games_to_score(env: str | VecEnv, episodes: int, rules: dict[str, Any]) -> VecEnv:
    """Make one game per episode from the id of a game and its rules; return a ``VecEnv`` as it is.

    Raises:
        TypeError: if rules are given next to a ``VecEnv``, which has its own.
    """
    if isinstance(env, VecEnv):
        if rules:
            raise TypeError(
                f"an environment has its rules already, got {', '.join(rules)} next to it"
            )
        return env

    what = "the id of a game or a VecEnv of stable-baselines3"
    env_id = validation.instance("env", env, str, what)
    return SB3VecEnv(gym.make_vec(env_id, episodes, autoreset_mode="SameStep", **rules))


class TrainingScore(NamedTuple):
    """Score of a policy during its training.

    Attributes:
        steps: number of rounds that it had trained for.
        score: the score.
    """

    steps: int
    score: float


class ScoreEvalCallback(BaseCallback):
    """SB3 callback that scores the policy on fixed episodes and keeps the best model.

    It logs the score of :func:`score_policy` as ``eval/score``. The policy and the references of
    the score play the same episodes, so its standard error is a fraction of that of the mean return
    over as many episodes.

    Args:
        env: the id of the game, or an SB3 ``VecEnv`` that is not the one that trains.
        every: rounds of training between two scores; the model is scored at the end too.
        directory: where ``best_model.zip`` goes, with ``vecnormalize.pkl`` if the model has one.
        wrapper: puts the wrappers of training around the games.
        episodes: number of episodes of a score.
        seed: seed of the first of them; by default the first seed for validation.
        **rules: keyword arguments of ``gym.make``.

    Attributes:
        scores: all scores in the order of training, as ``(steps, score)``.
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
        self.scores: list[TrainingScore] = []

    def _on_training_start(self) -> None:
        """Schedule the first score, ``every`` rounds after the current one."""
        # The count need not be 0: a model can be trained further.
        self._next_score = self.num_timesteps + self._every

    def _on_step(self) -> bool:
        """Score the policy if a score is due; return True, so that training goes on."""
        if self.num_timesteps >= self._next_score:
            self._next_score = self.num_timesteps + self._every
            self._score()
        return True

    def _on_training_end(self) -> None:
        """Score the final policy, unless the last step has just done so."""
        if self.scores:
            latest = self.scores[-1]
            if latest.steps == self.num_timesteps:
                return
        self._score()

    def _score(self) -> None:
        """Score the policy, log the score, and save the model if no score before was as good."""
        score = float(self._scoring(self.model))
        is_best = all(score > earlier.score for earlier in self.scores)
        self.scores.append(TrainingScore(self.num_timesteps, score))
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
