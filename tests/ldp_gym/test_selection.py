"""ldp_gym.select: the best model of a log, and how many users it takes to find it from messages."""

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_in_line

import ldp_gym
from ldp_gym import selection
from ldp_gym.evaluation import Evaluation
from ldp_gym.selection import Selection, select

TRUTH = np.array([0.9, 0.05, 0.05])
CAUTIOUS, SHARP, WRONG = [0.7, 0.15, 0.15], [0.95, 0.0499, 0.0001], [0.1, 0.3, 0.6]
QUICK = {"channels": ["randomized-response"], "epsilons": [2.0], "runs": 20, "quiet": True, "jobs": 1}
LOSSES = {"a": 0.1, "b": 0.2}


class Says:
    def __init__(self, probabilities, classes=(0, 1, 2)):
        self.probabilities, self.classes_ = np.array(probabilities), np.array(classes)

    def predict_proba(self, X):
        return np.tile(self.probabilities, (len(X), 1))


def log(users, law=TRUTH, seed=0):
    rng = np.random.default_rng(seed)
    return np.zeros((users, 1)), rng.choice(len(law), size=users, p=law)


def models(*rows):
    return {name: Says(row) for name, row in zip("abcd", rows, strict=False)}


def test_the_best_model_is_the_one_of_the_least_log_loss():
    features, labels = log(400)
    chosen = select(models(WRONG, CAUTIOUS, SHARP), features, labels, **QUICK)
    assert chosen.best == "b"
    smoothed = 0.999 * np.array([WRONG, CAUTIOUS, SHARP]) + 0.001 / 3
    np.testing.assert_allclose(list(chosen.losses.values()), -np.log(smoothed[:, labels]).mean(axis=1))
    assert list(chosen.frame["learner"]) == ["bayes", "centred-exp3", "unbiased"]


def test_the_numbers_are_those_of_evaluate():
    features, labels = log(200)
    table = 0.999 * np.array([CAUTIOUS, WRONG]) + 0.001 / 3
    data = {"contexts": features, "labels": labels, "order": "shuffled"}
    rules = {"hypotheses": table, "truth": "replay", "truth_kwargs": data, "channel": "split", "epsilon": 0.3}
    expected = ldp_gym.evaluate("bayes", rules, episodes=20, seed=5)
    settings = QUICK | {"channels": ["split"], "epsilons": [0.3], "learners": ["bayes"], "seed": 5}
    row = select(models(CAUTIOUS, WRONG), features, labels, **settings).frame.iloc[0]
    assert row["found"] == expected.found
    assert row["regret"] == pytest.approx(expected.regret.mean() / 200)


def evaluation(shares, runs=100, lead=(1.0, 1.0), rounds=(10, 100, 1000)):
    """Result in which these shares of the runs lead with model 0 at the checkpoints."""
    leaders = np.stack([np.arange(runs) >= round(share * runs) for share in shares], axis=1).astype(int)
    leads = lead[0] + lead[1] * np.tile([-1.0, 1.0], runs // 2) * np.sqrt((runs - 1) / runs)
    weights = np.stack([np.ones(runs), np.exp(-leads)], axis=1)
    weights /= weights.sum(1, keepdims=True)
    zeros, comparator = np.zeros((runs, len(rounds))), np.tile([0.0, 1.0], (runs, 1))
    return Evaluation(np.array(rounds), zeros, zeros, comparator, weights, None, leaders)


EQUAL_GAPS = np.tile([0.0, 1.0], (1000, 1))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [((0.5, 0.9, 1), 10**2.5), ((0.99, 0.5, 0.95), 1000), ((1, 0.96, 1), 10), ((0.9, 1, 0.97), 10**1.5)],
)
def test_users_needed_are_interpolated_on_a_log_scale(shares, expected):
    """From the last prefix at which fewer than 95% of the runs have found it."""
    assert selection._users_needed(evaluation(shares), EQUAL_GAPS) == (pytest.approx(expected), False)


def test_beyond_the_data_gap_and_spread_say_how_many():
    result = evaluation((0.4, 0.5, 0.6), lead=(1.0, 2.0))
    expected = pytest.approx(1.6448536**2 * 1000 * 4.0, rel=1e-6)
    assert selection._users_needed(result, EQUAL_GAPS) == (expected, True)
    varied = EQUAL_GAPS + np.outer(np.tile([-3.0, 3.0], 500), [0.0, 1.0])
    assert selection._users_needed(result, varied)[0] == pytest.approx(1.6448536**2 * (4000 + 9.0), rel=1e-6)
    assert selection._users_needed(evaluation((0.4, 0.5, 0.6), lead=(-1.0, 2.0)), EQUAL_GAPS)[0] == np.inf
    assert np.isnan(selection._users_needed(evaluation((0.4, 0.5, 0.6), lead=(0.1, 2.0)), EQUAL_GAPS)[0])


def test_an_estimate_from_few_users_is_near_what_many_show():
    """Mean and standard deviation of an unbiased loss by enumeration: 95% need (1.645 sd / mean)^2 users."""
    table = 0.999 * np.array([CAUTIOUS, WRONG]) + 0.001 / 3
    channel = ldp_gym.CHANNELS["randomized-response"](2, 3, 40, epsilon=0.5)
    chances = np.exp(channel.log_density(np.arange(3), table)) @ TRUTH
    estimates = channel.unbiased_losses(np.arange(3), table)
    lead = estimates[:, 1] - estimates[:, 0]
    mean = chances @ lead
    needed = 1.6448536**2 * (chances @ np.square(lead - mean)) / mean**2
    settings = QUICK | {"runs": 400, "learners": ["unbiased"], "epsilons": [0.5]}
    row = select(models(CAUTIOUS, WRONG), *log(40), **settings).frame.iloc[0]
    assert row["estimated"]
    assert row["users_needed"] == pytest.approx(needed, rel=0.4)


def test_where_no_model_is_right_unbiased_finds_it_and_bayes_is_warned_of():
    """By enumeration the gaps are 6 and -13 standard deviations."""
    settings = QUICK | {"epsilons": [4.0], "runs": 8, "learners": ["bayes", "unbiased"]}
    chosen = select(models(CAUTIOUS, SHARP), *log(10_000), smoothing=1e-4, **settings)
    assert chosen.frame["found"].tolist() == [0.0, 1.0]
    assert chosen.frame["users_needed"].iloc[0] == np.inf
    assert chosen.recommended["learner"] == "unbiased"
    assert "Warning: bayes mostly takes another model ('b' on randomized-response at eps = 4)" in str(chosen)
    assert "never" in str(chosen)


def frame(found, learner="bayes", picked="a"):
    rows = {"channel": "split", "epsilon": np.arange(1.0, len(found) + 1), "learner": learner, "found": found}
    rows |= {"regret": 0.1, "users_needed": 50.0, "estimated": False, "picked": picked}
    return pd.DataFrame(rows | {"picked_share": np.maximum(found, 1 - np.array(found))})


@pytest.mark.parametrize(
    ("found", "falls"),
    [((0.43, 0.46, 0.22, 0.05), True), ((0.46, 0.43, 0.41), False), ((0.2, 0.9, 1.0), False)],
)
def test_a_share_that_falls_as_eps_grows_is_warned_of(found, falls):
    warnings = " ".join(Selection(frame(found), LOSSES, 118, 200).warnings)
    assert ("less often (bayes on split, from 46% to 5%)" in warnings) == falls


def test_bayes_is_not_warned_of_where_unbiased_losses_agree():
    disagree = frame([0.1], picked="b")
    agree = pd.concat([disagree, frame([0.1], selection.UNBIASED, "b")], ignore_index=True)
    for rows, count in ((disagree, 1), (agree, 0)):
        assert len(Selection(rows, LOSSES, 118, 200).warnings) == count


def test_too_few_users_and_channels_that_need_interaction_are_named():
    few = frame([0.5, 0.6]).assign(users_needed=[np.inf, 4000.0], estimated=True)
    assert "about 4,000" in str(Selection(few, LOSSES, 100, 40))
    adaptive = frame([1.0]).assign(channel="adaptive-split", epsilon=0.5)
    both = pd.concat([adaptive, frame([0.99])], ignore_index=True)
    assert "if yours cannot, split at eps = 1, read by bayes." in str(Selection(both, LOSSES, 100, 40))


def test_models_that_exclude_labels_are_smoothed_and_named():
    chosen = select(models(CAUTIOUS, [1.0, 0.0, 0.0]), *log(200), smoothing=0.01, **QUICK)
    assert "mixed with 1.00% of the uniform distribution, as 'b' gave probability 0" in chosen.notes[0]
    assert np.isfinite(chosen.losses["b"])
    close = select(models(CAUTIOUS, CAUTIOUS), *log(50), **QUICK)
    assert "it matters little which" in close.notes[0]


def test_data_frames_and_names_of_labels():
    class Named(Says):
        feature_names_in_ = np.array(["x", "z"])

        def predict_proba(self, X):
            assert list(X.columns) == ["x", "z"]
            return super().predict_proba(X)

    features = pd.DataFrame({"z": np.zeros(60), "unused": "text", "x": np.ones(60)})
    names = np.array(["no", "yes", "never"])
    chosen = select([Named(CAUTIOUS, names), Named(WRONG, names)], features, names[log(60)[1]], **QUICK)
    assert chosen.best == "Named 0"


def test_it_says_first_what_it_plays(capsys):
    select(models(CAUTIOUS, WRONG), *log(30), **QUICK | {"quiet": False})
    said = capsys.readouterr().err
    assert "unbiased on randomized-response at eps = 2: 20 runs of 30 users each, about " in said


def test_batches_reach_the_game():
    settings = QUICK | {"channels": ["adaptive-split"], "learners": ["bayes"], "epsilons": [0.5]}
    rows = [select(models(CAUTIOUS, WRONG, SHARP), *log(60), batch=n, **settings).frame for n in (1, 60, 100)]
    assert rows[0]["regret"].item() != rows[1]["regret"].item() == rows[2]["regret"].item()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"models": [Says(CAUTIOUS)]}, "two or more fitted classifiers"),
        ({"models": [Says(CAUTIOUS), Says(WRONG, "abc")]}, "must share their classes"),
        ({"y": [0, 1, 9]}, "label 9 in row 2 is not among the classes"),
        ({"y": [0, 1]}, "as many labels as contexts"),
        ({"channels": ["splt"]}, "split"),
        ({"channels": []}, "at least one channel"),
        ({"learners": ["byes"]}, "bayes"),
        ({"learners": ["helpers:Stepwise"]}, "a learner without weights"),
        ({"epsilons": [-1.0]}, "epsilons must be"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"runs": 1}, "runs"),
        ({"batch": 0}, "batch"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    given = {"models": [Says(CAUTIOUS), Says(WRONG)], "X": np.zeros((3, 1)), "y": [0, 1, 2], **QUICK, **wrong}
    with pytest.raises((TypeError, ValueError), match=message):
        select(**given)


MODULE = """
import numpy as np
class Says:
    def __init__(self, row): self.row = row; self.classes_ = np.arange(3)
    def predict_proba(self, X): return np.tile(self.row, (len(X), 1))
def models(): return {"good": Says([0.7, 0.15, 0.15]), "bad": Says([0.1, 0.3, 0.6])}
"""


def test_the_command_answers_from_a_csv_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features, labels = log(80)
    pd.DataFrame({"x": features[:, 0], "digit": labels}).to_csv("users.csv", index=False)
    (tmp_path / "the_models.py").write_text(MODULE)
    named = ["select", "users.csv", "--label", "digit", "--models", "the_models:models", "--runs", "10"]
    few = ["--channel", "split", "--epsilon", "2", "--figure", "found.png", "--table", "found.csv"]
    code, output = run(*named, *few)
    assert code == 0, output
    assert "The best of 2 models for these 80 users is 'good'" in output
    assert (tmp_path / "found.png").stat().st_size > 0
    assert set(pd.read_csv("found.csv")["learner"]) == {"bayes", "centred-exp3"}
    assert "has no column 'digt', only x, digit" in run_in_line(*named[:3], "digt", *named[4:])[1]
    assert run(*named, "--channel", "splt")[0] == 2
