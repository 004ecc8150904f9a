"""What a person watching is told: the truth, the losses and the posterior, however often they look."""

import numpy as np
import pytest
from helpers import small_rules

import ldp_agents
from ldp_gym.core.divergences import kl
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.scenario import Scenario
from ldp_gym.envs.rendering.history import FrameHistory


class Watched:
    """B games of a scenario, and who watches them."""

    def __init__(self, num_games, **rules):
        self.scenario, self.num_games = Scenario(**rules), num_games
        self.history = FrameHistory(self.scenario, num_games)
        self.referee = Referee(self.scenario, num_games, self.history)
        self.begin(range(num_games))

    def begin(self, games, seed=0):
        generators = [np.random.default_rng(seed + game) for game in games]
        self.referee.begin(np.array(games), generators)

    def predict_uniform(self):
        labels = self.scenario.hypotheses.num_labels
        return self.referee.judge(np.full((self.num_games, labels), 1 / labels))


def test_before_the_first_round_there_is_nothing_but_the_truth():
    watched = Watched(2, **small_rules(truth=3))
    scene = watched.history.frame_data(1)
    assert (scene.played, scene.horizon, scene.truth) == (0, 40, 3)
    assert (scene.prediction, scene.message, scene.weights) == (None, None, None)
    assert scene.losses.size == scene.uniform.size == 0
    assert scene.posterior.tolist() == [0.25] * 4
    np.testing.assert_allclose(scene.distribution, watched.referee.candidates[1, 3], rtol=1e-12)


@pytest.mark.parametrize("channel", ["laplace-single", "adaptive-split", "randomized-response"])
def test_a_scene_says_what_happened(channel):
    """Bayes plays: its weights after the last message are the posterior that is shown."""
    watched = Watched(1, **small_rules(channel, reveal=True))
    player = ldp_agents.Bayes(watched.scenario.game)
    losses, uniform = [], []
    for t in range(30):
        candidates = watched.referee.candidates[0]
        prediction = player.predict(candidates)
        _, info = watched.referee.judge(prediction[None])
        message = watched.referee.observe()["message"][0]
        player.update(candidates, message)
        losses.append(info["kl"][0])
        uniform.append(kl(candidates[info["truth"][0]], candidates.mean(axis=0)))
        if t in (0, 13, 29):
            scene = watched.history.frame_data()
            assert scene.played == t + 1
            assert scene.truth == info["truth"][0]
            np.testing.assert_allclose(scene.distribution, candidates[scene.truth], rtol=1e-12)
            np.testing.assert_array_equal(scene.prediction, prediction)
            np.testing.assert_array_equal(scene.message, message)
            np.testing.assert_allclose(scene.losses, np.cumsum(losses), rtol=1e-9)
            np.testing.assert_allclose(scene.uniform, np.cumsum(uniform), rtol=1e-9)
            np.testing.assert_allclose(scene.posterior, player.weights, atol=1e-9)


@pytest.mark.parametrize("channel", ["split", "adaptive-split"])
@pytest.mark.parametrize("redrawn", [False, True])
def test_a_scene_is_the_same_however_often_one_looks(channel, redrawn):
    """Through the start of another episode, and more rounds than are kept in mind at a time."""
    rules = {"hypotheses": "dirichlet", "channel": channel, "horizon": 300}
    rules |= {"redraw_hypotheses": redrawn, "observe_candidates": redrawn}
    scenes = []
    for often in (False, True):
        watched = Watched(3, **rules)
        for t in range(290):
            if t == 20:
                watched.begin([1], seed=50)
            watched.predict_uniform()
            if often and t % 7 == 0:
                watched.history.frame_data(t % 3)
        scenes.append([watched.history.frame_data(game) for game in range(3)])
    for game, (rarely, often) in enumerate(zip(*scenes, strict=True)):
        assert rarely.played == often.played == (270 if game == 1 else 290)
        for name in ("distribution", "prediction", "message", "losses", "uniform"):
            np.testing.assert_allclose(getattr(rarely, name), getattr(often, name), rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(rarely.posterior, often.posterior, atol=1e-9)


def test_shown_weights_stay_until_a_game_begins():
    watched = Watched(2, **small_rules())
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    watched.history.show(weights)
    weights[:] = 0.25  # the learner goes on with them
    assert watched.history.frame_data(1).weights.tolist() == [0.1, 0.2, 0.3, 0.4]
    watched.history.show([[1, 0, 0, 0], [0, 1, 0, 0]])
    assert watched.history.frame_data(1).weights.tolist() == [0, 1, 0, 0]
    watched.begin([0])
    assert watched.history.frame_data(1).weights is None
