"""Minari datasets of the named games: ``python -m ldp_gym.datasets`` writes twelve of them.

``ldp-gym/easy/expert-v0`` has the actions of Bayes in LDPDistBox-easy-v0; ``medium`` those of
centred EXP3, ``random`` uniform ones. They go to Minari's own directory; the extra ``datasets`` is
needed. The reward tells much about the hidden truth: train with it, but never feed past rewards or
returns to the policy.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from ldp_gym.core import validation
from ldp_gym.core.errors import extra
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.learners import build_learner
from ldp_gym.envs.box import bayes_gain
from ldp_gym.envs.named_games import NAMED_GAMES

if TYPE_CHECKING:
    from minari import MinariDataset

LEVELS = {"expert": "bayes", "medium": "centred-exp3", "random": None}
"""Learner that acts in a dataset, by the dataset's level; None stands for uniform actions."""


def dataset_id(game: str, level: str) -> str:
    """Minari's id of a dataset."""
    return f"ldp-gym/{game}/{level}-v0"


def write_dataset(
    game: str, level: str, *, episodes: int = 100, seed: int = TRAINING.start
) -> MinariDataset:
    """Play episodes of a named game, with seeds from ``seed`` on, and write them as a Minari dataset.

    Minari's normalized scores are then 0 for the uniform mixture and 1 for Bayes.
    """
    with extra("datasets", "a dataset"):
        import minari
        from minari.data_collector import EpisodeBuffer
    rules = dict(NAMED_GAMES[validation.choice("game", game, tuple(NAMED_GAMES))])
    name = LEVELS[validation.choice("level", level, tuple(LEVELS))]
    episodes, seed = validation.whole("episodes", episodes, least=1), validation.seed("seed", seed)
    rules.pop("observation", None)
    raw: Any = gym.make_vec(
        "LDPDist-v0", episodes, **rules
    )  # the same games, as a learner sees them
    box: Any = gym.make_vec(f"LDPDistBox-{game}-v0", episodes)
    learner: Any = None if name is None else build_learner(name, raw.unwrapped.game)
    bound = box.single_action_space.high[0]
    box.action_space.seed(seed)
    (seen, _), (shown, _), steps = box.reset(seed=seed), raw.reset(seed=seed), []
    for _ in range(raw.unwrapped.game.horizon):
        actions = box.action_space.sample()
        if learner is not None:
            shown, *_ = raw.step(learner.act(shown))
            logits = np.log(np.maximum(learner.weights, 1e-300))
            logits += bound - logits.max(axis=-1, keepdims=True)
            actions = np.maximum(logits, -bound).astype(np.float32)
        steps.append((seen, actions, *(played := box.step(actions))[1:4]))
        seen = played[0]
    steps.append((seen, *steps[-1][1:]))  # an episode ends with an observation
    columns = [np.stack(column) for column in zip(*steps, strict=True)]
    buffers = [
        EpisodeBuffer(
            i, seed + i, None, columns[0][:, i], *(column[:-1, i] for column in columns[1:])
        )
        for i in range(episodes)
    ]
    return minari.create_dataset_from_buffers(
        dataset_id(game, level),
        buffers,
        env=f"LDPDistBox-{game}-v0",
        eval_env=f"LDPDistBox-{game}-v0",
        algorithm_name=name or "random",
        author="The ldp_gym developers",
        ref_min_score=0.0,
        ref_max_score=bayes_gain(raw.unwrapped.scenario, raw.unwrapped.arguments),
        description=f"{episodes} episodes from seed {seed} on",
        data_format="arrow",
    )


def write_missing() -> None:
    """Write every dataset that Minari does not have yet."""
    parser = argparse.ArgumentParser(prog="python -m ldp_gym.datasets", description=__doc__)
    parser.add_argument(
        "--episodes", type=int, default=100, help="episodes of each dataset (default 100)"
    )
    episodes = parser.parse_args().episodes
    with extra("datasets", "a dataset"):
        import minari
    for game, level in ((game, level) for game in NAMED_GAMES for level in LEVELS):
        name = dataset_id(game, level)
        if name in minari.list_local_datasets():
            print(f"{name} exists; 'minari delete {name}' deletes it")
        else:
            print(write_dataset(game, level, episodes=episodes).id)


if __name__ == "__main__":
    write_missing()
