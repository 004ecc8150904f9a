"""The terminal's leaderboard of several games."""

import ldp_gym
from ldp_gym.bench import Experiment, ExperimentResult, leaderboard


def row(learner="uniform", **rules):
    rules = {"hypotheses": "dirichlet", "num_hypotheses": 4, "horizon": 10, **rules}
    played = ldp_gym.evaluate(learner, rules, episodes=2)
    return leaderboard.Row(ExperimentResult(Experiment(rules, learner, episodes=2), played, 1.0))


def test_rows_of_several_games_stand_below_what_differs():
    small, large = [row(), row("bayes", channel="split")], [row(num_hypotheses=8)]
    games = list(leaderboard.by_game([*small, *large]))
    assert games == [
        ("Game: dirichlet, K = 4, M = 16", small),
        ("Game: dirichlet, K = 8, M = 16", large),
    ]


def test_rows_of_one_game_need_no_title():
    rows = [row(), row("bayes")]
    assert list(leaderboard.by_game(rows)) == [("", rows)]


def test_horizon_and_privacy_are_said_where_they_differ():
    titles = [title for title, _ in leaderboard.by_game([row(), row(epsilon=2.0), row(horizon=20)])]
    assert titles == ["T: 10; Privacy: ε = 1", "T: 10; Privacy: ε = 2", "T: 20; Privacy: ε = 1"]


def test_a_class_that_is_redrawn_is_said_to_be():
    experiment = row(redraw_hypotheses=True, observe_candidates=True).result.experiment
    assert leaderboard.describe_game(experiment) == "dirichlet, K = 4, M = 16, redrawn in every episode"
