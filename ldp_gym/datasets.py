"""Minari datasets of the named games: ``python -m ldp_gym.datasets`` writes twelve of them.

``ldp-gym/easy/expert-v0`` has the actions of Bayes in LDPDistBox-easy-v0; ``medium`` those of
centred EXP3, ``random`` uniform ones. They go to Minari's own directory; the extra ``datasets`` is
needed. The reward tells much about the hidden truth: train with it, but never feed past rewards or
returns to the policy.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.learners import build_learner
from ldp_gym.envs.box import bayes_gain
from ldp_gym.envs.named_games import NAMED_GAMES

if TYPE_CHECKING:
    from minari import MinariDataset

LEVELS = {"expert": "bayes", "medium": "centred-exp3", "random": None}
"""Learner that acts in a dataset, by the dataset's level; None stands for uniform actions."""

_LEAST_WEIGHT = 1e-300
"""Weight that replaces smaller ones, so that its logarithm is finite."""


def dataset_id(game: str, level: str) -> str:
    """Return Minari's id of the dataset of a game at a level."""
    return f"ldp-gym/{game}/{level}-v0"


class _Played(NamedTuple):
    """Episodes of B games with T rounds each; rounds on the first axis, games on the second.

    Attributes:
        observations: before each round, and after the last, ``(T + 1, B, ...)``.
        actions: ``(T, B, K)``.
        rewards: ``(T, B)``.
        terminations: whether an episode ended in a round, ``(T, B)``.
        truncations: whether an episode was cut off in a round, ``(T, B)``.
    """

    observations: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    rewards: npt.NDArray[Any]
    terminations: npt.NDArray[Any]
    truncations: npt.NDArray[Any]


def write_dataset(
    game: str, level: str, *, episodes: int = 100, seed: int = TRAINING.start
) -> MinariDataset:
    """Play episodes of a named game, with seeds from ``seed`` on, and write them as a dataset.

    Minari's normalized scores are then 0 for the uniform mixture and 1 for Bayes.
    """
    with extra("datasets", "a dataset"):
        import minari
        from minari.data_collector import EpisodeBuffer
    game = validation.choice("game", game, tuple(NAMED_GAMES))
    level = validation.choice("level", level, tuple(LEVELS))
    episodes = validation.whole("episodes", episodes, least=1)
    seed = validation.seed("seed", seed)

    # The same games twice: as a learner sees them, and as the agent of the dataset does.
    rules = dict(NAMED_GAMES[game])
    rules.pop("observation", None)
    learner_games: Any = gym.make_vec("LDPDist-v0", episodes, **rules)
    agent_games: Any = gym.make_vec(f"LDPDistBox-{game}-v0", episodes)
    learner_name = LEVELS[level]
    learner: Any = None
    if learner_name is not None:
        learner = build_learner(learner_name, learner_games.unwrapped.game)
    played = _play(learner, learner_games, agent_games, seed)

    buffers = [
        EpisodeBuffer(
            id=i,
            seed=seed + i,
            options=None,
            observations=played.observations[:, i],
            actions=played.actions[:, i],
            rewards=played.rewards[:, i],
            terminations=played.terminations[:, i],
            truncations=played.truncations[:, i],
        )
        for i in range(episodes)
    ]
    return minari.create_dataset_from_buffers(
        dataset_id(game, level),
        buffers,
        env=f"LDPDistBox-{game}-v0",
        eval_env=f"LDPDistBox-{game}-v0",
        algorithm_name=learner_name or "random",
        author="The ldp_gym developers",
        ref_min_score=0.0,
        ref_max_score=bayes_gain(
            learner_games.unwrapped.scenario, learner_games.unwrapped.arguments
        ),
        description=f"{episodes} episodes from seed {seed} on",
        data_format="arrow",
    )


def _play(learner: Any, learner_games: Any, agent_games: Any, seed: int) -> _Played:
    """Play one episode of each game with the actions of a learner, or uniform ones without.

    The learner plays the same games in a second environment, ``learner_games``, whose observations
    it reads. Its weights are the actions in ``agent_games``.
    """
    largest_logit = agent_games.single_action_space.high[0]
    agent_games.action_space.seed(seed)
    observation, _ = agent_games.reset(seed=seed)
    learner_observation, _ = learner_games.reset(seed=seed)

    observations = [observation]
    actions = []
    rewards = []
    terminations = []
    truncations = []
    for _ in range(learner_games.unwrapped.game.horizon):
        action = agent_games.action_space.sample()
        if learner is not None:
            learner_action = learner.act(learner_observation)
            learner_observation, *_ = learner_games.step(learner_action)
            action = _logits_of(learner.weights, largest_logit)
        observation, reward, terminated, truncated, _ = agent_games.step(action)
        observations.append(observation)
        actions.append(action)
        rewards.append(reward)
        terminations.append(terminated)
        truncations.append(truncated)
    return _Played(
        np.stack(observations),
        np.stack(actions),
        np.stack(rewards),
        np.stack(terminations),
        np.stack(truncations),
    )


def _logits_of(weights: FloatArray, largest: float) -> npt.NDArray[np.float32]:
    """Return logits ``(B, K)`` in [-largest, largest] whose softmax is weights ``(B, K)``.

    The largest weight of a row gets the largest logit; tiny weights are clipped from below.
    """
    logits = np.log(np.maximum(weights, _LEAST_WEIGHT))
    logits += largest - logits.max(axis=-1, keepdims=True)
    return np.maximum(logits, -largest).astype(np.float32)


def write_missing() -> None:
    """Write the datasets that Minari does not have yet, for all games and levels."""
    parser = argparse.ArgumentParser(prog="python -m ldp_gym.datasets", description=__doc__)
    parser.add_argument(
        "--episodes", type=int, default=100, help="episodes of each dataset (default 100)"
    )
    episodes = parser.parse_args().episodes
    with extra("datasets", "a dataset"):
        import minari
    for game in NAMED_GAMES:
        for level in LEVELS:
            name = dataset_id(game, level)
            if name in minari.list_local_datasets():
                print(f"{name} exists; 'minari delete {name}' deletes it")
            else:
                print(write_dataset(game, level, episodes=episodes).id)


if __name__ == "__main__":
    write_missing()
