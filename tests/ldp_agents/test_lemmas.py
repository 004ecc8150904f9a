"""The paper's lemmas and theorems against what the learners do; its slips are in docs/errata.md."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import ldp_agents
import ldp_gym
from ldp_gym import theory
from ldp_gym.channels.clipping import Clipping
from ldp_gym.core.divergences import kl
from ldp_gym.engine.rules import Rules
from ldp_gym.hypotheses import Hadamard


def game_of(channel, size, horizon):
    delta = 1e-5 if channel == "laplace-vector" else 0.0
    rules = {"hypotheses": "disjoint", "num_hypotheses": size, "horizon": horizon, "delta": delta}
    return Rules(channel=channel, **rules).scenario().game


def alternating(size, horizon):
    """Two experts are right in turn, the others never."""
    losses = np.ones((horizon, size))
    losses[np.arange(horizon), np.arange(horizon) % 2] = 0.0
    return losses


def regret(learner, losses, candidates, revealed=None):
    """What a learner pays in expectation above the best expert, ``(...)``, if it gets ``revealed`` losses."""
    paid = 0.0
    for t, loss in enumerate(losses):
        paid = paid + learner.weights @ loss
        learner.update(candidates, loss if revealed is None else revealed[t])
    return paid - losses.sum(axis=0).min()


@pytest.mark.parametrize("size", [2, 16, 256])
def test_wma_has_the_regret_of_lemma_4(size):
    horizon = 1000
    game = game_of("laplace-vector", size, horizon)
    candidates = game.hypotheses(np.zeros(1))
    rng = np.random.default_rng(size)
    drifting = (rng.random((horizon, size)) < np.linspace(0.1, 0.9, size)).astype(float)
    for losses in (
        alternating(size, horizon),
        drifting,
        1.0 - drifting,
        rng.random((horizon, size)),
    ):
        assert regret(ldp_agents.WMA(game), losses, candidates) <= math.sqrt(
            2 * horizon * math.log(size)
        )


def test_the_rate_of_the_box_exceeds_lemma_4():
    game = game_of("laplace-vector", 256, 1000)
    candidates = game.hypotheses(np.zeros(1))
    with_box = regret(ldp_agents.WMA(game, rate="box"), alternating(256, 1000), candidates)
    assert with_box == pytest.approx(173.9, abs=0.05)
    assert with_box > math.sqrt(2 * 1000 * math.log(256))


@pytest.mark.parametrize("size", [2, 8])
def test_exp3_has_the_expected_regret_of_lemma_7(size):
    """512 draws of the coordinates J_t; their mean is tens of standard errors below the bound."""
    horizon, runs = 400, 512
    game = game_of("laplace-single", size, horizon)
    rng = np.random.default_rng(0)
    bound = math.sqrt(2 * horizon * size * math.log(size))
    for losses in (alternating(size, horizon), rng.random((horizon, size))):
        shown = rng.integers(size, size=(horizon, runs))[..., None] == np.arange(size)
        learner = ldp_agents.EXP3(game)
        learner.reset((runs,))
        revealed = shown * np.maximum(losses[:, None], 1e-300)
        assert regret(learner, losses, game.hypotheses(np.zeros(1)), revealed).mean() <= bound


@pytest.mark.parametrize(
    ("channel", "learner", "rules"),
    [
        ("laplace-single", "exp3", {"epsilon": 50.0}),
        ("laplace-vector", "wma", {"epsilon": 1000.0, "delta": 0.1}),
    ],
)
def test_the_theorems_bounds_hold_where_they_say_something(channel, learner, rules):
    """Large eps, K = 2 and T = 20,000: the bounds are below the risk of not learning, and kept."""
    game = {
        "hypotheses": "disjoint",
        "num_hypotheses": 2,
        "channel": channel,
        "horizon": 20_000,
        **rules,
    }
    limit = getattr(theory, f"{learner}_bound")(2, 20_000, **rules)
    played = ldp_gym.evaluate(learner, game, episodes=4, truth="all")
    assert played.risk <= limit < ldp_gym.evaluate("uniform", game, episodes=4, truth="all").risk
    average = played.tv[..., -1].mean(axis=-1).max() / 20_000
    assert average <= theory.tv_bound(played.risk, 20_000) <= theory.tv_bound(limit, 20_000)


@given(size=st.integers(2, 300), horizon=st.integers(2, 10**6), gamma=st.floats(0.1, 30.0))
def test_the_noise_leaves_c_prime_with_probability_e_to_minus_gamma(size, horizon, gamma):
    """Eq. (Laplacianbound): a union bound over K T Laplace variables."""
    scale = theory.single_noise_scale(size, horizon, 1.0)
    outside = size * horizon * math.exp(-theory.offset(size, horizon, scale, gamma) / scale)
    assert outside == pytest.approx(math.exp(-gamma), rel=1e-9)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(2, 8), st.integers(2, 5000))
def test_the_steps_from_pbar_to_p_hat(seed, size, labels, horizon):
    """Eqs. (28), (30) and (31), the last with the errata's second term."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(labels, 0.2), size=size)
    weights = rng.dirichlet(np.full(size, 0.5))
    clipping = Clipping(horizon)
    cells = clipping.cells(table)
    pbar = clipping.density(table, cells.lengths, cells.total)
    mixed = weights @ pbar

    def over_cells(p, q):
        used = (cells.lengths > 0) & (p > 0)
        return float((cells.lengths[used] * p[used] * np.log(p[used] / q[used])).sum())

    each = [over_cells(pbar[0], pbar[j]) for j in range(size)]
    assert over_cells(pbar[0], mixed) <= weights @ each + 1e-9
    loss = float(kl(table[0], clipping.smooth(weights, table)))
    spread = table[0] / np.maximum(cells.lengths, 1e-300)
    assert loss == pytest.approx(over_cells(spread, mixed), abs=1e-8)
    slack = 2 * math.log(size * horizon) / horizon - math.log1p(-1 / horizon)
    assert loss <= over_cells(pbar[0], mixed) + slack + 1e-9


@given(seed=st.integers(0, 10_000), pairs=st.integers(1, 20), gap=st.floats(0.01, 1.0))
def test_no_prediction_is_close_to_both_of_a_pair(seed, pairs, gap):
    """Eq. (19), for a prediction between the two and for one at random."""
    table = Hadamard(2 * pairs, gap=gap)(np.zeros(1)).reshape(pairs, 2, -1)
    rng = np.random.default_rng(seed)
    guesses = [table.mean(axis=1), rng.dirichlet(np.ones(table.shape[-1]), size=pairs)]
    for guess in guesses:
        assert (kl(table, guess[:, None]).max(axis=1) >= gap / 16).all()


@pytest.mark.parametrize("channel", ["randomized-response", "hadamard-response"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_a_private_message_hardly_tells_a_pair_apart(channel, epsilon):
    """Eqs. (KL) to (classificationerror), by listing every message."""
    pairs, horizon = 7, 10_000
    gap = theory.hadamard_gap(2 * pairs, horizon, epsilon)
    table = Hadamard(2 * pairs, gap=gap)(np.zeros(1))
    private = ldp_gym.CHANNELS[channel](2 * pairs, table.shape[1], horizon, epsilon=epsilon)
    messages = np.arange(int(private.message_space.n))
    laws = np.exp(private.log_likelihood(messages, table)).T.reshape(pairs, 2, -1)
    told = kl(laws[:, 0], laws[:, 1])
    strength = min(math.expm1(epsilon) ** 2, 1.0) * math.exp(epsilon)
    assert told.sum() <= gap**2 / 2 * strength
    assert math.sqrt(2 * horizon * told.min()) <= 1 / 3
