"""Thompson sampling, and the generators that any learner with coins of its own is handed."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from helpers import ALPHA
from scipy.stats import norm
from third_party_learners import Coin

import ldp_agents
import ldp_gym
from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.runner import play
from ldp_gym.engine.scenario import LearnerGenerators, first_generator
from ldp_gym.testing import check_learner

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "horizon": 40, "channel": "split"}


def stepped(learner, env, seed, rounds=40):
    """The total KL of each game, played through act()."""
    observation, _ = env.reset(seed=seed)
    total = 0.0
    for _ in range(rounds):
        observation, _, _, _, info = env.step(learner.act(observation))
        total = total + info["kl"]
    return np.atleast_1d(total)


def test_it_plays_an_episode_in_the_same_way_wherever_it_plays():
    """One by one, in a vector environment, along evaluate's tapes, alone there or among others."""
    expected = ldp_gym.evaluate("thompson", RULES, episodes=3, seed=5).kl[:, -1]
    alone = gym.make("LDPDist-v0", **RULES)
    one_by_one = [stepped(ldp_agents.make("thompson", alone), alone, seed)[0] for seed in (5, 6, 7)]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9)
    together = gym.make_vec("LDPDist-v0", num_envs=3, **RULES)
    np.testing.assert_allclose(stepped(ldp_agents.make("thompson", together), together, 5), expected)
    last = ldp_gym.evaluate("thompson", RULES, episodes=1, seed=7).kl[:, -1]
    np.testing.assert_allclose(last, expected[2:], rtol=1e-9)


def test_an_episode_that_begins_later_has_coins_of_its_own():
    """Across an autoreset: the second episode of a seed, in a batch and alone."""
    totals = []
    for env in (gym.make("LDPDist-v0", **RULES), gym.make_vec("LDPDist-v0", num_envs=2, **RULES)):
        learner = ldp_agents.make("thompson", env)
        first = stepped(learner, env, 5)
        observation, _ = env.reset()
        second = 0.0
        for _ in range(40):
            observation, _, _, _, info = env.step(learner.act(observation))
            second = second + info["kl"]
        totals.append((first[0], np.atleast_1d(second)[0]))
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-9)
    assert totals[0][0] != totals[0][1]


def test_it_draws_from_the_posterior():
    """How often each hypothesis is played against Bayes' weights, after 3 messages; error rate 1e-6."""
    game = ldp_gym.engine.scenario.Scenario(**RULES).game
    table, games = game.hypotheses(np.zeros(1)), 20_000
    learners = ldp_agents.Thompson(game), ldp_agents.Bayes(game)
    learners[0].episode_generators = lambda: np.random.default_rng(1).spawn(games)
    messages = np.random.default_rng(0).integers(2, size=3)
    for learner in learners:
        learner.reset((games,))
        learner.predict(table)
        for message in messages:
            learner.update(table, np.full((games, *game.channel.message_shape), message))
            prediction = learner.predict(table)
    posterior = learners[1].weights[0]
    smoothed = game.clipping.smooth(np.eye(4), table)
    counts = (np.abs(prediction_of(learners[0], table)[:, None] - smoothed).max(-1) < 1e-12).sum(axis=0)
    assert counts.sum() == games
    bound = norm.isf(ALPHA / 8) * np.sqrt(games * posterior * (1 - posterior)) + 1
    assert (np.abs(counts - games * posterior) < bound).all(), (counts / games, posterior)
    assert prediction.shape == (games, 6)


def prediction_of(learner, table):
    """The same prediction however often it is asked for within a round."""
    first, second = learner.predict(table), learner.predict(table)
    np.testing.assert_array_equal(first, second)
    return first


def test_its_mean_prediction_is_bayes_smoothed_alike():
    """Why it cannot do better: the KL is convex. Its risk is above Bayes' on the same tapes."""
    rules = {**RULES, "epsilon": 2.0, "horizon": 100}
    ours, bayes = (
        ldp_gym.evaluate(name, rules, episodes=200, seed=1).kl[:, -1] for name in ("thompson", "bayes")
    )
    gap = ours - bayes
    assert gap.mean() > norm.isf(ALPHA) * gap.std(ddof=1) / np.sqrt(len(gap))


@pytest.mark.parametrize("channel", ["laplace-single", "split", "adaptive-split"])
def test_the_contract_holds(channel):
    check_learner("thompson", channel=channel)


class Unseeded(ldp_agents.Thompson):
    """Draws from the operating system, whatever it is handed."""

    def _new_generators(self, num_games):
        return [np.random.default_rng() for _ in range(num_games)]


class OneForAll(ldp_agents.Thompson):
    """Games share a generator: who plays with whom matters."""

    def draw_uniforms(self, num):
        super().draw_uniforms(num)
        shape = (*self._begins.shape, num)
        return self._generators[0].random(shape)


@pytest.mark.parametrize(
    ("learner", "message"), [(Unseeded, "the same predictions after reset"), (OneForAll, "alone and in a")]
)
def test_a_learner_with_other_coins_is_found_out(learner, message):
    with pytest.raises(AssertionError, match=message):
        check_learner(learner)


def test_generators_for_another_number_of_games_are_an_error():
    env = gym.make_vec("LDPDist-v0", num_envs=2, **RULES)
    learner = ldp_agents.make("thompson", env)
    env.reset(seed=0)
    learner.reset((3,))
    with pytest.raises(ValueError, match="plays 3 games and was handed generators for 2"):
        learner.predict(env.unwrapped.candidates)


def test_the_generators_tell_nothing_about_their_episode():
    """No seed, no entropy and no number of the episode's is in them."""
    source = LearnerGenerators([first_generator(12345)])
    assert str(12345) not in repr(pickle.dumps(source)) + repr(source()[0].bit_generator.seed_seq)
    episode, own = first_generator(12345).random(1000), source()[0].random(1000)
    assert not set(episode) & set(own)


def test_a_third_party_learner_gets_the_same_coins_in_its_own_process():
    """Its predictions are its coins: the losses agree with those of this process."""
    here = ldp_gym.evaluate(Coin, RULES, episodes=2, seed=4).kl
    check_learner(Coin)
    outcome = play(Experiment(RULES, "third_party_learners:Coin", episodes=2).cells(4)[0])
    assert outcome.status == "done", outcome.message
    np.testing.assert_allclose(outcome.evaluation.kl, here, rtol=1e-12)
