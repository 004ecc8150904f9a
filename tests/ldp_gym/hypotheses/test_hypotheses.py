"""The hypothesis classes: laws, errors, and classes made of callables, fitted classifiers and tables."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ldp_gym import HYPOTHESES, theory
from ldp_gym.hypotheses import (
    Callables,
    Disjoint,
    Hadamard,
    Refined,
    SoftmaxLinear,
    Table,
    as_hypotheses,
)
from ldp_gym.testing import check_hypotheses
from ldp_gym.truths import as_truth


@pytest.mark.parametrize("name", HYPOTHESES)
def test_every_named_class_keeps_the_contract(name):
    check_hypotheses(HYPOTHESES[name]())


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 7, 8])
def test_hadamard_is_appendix_a(pairs):
    """Against scipy's matrix: pair i on column i + 1, and N the power of two with N/2 <= K <= N - 1."""
    f = Hadamard(2 * pairs, gap=0.5)
    order = f.num_labels
    assert order / 2 <= pairs <= order - 1
    assert order & (order - 1) == 0
    columns = hadamard(order)[1 : pairs + 1]  # it is symmetric
    np.testing.assert_allclose(f.table[::2], np.where(columns == 1, 0, 2 / order), atol=1e-15)
    np.testing.assert_allclose(f.table[1::2] - f.table[::2], 0.5 * columns / order, atol=1e-15)


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [(0.1, math.expm1(0.1) ** 2), (math.log(2), 1.0), (1.0, 1.0), (3.0, 1.0)],
)
def test_hadamard_takes_its_gap_from_the_theorem(epsilon, factor):
    """The factor ``min{(e^eps - 1)^2, 1} e^eps``: the minimum is 1 from eps = log 2 on."""
    expected = math.sqrt(4 / (9 * 1000 * factor * math.exp(epsilon)))
    assert math.isclose(theory.hadamard_gap(8, 1000, epsilon), expected, rel_tol=1e-12)
    assert math.isclose(Hadamard(8, epsilon=epsilon, horizon=1000).gap, expected, rel_tol=1e-12)


def test_the_gap_at_the_least_horizon_of_the_theorem_is_at_most_1():
    least_horizon = int(theory.hadamard_horizon(64, 0.01))
    assert Hadamard(64, epsilon=0.01, horizon=least_horizon).gap <= 1


@pytest.mark.parametrize(("epsilon", "horizon"), [(1e-6, 10**13), (400.0, 99), (800.0, 99)])
def test_the_gap_at_an_extreme_epsilon_is_below_1(epsilon, horizon):
    assert Hadamard(8, 1, epsilon, horizon).gap < 1


@pytest.mark.parametrize(
    ("labels", "dim", "scale"), [(16, 4, 300), (16, 1, 1), (64, 3, 1), (200, 4, 1)]
)
def test_a_round_has_the_same_candidates_in_every_block_and_layout(labels, dim, scale):
    """Few rounds have labels side by side in memory, many have rounds: not a bit may differ."""
    softmax_class = SoftmaxLinear(3, labels, dim, scale=scale)
    contexts = np.random.default_rng(0).standard_normal((2, 50, dim))
    together = softmax_class(contexts)
    assert together.strides[-1] > 8 == softmax_class(contexts[0, 0]).strides[-1]
    for rounds in (slice(0, 1), slice(0, 3), slice(7, 30)):
        np.testing.assert_array_equal(softmax_class(contexts[:, rounds]), together[:, rounds])
        np.testing.assert_array_equal(softmax_class(contexts[1, rounds]), together[1, rounds])
    with_nan = np.concatenate([np.full((1, dim), np.nan), contexts[0]])
    np.testing.assert_array_equal(softmax_class(with_nan)[1:], together[0])
    exact = softmax(softmax_class.weights @ contexts[..., None, :, None], axis=-2)[..., 0]
    np.testing.assert_allclose(
        together, exact, rtol=1e-12 * scale
    )  # a logit of 1,000 has an error of 1e-13


def test_softmax_linear_is_the_softmax_of_linear_logits():
    softmax_class = SoftmaxLinear(3, 4, 2, class_seed=4)
    context = np.random.default_rng(0).standard_normal(2)
    expected = softmax(softmax_class.weights @ context, axis=-1)
    np.testing.assert_allclose(softmax_class(context), expected, rtol=1e-13)


def test_supports_of_the_disjoint_class_do_not_meet():
    supports = Disjoint(3, 8).table > 0
    assert (supports.sum(axis=0) == 1).all()


def test_supports_of_the_disjoint_class_differ_by_one_label_at_most():
    supports = Disjoint(3, 8).table > 0
    assert sorted(supports.sum(axis=1)) == [2, 3, 3]


def test_the_parts_of_a_refined_label_have_its_probability_together():
    base = SoftmaxLinear(3, 4, 2, class_seed=4)
    contexts = np.random.default_rng(0).standard_normal((7, 2))
    refined = Refined(base, parts=5)
    sums_of_parts = refined(contexts).reshape(7, 3, 4, 5).sum(axis=-1)
    np.testing.assert_allclose(sums_of_parts, base(contexts), rtol=1e-12)


def test_a_refined_class_keeps_the_contract():
    check_hypotheses(Refined(SoftmaxLinear(3, 4, 2, class_seed=4), parts=5))


@pytest.mark.parametrize(
    "make",
    [
        lambda w: (
            lambda x: softmax(w @ x)
        ),  # of one context: of as many as labels, right in shape only
        lambda w: lambda x: softmax(x @ w.T, axis=-1),  # of any batch
        lambda w: (
            lambda x: softmax(np.atleast_2d(x) @ w.T, axis=1).squeeze()
        ),  # of flat batches only
    ],
)
def test_callables_are_called_on_batches_where_they_can_be(make):
    weights = np.random.default_rng(0).standard_normal((2, 3, 3))
    f = Callables([make(w) for w in weights], context_dim=3)
    for batch in ((3,), (4, 5), (1, 1)):
        x = np.random.default_rng(1).standard_normal((*batch, 3))
        expected = softmax(np.einsum("kmd,...d->...km", weights, x), axis=-1)
        np.testing.assert_allclose(f(x), expected, rtol=1e-12)
    check_hypotheses(f)


DATA, CLASSES = make_classification(200, 5, n_informative=3, n_classes=3, random_state=0)
"""200 rows of five features, and the class of each, 0 to 2."""


@pytest.fixture(scope="module")
def classifiers():
    """Two logistic regressions, one strongly regularised."""
    strongly_regularised = LogisticRegression(C=0.01).fit(DATA, CLASSES)
    hardly_regularised = LogisticRegression(C=100.0).fit(DATA, CLASSES)
    return [strongly_regularised, hardly_regularised]


def test_a_class_of_classifiers_has_their_numbers_of_labels_and_features(classifiers):
    hypotheses = as_hypotheses(classifiers, {})
    assert hypotheses.num_hypotheses == 2
    assert hypotheses.num_labels == 3
    assert hypotheses.context_dim == 5


def test_a_class_of_classifiers_gives_their_predicted_probabilities(classifiers):
    hypotheses = as_hypotheses(classifiers, {})
    expected = classifiers[1].predict_proba(DATA[:4])
    np.testing.assert_allclose(hypotheses(DATA[:4])[:, 1], expected, rtol=1e-12)


def test_a_class_of_classifiers_keeps_the_contract(classifiers):
    check_hypotheses(as_hypotheses(classifiers, {}))


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        (LogisticRegression().fit(DATA, CLASSES % 2), ValueError, "hypothesis 1 has"),
        (LogisticRegression().fit(DATA[:, :4], CLASSES), ValueError, "1 takes 4 features, not"),
        (LogisticRegression(), ValueError, "the same classes: hypothesis 1 has None"),
        (LinearSVC(), TypeError, "need predict_proba, .*LinearSVC"),
    ],
    ids=["other classes", "other features", "not fitted", "no probabilities"],
)
def test_a_classifier_that_does_not_fit_the_first_is_named(classifiers, second, error, message):
    with pytest.raises(error, match=message):
        as_hypotheses([classifiers[0], second], {})


def test_classifiers_that_are_not_fitted_are_refused():
    with pytest.raises(ValueError, match="is it fitted"):
        as_hypotheses([LogisticRegression(), LogisticRegression()], {})


def test_a_classifier_as_truth_must_be_fitted_on_the_classes_of_the_hypotheses(classifiers):
    hypotheses = as_hypotheses(classifiers, {})
    message = "must be fitted on the classes of the hypotheses, .* has None"
    with pytest.raises(ValueError, match=message):
        as_truth(LogisticRegression(), hypotheses, horizon=9)


ROWS = [[0.5, 0.5], [0.9, 0.1]]
LATE = Callables([lambda x: [0.5, 0.5], lambda x: [0.5, 0.5 + (x[0] > 9)]], context_dim=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table([[1.0], [1.0]]), r"num_labels \(M\) must be at least 2, got 1"),
        (lambda: Hadamard(64, epsilon=0.01, horizon=10), r"raise the horizon to at least \d+"),
        (
            lambda: as_hypotheses(ROWS, {"num_labels": 7}),
            "num_labels=7 contradicts .* num_labels=2",
        ),
        (lambda: as_hypotheses([lambda x: ROWS[0], lambda x: ROWS[1]], {}), "needs context_dim"),
        (lambda: as_hypotheses(ROWS, {}, {"concentration": 1.0}), "go with a named class"),
        (
            lambda: Callables([lambda x: [1.0, 0.0], lambda x: [1.0]], context_dim=1),
            "1 must map a context",
        ),
        (lambda: LATE(np.array([10.0])), "hypothesis 1 sums to 2, off one by"),
    ],
)
def test_contradictions_and_bad_tables_are_named(make, message):
    with pytest.raises(
        TypeError if message == "go with a named class" else ValueError, match=message
    ):
        make()
