"""What a learner declares reaches the leaderboard, and who does not play says why."""

import pytest
from typer.testing import CliRunner

from ldp_gym.bench.report import Report
from ldp_gym.bench.runner import run
from ldp_gym.bench.suites.own_game import OwnGame
from ldp_gym.cli import app

PICKY = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 3, "horizon": 20, "epsilon": 1.0}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("tracks")


def test_the_leaderboard_shows_tracks_and_who_does_not_play(directory):
    learners = ["third_party_learners:Picky", "bayes", "uniform"]
    results = run(OwnGame(PICKY), learners=learners, channels=["split"], episodes=2, out=directory, jobs=1)
    assert not results.failures, results.failures
    tracks = dict(zip(results.frame["learner"], results.frame["track"], strict=True))
    assert tracks["third_party_learners:Picky"] == "uninformed", "it plays, though it plays no toy game"
    assert tracks["bayes"] == "informed"
    assert tracks["uniform"] == "uninformed"
    page = Report(directory).write().read_text()
    assert "uninformed" in page


def test_who_does_not_play_says_why(directory):
    rules = [f"{key}={value}" for key, value in (PICKY | {"num_labels": 5}).items()]
    given = [
        "bench",
        *[part for rule in rules for part in ("--rule", rule)],
        "--episodes",
        "2",
        "--jobs",
        "1",
    ]
    given += ["--learner", "third_party_learners:Picky", "--learner", "bayes", "--channel", "split"]
    result = CliRunner().invoke(app, [*given, "--out", str(directory / "other")], env={"COLUMNS": "300"})
    assert "not played" in result.output, result.output
    assert "Picky was trained for K = 8 and M = 3" in result.output
