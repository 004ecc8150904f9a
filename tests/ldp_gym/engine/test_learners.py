"""Learners as the environment knows them: by a protocol, by name, and step by step."""

from functools import partial

import numpy as np
import pytest
from helpers import record, small_rules

import ldp_agents
from ldp_gym.core.errors import IncompatibleChannelError
from ldp_gym.engine.learners import (
    LearnerProtocol,
    as_make_learner,
    build_learner,
    is_directory,
    play_stepwise,
    plays_blocks,
    predict_checked,
)


class Counter:
    """No subclass of ours: it mixes the first hypotheses, one more with every message."""

    def __init__(self, game):
        self.game = game

    def reset(self, batch_shape=()):
        self.heard, self.batch = 0, batch_shape

    def predict(self, candidates):
        mixed = candidates[..., : self.heard + 1, :].mean(axis=-2)
        return np.broadcast_to(mixed, (*self.batch, candidates.shape[-1]))

    def update(self, candidates, message):
        self.heard = min(self.heard + 1, self.game.num_hypotheses - 1)


@pytest.fixture
def game():
    return record(small_rules(), 1)[0]


def test_whoever_predicts_and_learns_is_a_learner(game):
    assert isinstance(Counter(game), LearnerProtocol)
    assert not plays_blocks(Counter(game))
    assert plays_blocks(ldp_agents.EXP3(game))
    assert not isinstance(object(), LearnerProtocol)


def test_a_learner_goes_by_a_name_a_path_or_what_makes_it(game):
    for source in ("exp3", "ldp_agents.exp3:EXP3", ldp_agents.EXP3, partial(ldp_agents.make, "exp3")):
        assert type(build_learner(source, game)) is ldp_agents.EXP3
    assert type(build_learner(f"{__name__}:Counter", game)) is Counter
    by_name = as_make_learner("wma", {"rate": "box"})
    assert type(by_name(game)) is ldp_agents.WMA


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("byes", ValueError, "unknown learner 'byes'; did you mean 'bayes'"),
        (7, TypeError, "a name or make a learner from a game, such as its class; got 7"),
        (lambda game: 7, TypeError, "a learner has reset, predict and update; .* made 7"),
    ],
)
def test_what_is_no_learner_is_named(game, source, error, message):
    with pytest.raises(error, match=message):
        build_learner(source, game)


def test_an_unknown_name_is_an_error_before_there_is_a_game():
    with pytest.raises(ValueError, match="unknown learner 'byes'"):
        as_make_learner("byes")
    with pytest.raises(TypeError, match="takes no option 'speed'"):
        as_make_learner("wma", {"speed": 2})(record(small_rules(), 1)[0])


def test_a_learner_that_cannot_read_the_messages_says_so():
    labels, _ = record(small_rules("randomized-response"), 1)
    with pytest.raises(IncompatibleChannelError, match="EXP3 reads a noisy log-likelihood of each"):
        build_learner("exp3", labels)


def test_a_registered_name_is_no_directory(tmp_path, monkeypatch):
    (tmp_path / "bayes").mkdir()
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert not is_directory("bayes")
    assert is_directory("mine")
    assert not is_directory("nowhere")


def test_predictions_are_checked_and_the_caller_s_own(game):
    learner, table, buffer = ldp_agents.Uniform(game), np.full((4, 6), 1 / 6), np.full((3, 6), 1 / 6)
    learner.reset((3,))
    learner.predict = lambda candidates: buffer
    first = predict_checked(learner, table, 3)
    first[:] = 0.0
    assert (predict_checked(learner, table, 3) == 1 / 6).all()
    with pytest.raises(ValueError, match=r"Uniform.predict\(\) must .* of shape \(2, 6\) .*, got \(3, 6\)"):
        predict_checked(learner, table, 2)


@pytest.mark.parametrize("rules", [small_rules(), small_rules(hypotheses="dirichlet")], ids=str)
def test_a_learner_without_a_tape_is_stepped_along_it(rules):
    """In two blocks, against the first hypotheses' mean in each round."""
    game, tape = record(rules, 7, episodes=2)
    learner = Counter(game)
    learner.reset((2,))
    shared = tape.candidates.ndim == 2
    blocks = [slice(0, 3), slice(3, 7)]
    predictions = np.concatenate(
        [
            play_stepwise(learner, tape.candidates if shared else tape.candidates[:, s], tape.messages[:, s])
            for s in blocks
        ],
        axis=1,
    )
    for t in range(7):
        now = tape.candidates if shared else tape.candidates[:, t]
        expected = now[..., : min(t, 3) + 1, :].mean(axis=-2)
        np.testing.assert_allclose(predictions[:, t], np.broadcast_to(expected, (2, 6)), rtol=1e-12)
