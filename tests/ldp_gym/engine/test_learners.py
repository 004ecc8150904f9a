"""Learners as the environment knows them: by a protocol, by name, and step by step."""

from functools import partial

import numpy as np
import pytest
from helpers import Stepwise, record, small_rules

import ldp_agents
from ldp_gym.engine.learners import as_make_learner, build_learner, is_directory, predict_checked


@pytest.fixture
def game():
    return record(small_rules(), 1)[0]


def test_a_learner_goes_by_a_name_a_path_or_what_makes_it(game):
    for source in ("exp3", "ldp_agents.exp3:EXP3", ldp_agents.EXP3, partial(ldp_agents.make, "exp3")):
        assert type(build_learner(source, game)) is ldp_agents.EXP3
    assert type(build_learner("helpers:Stepwise", game)) is Stepwise
    assert type(as_make_learner("wma", {"rate": "box"})(game)) is ldp_agents.WMA
    with pytest.raises(TypeError, match="takes no option 'speed'"):
        as_make_learner("wma", {"speed": 2})(game)
    with pytest.raises(TypeError, match="a learner has reset, predict and update; .* made 7"):
        build_learner(lambda game: 7, game)


def test_a_registered_name_is_no_directory(tmp_path, monkeypatch):
    for name in ("bayes", "mine"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert [is_directory(name) for name in ("bayes", "mine", "nowhere")] == [False, True, False]


def test_predictions_are_checked_and_the_caller_s_own(game):
    learner, table, buffer = ldp_agents.Uniform(game), np.full((4, 6), 1 / 6), np.full((3, 6), 1 / 6)
    learner.reset((3,))
    learner.predict = lambda candidates: buffer
    first = predict_checked(learner, table, 3)
    first[:] = 0.0
    assert (predict_checked(learner, table, 3) == 1 / 6).all()
    with pytest.raises(ValueError, match=r"Uniform.predict\(\) must .* of shape \(2, 6\) .*, got \(3, 6\)"):
        predict_checked(learner, table, 2)
