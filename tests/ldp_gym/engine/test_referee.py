"""The referee: what is shown, what is charged, and who watches."""

import numpy as np
import pytest
from helpers import small_rules

from ldp_gym.core.divergences import kl, tv
from ldp_gym.engine.referee import Referee, member_option
from ldp_gym.engine.scenario import Scenario
from ldp_gym.engine.tape import Episodes


def generators(*seeds):
    return [np.random.default_rng(seed) for seed in seeds]


class Witness:
    """Keeps what it is shown."""

    def __init__(self):
        self.begun, self.rounds = [], []

    def begin(self, games, truths, distributions):
        self.begun.append((games.tolist(), truths.copy(), distributions.copy()))

    def watch(self, round_):
        self.rounds.append(round_)


@pytest.mark.parametrize("channel", ["laplace-single", "randomized-response", "adaptive-groups"])
def test_a_judgement_is_of_the_round_that_was_shown(channel, actions):
    """Against the tape of the same seeds, round by round."""
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
    referee.judge(actions[0, :2])
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
    """And the reward is zero, not minus zero."""
    scenario = Scenario(hypotheses=[[0.25, 0.75], [0.5, 0.5]], truth=0, horizon=3)
    referee = Referee(scenario, 1)
    referee.begin(np.arange(1), generators(0))
    rewards, _ = referee.judge(np.array([[0.25, 0.75]]))
    assert rewards[0] == 0.0
    assert not np.signbit(rewards[0])


def test_a_spectator_sees_all_and_changes_nothing(actions):
    scenario, witness = Scenario(**small_rules(horizon=5)), Witness()
    watched, alone = Referee(scenario, 2, witness), Referee(scenario, 2)
    for referee in (watched, alone):
        referee.begin(np.arange(2), generators(1, 2), member=3)
    ((games, truths, distributions),) = witness.begun
    assert games == [0, 1]
    assert truths.tolist() == [3, 3]
    np.testing.assert_allclose(distributions, watched.candidates[:, 3], rtol=1e-12)
    for t in range(5):
        before = watched.observe()
        (rewards, info), (plain, _) = watched.judge(actions[t, :2]), alone.judge(actions[t, :2])
        np.testing.assert_array_equal(rewards, plain)
        seen = witness.rounds[t]
        np.testing.assert_array_equal(seen.seen, before["context"])
        np.testing.assert_array_equal(seen.predictions, actions[t, :2])
        np.testing.assert_array_equal(seen.losses, info["kl"])
        np.testing.assert_array_equal(seen.messages, watched.observe()["message"])
        np.testing.assert_allclose(kl(seen.distributions, seen.predictions), seen.losses, rtol=1e-12)


def test_the_truth_can_be_chosen_by_an_option():
    scenario = Scenario(**small_rules())
    assert member_option(scenario, None) is None
    assert member_option(scenario, {}) is None
    assert member_option(scenario, {"truth": np.int64(3)}) == 3
    with pytest.raises(ValueError, match=r"truth must be at most 3, got 4"):
        member_option(scenario, {"truth": 4})
    with pytest.raises(ValueError, match=r"unknown reset options \['seed'\]; the known one is 'truth'"):
        member_option(scenario, {"truth": 1, "seed": 2})
