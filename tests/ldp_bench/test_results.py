"""Results as a data frame, and as tables of a terminal and of a page."""

import math
from dataclasses import replace

import numpy as np
import pytest

import ldp_gym
from ldp_bench import SUITES, Experiment, ExperimentResult, Results, Store, tables
from ldp_bench.results import _row
from ldp_gym import statistics, theory


def results_of(suite, directory, size, /, **more):
    experiments = SUITES[suite]().experiments("small", episodes=size)
    return Results(Store(directory), [replace(one, **more) for one in experiments], 0)


@pytest.fixture(scope="module")
def results(played):
    return results_of("quick", played[0], 5)


def test_the_frame_has_the_numbers_of_the_games_themselves(results):
    frame = results.frame.set_index(["channel", "learner"])
    assert len(frame) == len(results.successes)

    def played(learner):
        return ldp_gym.evaluate(
            learner, {"channel": "adaptive-split", "horizon": 100}, episodes=5, seed=0
        )

    bayes, exp3, uniform = (played(name) for name in ("bayes", "centred-exp3", "uniform"))
    row = frame.loc["adaptive-split", "centred-exp3"]
    assert row["risk"] == pytest.approx(exp3.kl[:, -1].mean(), rel=1e-12)
    assert (row["risk_low"], row["risk_high"]) == pytest.approx(exp3.interval())
    assert row["tv"] == pytest.approx(exp3.tv[:, -1].mean() / 100)
    floor = theory.class_floor("softmax-linear", 100, 1.0).risk
    assert row["over_floor"] == pytest.approx(row["risk"] / floor)
    assert math.isnan(frame.loc["identity", "bayes"]["over_floor"]), "no private channel"
    gap = statistics.difference(exp3.kl[:, -1], bayes.kl[:, -1], 4)  # five learners play
    assert row[["over_bayes", "over_bayes_low"]].tolist() == pytest.approx(
        [gap.value, gap.low], rel=1e-9
    )
    gain = (uniform.kl - bayes.kl)[:, -1].mean()
    assert row["score"] == pytest.approx((uniform.kl - exp3.kl)[:, -1].mean() / gain)
    assert frame.loc["adaptive-split", "bayes"]["score"] == pytest.approx(1.0, rel=1e-12)
    assert math.isnan(frame.loc["laplace-vector", "exp3"]["score"]), (
        "nobody learns here in 100 rounds"
    )
    assert (frame["risk_unseen"] == 0.0).all(), "episodes differ"
    assert row[["hypotheses", "K", "M", "T", "epsilon"]].tolist() == [
        "softmax-linear",
        8,
        16,
        100,
        1.0,
    ]
    bounded = [("laplace-single", "exp3"), ("laplace-vector", "wma"), ("identity", "bayes")]
    assert set(frame["bound"].dropna().index) == set(bounded)


def test_the_leaderboard_says_shared_facts_once_and_marks_what_is_level_with_bayes(results):
    frame = results.frame
    bayes = frame["learner"] == "bayes"
    bayes_risk = frame["channel"].map(frame[bayes].set_index("channel")["risk"])
    contains_zero = (frame["over_bayes_low"] <= 0) & (frame["over_bayes_high"] >= 0)
    level = contains_zero & (frame["over_bayes_high"] <= 0.25 * bayes_risk)
    assert (frame["best"] == (bayes | level)).all()
    shared, table = tables.leaderboard(results)
    assert (table["Over Bayes"].str.endswith("level") == (level & ~bayes)).all()
    assert shared == "In every row: Game: softmax-linear, K = 8, M = 16; T: 100; Episodes: 5."
    assert set(table["Privacy"]) == {"ε = 1", "ε = 1, δ = 1e-05", "none"}
    assert {"Game", "T", "Worst truth", "Regret"}.isdisjoint(table.columns)


def test_where_every_truth_is_played_the_row_is_the_worst_truths(played):
    stopped = results_of("theorems", played[0], 2, episodes=3, block=2)  # one of two cells
    assert not stopped.successes
    results = results_of("theorems", played[0], 2)
    frame = results.frame.query("hypotheses == 'hadamard'")
    row = frame.iloc[0]
    same = results.select(learner=row["learner"], channel=row["channel"])
    played = next(r for r in same if r.experiment.family == "hadamard").evaluation
    risks = played.kl[:, :, -1].mean(axis=1)
    assert row["worst_truth"] == np.argmax(risks)
    assert row["risk"] == pytest.approx(risks.max())
    assert row["tv"] == pytest.approx(played.tv[np.argmax(risks), :, -1].mean() / row["T"])
    assert frame["score"].isna().all(), "worst truths differ, so there is nothing to pair"


def test_bounds_are_those_of_the_game_s_own_eps_and_delta(results):
    evaluation = results.successes[0].evaluation
    rules = {"num_hypotheses": 4, "horizon": 50, "epsilon": 3.0}
    for learner, channel, bound in (
        ("exp3", {"channel": "laplace-single"}, theory.exp3_bound(4, 50, 3.0)),
        ("wma", {"channel": "laplace-vector", "delta": 0.01}, theory.wma_bound(4, 50, 3.0, 0.01)),
        ("bayes", {"channel": "identity"}, math.log(4)),
        ("bayes", {"channel": "split"}, math.nan),
    ):
        found = ExperimentResult(Experiment({**rules, **channel}, learner), evaluation, 1.0).bound
        assert found == pytest.approx(bound, nan_ok=True)


@pytest.mark.parametrize(
    ("truth", "holds"), [("uniform", True), (1, True), ([0.2, 0.7, 0.1], False)]
)
def test_bounds_and_optimality_are_for_members(truth, holds):
    table = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    rules = {"hypotheses": table, "horizon": 20, "channel": "laplace-single", "truth": truth}
    played = ldp_gym.evaluate("exp3", rules, episodes=3)
    result = ExperimentResult(Experiment(rules, "exp3", episodes=3), played, 1.0)
    assert [math.isfinite(result.bound), result.regret == result.risk] == [holds, holds]
    assert result.regret.value == pytest.approx(played.regret.mean(), abs=1e-9)


@pytest.mark.parametrize(("truth", "paired"), [(None, True), ("all", False)])
def test_learners_are_compared_on_the_same_episodes_or_not_at_all(truth, paired):
    """The worst truths of two learners differ, so that their totals belong to different games."""
    rules = {"hypotheses": "dirichlet", "horizon": 50, "channel": "identity"}
    found = []
    for name in ("uniform", "bayes"):
        played = ldp_gym.evaluate(name, rules, episodes=3, truth=truth)
        found.append(
            ExperimentResult(Experiment(rules, name, episodes=3, truth=truth), played, 1.0)
        )
    row = _row(found[0], found)
    assert [math.isnan(number) for number in (row["over_bayes"].value, row["score"])] == [
        not paired
    ] * 2
    for share in (0.85, 0.95):  # where Bayes saves less than a tenth there is no score
        little = replace(
            found[0].evaluation,
            losses={"kl": share * found[0].evaluation.kl, "tv": found[0].evaluation.tv},
        )
        bayes = replace(found[1], evaluation=little)
        assert math.isnan(_row(bayes, [found[0], bayes])["score"]) is not (paired and share < 0.9)
    for other in ({}, {"truth": 1}):  # a floor speaks of a uniform truth
        game = Experiment({**rules, "channel": "split", **other}, "bayes", episodes=3, truth=None)
        assert math.isnan(_row(replace(found[1], experiment=game), [])["over_floor"]) is bool(other)
