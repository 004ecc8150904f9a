"""Estimates from a batch: the average, the median run, and the nearest hypothesis."""

import numpy as np
import pytest

import ldp_gym
from ldp_gym.bench import online_to_batch
from ldp_gym.core.divergences import tv

GAME = {"hypotheses": "dirichlet", "channel": "split", "horizon": 50}


def test_an_estimate_is_the_mean_prediction_of_its_seed():
    every, later = (online_to_batch.estimates("bayes", GAME, episodes=n, seed=5 - n) for n in (5, 2))
    np.testing.assert_allclose(later, every[3:], rtol=1e-12)
    env = ldp_gym.LDPDistEnv(**GAME)
    player = ldp_gym.LEARNERS["bayes"](env.game)
    observation, _ = env.reset(seed=3)
    predictions = []
    for _ in range(50):
        predictions.append(player.act(observation))
        observation, *_ = env.step(predictions[-1])
    np.testing.assert_allclose(every[3], np.mean(predictions, axis=0), rtol=1e-9)


def test_average_predictions_stand_beside_the_losses():
    alone = ldp_gym.evaluate("bayes", GAME, episodes=3)
    both = ldp_gym.evaluate("bayes", GAME, episodes=3, averages=True)
    assert alone.average_prediction is None
    np.testing.assert_array_equal(both.kl, alone.kl)
    every = ldp_gym.evaluate("bayes", GAME, episodes=3, truth="all", averages=True)
    assert every.average_prediction.shape == (8, 3, 16)
    np.testing.assert_allclose(
        every.average_prediction[5], online_to_batch.estimates("bayes", GAME, episodes=3, truth=5)
    )
    worst = every.at_worst_truth()
    np.testing.assert_array_equal(worst.average_prediction, every.average_prediction[every.worst_truth])
    with pytest.raises(ValueError, match="class without contexts"):
        ldp_gym.evaluate("bayes", {"horizon": 10}, episodes=1, averages=True)


def test_the_median_run_is_within_three_alpha():
    """Six of ten runs within alpha of the truth, the others adversarial: together, and far off."""
    rng = np.random.default_rng(0)
    truth, alpha = rng.dirichlet(np.ones(6)), 0.05
    for _ in range(50):
        far = 0.2 * truth + 0.8 * rng.dirichlet(np.full(6, 0.3))
        good = [(1 - alpha) * truth + alpha * rng.dirichlet(np.ones(6)) for _ in range(6)]
        runs = np.array(good + [far] * 4)[rng.permutation(10)]
        assert tv(runs[online_to_batch.median_run(runs)], truth) <= 3 * alpha
