"""Logged episodes as Minari datasets, and exact scores on them.

An action never changes a message. So the messages of one logged episode are those that any policy would have
seen, and a policy that was trained offline is scored on them exactly, without importance weights.

A dataset holds what the environment shows: observations, the actions of the learner that was logged, and its
rewards. **The reward tells much about the truth:** it is an objective to train with, never an input. Methods
that feed past rewards or returns to the policy (return-conditioned ones) are told what no learner may know.
Labels and truths are not in a dataset, and ``infos`` are empty. Scores are taken elsewhere: the referee draws
the same episodes again from the rules and seeds in the metadata, and charges the predictions.
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
from ldp_gym.engine.game import Game, copy_game
from ldp_gym.engine.learners import Learner, build_learner
from ldp_gym.engine.rules import as_rules
from ldp_gym.evaluation import Evaluation, as_scenario, evaluate

if TYPE_CHECKING:
    from minari import MinariDataset


def write_dataset(
    dataset_id: str,
    rules: Mapping[str, Any],
    *,
    episodes: int,
    seed: int = TRAIN_SEED,
    learner: str | Callable[[Game], Learner] = "uniform",
    **description: Any,
) -> MinariDataset:
    """Play episodes and write them as a Minari dataset, where Minari keeps its own.

    Args:
        dataset_id: such as ``"ldp-gym/base-v0"``.
        rules: keyword arguments of ``gym.make("LDPDist-v0", ...)``: names, numbers and lists.
        episodes: how many.
        seed: of the first; training games have seeds from :data:`ldp_gym.bench.splits.TRAIN_SEED` on.
        learner: the one that is logged; it decides actions and rewards, and nothing that is observed.
        **description: what else ``minari.create_dataset_from_buffers`` takes, such as ``author``.

    Raises:
        ImportError: if Minari is not installed.
        ValueError: if the rules reveal the truth.
    """
    with extra("datasets", "a dataset"):
        import minari
        from minari.data_collector import EpisodeBuffer
    dataset_id, rules = validation.text("dataset_id", dataset_id), as_rules("rules", rules)
    if rules.get("reveal"):
        raise ValueError("a dataset is for learners, and shows no truth: leave reveal out of the rules")
    count = validation.whole("episodes", episodes, least=1)
    env: Any = gym.make_vec("LDPDist-v0", num_envs=count, **rules)
    observations, actions, rewards = _play(env, learner, seed)
    horizon = len(actions)
    buffers = [
        EpisodeBuffer(
            id=i,
            seed=seed + i,
            observations={key: values[:, i] for key, values in observations.items()},
            actions=actions[:, i],
            rewards=rewards[:, i].tolist(),
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
        **description,
    }
    return minari.create_dataset_from_buffers(
        dataset_id, buffers, env=gym.make("LDPDist-v0", **rules).spec, **metadata
    )


def _play(
    env: Any, learner: str | Callable[[Game], Learner], seed: int
) -> tuple[dict[str, npt.NDArray[Any]], FloatArray, FloatArray]:
    """What is observed ``(T + 1, B, ...)``, done ``(T, B, M)`` and rewarded ``(T, B)``."""
    made: Any = build_learner(learner, copy_game(env.unwrapped.game))
    observation, _ = env.reset(seed=seed)
    seen, actions, rewards = [observation], [], []
    for _ in range(env.unwrapped.game.horizon):
        actions.append(made.act(observation))
        observation, reward, *_ = env.step(actions[-1])
        seen.append(observation)
        rewards.append(reward)
    return (
        {key: np.stack([one[key] for one in seen]) for key in observation},
        np.stack(actions),
        np.stack(rewards),
    )


def evaluate_on_dataset(learner: str | Callable[[Game], Learner], dataset: MinariDataset) -> Evaluation:
    """Play a learner on the episodes of a dataset, as :func:`ldp_gym.evaluate` does."""
    rules, first = _episodes(dataset)
    return evaluate(learner, rules, episodes=dataset.total_episodes, seed=first)


def score_predictions(predictions: npt.ArrayLike, dataset: MinariDataset) -> Evaluation:
    """What predictions ``(episodes, T, M)`` are charged on the episodes of a dataset, exactly.

    For a policy of any framework: predict from the logged observations, and hand the predictions in.

    Raises:
        ValueError: if their shape is another, or one is no distribution.
    """
    rules, _ = _episodes(dataset)
    array = validation.numbers("predictions", predictions)
    game = as_scenario(rules).game
    shape = (dataset.total_episodes, game.horizon, game.num_labels)
    if array.shape != shape:
        raise ValueError(f"predictions must have shape {shape} (episodes, T, M), got {array.shape}")
    return evaluate_on_dataset(lambda _: _Recorded(array), dataset)


class _Recorded:
    """Plays predictions that were made before."""

    def __init__(self, predictions: FloatArray) -> None:
        self._rest, self._now, self._round = predictions, predictions[:0], 0

    def reset(self, batch_shape: tuple[int, ...] = ()) -> None:
        """Go on with the next episodes."""
        self._now, self._rest = np.split(self._rest, [batch_shape[0]])
        self._round = 0

    def predict(self, candidates: FloatArray) -> FloatArray:
        """What was predicted in this round."""
        return self._now[:, self._round]

    def update(self, candidates: FloatArray, message: Messages) -> None:
        """Go on to the next round."""
        self._round += 1


def _episodes(dataset: MinariDataset) -> tuple[dict[str, Any], int]:
    """The rules of a dataset's game, and the seed of its first episode; the others follow."""
    spec: Any = getattr(getattr(dataset, "spec", None), "env_spec", None)
    if spec is None or not spec.id.startswith("LDPDist"):
        got = validation.describe(dataset)
        raise ValueError(f"dataset must be one of LDPDist-v0, written by write_dataset(), got {got}")
    metadata = dataset.storage.get_episode_metadata(dataset.episode_indices)
    seeds = [int(episode["seed"]) for episode in metadata]
    if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
        raise ValueError(f"the episodes' seeds must follow one another, got {seeds}: score a whole dataset")
    return dict(spec.kwargs), seeds[0]
