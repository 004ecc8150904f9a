"""Classes made of what a user has: callables, fitted classifiers, tables and names."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ldp_gym.hypotheses import Callables, as_hypotheses
from ldp_gym.testing import check_hypotheses
from ldp_gym.truths import as_truth


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
    for first, second, error, message in (
        (models[0], LogisticRegression().fit(data, labels % 2), ValueError, "hypothesis 1 has"),
        (models[0], LogisticRegression().fit(data[:, :4], labels), ValueError, "1 takes 4 features, not"),
        (LogisticRegression(), LogisticRegression(), ValueError, "is it fitted"),
        (models[0], LogisticRegression(), ValueError, "the same classes: hypothesis 1 has None"),
        (models[0], LinearSVC(), TypeError, "need predict_proba, .*LinearSVC"),
    ):
        with pytest.raises(error, match=message):
            as_hypotheses([first, second], {})
    with pytest.raises(ValueError, match="must be fitted on the classes of the hypotheses, .* has None"):
        as_truth(LogisticRegression(), f, horizon=9)


def test_contradictions_and_unknown_names_are_named():
    with pytest.raises(ValueError, match="num_labels=7 contradicts the hypotheses, which have num_labels=2"):
        as_hypotheses([[0.5, 0.5], [0.9, 0.1]], {"num_labels": 7})
    with pytest.raises(ValueError, match="needs context_dim"):
        as_hypotheses([lambda x: [0.5, 0.5], lambda x: [0.1, 0.9]], {})
    with pytest.raises(TypeError, match="go with a named class"):
        as_hypotheses([[0.5, 0.5], [0.9, 0.1]], {}, {"concentration": 1.0})
    with pytest.raises(ValueError, match="hypothesis 1 must map a context"):
        Callables([lambda x: [0.5, 0.5], lambda x: [0.1, 0.2, 0.7]], context_dim=1)
    f = Callables([lambda x: [0.5, 0.5], lambda x: [0.5, 0.5 + (x[0] > 9)]], context_dim=1)
    with pytest.raises(ValueError, match="hypothesis 1 sums to 2, off one by"):
        f(np.array([10.0]))
