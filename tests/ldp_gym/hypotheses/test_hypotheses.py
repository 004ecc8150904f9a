"""The hypothesis classes: shapes, laws and errors."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.special import softmax

from ldp_gym import HYPOTHESES, theory
from ldp_gym.hypotheses import Disjoint, Hadamard, Refined, SoftmaxLinear, Table
from ldp_gym.testing import check_hypotheses


@pytest.mark.parametrize("name", HYPOTHESES.names())
def test_every_named_class_keeps_the_contract(name):
    check_hypotheses(HYPOTHESES[name]())


def test_softmax_linear_is_the_softmax_of_its_logits():
    f = SoftmaxLinear(3, 5, 2, class_seed=4)
    x = np.array([0.3, -2.0])
    np.testing.assert_allclose(f(x), softmax(f.weights @ x, axis=-1), rtol=1e-13)


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
    """The factor ``min{(e^eps - 1)^2, 1} e^eps``: the minimum is 1 from eps = log 2 on."""
    for epsilon, factor in ((0.1, math.expm1(0.1) ** 2), (math.log(2), 1.0), (1.0, 1.0), (3.0, 1.0)):
        expected = math.sqrt(4 / (9 * 1000 * factor * math.exp(epsilon)))
        assert math.isclose(theory.hadamard_gap(8, 1000, epsilon), expected, rel_tol=1e-12)
        assert math.isclose(Hadamard(8, epsilon=epsilon, horizon=1000).gap, expected, rel_tol=1e-12)
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


def test_refining_changes_m_and_nothing_else():
    base = SoftmaxLinear(3, 4, 2)
    fine = Refined(base, parts=5)
    x = np.random.default_rng(0).standard_normal((7, 2))
    assert fine.num_labels == 20
    np.testing.assert_allclose(fine(x).reshape(7, 3, 4, 5).sum(axis=-1), base(x), rtol=1e-12)
    check_hypotheses(fine)
    with pytest.raises(ValueError, match="multiple of parts=3, got 10"):
        Refined("dirichlet", parts=3, num_labels=10)


def test_bad_tables_are_named():
    for table, message in (
        ([[0.5, 0.5], [0.5, 0.6]], r"hypothesis 1 sums to 1.1, off one by \+0.1"),
        ([[0.5, 0.5]], r"num_hypotheses \(K\) must be at least 2, got 1"),
        ([[1.0], [1.0]], r"num_labels \(M\) must be at least 2, got 1"),
        ([0.5, 0.5], r"shape \(K, M\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Table(table)
