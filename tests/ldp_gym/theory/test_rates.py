"""Our upper and lower bounds: by hand, term by term, and every step of their proofs on random cases."""

import math

import numpy as np
import pytest
from extremal import extremal_messages
from scipy.linalg import hadamard
from scipy.optimize import linprog, minimize_scalar
from scipy.special import rel_entr

import ldp_gym
from ldp_gym import theory
from ldp_gym.core.divergences import kl, tv

SETTINGS = [(16, 10**4, 1.0), (128, 10**6, 0.1)]


def signal(epsilon):
    return (math.exp(epsilon) - 1.0) / (math.exp(epsilon) + 1.0)


# -- Upper bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "epsilon"), [(2, 0.1), (8, 1.0), (64, 3.0)])
def test_upper_bounds_by_hand(size, epsilon):
    growth = size * math.log(size) / (size - 1)
    one = 2.0 * (size - 1) / signal(epsilon) ** 2
    lewis = math.pi / 4.0 * (size - 1) * math.log(size) / signal(epsilon) ** 2
    kl_risks = (
        math.sqrt(500 * one) * growth,
        math.sqrt(4.0 * math.pi * (size - 1) * 500) / signal(epsilon),
    )
    assert theory.interactive_tv_bound(size, 500, epsilon) == pytest.approx(
        math.sqrt(one / 500), rel=1e-12
    )
    assert theory.half_space_tv_bound(size, 500, epsilon) == pytest.approx(
        math.sqrt(lewis / 500), rel=1e-12
    )
    assert theory.interactive_kl_bound(size, 500, epsilon) == pytest.approx(
        min(kl_risks), rel=1e-12
    )
    assert (kl_risks[0] < kl_risks[1]) == (size <= 9)
    plain = growth * math.sqrt(500 * lewis)
    assert theory.half_space_kl_bound(size, 500, epsilon) == pytest.approx(plain, rel=1e-12)
    for kind in ("half_space", "interactive"):
        bound, needed = (getattr(theory, f"{kind}_{name}") for name in ("tv_bound", "sample_size"))
        rounds = needed(size, 0.05, epsilon)
        assert bound(size, rounds, epsilon) <= 0.05 < bound(size, rounds - 1, epsilon)


@pytest.mark.parametrize(
    "name", ["interactive_tv_bound", "interactive_kl_bound", "half_space_tv_bound"]
)
def test_own_levels_and_priors_reduce_to_the_plain_bound(name):
    bound = getattr(theory, name)
    plain = bound(4, 3, 1.0)
    assert bound(4, 3, [1.0] * 3, prior=[0.25] * 4) == pytest.approx(plain, rel=1e-12)
    noise = sum(1.0 / signal(level) ** 2 for level in (0.5, 1.0, 2.0))
    expected = plain * math.sqrt(noise * signal(1.0) ** 2 / 3)
    assert bound(4, 3, [0.5, 1.0, 2.0]) == pytest.approx(expected, rel=1e-12)


def test_a_prior_counts_by_its_least_weight():
    prior = [0.64, 0.32, 0.04]
    odds = 4.0 + math.sqrt(8.0) + 1.0  # sum of sqrt(pi_k / 0.04)
    found = theory.interactive_tv_bound(3, 50, 1.0, prior=prior)
    assert found == pytest.approx(math.sqrt(2 * (odds - 1) / 50) / signal(1.0), rel=1e-12)
    growth = odds * math.log(odds) / (odds - 1)
    found = theory.interactive_kl_bound(3, 50, 1.0, prior=prior)
    assert found == pytest.approx(growth * math.sqrt(2 * (odds - 1) * 50) / signal(1.0), rel=1e-12)
    found = theory.half_space_kl_bound(3, 50, 1.0, prior=prior)
    squares = math.pi / 4 * 2 * math.log(25)
    assert found == pytest.approx(
        25 * math.log(25) / 24 * math.sqrt(50 * squares) / signal(1.0), rel=1e-12
    )
    failing = theory.half_space_tv_bound(3, 50, 1.0, failure=0.01)
    squares = math.pi * 2 * (math.log(3) / 2 + math.log(100))
    assert failing == pytest.approx(math.sqrt(squares / 50) / signal(1.0), rel=1e-12)


def test_kl_is_bounded_by_tv_where_ratios_are_and_g_squared_is_concave():
    """``KL(f, p) <= g(R) TV(f, p)`` for ``f <= R p``, sharp for a label that p likes 1/R times as much."""
    f, p = np.random.default_rng(0).dirichlet(np.full(5, 0.3), size=(2, 200))
    ratio = (f / p).max(axis=-1)
    assert (kl(f, p) <= ratio * np.log(ratio) / (ratio - 1.0) * tv(f, p) * (1 + 1e-9)).all()
    ratios = np.linspace(1.001, 300.0, 100_000)
    squares = (ratios * np.log(ratios) / (ratios - 1.0)) ** 2
    assert (np.diff(squares) > 0.0).all()
    assert (np.diff(squares, 2) < 1e-12).all()


# -- Lower bounds --------------------------------------------------------------------------------------


def least_overlap(kl_divergence):
    """Least ``1 - TV`` of two laws with this KL: the better of Pinsker, and Bretagnolle and Huber."""
    huber = 1.0 - np.sqrt(1.0 - np.exp(-kl_divergence))
    return np.maximum(1.0 - np.sqrt(kl_divergence / 2.0), huber)


def reverse(u):
    return (-math.log1p(-u) - u) / u**2


def forward(u):
    return ((1.0 - u) * math.log1p(-u) + u) / u**2


def star_kappa(a, epsilon, share):
    x = a * (math.exp(epsilon) - 1.0) / 2.0
    return a**2 * (math.exp(epsilon / 2.0) - 1.0) ** 2 * min(1.0, share(x / (1.0 + x)))


def tv_kappa(a, epsilon):
    return a**2 * math.sinh(epsilon / 2.0) ** 2 * reverse(a * signal(epsilon))


def interactive(a, size, rounds, epsilon):
    terms = least_overlap(np.arange(rounds) * star_kappa(a, epsilon, reverse) / (size - 1))
    pair = np.array([[0.5, 0.5], [1.0, 0.0]])
    return a * rel_entr(pair, pair.mean(axis=0)).sum() / 2.0 * terms.sum()


def fano(a, size, rounds, epsilon):
    told = np.arange(rounds) * star_kappa(a, epsilon, forward) / size
    leaves = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    error = np.maximum(0.0, 1.0 - (told + math.log(2.0)) / math.log(size))
    return a * rel_entr(leaves, leaves.mean(axis=0)).sum() / 2.0 * error.sum()


def averaged_tv(a, size, rounds, epsilon):
    return a / 4.0 * least_overlap(np.arange(rounds) * tv_kappa(a, epsilon) / (size - 1)).mean()


@pytest.mark.parametrize(
    ("name", "at_amplitude", "values"),
    [
        ("interactive_lower_bound", interactive, (94.33825, 35_366.94)),
        ("noninteractive_lower_bound", fano, (175.5045, 102_450.7)),
        ("tv_lower_bound", averaged_tv, (0.01369948, 0.04200572)),
    ],
)
def test_lower_bounds_term_by_term_maximised_by_a_search(name, at_amplitude, values):
    bound = getattr(theory, name)
    for setting in [(16, 10**4, 1.0), (5, 40, 2.0), (40, 3, 0.5), (9, 700, 4.0), (64, 3, 6.0)]:
        negative = lambda log_a, setting=setting: -at_amplitude(math.exp(log_a), *setting)  # noqa: E731
        found = minimize_scalar(
            negative, bounds=(-9.0, -1e-8), method="bounded", options={"xatol": 1e-9}
        )
        best = max(-found.fun, at_amplitude(1.0 - 1e-9, *setting))
        if name == "noninteractive_lower_bound":
            best = max(best, theory.interactive_lower_bound(*setting))
        assert best * (1 - 1e-3) <= bound(*setting) <= best * (1 + 1e-6)
    for setting, value in zip(SETTINGS, values, strict=True):
        assert bound(*setting) == pytest.approx(value, rel=1e-6)
    given = theory.interactive_lower_bound(5, 400, 2.0, 0.3)
    assert given == pytest.approx(interactive(0.3, 5, 400, 2.0), rel=1e-3)


def test_upper_over_lower_for_many_rounds():
    """Within 22 to 145 for KL, 7.5 to 28 for TV, and the closed forms of the documentation."""
    for epsilon, ratio, ratio_tv in ((1e-3, 21.91, 7.54), (1.0, 30.75, 8.51), (4.0, 145.2, 28.38)):
        setting = 16, 10**16, epsilon
        lower, lower_tv = theory.interactive_lower_bound(*setting), theory.tv_lower_bound(*setting)
        assert theory.interactive_kl_bound(*setting) / lower == pytest.approx(ratio, rel=1e-3)
        assert theory.interactive_tv_bound(*setting) / lower_tv == pytest.approx(ratio_tv, rel=1e-3)
        closed = 0.75**2 * math.log(4 / 3) * math.sqrt(15 * 10**16) / (math.exp(epsilon / 2) - 1)
        assert lower == pytest.approx(closed, rel=1e-4)
    for size, rounds, epsilon in ((4, 400, 0.5), (30, 10**5, 3.0)):
        simple = 0.114 * math.sqrt((size - 1) * rounds) / (math.exp(epsilon / 2) - 1)
        assert theory.interactive_lower_bound(size, rounds, epsilon) >= simple


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("amplitude", [0.2, 0.99])
def test_messages_about_a_star_tell_at_most_kappa(amplitude, epsilon):
    """The most that any eps-private message tells, summed over seven leaves: a linear program over sets."""

    def most(loss, way):
        table = ldp_gym.HYPOTHESES["hadamard-star"](8, amplitude=amplitude, loss=loss).table
        raised = extremal_messages(table.shape[1], epsilon)
        laws = raised @ table.T
        gains = (
            rel_entr(laws[:, :1], laws[:, 1:])
            if way == "reverse"
            else rel_entr(laws[:, 1:], laws[:, :1])
        )
        return -linprog(-gains.sum(axis=1), A_eq=raised.T, b_eq=np.ones(table.shape[1])).fun

    shares = [
        most("kl", "reverse") / star_kappa(amplitude, epsilon, reverse),
        most("kl", "forward") / star_kappa(amplitude, epsilon, forward),
        most("tv", "reverse") / tv_kappa(amplitude, epsilon),
    ]
    assert max(shares) <= 1 + 1e-9
    assert min(shares) > 0.15


def test_the_star_by_hand_and_its_amplitude():
    signs = hadamard(4)[1:]
    table = ldp_gym.HYPOTHESES["hadamard-star"](4, amplitude=0.4).table
    np.testing.assert_allclose(table[:, 0], 0.6)
    np.testing.assert_allclose(table[1:, 1:], 0.4 * (1 + signs) / 4)
    np.testing.assert_allclose(table[0, 1:], 0.1)
    flat = ldp_gym.HYPOTHESES["hadamard-star"](4, amplitude=0.4, loss="tv").table
    np.testing.assert_allclose(flat, [[0.25] * 4, *((1 + 0.4 * signs) / 4)])
    np.testing.assert_allclose(tv(flat[0], flat[1:]), 0.2)
    made = ldp_gym.HYPOTHESES["hadamard-star"](5, epsilon=2.0, horizon=900)
    assert made.table.shape == (5, 9)
    assert made.amplitude == pytest.approx(1.5 * math.sqrt(4 / 900) / (math.e - 1), rel=1e-12)
    assert theory.star_amplitude(5, 900, 2.0, "tv") == pytest.approx(
        0.1 / math.sinh(1.0), rel=1e-12
    )
    assert theory.star_amplitude(5, 2, 0.1) == 1.0


@pytest.mark.parametrize(
    ("name", "arguments", "options", "message"),
    [
        ("wma_bound", (8, 1000, 1.0, 2.0), {}, r"delta must lie in \(0, 1\), got 2"),
        ("lower_bound", (16, 2, 0.01), {}, "needs a horizon of at least"),
        ("hadamard_gap", (8, 1000, 1e-170), {}, "at least 1e-150, .* got 1e-170"),
        ("sample_complexity", (8, 1e-80, 1.0), {}, "alpha=1e-80 at epsilon=1 takes more than"),
        ("interactive_lower_bound", (8, 100, 800.0), {}, "at most 300"),
        (
            "interactive_tv_bound",
            (8, 100, [1.0, 1.0]),
            {},
            r"one for each of 100 users; got shape \(2,\)",
        ),
        (
            "interactive_tv_bound",
            (2, 100, 1.0),
            {"prior": [1.0, 0.0]},
            "prior must be positive, got 0",
        ),
        (
            "pair_floor",
            ([0.5, 0.5], [0.2, 0.3, 0.5], 5, 1.0),
            {},
            r"same labels, got \(2,\) and \(3,\)",
        ),
    ],
)
def test_bad_arguments_are_named(name, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(theory, name)(*arguments, **options)


def test_extreme_arguments_have_their_values():
    """Without privacy the upper bounds stay; without signal a round of the lower ones costs JS or 1/4."""
    assert theory.interactive_tv_bound(2, 2, 800.0) == pytest.approx(1.0)
    assert theory.interactive_lower_bound(2, 1, 1e-20) == pytest.approx(0.75 * math.log(4 / 3))
    assert theory.interactive_lower_bound(2, 2, 1e-20) == pytest.approx(1.5 * math.log(4 / 3))
    assert theory.tv_lower_bound(5, 100, 1e-20) == pytest.approx(0.25)
    assert theory.noninteractive_lower_bound(10**6, 1, 1e-20) > 0.32
