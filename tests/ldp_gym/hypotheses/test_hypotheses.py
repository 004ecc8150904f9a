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


def test_hadamard_takes_its_gap_from_the_theorem():
    """The factor ``min{(e^eps - 1)^2, 1} e^eps``: the minimum is 1 from eps = log 2 on."""
    for epsilon, factor in (
        (0.1, math.expm1(0.1) ** 2),
        (math.log(2), 1.0),
        (1.0, 1.0),
        (3.0, 1.0),
    ):
        expected = math.sqrt(4 / (9 * 1000 * factor * math.exp(epsilon)))
        assert math.isclose(theory.hadamard_gap(8, 1000, epsilon), expected, rel_tol=1e-12)
        assert math.isclose(Hadamard(8, epsilon=epsilon, horizon=1000).gap, expected, rel_tol=1e-12)
    assert Hadamard(64, epsilon=0.01, horizon=int(theory.hadamard_horizon(64, 0.01))).gap <= 1
    assert [
        Hadamard(8, 1, e, t).gap < 1 for e, t in ((1e-6, 10**13), (400.0, 99), (800.0, 99))
    ] == [True] * 3


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


def test_other_classes_by_hand():
    """Softmax of linear logits; supports that do not meet; and labels in parts, which change M only."""
    base, x = SoftmaxLinear(3, 4, 2, class_seed=4), np.random.default_rng(0).standard_normal((7, 2))
    np.testing.assert_allclose(base(x[0]), softmax(base.weights @ x[0], axis=-1), rtol=1e-13)
    supports = Disjoint(3, 8).table > 0
    assert (supports.sum(axis=0) == 1).all()
    assert sorted(supports.sum(axis=1)) == [2, 3, 3]
    fine = Refined(base, parts=5)
    np.testing.assert_allclose(fine(x).reshape(7, 3, 4, 5).sum(axis=-1), base(x), rtol=1e-12)
    check_hypotheses(fine)


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


def test_fitted_classifiers_form_a_class():
    data, labels = make_classification(200, 5, n_informative=3, n_classes=3, random_state=0)
    models = [LogisticRegression(C=c).fit(data, labels) for c in (0.01, 100.0)]
    f = as_hypotheses(models, {})
    assert (f.num_hypotheses, f.num_labels, f.context_dim) == (2, 3, 5)
    np.testing.assert_allclose(f(data[:4])[:, 1], models[1].predict_proba(data[:4]), rtol=1e-12)
    check_hypotheses(f)
    for first, second, error, message in (
        (models[0], LogisticRegression().fit(data, labels % 2), ValueError, "hypothesis 1 has"),
        (
            models[0],
            LogisticRegression().fit(data[:, :4], labels),
            ValueError,
            "1 takes 4 features, not",
        ),
        (LogisticRegression(), LogisticRegression(), ValueError, "is it fitted"),
        (models[0], LogisticRegression(), ValueError, "the same classes: hypothesis 1 has None"),
        (models[0], LinearSVC(), TypeError, "need predict_proba, .*LinearSVC"),
    ):
        with pytest.raises(error, match=message):
            as_hypotheses([first, second], {})
    with pytest.raises(
        ValueError, match="must be fitted on the classes of the hypotheses, .* has None"
    ):
        as_truth(LogisticRegression(), f, horizon=9)


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
