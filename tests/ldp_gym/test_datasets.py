"""Logged episodes: a dataset shows what the environment shows, and any policy is scored on it exactly."""

import gymnasium as gym
import numpy as np
import pytest

import ldp_gym
from ldp_gym.bench.splits import TRAIN_SEED
from ldp_gym.datasets import evaluate_on_dataset, score_predictions, write_dataset
from ldp_gym.engine.scenario import Scenario, first_generator
from ldp_gym.engine.tape import Episodes

pytest.importorskip("minari")

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "horizon": 12}
RULES |= {"redraw_hypotheses": True, "observe_candidates": True}
pytestmark = pytest.mark.filterwarnings("ignore:.*is set to None:UserWarning")


@pytest.fixture(autouse=True)
def _own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))


@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "subset-selection"])
def test_it_holds_the_tape_that_any_policy_would_see(channel):
    rules = {**RULES, "channel": channel}
    dataset = write_dataset("ldp-gym/test-v0", rules, episodes=3)
    scenario = Scenario(**rules)
    starts = [scenario.start_episode(first_generator(TRAIN_SEED + i)) for i in range(3)]
    tape = Episodes(scenario, starts).play(12)
    for i, episode in enumerate(dataset.iterate_episodes()):
        np.testing.assert_array_equal(episode.observations["message"][1:], tape.messages[i])
        np.testing.assert_array_equal(episode.observations["round"][:, 0], np.arange(13))
        assert episode.terminations.tolist() == [False] * 11 + [True]
    assert isinstance(dataset.recover_environment().unwrapped, ldp_gym.LDPDistEnv)


def test_nothing_of_truth_or_labels_is_in_it():
    dataset = write_dataset("ldp-gym/test-v0", RULES, episodes=2, learner="bayes")
    for episode in dataset.iterate_episodes():
        assert set(episode.observations) == {"round", "context", "message", "candidates"}
        assert not episode.infos
    with pytest.raises(ValueError, match="leave reveal out of the rules"):
        write_dataset("ldp-gym/other-v0", {**RULES, "reveal": True}, episodes=1)


def test_any_policy_is_scored_exactly_on_episodes_that_another_has_played():
    """Bayes' predictions from the logged observations alone are charged as evaluate charges Bayes."""
    dataset = write_dataset("ldp-gym/test-v0", RULES, episodes=3, learner="uniform")
    env = gym.make("LDPDist-v0", **RULES)
    predictions = []
    for episode in dataset.iterate_episodes():
        learner = ldp_gym.engine.learners.build_learner("bayes", env.unwrapped.game)
        shown = [{key: values[t] for key, values in episode.observations.items()} for t in range(12)]
        predictions.append([learner.act(observation) for observation in shown])
    expected = ldp_gym.evaluate("bayes", RULES, episodes=3, seed=TRAIN_SEED).kl
    np.testing.assert_allclose(score_predictions(predictions, dataset).kl, expected, rtol=1e-9)
    np.testing.assert_allclose(evaluate_on_dataset("bayes", dataset).kl, expected, rtol=1e-12)
    logged = [episode.rewards.sum() for episode in dataset.iterate_episodes()]
    uniform = ldp_gym.evaluate("uniform", RULES, episodes=3, seed=TRAIN_SEED).kl[:, -1]
    np.testing.assert_allclose(-np.array(logged), uniform, rtol=1e-9)
    with pytest.raises(ValueError, match=r"must have shape \(3, 12, 6\) .*, got \(1, 12, 6\)"):
        score_predictions(predictions[:1], dataset)
    with pytest.raises(ValueError, match="seeds must follow one another"):
        evaluate_on_dataset("bayes", dataset.filter_episodes(lambda episode: episode.id != 1))


def test_code_that_a_dataset_names_is_not_imported():
    rules = {**RULES, "channel": "ldp_gym.channels.comparison:Split"}
    dataset = write_dataset("ldp-gym/test-v0", rules, episodes=1)
    with pytest.raises(ValueError, match="the dataset names code, 'ldp_gym.channels.comparison:Split'"):
        evaluate_on_dataset("uniform", dataset)
