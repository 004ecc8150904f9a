"""The hypothesis classes: shapes, laws and errors."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ldp_gym import HYPOTHESES, theory
from ldp_gym.hypotheses.callables import Callables
from ldp_gym.hypotheses.classifiers import Classifiers
from ldp_gym.hypotheses.dirichlet import Dirichlet
from ldp_gym.hypotheses.disjoint import Disjoint
from ldp_gym.hypotheses.hadamard import Hadamard
from ldp_gym.hypotheses.refined import Refined
from ldp_gym.hypotheses.softmax_linear import SoftmaxLinear
from ldp_gym.hypotheses.sources import as_hypotheses
from ldp_gym.hypotheses.table import Table
from ldp_gym.testing import check_hypotheses


@pytest.mark.parametrize("name", HYPOTHESES.names())
def test_every_named_class_keeps_the_contract(name):
    check_hypotheses(HYPOTHESES[name]())


def test_softmax_linear_is_the_softmax_of_its_logits():
    f = SoftmaxLinear(3, 5, 2, class_seed=4)
    x = np.array([0.3, -2.0])
    np.testing.assert_allclose(f(x), softmax(f.weights @ x, axis=-1), rtol=1e-13)


def test_class_seed_decides_the_class():
    assert np.array_equal(Dirichlet(class_seed=3).table, Dirichlet(class_seed=3).table)
    assert not np.allclose(Dirichlet(class_seed=3).table, Dirichlet(class_seed=4).table)


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 7, 8])
def test_hadamard_is_appendix_a(pairs):
    """Against scipy's matrix: pair i on column i + 1, and N the power of two with N/2 <= K <= N - 1."""
    f = Hadamard(2 * pairs, gap=0.5)
    order = f.num_labels
    assert order / 2 <= pairs <= order - 1
    assert order & (order - 1) == 0
    for i in range(1, pairs + 1):
        column = hadamard(order)[:, i]
        np.testing.assert_allclose(f.table[2 * i - 2], np.where(column == 1, 0, 2 / order), atol=1e-15)
        np.testing.assert_allclose(f.table[2 * i - 1], f.table[2 * i - 2] + 0.5 * column / order, atol=1e-15)


def test_hadamard_takes_its_gap_from_the_theorem():
    f = Hadamard(8, epsilon=0.5, horizon=500)
    a = math.sqrt(4 / (9 * 500 * min((math.exp(0.5) - 1) ** 2, 1) * math.exp(0.5)))
    assert math.isclose(f.gap, a)
    with pytest.raises(ValueError, match=r"raise the horizon to at least \d+"):
        Hadamard(64, epsilon=0.01, horizon=10)
    least = theory.hadamard_horizon(64, 0.01)
    assert Hadamard(64, epsilon=0.01, horizon=int(least)).gap <= 1
    with pytest.raises(ValueError, match="must be even, got 7"):
        Hadamard(7)


def test_disjoint_supports_do_not_meet():
    table = Disjoint(3, 8).table
    assert ((table > 0).sum(axis=0) == 1).all()
    assert sorted((table > 0).sum(axis=1)) == [2, 3, 3]
    assert Disjoint(sizes=[1, 4]).table.tolist() == [[1, 0, 0, 0, 0], [0, 0.25, 0.25, 0.25, 0.25]]


def test_refining_changes_m_and_nothing_else():
    base = SoftmaxLinear(3, 4, 2)
    fine = Refined(base, parts=5)
    x = np.random.default_rng(0).standard_normal((7, 2))
    assert fine.num_labels == 20
    np.testing.assert_allclose(fine(x).reshape(7, 3, 4, 5).sum(axis=-1), base(x), rtol=1e-12)
    check_hypotheses(fine)
    with pytest.raises(ValueError, match="multiple of parts=3, got 10"):
        Refined("dirichlet", parts=3, num_labels=10)


def test_callables_of_one_context_and_of_batches_agree():
    weights = np.random.default_rng(0).standard_normal((2, 3, 3))

    def single(j):
        return lambda x: softmax(weights[j] @ x)

    def batched(j):
        return lambda x: softmax(x @ weights[j].T, axis=-1)

    x = np.random.default_rng(1).standard_normal((4, 5, 3))
    slow, fast = (Callables([f(0), f(1)], context_dim=3) for f in (single, batched))
    np.testing.assert_allclose(slow(x), fast(x), rtol=1e-12)
    check_hypotheses(slow)
    check_hypotheses(fast)


def test_a_callable_that_only_looks_batched_is_not_taken_for_one():
    """W @ x has the right shape for a batch of as many contexts as labels, and the wrong values."""
    w = np.random.default_rng(0).standard_normal((3, 3))
    f = Callables([lambda x: softmax(w @ x), lambda x: np.full(3, 1 / 3)], context_dim=3)
    x = np.random.default_rng(1).standard_normal((3, 3))
    np.testing.assert_allclose(f(x)[1, 0], softmax(w @ x[1]))


def test_callables_that_only_work_on_flat_batches_are_called_one_by_one():
    w = np.random.default_rng(0).standard_normal((2, 4, 3))
    flat = [lambda x, j=j: softmax(np.atleast_2d(x) @ w[j].T, axis=1).squeeze() for j in range(2)]
    f = Callables(flat, context_dim=3)
    x = np.random.default_rng(1).standard_normal((2, 5, 3))
    np.testing.assert_allclose(f(x)[1, 2, 1], softmax(w[1] @ x[1, 2]))
    assert f(x[:1, :1]).shape == (1, 1, 2, 4)


def test_fitted_classifiers_form_a_class():
    data, labels = make_classification(200, 5, n_informative=3, n_classes=3, random_state=0)
    models = [LogisticRegression(C=c).fit(data, labels) for c in (0.01, 100.0)]
    f = as_hypotheses(models, {})
    assert (f.num_hypotheses, f.num_labels, f.context_dim) == (2, 3, 5)
    np.testing.assert_allclose(f(data[:4])[:, 1], models[1].predict_proba(data[:4]), rtol=1e-12)
    check_hypotheses(f)
    other = LogisticRegression().fit(data, labels % 2)
    with pytest.raises(ValueError, match="hypothesis 1 has"):
        Classifiers([models[0], other])
    narrow = LogisticRegression().fit(data[:, :4], labels)
    with pytest.raises(ValueError, match="hypothesis 1 takes 4 features, not context_dim=5"):
        as_hypotheses([models[0], narrow], {})
    with pytest.raises(ValueError, match="is it fitted"):
        as_hypotheses([LogisticRegression(), LogisticRegression()], {})
    with pytest.raises(TypeError, match=r"classifiers need predict_proba, which LinearSVC\(\) has not"):
        as_hypotheses([models[0], LinearSVC()], {})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"hypothesis 1 sums to 1.1, off one by \+0.1"),
        ([[0.5, 0.5], [1.5, -0.5]], "hypothesis 1 has a negative probability at label 1: -0.5"),
        ([[math.nan, 1.0], [0.5, 0.5]], "hypothesis 0 has a NaN probability at label 0: nan"),
        ([[0.5, 0.5]], r"num_hypotheses \(K\) must be at least 2, got 1"),
        ([[1.0], [1.0]], r"num_labels \(M\) must be at least 2, got 1"),
        ([0.5, 0.5], r"shape \(K, M\)"),
        ([[0.5, 0.5], [1.0]], "rectangular"),
        ([["a", "b"], ["c", "d"]], "numbers"),
    ],
)
def test_bad_tables_are_named(table, message):
    with pytest.raises(ValueError, match=message):
        Table(table)


def test_contradictions_and_unknown_names_are_named():
    with pytest.raises(ValueError, match="num_labels=7 contradicts the hypotheses, which have num_labels=2"):
        as_hypotheses([[0.5, 0.5], [0.9, 0.1]], {"num_labels": 7})
    with pytest.raises(ValueError, match="did you mean 'dirichlet'"):
        as_hypotheses("dirichlett", {})
    with pytest.raises(ValueError, match="needs context_dim"):
        as_hypotheses([lambda x: [0.5, 0.5], lambda x: [0.1, 0.9]], {})
    with pytest.raises(TypeError, match="go with a named class"):
        as_hypotheses([[0.5, 0.5], [0.9, 0.1]], {}, {"concentration": 1.0})
    with pytest.raises(ValueError, match="hypothesis 1 must map a context"):
        Callables([lambda x: [0.5, 0.5], lambda x: [0.1, 0.2, 0.7]], context_dim=1)


def test_a_callable_that_breaks_later_is_named():
    f = Callables([lambda x: [0.5, 0.5], lambda x: [0.5, 0.5 + (x[0] > 9)]], context_dim=1)
    with pytest.raises(ValueError, match="hypothesis 1 sums to 2, off one by"):
        f(np.array([10.0]))


def test_a_table_cannot_be_changed_by_who_sees_it():
    table = Dirichlet().table
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1.0


def test_check_hypotheses_says_what_broke():
    class Random(SoftmaxLinear):
        def __call__(self, contexts):
            self.weights = self.weights + 1e-3 * np.random.default_rng(0).standard_normal(self.weights.shape)
            return super().__call__(contexts)

    with pytest.raises(AssertionError, match="the same candidates when asked twice"):
        check_hypotheses(Random())
