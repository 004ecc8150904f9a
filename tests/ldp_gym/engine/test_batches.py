"""Users who answer in batches: one public posterior for n users, the same through every door."""

import gymnasium as gym
import numpy as np
import pytest
from helpers import CHANNELS, NATURES, make_episodes, record, small_rules, total_kl

import ldp_gym
from ldp_gym.engine.posterior import PublicPosterior

BATCHES = (1, 3, 7)
ADAPTIVE = [("adaptive-split", "iid"), ("adaptive-wheel", "iid"), ("split", "adversary")]


def tape_of(rules, blocks=(40,)):
    episodes = make_episodes(rules, 3)
    return np.concatenate([episodes.play(rounds).messages for rounds in blocks], axis=1)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_posterior_advances_after_every_batch(batch, share):
    """Against the posterior of single messages, held back; along a tape too, in blocks of any length."""
    log_likelihoods = np.log(np.random.default_rng(0).random((3, 20, 4)))
    single, stepped = (PublicPosterior(4, (3,), share=share, batch=n) for n in (1, batch))
    along = PublicPosterior(4, (3,), share=share, batch=batch)
    blocks = np.split(log_likelihoods, [2, 3, 11], axis=1)
    path = np.concatenate([along.along(block) for block in blocks], axis=1)
    for t in range(20):
        if t % batch == 0:
            expected = single.weights
        np.testing.assert_allclose(stepped.weights, expected, rtol=1e-12)
        np.testing.assert_allclose(path[:, t], expected, rtol=1e-12)
        np.testing.assert_allclose(stepped.latest_weights, single.weights, rtol=1e-12)
        single.advance(log_likelihoods[:, t])
        stepped.advance(log_likelihoods[:, t])
    np.testing.assert_allclose(along.weights, stepped.weights, rtol=1e-12)


def test_a_game_that_starts_over_starts_a_batch():
    log_likelihoods = np.log(np.random.default_rng(0).random((6, 2, 4)))
    posterior, fresh = PublicPosterior(4, (2,), batch=3), PublicPosterior(4, (2,), batch=3)
    for t in range(6):
        if t == 2:
            posterior.restart(np.array([False, True]))
        posterior.advance(log_likelihoods[t])
        if t >= 2:
            fresh.advance(log_likelihoods[t])
    np.testing.assert_array_equal(posterior.weights[1], fresh.weights[1])
    posterior.keep(np.array([1]))
    posterior.advance(log_likelihoods[0, 1:])
    assert posterior.weights.shape == (1, 4)


SIZED = [
    {"channel": name, "hypotheses": rows, "num_hypotheses": size, "num_labels": labels, "horizon": 40}
    for name in CHANNELS
    if ldp_gym.CHANNELS[name].adaptive
    for rows in ("dirichlet", "softmax-linear")
    for size, labels in ((2, 2), (5, 3), (33, 20))
]


@pytest.mark.parametrize(
    "rules", SIZED + [small_rules(*pair, batch=batch) for pair in ADAPTIVE for batch in BATCHES], ids=str
)
def test_single_vector_and_tape_send_the_same_messages(rules):
    """To the last bit: alone, three together, and 40 on a tape, in blocks of any length."""
    tape = make_episodes(rules, 40).play(40).messages
    np.testing.assert_array_equal(tape_of(rules, (1, 12, 2, 25)), tape[:3])
    envs, env = gym.make_vec("LDPDist-v0", num_envs=3, **rules), gym.make("LDPDist-v0", **rules)
    envs.reset(seed=0)
    env.reset(seed=2)
    uniform = np.full((3, rules["num_labels"]), 1 / rules["num_labels"])
    for t in range(40):
        np.testing.assert_array_equal(envs.step(uniform)[0]["message"], tape[:3, t])
        np.testing.assert_array_equal(env.step(uniform[0])[0]["message"], tape[2, t])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", ["bayes", "soft-bayes", "centred-exp3"])
def test_learners_read_the_messages_of_a_batch_with_its_posterior(name, batch):
    """``evaluate`` plays a tape with its likelihoods; stepped, a learner works them out by itself."""
    rules = small_rules("adaptive-split", batch=batch)
    evaluation = ldp_gym.evaluate(name, rules, episodes=3)
    total = total_kl(name, gym.make_vec("LDPDist-v0", num_envs=3, **rules), seed=0)
    np.testing.assert_allclose(evaluation.kl[:, -1], total, rtol=1e-9)


@pytest.mark.parametrize(("channel", "nature"), ADAPTIVE)
def test_a_batch_of_all_users_never_advances(channel, nature):
    never = tape_of(small_rules(channel, nature, batch=40))
    np.testing.assert_array_equal(tape_of(small_rules(channel, nature, batch=10**6)), never)
    assert (tape_of(small_rules(channel, nature)) != never).any()
    if nature == "iid":
        game, tape = record(small_rules(channel, batch=40), 40, episodes=3)
        told = game.channel.log_likelihood(tape.messages, tape.candidates, np.full((3, 40, 4), 0.25))
        np.testing.assert_allclose(tape.log_likelihoods, told, rtol=1e-12)


def test_a_channel_that_does_not_adapt_knows_no_batches():
    rules = small_rules("split", nature="drift", nature_kwargs=NATURES["drift"])
    np.testing.assert_array_equal(tape_of(rules | {"batch": 7}), tape_of(rules))


@pytest.mark.parametrize("batch", [0, -1, 1.5, "3", None, True])
def test_a_batch_is_a_whole_number_of_users(batch):
    with pytest.raises((TypeError, ValueError), match="batch"):
        gym.make("LDPDist-v0", batch=batch)
