"""Datasets of the named games: replayed in the environment they give the rewards that they hold."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import play, totals

from ldp_gym.datasets import write_dataset
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.box import bayes_gain
from ldp_gym.envs.named_games import NAMED_GAMES

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore:.*is set to None:UserWarning")


LEVELS = [("easy", "expert"), ("easy", "medium"), ("easy", "random"), ("memory", "expert")]
"""Games and policies whose datasets are replayed."""


@pytest.fixture
def replayed(game, level, tmp_path, monkeypatch):
    """Three episodes of a dataset, each with the episode of the environment under the same actions."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = write_dataset(game, level, episodes=3, seed=7)
    env = dataset.recover_environment()
    pairs = []
    for i, episode in enumerate(dataset.iterate_episodes()):
        observations, rewards = play(env, episode.actions, seed=7 + i)
        pairs.append(Replay(episode, observations, rewards, env.unwrapped.game.horizon))
    return pairs


class Replay(NamedTuple):
    """An episode of a dataset, and what the environment showed under its actions."""

    stored: Any
    observations: list[Any]
    rewards: np.ndarray
    horizon: int


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_a_dataset_has_three_episodes(replayed):
    assert len(replayed) == 3


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_observations_of_a_dataset_are_those_of_the_environment(replayed):
    for episode in replayed:
        stored = episode.stored.observations
        np.testing.assert_allclose(stored, episode.observations, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_rewards_of_a_dataset_are_those_of_the_environment(replayed):
    for episode in replayed:
        np.testing.assert_allclose(episode.stored.rewards, episode.rewards, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_an_episode_of_a_dataset_terminates_in_its_last_round_as_in_the_environment(replayed):
    for episode in replayed:
        rounds_before_the_last = episode.horizon - 1
        assert len(episode.rewards) == episode.horizon
        assert episode.stored.terminations.tolist() == [False] * rounds_before_the_last + [True]


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_no_episode_of_a_dataset_is_truncated(replayed):
    for episode in replayed:
        assert not episode.stored.truncations.any()


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_a_dataset_stores_no_infos(replayed):
    for episode in replayed:
        assert not episode.stored.infos


@pytest.mark.parametrize(("game", "level"), LEVELS)
def test_actions_of_a_dataset_lie_in_the_action_space(game, level, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = write_dataset(game, level, episodes=3, seed=7)
    action_space = dataset.recover_environment().action_space
    for episode in dataset.iterate_episodes():
        for action in episode.actions:
            assert action in action_space


def mean_return(level):
    """Mean return of four episodes of a dataset of the game "easy"."""
    dataset = write_dataset("easy", level, episodes=4)
    return np.mean([episode.rewards.sum() for episode in dataset])


def test_the_expert_is_bayes_up_to_the_bound_on_logits(tmp_path, monkeypatch):
    """A return is the KL that the uniform prediction would have paid, minus the KL paid."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    easy = NAMED_GAMES["easy"]
    first_seed = 3 * 10**6  # of the games of datasets
    kl_of_uniform = totals("uniform", easy, 4, seed=first_seed).mean()
    kl_of_bayes = totals("bayes", easy, 4, seed=first_seed).mean()
    assert mean_return("expert") == pytest.approx(kl_of_uniform - kl_of_bayes, rel=0.01)


def test_an_expert_beats_a_medium_player_who_beats_a_random_one(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert mean_return("expert") > mean_return("medium") > 0.0 > mean_return("random")


def test_a_normalized_score_is_the_share_of_the_gain_of_bayes(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    easy = NAMED_GAMES["easy"]
    returns = np.array([mean_return("expert"), mean_return("medium"), mean_return("random")])
    dataset = minari.load_dataset("ldp-gym/easy/expert-v0")
    scores = minari.get_normalized_score(dataset, returns)
    gain = bayes_gain(Rules(**easy).scenario(), Rules.of(easy))
    np.testing.assert_allclose(scores, returns / gain)
