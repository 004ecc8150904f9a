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


CHEAP_RULES = {"hypotheses": "dirichlet", "horizon": 50, "channel": "identity"}


def result_of(learner, truth=None):
    """Result of three short episodes without privacy."""
    experiment = Experiment(CHEAP_RULES, learner, episodes=3, truth=truth)
    evaluation = ldp_gym.evaluate(learner, CHEAP_RULES, episodes=3, truth=truth)
    return ExperimentResult(experiment, evaluation, seconds=1.0)


def with_losses(result, losses):
    return replace(result, evaluation=replace(result.evaluation, losses=losses))


def test_learners_are_compared_with_bayes_on_the_same_episodes():
    uniform = result_of("uniform")
    bayes = result_of("bayes")
    row = _row(uniform, [bayes, uniform])
    assert row["over_bayes"].value == pytest.approx((uniform.totals - bayes.totals).mean())
    assert row["score"] == 0.0


def test_learners_are_not_compared_at_their_worst_truths():
    """The worst truths of two learners differ, so that their totals belong to different games."""
    uniform = result_of("uniform", truth="all")
    bayes = result_of("bayes", truth="all")
    row = _row(uniform, [bayes, uniform])
    assert math.isnan(row["over_bayes"].value)
    assert math.isnan(row["score"])


@pytest.mark.parametrize(("share_of_uniform", "has_score"), [(0.85, True), (0.95, False)])
def test_a_game_has_scores_if_bayes_saves_a_tenth_of_the_uniform_risk(share_of_uniform, has_score):
    uniform = result_of("uniform")
    losses = {"kl": share_of_uniform * uniform.evaluation.kl, "tv": uniform.evaluation.tv}
    bayes = with_losses(result_of("bayes"), losses)
    row = _row(bayes, [bayes, uniform])
    assert math.isnan(row["score"]) is not has_score


def test_each_stored_loss_but_kl_is_a_column_of_means_per_round():
    cumulative = np.array([[10.0, 50.0], [20.0, 100.0], [30.0, 150.0]])  # 3 episodes, 2 checkpoints
    losses = {"kl": cumulative, "tv": cumulative, "hellinger": 2.0 * cumulative}
    result = with_losses(result_of("bayes"), losses)
    row = _row(result, [result])
    assert row["tv"] == 2.0  # mean total 100, in 50 rounds
    assert row["hellinger"] == 4.0
    assert "kl" not in row


def over_floor(rules):
    bayes = result_of("bayes")
    result = replace(bayes, experiment=Experiment(rules, "bayes", episodes=3))
    return _row(result, [result])["over_floor"]


def test_a_risk_is_compared_with_the_floor_for_a_uniform_truth():
    assert math.isfinite(over_floor({**CHEAP_RULES, "channel": "split"}))


def test_a_risk_is_not_compared_with_the_floor_for_another_truth():
    assert math.isnan(over_floor({**CHEAP_RULES, "channel": "split", "truth": 1}))
