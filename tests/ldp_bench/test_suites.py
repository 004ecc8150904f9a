"""Every suite at its small size concludes from the data; hard contexts, and estimates from a batch."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from context_search import hardest_contexts

import ldp_bench
import ldp_gym
from ldp_bench import SUITES, judge
from ldp_gym.statistics import Verdict


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    directory = tmp_path_factory.mktemp("suites")
    whole = ("rates", "theorems", "num-labels", "limit")  # those that have marks
    return {
        name: ldp_bench.run(
            name, size="small", episodes=None if name in whole else 2, jobs=1, out=directory / name
        )
        for name in SUITES
    }


@pytest.mark.parametrize("name", SUITES)
def test_it_runs_and_concludes(played, name):
    results = played[name]
    assert not results.failures
    assert not results.missing
    assert all(finding.text for finding in SUITES[name]().findings(results))


def verdicts(name, results, about=""):
    """Verdicts on the claims of a suite with a text, in its order."""
    judged = judge(SUITES[name]().findings(results))
    return [verdict for finding, verdict in judged if verdict is not None and about in finding.text]


def changed(results, **change):
    """The same results with losses of their evaluations changed by functions."""

    def change_losses(evaluation):
        losses = {name: function(evaluation.losses[name]) for name, function in change.items()}
        return replace(evaluation, losses=evaluation.losses | losses)

    others = copy.copy(results)
    others.successes = [
        replace(result, evaluation=change_losses(result.evaluation)) for result in results.successes
    ]
    return others


def test_conclusions_follow_the_data(played):
    """Tiny losses are below every lower bound, and large ones above every theorem's."""
    assert Verdict.CONTRADICTED not in verdicts("theorems", played["theorems"])
    tiny = changed(played["theorems"], kl=lambda kl: kl * 1e-9)
    assert verdicts("theorems", tiny, LOWER) == [Verdict.CONTRADICTED] * 2
    large = changed(
        played["theorems"], kl=lambda kl: kl + 1e9, tv_squared=lambda squares: squares + 1e9
    )
    assert verdicts("theorems", large, "worst truth") == [Verdict.CONTRADICTED] * 7


def test_no_claim_of_the_rates_is_contradicted(played):
    assert Verdict.CONTRADICTED not in verdicts("rates", played["rates"])


def test_risks_below_the_lower_bound_contradict_the_rates(played):
    tiny = changed(played["rates"], kl=lambda kl: kl * 1e-9)
    assert verdicts("rates", tiny, "between the bounds") == [Verdict.CONTRADICTED] * 2


def test_risks_above_the_upper_bounds_contradict_the_rates(played):
    large = changed(played["rates"], kl=lambda kl: kl + 1e9)
    assert verdicts("rates", large, "between the bounds") == [Verdict.CONTRADICTED] * 2
    assert verdicts("rates", large, "Theorem 4") == [Verdict.CONTRADICTED]


def with_learner(results, channel, learner, episodes=32):
    """The same results, but a learner in place of Bayes on one channel."""
    others = copy.copy(results)
    others.successes = []
    for result in results.successes:
        experiment = result.experiment
        if (experiment.learner, experiment.channel) == ("bayes", channel):
            evaluation = ldp_gym.evaluate(
                learner, experiment.rules, episodes=episodes, truth=experiment.truth
            )
            result = replace(result, evaluation=evaluation)
        others.successes.append(result)
    return others


def test_never_learning_does_not_follow_the_rate(played):
    never = with_learner(played["rates"], "half-space", "uniform")
    assert verdicts("rates", never, "differ by more") == [Verdict.CONTRADICTED]


def test_never_learning_gets_no_mark_for_interaction(played):
    never = with_learner(played["rates"], "challenge", "uniform")
    assert verdicts("rates", never, "Interaction") == [Verdict.CONTRADICTED]


def test_algorithm_2_gets_no_mark_if_its_messages_tell_nothing(played):
    never = with_learner(played["rates"], "laplace-single", "uniform")
    assert verdicts("rates", never, "Algorithm 2") == [Verdict.CONTRADICTED]


LOWER = "lower bound"  # in findings about what nobody can go below


def without_lower_bounds(results):
    """The results but those on the lower bounds' classes, whose claims never learning keeps."""
    others = copy.copy(results)
    kept = [r for r in results.successes if r.experiment.rules.hypotheses_kwargs]
    others.successes = kept + [
        r for r in results.successes if "hadamard" not in r.experiment.family
    ]
    return others


def replayed(results, learner=None, **rules):
    """The same results as if a learner had played all games, or all had been played under other rules."""
    others, known = copy.copy(results), {}

    def evaluate(result):
        e = result.experiment
        channel = {"channel": "split"} if e.channel == "identity" else {}
        game, who = {**e.rules.given, **channel, **rules}, learner or e.learner
        key = (who, repr(game), e.truth, e.episodes)
        if key not in known:
            known[key] = ldp_gym.evaluate(
                who, game, episodes=e.episodes, truth=e.truth, losses=["tv", "tv_squared"]
            )
        return replace(result, evaluation=known[key])

    others.successes = [evaluate(result) for result in results.successes]
    return others


@pytest.mark.parametrize(
    "change", [{"learner": "uniform"}, {"epsilon": 1e-4}], ids=["uniform", "noise"]
)
@pytest.mark.parametrize("name", [name for name in SUITES if name != "limit"])
def test_no_claim_about_learning_is_shown_where_nobody_learns(played, name, change):
    """A learner that never learns; messages that are noise, and whose likelihood says so."""
    assert Verdict.SHOWN not in verdicts(
        name, replayed(without_lower_bounds(played[name]), **change)
    )


def test_claims_about_learning_are_shown_for_learners(played):
    """And where a bound says nothing the mark says so."""
    paper = [
        *verdicts("theorems", played["theorems"], "of exp3"),
        *verdicts("theorems", played["theorems"], "of wma"),
    ]
    assert paper == [Verdict.VACUOUS, Verdict.SHOWN] * 2
    assert Verdict.SHOWN in verdicts("theorems", played["theorems"], "on challenge")
    judged = judge(SUITES["num-labels"]().findings(played["num-labels"]))
    marks = {finding.text.partition(":")[0]: verdict for finding, verdict in judged}
    assert marks["randomized-response"] is marks["split"] is Verdict.SHOWN


@pytest.mark.filterwarnings("ignore::ldp_gym.NoPrivacyWarning")
@pytest.mark.parametrize(("name", "about"), [("theorems", LOWER), ("limit", "below the limit")])
def test_a_lower_bound_breaks_without_privacy(played, name, about):
    free = replayed(played[name], learner="bayes", channel="identity", channel_kwargs={}, delta=0.0)
    assert set(verdicts(name, free, about)) == {Verdict.CONTRADICTED}


SEARCHED = {
    "num_hypotheses": 3,
    "num_labels": 4,
    "context_dim": 2,
    "horizon": 100,
    "channel": "split",
}
SMALL = {"sequences": 16, "episodes": 8, "generations": 2, "fresh": 100}


def test_a_search_finds_contexts_that_cost_more_on_fresh_seeds():
    """The seeds are fixed, so the test cannot fail by chance."""
    found, again = (hardest_contexts(SEARCHED, "bayes", **SMALL) for _ in range(2))
    np.testing.assert_array_equal(found.contexts, again.contexts)
    assert (
        found.evaluation.risk
        > 1.2 * ldp_gym.evaluate("bayes", SEARCHED, episodes=400, seed=10**9).risk
    )
    fresh = ldp_gym.evaluate("bayes", found.rules, episodes=100, seed=4 * 2**20)
    np.testing.assert_array_equal(found.evaluation.kl, fresh.kl)
    assert len(hardest_contexts(SEARCHED, "uniform", length=3, **SMALL).contexts) <= 3


def test_constant_classes_have_no_hard_contexts():
    with pytest.raises(ValueError, match="does not depend on it"):
        hardest_contexts({"hypotheses": "dirichlet"}, "bayes")


TABLE = {"hypotheses": "dirichlet", "channel": "split", "horizon": 50}


def test_average_predictions_are_those_of_each_seed_and_change_no_loss():
    every = ldp_gym.evaluate("bayes", TABLE, episodes=3, averages=True)
    env = ldp_gym.LDPDistEnv(**TABLE)
    player = ldp_gym.LEARNERS["bayes"](env.game)
    observation, _ = env.reset(seed=2)
    predictions = []
    for _ in range(50):
        predictions.append(player.act(observation))
        observation, *_ = env.step(predictions[-1])
    np.testing.assert_allclose(every.average_prediction[2], np.mean(predictions, axis=0), rtol=1e-9)
    alone = ldp_gym.evaluate("bayes", TABLE, episodes=3)
    assert alone.average_prediction is None
    np.testing.assert_array_equal(every.kl, alone.kl)
    of_all = ldp_gym.evaluate("bayes", TABLE, episodes=3, truth="all", averages=True)
    fifth = ldp_gym.evaluate("bayes", TABLE, episodes=3, truth=5, averages=True)
    np.testing.assert_allclose(of_all.average_prediction[5], fifth.average_prediction)
    worst = of_all.at_worst_truth()
    np.testing.assert_array_equal(
        worst.average_prediction, of_all.average_prediction[of_all.worst_truth]
    )
    with pytest.raises(ValueError, match="class without contexts"):
        ldp_gym.evaluate("bayes", {"horizon": 10}, episodes=1, averages=True)
