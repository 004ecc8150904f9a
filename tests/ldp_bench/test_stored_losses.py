"""Losses of a game's rules in a run: stored, in the frame and in the export."""

import pytest

import ldp_bench
from ldp_bench import Store
from ldp_bench.suites import YourGame

RULES = {"hypotheses": [[0.9, 0.1], [0.2, 0.8]], "horizon": 5, "losses": ["hellinger"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Results of a small game whose rules ask for a loss, and their directory."""
    folder = tmp_path_factory.mktemp("run")
    game = YourGame(RULES)
    return ldp_bench.run(game, learners=["uniform"], episodes=2, jobs=1, out=folder), folder


def test_the_frame_has_a_column_for_a_loss_of_the_rules(run):
    results, _ = run
    assert (results.frame["hellinger"] > 0.0).all()


def test_the_stored_evaluation_has_the_loss_of_the_rules(run):
    results, _ = run
    stored = results.successes[0].evaluation
    assert stored.losses["hellinger"].shape == stored.kl.shape


def test_the_export_has_a_column_for_a_loss_of_the_rules(run, tmp_path):
    _, folder = run
    Store(folder).export(tmp_path / "rows.csv")
    header = (tmp_path / "rows.csv").read_text().splitlines()[0]
    assert header.split(",")[-4:] == ["kl", "tv", "tv_squared", "hellinger"]
