"""Learners as the environment knows them: by a protocol, by name, and step by step."""

from functools import partial

import numpy as np
import pytest
from helpers import record, small_rules

import ldp_agents
from ldp_gym.engine.learners import (
    as_make_learner,
    build_learner,
    is_directory,
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
