"""Datasets of the named games: replayed in the environment they give the rewards that they hold."""

import numpy as np
import pytest
from helpers import totals

from ldp_gym.datasets import write_dataset
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.box import bayes_gain
from ldp_gym.envs.named_games import NAMED_GAMES

minari = pytest.importorskip("minari")
pytestmark = pytest.mark.filterwarnings("ignore:.*is set to None:UserWarning")


@pytest.mark.parametrize(
    ("game", "level"),
    [("easy", "expert"), ("easy", "medium"), ("easy", "random"), ("memory", "expert")],
)
def test_a_dataset_is_what_the_environment_shows(game, level, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = write_dataset(game, level, episodes=3, seed=7)
    env = dataset.recover_environment()
    last = env.unwrapped.game.horizon - 1
    for i, episode in enumerate(dataset.iterate_episodes()):
        observations, rewards = [env.reset(seed=7 + i)[0]], []
        for action in episode.actions:
            assert action in env.action_space
            observation, reward, terminated, truncated, _ = env.step(action)
            observations.append(observation)
            rewards.append(reward)
        np.testing.assert_allclose(episode.observations, observations, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(episode.rewards, rewards, rtol=1e-5, atol=1e-6)
        assert (
            episode.terminations.tolist()
            == [False] * last + [True]
            == [False] * last + [terminated]
        )
        assert not truncated
        assert not episode.truncations.any()
        assert not episode.infos


def test_the_expert_is_bayes_up_to_the_bound_on_logits(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    returns = [
        np.mean([episode.rewards.sum() for episode in write_dataset("easy", level, episodes=4)])
        for level in ("expert", "medium", "random")
    ]
    easy = NAMED_GAMES["easy"]
    uniform, bayes = (
        totals(learner, easy, 4, seed=3 * 10**6).mean() for learner in ("uniform", "bayes")
    )
    assert returns[0] == pytest.approx(uniform - bayes, rel=0.01)
    assert returns[0] > returns[1] > 0.0 > returns[2]
    scores = minari.get_normalized_score(
        minari.load_dataset("ldp-gym/easy/expert-v0"), np.array(returns)
    )
    np.testing.assert_allclose(
        scores, np.array(returns) / bayes_gain(Rules(**easy).scenario(), Rules.of(easy))
    )
