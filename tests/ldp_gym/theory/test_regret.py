"""The theorems' bounds against OPT, for truths outside the class: each step of the proof, and the whole."""

import math
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.special import rel_entr

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.divergences import kl

KINDS_OF_TRUTH = ("dense", "sparse", "least likely label", "any label")


def draw_truth(kind, table, rng):
    num_labels = table.shape[1]
    if kind == "dense":
        return rng.dirichlet(np.ones(num_labels))
    if kind == "sparse":
        return rng.dirichlet(np.full(num_labels, 0.1))
    if kind == "least likely label":
        return np.eye(num_labels)[table.max(axis=0).argmin()]
    return np.eye(num_labels)[rng.integers(num_labels)]


@given(
    st.integers(0, 10_000),
    st.integers(2, 6),
    st.integers(2, 8),
    st.integers(2, 5000),
    st.sampled_from(KINDS_OF_TRUTH),
)
def test_the_steps_from_any_truth_to_opt(seed, size, num_labels, horizon, kind):
    """Steps 2, 3 and 4 of ldp_gym.theory.regret, with sums over the cells written out."""
    rng = np.random.default_rng(seed)
    table = np.maximum(rng.dirichlet(np.full(num_labels, 0.2), size=size), 1e-9)
    table /= table.sum(axis=-1, keepdims=True)
    truth = draw_truth(kind, table, rng)
    weights = rng.dirichlet(np.full(size, 0.5))
    lengths = num_labels * table.max(axis=0)
    log_kt = math.log(size * horizon)

    def pbar(p):
        return (1 - 1 / horizon) * p / lengths + 1 / (horizon * lengths.sum())

    def over_cells(p, q):
        return (lengths * rel_entr(p, q)).sum()

    loss = float(kl(truth, Clipping(horizon).smooth(weights, table)))
    clipped_loss = over_cells(pbar(truth), pbar(weights @ table))
    stretch = horizon / (horizon - 1)
    assert loss <= stretch * (clipped_loss + log_kt / horizon) + math.log(stretch) + 1e-9
    for member in table:
        to_member = float(kl(truth, member))
        clipped_to_member = over_cells(pbar(truth), pbar(member))
        assert clipped_to_member <= (1 - 1 / horizon) * to_member + 1e-9
        assert loss <= log_kt + to_member + 1e-9


ROUNDS = 20_000
LABELS = np.random.default_rng(5).choice(3, ROUNDS, p=[0.6, 0.1, 0.3])
TRUTHS = {
    "outside": {"truth": [0.6, 0.1, 0.3]},
    "mixture": {"truth": "mixture", "truth_kwargs": {"weights": [0.7, 0.3], "members": [0, 1]}},
    "switching": {"truth": "switching", "truth_kwargs": {"switches": [14_000]}},
    "replay": {
        "truth": "replay",
        "truth_kwargs": {"labels": LABELS, "contexts": np.zeros((ROUNDS, 1))},
    },
}
SCHEMES = {
    "exp3": {"channel": "laplace-single", "epsilon": 50.0},
    "wma": {"channel": "laplace-vector", "epsilon": 1000.0, "delta": 0.1},
}
REGRET_BOUNDS = {
    "exp3": theory.exp3_regret_bound(2, ROUNDS, 50.0),
    "wma": theory.wma_regret_bound(2, ROUNDS, 1000.0, 0.1),
}


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("learner", SCHEMES)
def test_the_regret_against_opt_is_within_the_bound(learner, truth):
    """Large eps, K = 2 and T = 20,000, where the bounds are below what the worse member pays above OPT."""
    table = [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]]
    game = {"hypotheses": table, "horizon": ROUNDS, **SCHEMES[learner], **TRUTHS[truth]}
    result = ldp_gym.evaluate(learner, game, episodes=4)
    bound = REGRET_BOUNDS[learner]
    regret_of_the_worse_member = (result.comparator.max(axis=-1) - result.opt).mean()
    assert result.regret.mean() <= bound < regret_of_the_worse_member


def test_the_bound_of_algorithm_2_against_opt_by_hand():
    """K = 4, T = 10, eps = 3: ``T/(T-1) (R + log(KT)) + T log(T/(T-1)) + e^-gamma T log(KT)``."""
    log_kt = math.log(40)
    inverse_c = log_kt + 2 * (log_kt / 3) * (math.log(10) + math.log(4) + math.log(10))
    regret = inverse_c * math.sqrt(2 * 10 * 4 * math.log(4))
    expected = 10 / 9 * (regret + log_kt) + 10 * math.log(10 / 9) + log_kt
    assert theory.exp3_regret_bound(4, 10, 3.0) == pytest.approx(expected)


def test_the_bound_of_algorithm_2_against_opt_with_another_gamma_by_hand():
    log_kt = math.log(40)
    inverse_c = log_kt + 2 * (log_kt / 3) * (0.5 + math.log(40))
    regret = inverse_c * math.sqrt(2 * 10 * 4 * math.log(4))
    failure = math.exp(-0.5) * 10 * log_kt
    expected = 10 / 9 * (regret + log_kt) + 10 * math.log(10 / 9) + failure
    assert theory.exp3_regret_bound(4, 10, 3.0, gamma=0.5) == pytest.approx(expected)


def test_the_bound_of_algorithm_1_against_opt_by_hand():
    """K = 4, T = 10, eps = 3, delta = 0.01, gamma = 2."""
    log_kt = math.log(40)
    scale = (2 * math.sqrt(2 * 4 * math.log(100)) + math.sqrt(4 * 3)) * log_kt / 3
    inverse_c = log_kt + 2 * scale * (2 + math.log(4) + math.log(10))
    regret = inverse_c * math.sqrt(2 * 10 * math.log(4))
    failure = math.exp(-2) * 10 * log_kt
    expected = 10 / 9 * (regret + log_kt) + 10 * math.log(10 / 9) + failure
    assert theory.wma_regret_bound(4, 10, 3.0, 0.01, gamma=2.0) == pytest.approx(expected)


def test_the_bound_against_opt_is_close_to_that_of_the_theorem():
    theorem = theory.exp3_bound(8, 1000, 1.0)
    assert theory.exp3_regret_bound(8, 1000, 1.0) == pytest.approx(theorem, rel=0.01)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("switches", [0, 1, 4])
@pytest.mark.parametrize("share", [0.01, 0.3])
def test_the_bound_of_fixed_share_is_the_prior_of_a_sequence(size, switches, share):
    """A walk on K hypotheses that is drawn anew with probability ``share``, T = 5, step by step."""
    transition = (1 - share) * np.eye(size) + share / size
    walk = [0] + [step % 2 for step in range(1, switches + 1)]
    walk += [walk[-1]] * (4 - switches)
    chances = [transition[before, after] for before, after in pairwise(walk)]
    prior = math.prod(chances) / size
    assert theory.fixed_share_bound(size, 5, switches, share) == pytest.approx(-math.log(prior))


def test_the_bound_of_soft_bayes_by_hand():
    expected = math.log(5) / 0.1 + 0.1 * 30 * (math.exp(0.7) - 1) ** 2
    assert theory.soft_bayes_bound(5, 30, 0.7, 0.1) == pytest.approx(expected)


def test_the_bound_of_soft_bayes_is_infinite_where_no_float_can_hold_it():
    assert theory.soft_bayes_bound(2, 1, 349.0, 0.5) < math.inf
    assert theory.soft_bayes_bound(2, 1, 400.0, 0.5) == math.inf


def test_the_bound_of_soft_bayes_is_for_rates_up_to_one_half():
    with pytest.raises(ValueError, match="rate"):
        theory.soft_bayes_bound(5, 30, 0.7, 0.51)


@pytest.mark.parametrize("horizon", [2000, 8000])
def test_bayes_has_no_such_bound(horizon):
    """It finds the member whose *messages* are nearest: here not the nearest one, and its regret is linear.

    Hypothesis 0 is nearer in total variation and in messages; it almost rules out a label that comes, so
    hypothesis 1 is nearer in KL. The regret per round is measured as 0.26 and 0.35, with OPT/T = 0.073.
    """
    table = [[0.4999995, 0.4999995, 1e-6], [0.3, 0.6, 0.1]]
    game = {"hypotheses": table, "truth": [0.475, 0.475, 0.05], "channel": "randomized-response"}
    result = ldp_gym.evaluate("bayes", {**game, "horizon": horizon}, episodes=8)
    assert result.regret.mean() >= 0.15 * horizon
    assert result.identification_rate < 0.5
