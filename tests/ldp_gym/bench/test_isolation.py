"""Somebody else's learner: what it gets, and what its failures do."""

import time

import numpy as np
import pytest

import ldp_gym
from ldp_gym.bench.isolation import IsolatedLearner, Limits
from ldp_gym.core.errors import IncompatibleChannelError, LearnerFailedError

GAME = {"hypotheses": "dirichlet", "horizon": 60}


def played(learner, game=GAME, seconds=60.0, episodes=3):
    with IsolatedLearner(f"third_party:{learner}", {}, Limits(seconds)) as player:
        return ldp_gym.evaluate(player, game, episodes=episodes)


def test_it_plays_as_it_would_here():
    expected = ldp_gym.evaluate("exp3", GAME, episodes=3).kl
    np.testing.assert_allclose(played("Honest").kl, expected, rtol=1e-9)


def test_one_that_prints_does_not_garble_the_answers():
    np.testing.assert_array_equal(played("Talker").kl, played("Honest").kl)


def test_three_methods_are_enough():
    expected = ldp_gym.evaluate("uniform", GAME, episodes=3).kl
    np.testing.assert_allclose(played("Stepper").kl, expected, rtol=1e-12)


def test_contexts_that_matter_reach_it():
    game = {"horizon": 40, "nature": "adversary", "channel": "laplace-single"}
    expected = ldp_gym.evaluate("exp3", game, episodes=3).kl
    np.testing.assert_allclose(played("Honest", game).kl, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        ("Crasher", "ZeroDivisionError: I divided by <b>zero</b>"),
        ("Quitter", "ended with status 7"),
        ("NoSuchLearner", "cannot import learner"),
        ("Burglar", "TypeError: float"),
    ],
)
def test_a_failure_is_told_as_it_was(learner, message):
    with pytest.raises(LearnerFailedError, match=message):
        played(learner)


def test_a_sleeper_is_ended():
    with pytest.raises(LearnerFailedError, match="more than its 1 seconds"):
        played("Sleeper", seconds=1)


def test_a_sleeper_s_children_are_ended_with_it():
    start = time.monotonic()
    with pytest.raises(LearnerFailedError, match="more than its 4 seconds"):
        played("Parent", seconds=4)
    assert time.monotonic() - start < 600  # not the hour that the child would sleep


def test_an_adaptive_channel_cannot_be_read_without_the_posterior():
    with pytest.raises(IncompatibleChannelError, match="public posterior"):
        played("Reader", {**GAME, "channel": "adaptive-split"})


def test_what_is_no_number_is_named():
    with pytest.raises(ValueError, match="nan"):
        played("NotANumber")


def test_there_is_nothing_to_find_in_its_process():
    assert np.isfinite(played("Spy").kl).all()
    with pytest.raises(RuntimeError, match="found .* tapes"):  # in this process there would be
        ldp_gym.evaluate("third_party:Spy", GAME, episodes=3)


def test_messages_to_come_are_not_there():
    assert np.isfinite(played("Prophet").kl).all()
    with pytest.raises(RuntimeError, match="messages to come"):  # in this process they would be
        ldp_gym.evaluate("third_party:Prophet", GAME, episodes=3)


def test_a_learner_that_does_not_understand_says_so():
    with pytest.raises(ValueError, match="reads a noisy log-likelihood of each hypothesis"):
        played("Honest", {**GAME, "channel": "randomized-response"})


def test_the_contract_is_checked():
    with (
        IsolatedLearner("third_party:Negative", {}, Limits(60.0)) as player,
        pytest.raises(LearnerFailedError, match="negative"),
    ):
        player.check({})
