"""ldp_bench.plan: how many users a survey needs, and which model it names."""

import math

import numpy as np
import pytest
from helpers import make_channel
from scipy import stats

import ldp_bench
from ldp_agents import Bayes
from ldp_bench.planning import answer, contest, laws, models, search, surveys
from ldp_gym import Game

MILD, EVEN, WILD = [0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.2, 0.7]
TABLE = {"mild": MILD, "even": EVEN, "wild": WILD}
QUICK = {"epsilon": 2.0, "runs": 40, "quiet": True, "jobs": 1}


def plan(given, X=None, **settings):
    return ldp_bench.plan(given, X, **QUICK | settings)


# -- The simulation -----------------------------------------------------------------------------------------


def survey_of(tmp_path, channel, table, **settings):
    file = tmp_path / "table.npy"
    np.save(file, table)
    num_models = table.shape[1]
    given = {
        "truths": np.eye(num_models, num_models + 1),
        "runs": np.arange(30),
        "alpha": 0.05,
        "alike": np.eye(num_models, dtype=bool),
        "batch": 1,
        "seed": 0,
    }
    return surveys.Surveys(channel=channel, table=file, **given | settings)


def play(simulated, users):
    asked = 0
    while asked < users:
        asked = surveys.next_block(asked, users)
        simulated.play(asked)
    return simulated.outcomes


def test_a_model_is_dropped_in_the_round_in_which_bayes_drops_it():
    rng = np.random.default_rng(0)
    channel = make_channel("randomized-response", 3, 3, 200, epsilon=2.0)
    candidates = np.array([MILD, EVEN, WILD])
    messages = rng.integers(3, size=(5, 60))
    log_likelihoods = channel.log_likelihood(messages, candidates)
    first = surveys.first_dropped(np.cumsum(log_likelihoods, axis=1), 0.1)

    learner = Bayes(_game(channel))
    learner.reset((5,))
    expected = np.full((5, 3), np.inf)
    for t in range(60):
        learner.update(candidates, messages[:, t])
        dropped = ~learner.confidence_set(0.1) & np.isinf(expected)
        expected[dropped] = t
    np.testing.assert_array_equal(first, expected)


def _game(channel):
    return Game(None, channel, channel.horizon)


def test_a_survey_ends_when_all_models_left_are_alike():
    alike = np.eye(4, dtype=bool)
    alike[2, 3] = alike[3, 2] = True
    dropped = np.array(
        [[5.0, 9.0, np.inf, np.inf], [5.0, 9.0, 12.0, np.inf], [5.0, np.inf, np.inf, np.inf]]
    )
    assert surveys.users_until_decided(dropped, alike).tolist() == [9.0, 9.0, np.inf]


def test_a_survey_ends_when_no_model_is_left():
    differ = np.eye(2, dtype=bool)
    assert surveys.users_until_decided(np.array([4.0, 4.0]), differ) == 4.0


def test_the_users_of_two_coins_are_those_of_a_random_walk(tmp_path):
    """Randomized response on a coin: the log-odds are a walk on integers, and its law is a matrix power."""
    table = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    channel = make_channel("randomized-response", 2, 2, 500, epsilon=1.0)
    outcomes = play(survey_of(tmp_path, channel, table, runs=np.arange(4000)), 200)

    truthful = math.e / (1.0 + math.e)
    up = 0.9 * truthful + 0.1 * (1.0 - truthful)
    step = math.log(up / (1.0 - up))
    # A model is dropped at posterior odds of alpha / (2 - alpha).
    edge = math.ceil(math.log(1.95 / 0.05) / step - 1e-9)
    law = np.zeros(2 * edge + 1)
    law[edge] = 1.0
    ended = []
    for _ in range(200):
        inner = law.copy()
        inner[[0, -1]] = 0.0
        after = np.zeros_like(law)
        after[1:] += up * inner[:-1]
        after[:-1] += (1.0 - up) * inner[1:]
        after[[0, -1]] += law[[0, -1]]
        law = after
        ended.append(law[0] + law[-1])
    users = np.sort(outcomes.users[0])
    observed = np.searchsorted(users, np.arange(1, 201), side="right") / 4000
    assert np.abs(observed - ended).max() < 2.0 / math.sqrt(4000)
    wrong = (outcomes.left[0, :, 1] & np.isfinite(outcomes.users[0])).sum()
    assert stats.binomtest(int(wrong), 4000, law[0]).pvalue > 1e-6


@pytest.mark.parametrize("name", ["split", "subset-selection", "scheffe", "adaptive-split"])
def test_surveys_by_rows_of_x_are_those_of_the_learner_stepped_by_hand(tmp_path, name):
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(4), size=(5, 3))
    channel = make_channel(name, 3, 4, 1000, epsilon=2.0)
    outcomes = play(survey_of(tmp_path, channel, table, runs=np.arange(300)), 400)

    learner = Bayes(_game(channel))
    learner.reset((900,))
    truths = np.repeat(np.arange(3), 300)
    ended = np.full(900, np.inf)
    for user in range(1, 401):
        rows = rng.integers(5, size=900)
        here = table[rows]
        labels = (np.cumsum(here[np.arange(900), truths], axis=1) < rng.random((900, 1))).sum(
            axis=1
        )
        uniforms = rng.random((900, channel.num_uniforms))
        messages = channel.encode(labels, here, uniforms, learner.public_weights)
        learner.update(here, messages)
        done = learner.confidence_set(0.05).sum(axis=1) <= 1
        ended[done & np.isinf(ended)] = user
    for k in range(3):
        assert stats.ks_2samp(outcomes.users[k], ended[truths == k]).pvalue > 1e-4


def test_channels_share_their_users_contexts_and_labels(tmp_path):
    """Common random numbers: with eps so large that the label is sent, two channels are one survey."""
    table = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, 2))
    first = make_channel("randomized-response", 2, 3, 100, epsilon=50.0)
    second = make_channel("subset-selection", 2, 3, 100, epsilon=50.0)
    users = [play(survey_of(tmp_path, channel, table), 300).users for channel in (first, second)]
    np.testing.assert_array_equal(*users)


def test_runs_played_in_groups_are_the_runs_played_together(tmp_path):
    table = np.random.default_rng(2).dirichlet(np.ones(3), size=(4, 2))
    channel = make_channel("adaptive-split", 2, 3, 1000, epsilon=1.0)
    together = play(survey_of(tmp_path, channel, table), 500).users
    parts = [
        play(survey_of(tmp_path, channel, table, runs=runs), 500).users
        for runs in np.array_split(np.arange(30), 3)
    ]
    np.testing.assert_array_equal(together, np.concatenate(parts, axis=1))


def test_a_mixed_truth_draws_from_both_models_and_from_noise(tmp_path):
    """Weights 0.25, 0.25 and a half of noise on disjoint models: labels 0, 1 and 2 with known shares."""
    table = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    channel = make_channel("randomized-response", 2, 3, 100, epsilon=1.0)
    simulated = survey_of(tmp_path, channel, table, truths=np.array([[0.25, 0.25, 0.5]]))
    runs = np.arange(30)
    _, labels = simulated._draw_users(runs, runs, np.zeros(30, dtype=int), 1000, table)
    shares = np.bincount(labels.ravel()) / labels.size
    np.testing.assert_allclose(shares, [5 / 12, 5 / 12, 2 / 12], atol=0.01)


# -- The promise --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_fresh_surveys_keep_the_promise_of_their_plan(seed):
    """Random models with a tie, a near-tie or none: a wrong name in at most 5% of the surveys."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(5), size=3)
    if seed % 3 == 1:
        table = np.vstack([table, table[0]])
    if seed % 3 == 2:
        table = np.vstack([table, 0.95 * table[0] + 0.01])
    tolerance = 0.02 if seed % 3 == 2 else 0.0
    planned = plan(dict(enumerate(table)), tolerance=tolerance, seed=seed)
    agreed = planned.plan
    alike = np.eye(len(table), dtype=bool)
    for j, k in agreed.alike:
        alike[j, k] = alike[k, j] = True

    channel = agreed.channel()
    learner = Bayes(agreed.game())
    learner.reset((len(table) * 200,))
    truths = np.repeat(np.arange(len(table)), 200)
    undecided = np.ones(len(truths), dtype=bool)
    left = np.ones((len(truths), len(table)), dtype=bool)
    for _ in range(agreed.users):
        labels = (np.cumsum(table[truths], axis=1) < rng.random((len(truths), 1))).sum(axis=1)
        uniforms = rng.random((len(truths), channel.num_uniforms))
        learner.update(table, channel.encode(labels, table, uniforms, learner.public_weights))
        left[undecided] = learner.confidence_set(agreed.alpha)[undecided]
        undecided &= np.einsum("bj,bk,jk->b", left, left, ~alike) > 0
    for k in range(len(table)):
        own = truths == k
        named_another = ~undecided[own] & (left[own] & ~alike[k]).any(axis=1)
        assert stats.binomtest(int(named_another.sum()), 200, 0.05, "greater").pvalue > 1e-4
        assert stats.binomtest(int(undecided[own].sum()), 200, 0.08, "greater").pvalue > 1e-4


def test_the_lower_bound_holds_for_every_channel():
    table = np.array([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]])
    planned = plan(dict(enumerate(table)), channels=["split", "randomized-response", "challenge"])
    divergence = search.mean_divergences(table[None])
    bound = answer.least_users(divergence, np.eye(2, dtype=bool), 2.0, 0.05)
    needed = planned.frame.groupby("truth")["users_95_high"].min()
    assert (needed.to_numpy() >= bound).all()


def test_the_lower_bound_is_the_divergence_of_two_coins():
    divergence = np.array([[0.0, 0.02], [0.03, 0.0]])
    coins = stats.entropy([0.9, 0.1], [0.05, 0.95])
    expected = coins / (math.tanh(0.5) ** 2 * np.array([0.02, 0.03]))
    np.testing.assert_allclose(
        answer.least_users(divergence, np.eye(2, dtype=bool), 1.0, 0.05), expected
    )


# -- The answer ---------------------------------------------------------------------------------------------


def test_the_recommended_channel_minimises_the_slowest_truth():
    planned = plan(TABLE)
    chosen = planned.frame[planned.frame["channel"] == planned.recommended["channel"]]
    assert planned.recommended["users"] == chosen["users_95"].max()
    slowest = chosen.loc[chosen["users_95"].idxmax(), "truth"]
    assert planned.recommended["worst_truth"] == slowest
    assert planned.recommended["users_average"] == chosen["users_median"].mean()
    assert chosen["confirmed"].all()
    assert chosen["runs"].tolist() == [120, 120, 120]


class Stub:
    def __init__(self, users, adaptive, hopeless=False):
        self.worst = users
        self.channel = make_channel("adaptive-split" if adaptive else "split", 2, 3, 10)
        self.hopeless = np.array([hopeless])


def test_a_channel_without_waiting_wins_up_to_a_quarter_more_users():
    fast, slow = Stub(100, adaptive=True), Stub(125, adaptive=False)
    assert contest.choose([fast, slow]) is slow


def test_an_adaptive_channel_wins_beyond_a_quarter():
    fast, slow = Stub(100, adaptive=True), Stub(126, adaptive=False)
    assert contest.choose([fast, slow]) is fast


def test_a_channel_that_cannot_tell_two_models_apart_is_not_chosen():
    blind, slow = Stub(100, adaptive=False, hopeless=True), Stub(500, adaptive=False)
    assert contest.choose([blind, slow]) is slow


def test_a_blind_channel_needs_infinitely_many_users_and_is_named():
    table = [[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]]
    planned = plan(table, channels=["split"])
    assert planned.recommended is None
    assert planned.plan is None
    assert planned.frame["users_95"].tolist()[:2] == [math.inf, math.inf]
    assert math.isfinite(planned.frame["users_95"][2])
    assert any(
        note.startswith("split tells 'row 0', 'row 1' from a rival") for note in planned.notes
    )


def test_a_channel_that_gives_up_does_not_stop_another():
    gives_up = Stub(100, adaptive=False, hopeless=True)
    slow = Stub(math.inf, adaptive=False)
    assert contest.fewest_users([gives_up, slow]) == math.inf


def test_beside_another_channel_a_blind_one_is_left_behind():
    table = [[0.2, 0.0, 0.8], [0.0, 0.2, 0.8], [0.5, 0.5, 0.0]]
    planned = plan(table, channels=["split", "half-space"])
    assert planned.recommended["channel"] == "half-space"


def test_models_too_near_for_the_most_users_are_not_played():
    planned = plan({"a": [0.5, 0.5], "b": [0.5001, 0.4999]}, most_users=5000)
    assert planned.recommended is None
    assert np.isinf(planned.frame["users_95"]).all()
    assert "within 5,000 users" in " ".join(planned.sentences)
    assert "too many" in str(planned)


def test_two_labels_leave_one_channel():
    planned = plan({"a": [0.8, 0.2], "b": [0.4, 0.6], "c": [0.1, 0.9]})
    assert set(planned.frame["channel"]) == {"randomized-response"}
    assert planned.notes == [
        "At eps = 2, subset-selection, split, scheffe, adaptive-split, half-space, challenge are the same "
        "channel as randomized-response here."
    ]


def test_the_law_of_a_channel_does_not_depend_on_its_name():
    table = np.array([[[0.8, 0.2], [0.4, 0.6]]])
    scheffe = make_channel("scheffe", 2, 2, 10, epsilon=1.5)
    response = laws.message_law(make_channel("randomized-response", 2, 2, 10, epsilon=1.5), table)
    assert laws.message_law(scheffe, table) == response
    assert laws.message_law(make_channel("scheffe", 2, 2, 10, epsilon=1.0), table) != response


def test_a_list_of_eps_gives_a_column_each():
    planned = plan(TABLE, epsilon=[4.0, 1.0], channels=["split", "randomized-response"])
    assert planned.recommendations["epsilon"].tolist() == [1.0, 4.0]
    assert planned.recommended["epsilon"] == 1.0
    assert sorted(planned.plans) == [1.0, 4.0]
    assert "eps = 1" in str(planned)
    assert "eps = 4" in str(planned)


def test_models_that_predict_alike_are_said_to_be_one():
    planned = plan({"a": MILD, "b": MILD, "c": WILD})
    assert planned.notes[0] == "'a' and 'b' predict exactly the same: they count as one model."
    assert planned.plan.alike == ((0, 1),)
    assert math.isfinite(planned.recommended["users"])


def test_models_within_the_tolerance_need_not_be_told_apart():
    near = {"a": [0.5, 0.5], "b": [0.52, 0.48], "c": [0.9, 0.1]}
    apart, together = plan(near), plan(near, tolerance=0.01)
    assert "within 0.01 nats per user the same" in together.notes[0]
    assert together.recommended["users"] < 0.2 * apart.recommended["users"]


def test_where_all_models_are_alike_no_survey_is_needed():
    planned = plan({"a": MILD, "b": MILD})
    assert planned.frame.empty
    assert planned.recommended is None
    assert "no survey is needed" in str(planned)


def test_the_same_seed_gives_the_same_answer_in_any_number_of_processes(monkeypatch):
    settings = {"channels": ["split", "adaptive-split"], "runs": 20}
    one = plan(TABLE, **settings)
    monkeypatch.setattr(search, "_LONG_WORK", 0.0)
    two = plan(TABLE, jobs=2, **settings)
    assert one.frame.equals(two.frame)
    assert str(one) == str(two)


def test_the_stress_rows_share_out_the_surveys():
    stress = plan(TABLE).stress
    assert stress["stress"].tolist()[:3] == ["2% noise"] * 3
    assert "half and half" in set(stress["stress"])
    shares = stress[["named_it", "named_another", "none_left", "undecided"]].sum(axis=1)
    np.testing.assert_allclose(shares, 1.0)


def test_the_printed_answer_names_its_limits():
    text = " ".join(str(plan(TABLE)).split())
    assert "Not covered: users whose labels follow none of the models." in text
    assert "Stress, which promises nothing" in text
    assert "with probability at most 0.05, however often one looks" in text


def test_a_quantile_has_the_ends_of_the_binomial_interval():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    estimate = answer.quantile(values, 0.95)
    assert estimate.value == 190.0
    covered = stats.binom.cdf(estimate.high - 1, 200, 0.95) - stats.binom.cdf(
        estimate.low - 1, 200, 0.95
    )
    assert 0.95 <= covered <= 0.97


# -- Models -------------------------------------------------------------------------------------------------


class Classifier:
    def __init__(self, probabilities, classes):
        self.probabilities = np.asarray(probabilities)
        self.classes_ = np.asarray(classes)

    def predict_proba(self, X):
        return np.tile(self.probabilities, (len(X), 1))


def test_labels_are_named_by_the_classifiers_and_joined():
    bundle = models.Models(
        {"a": Classifier([0.9, 0.1], ["no", "yes"]), "b": Classifier([0.3, 0.7], ["yes", "maybe"])}
    )
    np.testing.assert_array_equal(
        bundle.predict(np.zeros((1, 2)))[0], [[0.9, 0.1, 0.0], [0.0, 0.3, 0.7]]
    )
    assert bundle.labels == ["no", "yes", "maybe"]


def test_functions_of_one_row_and_of_all_rows_are_models():
    def of_one(x):
        return [x[0], 1.0 - x[0]]

    def of_all(X):
        return np.stack([X[:, 1], 1.0 - X[:, 1]], axis=1)

    predicted = models.Models([of_one, of_all]).predict(np.array([[0.2, 0.7], [0.4, 0.1]]))
    np.testing.assert_allclose(predicted[:, :, 0], [[0.2, 0.7], [0.4, 0.1]])


def test_x_may_have_one_row():
    planned = plan([lambda x: MILD, lambda x: WILD], np.zeros((1, 2)), channels=["split"])
    assert planned.recommended["users"] > 0


def test_a_data_frame_gives_each_classifier_its_own_columns():
    import pandas as pd

    class Named(Classifier):
        feature_names_in_ = np.array(["age"])

        def predict_proba(self, X):
            assert list(X.columns) == ["age"]
            return super().predict_proba(X)

    frame = pd.DataFrame({"name": ["x", "y"], "age": [3, 4]})
    given = {"a": Named([0.9, 0.1], [0, 1]), "b": Named([0.2, 0.8], [0, 1])}
    planned = plan(given, frame, channels=["randomized-response"])
    assert planned.plan.features == ("name", "age")
    assert planned.plan.probe == (("x", 3), ("x", 3), ("x", 4))


def test_columns_of_predictions_are_read_and_others_ignored():
    import pandas as pd

    columns = {"a:x": [0.9], "a:y": [0.1], "b:x": [0.2], "b:y": [0.8], "age": [40]}
    planned = plan(None, probabilities=pd.DataFrame(columns), channels=["split"])
    assert planned.plan.models == ("a", "b")
    assert planned.plan.labels == ("x", "y")
    assert "Columns that are not predictions are ignored: 'age'." in planned.notes


def test_rounded_predictions_are_renormalised_with_a_warning():
    with pytest.warns(UserWarning, match="'a', row 0 sums to one only up to 0.001"):
        bundle = models.Models({"a": [0.333, 0.333, 0.333], "b": MILD})
    np.testing.assert_allclose(bundle.table[0], 1 / 3)


def test_predictions_further_off_are_refused():
    with pytest.raises(ValueError, match="'a', row 0 sums to 0.99"):
        models.Models({"a": [0.33, 0.33, 0.33], "b": MILD})


def test_a_model_that_excludes_a_label_is_named():
    planned = plan({"a": [0.5, 0.5, 0.0], "b": MILD}, labels=["x", "y", "z"])
    assert planned.notes[0].startswith("'a' gives probability 0 to 1 of 3 labels, such as 'z'.")


def test_more_rows_than_fit_are_sampled(monkeypatch):
    monkeypatch.setattr(models, "_MOST_NUMBERS", 600)
    planned = plan([lambda x: MILD, lambda x: WILD], np.zeros((500, 1)), channels=["split"])
    assert "Of the 500 rows of X a random 100 are used." in planned.notes


def test_the_probe_has_the_quartiles_of_each_feature_by_itself():
    users = np.array([[1, 50], [2, 40], [3, 30], [4, 20], [5, 10]])
    assert models._probe_rows(users) == [[2, 20], [3, 30], [4, 40]]


WRONG = [
    ({"models": {"a": MILD}}, ValueError, "two or more models, got 1"),
    ({"models": {"a": MILD, "b": [0.5, 0.5]}}, ValueError, "same number of labels"),
    ({"models": {"a": MILD, "b": [0.5, 0.5, math.nan]}}, ValueError, "'b', row 0 has a NaN"),
    ({"models": [lambda x: MILD, lambda x: EVEN]}, TypeError, "X is needed"),
    ({"models": 3}, TypeError, "models must be a list"),
    ({"models": None}, TypeError, "plan needs models"),
    ({"epsilon": 0.0}, ValueError, "epsilon must be"),
    ({"epsilon": []}, ValueError, "at least one epsilon"),
    ({"channels": []}, ValueError, "one channel"),
    ({"channels": ["splt"]}, ValueError, "splt"),
    ({"channels": ["laplace-single"]}, ValueError, "none of the channels"),
    ({"channels": ["identity"]}, ValueError, "none of the channels"),
    ({"alpha": 1.0}, ValueError, "alpha"),
    ({"tolerance": -0.1}, ValueError, "tolerance"),
    ({"most_users": 1}, ValueError, "most_users"),
    ({"batch": 0}, ValueError, "batch"),
    ({"runs": 3}, ValueError, "runs"),
    ({"jobs": 0}, ValueError, "jobs"),
    ({"labels": ["x", "y"]}, ValueError, "2 names of labels for models with 3"),
    ({"labels": ["x", "x", "y"]}, ValueError, "different names"),
    ({"probabilities": np.ones((2, 3))}, ValueError, "shape"),
]


@pytest.mark.parametrize(("settings", "error", "message"), WRONG)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_argument_is_named(settings, error, message):
    given = {"models": TABLE, **QUICK, **settings}
    with pytest.raises(error, match=message):
        ldp_bench.plan(**given)
