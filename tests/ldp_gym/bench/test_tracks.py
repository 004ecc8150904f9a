"""Tracks that learners declare, and learners that refuse to play, on the leaderboard."""

from command_line import run_in_line

from ldp_gym.bench.report import Report
from ldp_gym.bench.runner import run
from ldp_gym.bench.suites.own_game import OwnGame

PICKY = {"hypotheses": "dirichlet", "num_hypotheses": 8, "num_labels": 3, "horizon": 20, "epsilon": 1.0}


def test_the_leaderboard_shows_tracks(tmp_path):
    learners = ["third_party_learners:Picky", "bayes", "uniform"]
    results = run(OwnGame(PICKY), learners=learners, channels=["split"], episodes=2, out=tmp_path, jobs=1)
    assert not results.failures, results.failures
    tracks = dict(zip(results.frame["learner"], results.frame["track"], strict=True))
    assert tracks == dict(zip(learners, ["uninformed", "informed", "uninformed"], strict=True))
    assert "uninformed" in Report(tmp_path).write().read_text()


def test_a_learner_that_refuses_a_game_says_why(tmp_path):
    rules = [f"--rule={key}={value}" for key, value in (PICKY | {"num_labels": 5}).items()]
    given = ("--learner", "third_party_learners:Picky", "--learner", "bayes", "--channel", "split")
    _, output = run_in_line("bench", *rules, "--episodes", 2, "--jobs", 1, *given, "--out", tmp_path)
    assert "not played" in output
    assert "Picky was trained for K = 8 and M = 3" in output
