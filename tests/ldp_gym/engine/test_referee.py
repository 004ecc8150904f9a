"""The referee: what is shown, what is charged, and who watches."""

import gc
import weakref

import numpy as np
import pytest
from helpers import small_rules

from ldp_gym.core.divergences import kl, tv
from ldp_gym.engine.referee import Playback, Referee
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "adaptive-groups"])
def test_a_judgement_is_of_the_round_that_was_shown(channel, actions):
    scenario = Scenario(**small_rules(channel, horizon=6, reveal=True, max_loss=0.5))
    tape = Episodes(scenario, [scenario.start_episode(rng) for rng in generators(1, 2)]).play(6)
    members = tape.members[:, 0]
    referee = Referee(scenario, 2)
    assert referee.begin(np.arange(2), generators(1, 2))["truth"].tolist() == members.tolist()
    for t in range(6):
        shown = referee.observe()
        assert shown["round"].tolist() == [[t], [t]]
        np.testing.assert_array_equal(shown["context"], tape.contexts[:, t])
        np.testing.assert_array_equal(
            shown["message"], tape.messages[:, t - 1] if t else 0 * tape.messages[:, 0]
        )
        np.testing.assert_allclose(referee.candidates, tape.candidates[:, t], rtol=1e-12)
        assert not referee.over.any()
        rewards, info = referee.judge(actions[t, :2])
        np.testing.assert_allclose(info["kl"], kl(tape.distributions[:, t], actions[t, :2]), rtol=1e-12)
        np.testing.assert_allclose(info["tv"], tv(tape.distributions[:, t], actions[t, :2]), rtol=1e-12)
        np.testing.assert_array_equal(rewards, -np.minimum(info["kl"], 0.5))
        np.testing.assert_array_equal(info["label"], tape.labels[:, t])
        np.testing.assert_array_equal(info["truth"], members)
    assert referee.over.all()
    last = referee.observe()
    assert last["round"].tolist() == [[6], [6]]
    np.testing.assert_array_equal(last["message"], tape.messages[:, 5])
    np.testing.assert_array_equal(last["context"], tape.contexts[:, 5])


def test_a_game_that_is_over_counts_no_more_rounds(actions):
    referee = Referee(Scenario(**small_rules(horizon=4)), 2)
    referee.begin(np.arange(2), generators(1, 2))
    for _ in range(2):
        referee.judge(actions[0, :2])
    referee.begin(np.array([1]), generators(3))
    shown = referee.observe()
    assert shown["round"].tolist() == [[2], [0]]
    assert shown["message"][0].any()
    assert not shown["message"][1].any()
    for _ in range(3):
        referee.judge(actions[0, :2])
    assert referee.observe()["round"].tolist() == [[4], [3]]
    assert referee.over.tolist() == [True, False]


def test_a_perfect_prediction_costs_nothing():
    scenario = Scenario(hypotheses=[[0.25, 0.75], [0.5, 0.5]], truth=0, horizon=3)
    referee = Referee(scenario, 1)
    referee.begin(np.arange(1), generators(0))
    rewards, _ = referee.judge(np.array([[0.25, 0.75]]))
    assert rewards[0] == 0.0
    assert not np.signbit(rewards[0])


def test_many_partial_resets_leave_no_episodes_behind():
    scenario = Scenario(**small_rules(hypotheses="dirichlet"))
    player, rng, episodes = Playback(scenario, 4), np.random.default_rng(0), []

    def begin_in(games, seeds):
        starts = [scenario.start_episode(rng) for rng in generators(*seeds)]
        episodes.extend(weakref.ref(start) for start in starts)
        player.begin(games, starts)

    begin_in(np.arange(4), range(4))
    for t in range(200):
        games = np.flatnonzero(rng.random(4) < 0.5)
        if games.size:
            begin_in(games, 1000 * t + games)
        player.advance()
    gc.collect()
    assert len(episodes) > 200
    assert sum(episode() is not None for episode in episodes) == 4
