"""Logged episodes as Minari datasets, and exact scores on them.

An action never changes a message, so a policy trained offline is scored on logged episodes exactly, without
importance weights: the referee draws the same episodes again from the rules and seeds in the metadata. **The
reward tells much about the truth:** train with it, but never feed past rewards or returns to the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from ldp_gym.bench.splits import TRAIN_SEED
from ldp_gym.core import validation
from ldp_gym.core.arrays import FloatArray, Messages
from ldp_gym.core.errors import extra
from ldp_gym.core.registry import refuse_addresses
from ldp_gym.engine.game import Game, copy_game
from ldp_gym.engine.learners import LearnerProtocol, build_learner
from ldp_gym.engine.rules import as_rules
from ldp_gym.evaluation import Evaluation, evaluate

if TYPE_CHECKING:
    from minari import MinariDataset


def write_dataset(
    dataset_id: str,
    rules: Mapping[str, Any],
    *,
    episodes: int,
    seed: int = TRAIN_SEED,
    learner: str | Callable[[Game], LearnerProtocol] = "uniform",
    **description: Any,
) -> MinariDataset:
    """Play episodes and write them as a Minari dataset, in Minari's own directory.

    Args:
        dataset_id: such as ``"ldp-gym/base-v0"``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists.
        episodes: number of episodes, with the seeds from ``seed`` on.
        seed: seed of the first episode.
        learner: the learner that is logged; observations do not depend on it.
        **description: further arguments of ``minari.create_dataset_from_buffers``, such as ``author``.
    """
    with extra("datasets", "a dataset"):
        import minari
        from minari.data_collector import EpisodeBuffer
    dataset_id, rules = validation.text("dataset_id", dataset_id), as_rules("rules", rules)
    if rules.get("reveal"):
        raise ValueError("a dataset is for learners, and shows no truth: leave reveal out of the rules")
    count = validation.whole("episodes", episodes, least=1)
    env: Any = gym.make_vec("LDPDist-v0", num_envs=count, **rules)
    horizon = env.unwrapped.game.horizon
    made: Any = build_learner(learner, copy_game(env.unwrapped.game))
    seen, actions, rewards = [env.reset(seed=seed)[0]], [], []
    for _ in range(horizon):
        actions.append(made.act(seen[-1]))
        observation, reward, *_ = env.step(actions[-1])
        seen.append(observation)
        rewards.append(reward)
    buffers = [
        EpisodeBuffer(
            id=i,
            seed=seed + i,
            observations={key: np.stack([one[key][i] for one in seen]) for key in seen[0]},
            actions=np.stack([action[i] for action in actions]),
            rewards=[float(reward[i]) for reward in rewards],
            terminations=[False] * (horizon - 1) + [True],
            truncations=[False] * horizon,
            infos={},
        )
        for i in range(count)
    ]
    metadata = {
        "algorithm_name": learner if isinstance(learner, str) else repr(learner),
        "description": f"{count} episodes of LDPDist-v0 with seeds from {seed} on; scores: ldp_gym.datasets",
        "requirements": ["ldp-gym"],
        "data_format": "arrow",
    }
    spec = gym.make("LDPDist-v0", **rules).spec
    return minari.create_dataset_from_buffers(dataset_id, buffers, env=spec, **metadata | description)


def evaluate_on_dataset(
    learner: str | Callable[[Game], LearnerProtocol], dataset: MinariDataset
) -> Evaluation:
    """Play a learner on the episodes of a dataset, as :func:`ldp_gym.evaluate` does."""
    spec: Any = getattr(getattr(dataset, "spec", None), "env_spec", None)
    if spec is None or not spec.id.startswith("LDPDist"):
        raise ValueError(f"dataset must be written by write_dataset(), got {validation.describe(dataset)}")
    refuse_addresses(spec.kwargs, "the dataset")
    episodes = dataset.storage.get_episode_metadata(dataset.episode_indices)
    seeds = [int(episode["seed"]) for episode in episodes]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise ValueError(f"the episodes' seeds must follow one another, got {seeds}: score a whole dataset")
    return evaluate(learner, dict(spec.kwargs), episodes=len(seeds), seed=seeds[0])


def score_predictions(predictions: npt.ArrayLike, dataset: MinariDataset) -> Evaluation:
    """Losses of predictions ``(episodes, T, M)``, made from the observations of a dataset."""
    array = validation.numbers("predictions", predictions)

    def make(game: Game) -> LearnerProtocol:
        shape = (dataset.total_episodes, game.horizon, game.num_labels)
        if array.shape != shape:
            raise ValueError(f"predictions must have shape {shape} (episodes, T, M), got {array.shape}")
        return _Recorded(array)

    return evaluate_on_dataset(make, dataset)


class _Recorded:
    """A learner that plays given predictions, episode after episode."""

    def __init__(self, predictions: FloatArray) -> None:
        self._rest, self._now, self._round = predictions, predictions[:0], 0

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        self._now, self._rest = np.split(self._rest, [batch_shape[0]])
        self._round = 0

    def predict(self, candidates: FloatArray) -> FloatArray:
        return self._now[:, self._round]

    def update(self, candidates: FloatArray, message: Messages) -> None:
        self._round += 1
