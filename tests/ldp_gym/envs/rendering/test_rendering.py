"""Rendering: every mode works, frames say what happened, and the game does not notice."""

import copy
import pickle
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled, ResetNeeded
from helpers import CHANNELS, small_rules

import ldp_agents
from ldp_gym.core.divergences import kl
from ldp_gym.engine import playback
from ldp_gym.engine.referee import Referee
from ldp_gym.engine.rules import Rules
from ldp_gym.envs.dist import Predictor
from ldp_gym.envs.rendering import frames
from ldp_gym.envs.rendering.history import FrameHistory


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def played(rounds=10, learner="bayes", **game):
    env = gym.make("LDPDist-v0", **game)
    player = ldp_agents.make(learner, env.unwrapped.game)
    observation, _ = env.reset(seed=0)
    losses = []
    for _ in range(rounds):
        prediction = player.act(observation)
        env.unwrapped.show(player.weights)
        observation, _, _, _, info = env.step(prediction)
        losses.append(info["kl"])
    return env, player, losses


@pytest.mark.parametrize("channel", CHANNELS)
def test_every_channel_s_message_is_drawn(channel):
    env, _, _ = played(render_mode="rgb_array", **small_rules(channel))
    frame = env.render()
    assert frame.shape == (frames.HEIGHT, frames.WIDTH, 3)
    assert frame.dtype == np.uint8
    assert (frame[40:64, 600:] < 100).all(axis=-1).any(), "the message in words"
    env, _, _ = played(render_mode="ansi", **small_rules(channel))
    assert "message" in env.render()


@pytest.mark.parametrize("labels", [2, 4, 120, 121, 10_000])
def test_any_number_of_labels_fits(labels):
    game = {
        "hypotheses": "dirichlet",
        "num_labels": labels,
        "num_hypotheses": 3,
        "channel": "split",
    }
    env, _, _ = played(render_mode="ansi", **game)
    shown = env.render()
    assert max(len(line) for line in shown.splitlines()) < 120
    assert f"{labels:,} labels" in shown
    env, _, _ = played(render_mode="rgb_array", **game)
    strip = env.render()[84:300, 70:936]
    for colour in (frames.TRUTH, frames.LEARNER):
        assert (strip == colour).all(axis=-1).any()


def test_bars_have_the_heights_of_the_masses():
    """Hypothesis 0 gives label 1 three quarters: its bar is three times as high as label 0's."""
    env = gym.make(
        "LDPDist-v0", hypotheses=[[0.25, 0.75], [0.5, 0.5]], truth=0, render_mode="rgb_array"
    )
    env.reset(seed=0)
    env.step([0.5, 0.5])
    strip = env.render()[84:300, 70:936]
    blue = (strip == frames.TRUTH).all(axis=-1).sum(axis=0)
    left, right = blue[:433].max(), blue[433:].max()
    assert right / left == pytest.approx(3.0, rel=0.05)
    red = (strip == frames.LEARNER).all(axis=-1).sum(axis=0)
    assert red[:433].max() == red[433:].max() == pytest.approx(2 * left, rel=0.05)


@pytest.mark.parametrize("mode", ["rgb_array", "human", "ansi"])
def test_watching_does_not_change_the_game_and_it_can_be_copied(mode):
    env, _, watched = played(5, render_mode=mode)
    assert watched == played(5)[2]
    env.render()
    copies = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    after = [each.step(np.full(16, 1 / 16))[1] for each in (env, *copies)]
    assert after[0] == after[1] == after[2]
    pictures = [each.render() for each in (env, *copies)]
    assert all(np.array_equal(pictures[0], picture) for picture in pictures[1:])
    for each in (env, *copies):
        each.close()


def test_nobody_watches_without_a_render_mode(monkeypatch):
    monkeypatch.setattr(
        FrameHistory, "__init__", lambda *_: pytest.fail("a spectator was asked to watch")
    )
    env, _, _ = played(5)
    with pytest.warns(UserWarning, match="without a render mode"):
        assert env.unwrapped.render() is None


def test_predictions_are_shown_once_there_is_one_and_weights_to_show_are_checked():
    env = gym.make("LDPDist-v0", render_mode="ansi")
    with pytest.raises(ResetNeeded):
        env.unwrapped.render()
    for seed in (0, 1):
        env.reset(seed=seed)
        assert "prediction" not in env.render()
        env.step(np.full(16, 1 / 16))
        assert "prediction" in env.render()
    for weights in ([0.5, 0.5], np.full(8, 0.2), [-1.0, 2.0, 0, 0, 0, 0, 0, 0]):
        with pytest.raises(ValueError, match="weights"):
            env.unwrapped.show(weights)


def test_the_vector_environment_shows_every_game():
    single, _, _ = played(7, learner="uniform", render_mode="ansi", horizon=50)
    envs = gym.make_vec("LDPDist-v0", num_envs=3, render_mode="ansi", horizon=50)
    envs.reset(seed=0)
    for _ in range(7):
        envs.unwrapped.show(np.full((3, 8), 1 / 8))
        envs.step(ldp_agents.make("uniform", envs).predict(envs.unwrapped.candidates))
    shown = envs.render()
    assert shown[0] == single.render()
    assert len(set(shown)) == len(shown) == 3


def test_without_pygame_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = gym.make("LDPDist-v0", render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(DependencyNotInstalled, match=r"ldp-gym\[render\]"):
        env.render()
    env = gym.make("LDPDist-v0", render_mode="ansi")
    env.reset(seed=0)
    assert "truth" in env.render()


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_a_message_of_zeros_and_an_infinite_loss_are_shown(mode):
    rules = {"channel": "unary-encoding", "epsilon": 6.0, "hypotheses": [[0.5, 0.5]] * 2}
    env = gym.make("LDPDist-v0", render_mode=mode, **rules)
    env.reset(seed=0)
    while env.step([1.0, 0.0])[0]["message"].any():
        pass
    assert len(env.render())


class Watched:
    """B games of a scenario, and who watches them."""

    def __init__(self, num_games, **rules):
        self.scenario, self.num_games = Rules(**rules).scenario(), num_games
        self.referee = Referee(self.scenario, num_games, Predictor, history=FrameHistory)
        self.history = self.referee.history
        self.begin(range(num_games))

    def begin(self, games, seed=0):
        generators = [np.random.default_rng(seed + game) for game in games]
        self.referee.begin(np.array(games), generators)

    def predict_uniform(self):
        labels = self.scenario.hypotheses.num_labels
        return self.referee.judge(np.full((self.num_games, labels), 1 / labels))


@pytest.mark.parametrize("channel", ["laplace-single", "adaptive-split", "randomized-response"])
def test_a_scene_says_what_happened(channel):
    """Bayes plays: its weights after the last message are the posterior that is shown."""
    watched = Watched(1, **small_rules(channel, reveal=True))
    player = ldp_agents.Bayes(watched.scenario.game)
    losses, uniform = [], []
    for t in range(30):
        candidates = watched.referee.playback.candidates[0]
        prediction = player.predict(candidates)
        _, info = watched.referee.judge(prediction[None])
        message = watched.referee.role.observation.observe()["message"][0]
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
def test_a_new_episode_of_one_game_forgets_the_last(channel, redrawn, monkeypatch):
    monkeypatch.setattr(playback, "_LONGEST_BLOCK", 5)
    rules = small_rules(channel, redraw_hypotheses=redrawn, observe_candidates=redrawn)
    watched, fresh = (Watched(3, **rules) for _ in range(2))
    for _ in range(17):
        watched.predict_uniform()
    watched.begin([1])
    for t in range(12):
        before, expected = (each.history.frame_data(1) for each in (watched, fresh))
        assert before.played == expected.played == t
        for name in ("truth", "distribution", "posterior", "losses", "uniform"):
            values = getattr(before, name), getattr(expected, name)
            np.testing.assert_allclose(*values, rtol=1e-9, err_msg=name)
        for each in (watched, fresh):
            each.predict_uniform()


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


# -- Questions ----------------------------------------------------------------------------------------------

QUESTIONS = {"hypotheses": [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], "horizon": 20}


def test_a_text_frame_of_questions_shows_belief_question_and_answer():
    env = gym.make("LDPAsk-v0", render_mode="ansi", **QUESTIONS)
    env.reset(seed=0)
    assert "question" not in env.render()
    row, *_ = env.step(np.array([1.0, -1.0]))
    lines = env.render().splitlines()
    belief = next(line for line in lines if line.startswith("posterior"))
    question = next(line for line in lines if line.startswith("question"))
    answer = next(line for line in lines if line.startswith("answer"))
    assert question.split()[1] == "█", "the first label only"
    assert answer.split()[1] in ("yes", "no")
    likes_the_first = row[0] > 0.5
    assert (answer.split()[1] == "yes") == likes_the_first
    truth = int(belief.split()[-1])
    assert f"{row[truth]:.3f} on the truth" in belief


def test_a_picture_of_questions_marks_the_labels_asked_about():
    env = gym.make("LDPAsk-v0", render_mode="rgb_array", **QUESTIONS)
    env.reset(seed=0)
    env.step(np.array([1.0, -1.0]))
    below = env.render()[300:315, 70:936]
    marked = (below == frames.MARK).all(axis=-1).any(axis=0)
    assert marked[:288].any()
    assert not marked[288:].any()


def test_a_vector_environment_of_questions_shows_every_game():
    envs = gym.make_vec("LDPAsk-v0", num_envs=2, render_mode="ansi", **QUESTIONS)
    single = gym.make("LDPAsk-v0", render_mode="ansi", **QUESTIONS)
    envs.reset(seed=3)
    single.reset(seed=4)
    for _ in range(5):
        envs.step(np.array([[1.0, -1.0], [0.4, -0.7]]))
        single.step(np.array([0.4, -0.7]))
    assert envs.render()[1] == single.render()
