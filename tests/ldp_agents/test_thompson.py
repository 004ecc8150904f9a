"""Thompson sampling, and the generators that a randomized learner is handed."""

import gymnasium as gym
import numpy as np
from helpers import ALPHA, record
from scipy.stats import norm
from third_party import Coin

import ldp_agents
import ldp_gym
from ldp_gym.engine.learners import begin_episodes
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import first_generator

RULES = {
    "hypotheses": "dirichlet",
    "num_hypotheses": 4,
    "num_labels": 6,
    "horizon": 40,
    "channel": "split",
}


def stepped(env, seeds):
    """The total KL of each game, played round by round with the learner's generators of these seeds."""
    learner = ldp_agents.make("thompson", env)
    begin_episodes(learner, [first_generator(seed) for seed in seeds])
    env.reset(seed=seeds[0])
    total = np.zeros(len(seeds))
    for _ in range(RULES["horizon"]):
        candidates = env.unwrapped.candidates
        predictions = learner.predict(candidates)
        observation, _, _, _, info = env.step(
            predictions if env.action_space.shape[1:] else predictions[0]
        )
        learner.update(candidates, np.atleast_2d(observation["message"]))
        total += info["kl"]
    return total


def test_it_plays_an_episode_in_the_same_way_wherever_it_plays():
    """One by one, in a vector environment, and along evaluate's tapes, there with others or not."""
    expected = ldp_gym.evaluate("thompson", RULES, episodes=3, seed=5).kl[:, -1]
    alone = gym.make("LDPDist-v0", **RULES)
    one_by_one = np.concatenate([stepped(alone, [seed]) for seed in (5, 6, 7)])
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9)
    together = gym.make_vec("LDPDist-v0", num_envs=3, **RULES)
    np.testing.assert_allclose(stepped(together, [5, 6, 7]), expected, rtol=1e-9)
    last = ldp_gym.evaluate("thompson", RULES, episodes=1, seed=7).kl[:, -1]
    np.testing.assert_allclose(last, expected[2:], rtol=1e-9)


def test_it_draws_from_the_posterior_anew_in_every_round():
    """How often each hypothesis is played against Bayes' weights, after 3 messages; error rate 1e-6.

    The first draw is uniform, so that an independent one repeats it in a quarter of the games.
    """
    (game, tape), games = record(RULES, 3), 20_000
    table, limit = tape.candidates, norm.isf(ALPHA / 8)
    thompson, bayes = ldp_agents.Thompson(game), ldp_agents.Bayes(game)
    thompson.reset((games,), generators=np.random.default_rng(1).spawn(games))
    hypotheses = game.clipping.smooth(np.eye(4), table)

    def drawn():
        prediction = thompson.predict(table)
        np.testing.assert_array_equal(
            thompson.predict(table), prediction
        )  # the same within a round
        apart = np.abs(prediction[:, None] - hypotheses).max(-1)
        assert (apart.min(axis=-1) < 1e-12).all()
        return apart.argmin(axis=-1)

    first = drawn()
    for message in tape.messages[0]:
        bayes.update(table, message)
        thompson.update(table, np.tile(message, (games, 1)))
    last, w = drawn(), bayes.weights
    assert (
        np.abs(np.bincount(last, minlength=4) / games - w) < limit * np.sqrt(w * (1 - w) / games)
    ).all()
    assert abs((first == last).mean() - 1 / 4) < limit * np.sqrt(3 / 16 / games)


def test_the_generators_share_no_number_with_their_episode():
    learner = Coin(Rules(**RULES).scenario().game)
    begin_episodes(learner, [first_generator(12345)])
    episode, own = first_generator(12345).random(1000), learner.generators[0].random(1000)
    assert not set(episode) & set(own)
