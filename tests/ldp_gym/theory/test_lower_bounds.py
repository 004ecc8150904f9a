"""Our lower bounds: term by term, against the largest value of a search, and every step of their proofs."""

import math

import numpy as np
import pytest
from extremal import extremal_messages
from scipy.linalg import hadamard
from scipy.optimize import linprog, minimize_scalar
from scipy.special import rel_entr

import ldp_gym
from ldp_gym import theory
from ldp_gym.core.divergences import tv

GAMES = [(16, 10**4, 1.0), (5, 40, 2.0), (40, 3, 0.5), (9, 700, 4.0), (64, 3, 6.0)]
"""K, T and eps."""


def signal(epsilon):
    return (math.exp(epsilon) - 1.0) / (math.exp(epsilon) + 1.0)


def least_overlap(kl_divergence):
    """Least ``1 - TV`` of two laws with this KL: the better of Pinsker, and Bretagnolle and Huber."""
    huber = 1.0 - np.sqrt(1.0 - np.exp(-kl_divergence))
    return np.maximum(1.0 - np.sqrt(kl_divergence / 2.0), huber)


def error_by_fano(information, size):
    """Least chance of naming one of ``size`` hypotheses wrongly, from what messages tell about it."""
    return np.maximum(0.0, 1.0 - (information + math.log(2.0)) / math.log(size))


def reverse(u):
    return (-math.log1p(-u) - u) / u**2


def forward(u):
    return ((1.0 - u) * math.log1p(-u) + u) / u**2


def star_kappa(a, epsilon, share):
    x = a * (math.exp(epsilon) - 1.0) / 2.0
    return a**2 * (math.exp(epsilon / 2.0) - 1.0) ** 2 * min(1.0, share(x / (1.0 + x)))


def flat_kappa(a, epsilon, share):
    return a**2 * math.sinh(epsilon / 2.0) ** 2 * share(a * signal(epsilon))


def jensen_shannon(rows):
    rows = np.array(rows)
    return rel_entr(rows, rows.mean(axis=0)).sum() / 2.0


def interactive_kl(a, size, rounds, epsilon):
    information = np.arange(rounds) * star_kappa(a, epsilon, reverse) / (size - 1)
    centre_and_leaf = jensen_shannon([[0.5, 0.5], [1.0, 0.0]])
    return a * centre_and_leaf * least_overlap(information).sum()


def fano_kl(a, size, rounds, epsilon):
    information = np.arange(rounds) * star_kappa(a, epsilon, forward) / size
    two_leaves = jensen_shannon([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    return a * two_leaves * error_by_fano(information, size).sum()


def interactive_tv(a, size, rounds, epsilon):
    information = np.arange(rounds) * flat_kappa(a, epsilon, reverse) / (size - 1)
    return a / 4.0 * least_overlap(information).mean()


def fano_tv(a, size, rounds, epsilon):
    information = np.arange(rounds) * flat_kappa(a, epsilon, forward) / size
    return a / 4.0 * error_by_fano(information, size).mean()


def largest_by_search(at_amplitude, game):
    def negative(log_amplitude):
        return -at_amplitude(math.exp(log_amplitude), *game)

    search = minimize_scalar(
        negative, bounds=(-9.0, -1e-8), method="bounded", options={"xatol": 1e-9}
    )
    return max(-search.fun, at_amplitude(1.0 - 1e-9, *game))


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("bound", "at_amplitude"),
    [
        (theory.interactive_kl_lower_bound, interactive_kl),
        (theory.interactive_tv_lower_bound, interactive_tv),
    ],
)
def test_interactive_bounds_are_the_largest_over_the_amplitudes(bound, at_amplitude, game):
    best = largest_by_search(at_amplitude, game)
    assert best * (1 - 1e-3) <= bound(*game) <= best * (1 + 1e-6)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize(
    ("bound", "at_amplitude", "interactive"),
    [
        (theory.noninteractive_kl_lower_bound, fano_kl, interactive_kl),
        (theory.noninteractive_tv_lower_bound, fano_tv, interactive_tv),
    ],
)
def test_bounds_without_interaction_are_those_of_fano_or_with_interaction(
    bound, at_amplitude, interactive, game
):
    by_fano = largest_by_search(at_amplitude, game)
    best = max(by_fano, largest_by_search(interactive, game))
    assert best * (1 - 1e-3) <= bound(*game) <= best * (1 + 1e-6)


@pytest.mark.parametrize(
    ("bound", "first", "second"),
    [
        (theory.interactive_kl_lower_bound, 94.33825, 35_366.94),
        (theory.noninteractive_kl_lower_bound, 175.5045, 102_450.7),
        (theory.interactive_tv_lower_bound, 0.01369948, 0.04200572),
        (theory.noninteractive_tv_lower_bound, 0.01581995, 0.07574968),
    ],
)
def test_two_games_by_number(bound, first, second):
    assert bound(16, 10**4, 1.0) == pytest.approx(first, rel=1e-6)
    assert bound(128, 10**6, 0.1) == pytest.approx(second, rel=1e-6)


def test_the_amplitude_may_be_given():
    given = theory.interactive_kl_lower_bound(5, 400, 2.0, 0.3)
    assert given == pytest.approx(interactive_kl(0.3, 5, 400, 2.0), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("size", [3, 16, 1000])
def test_bounds_without_interaction_are_of_the_order_on_the_page(size, epsilon):
    """At the least horizon of the condition ``T >= K log K / eps^2``, and at a large one."""
    least = math.ceil(size * math.log(size) / epsilon**2)
    constant = 7 / 8 - math.log(2) / math.log(size)
    for rounds in (least, 1000 * least):
        root = math.sqrt(size * rounds * math.log(size)) / (math.exp(epsilon / 2) - 1)
        risk = theory.noninteractive_kl_lower_bound(size, rounds, epsilon)
        assert risk >= math.log(2) / 4 * constant * root * (1 - 1e-6)

        root = math.sqrt(size * math.log(size) / rounds) / math.sinh(epsilon / 2)
        averaged = theory.noninteractive_tv_lower_bound(size, rounds, epsilon)
        assert averaged >= constant / 8 * root * (1 - 1e-6)


@pytest.mark.parametrize(
    ("epsilon", "ratio", "ratio_tv"), [(1e-3, 21.91, 7.54), (1.0, 30.75, 8.51), (4.0, 145.2, 28.38)]
)
def test_upper_over_lower_bounds_with_interaction_for_many_rounds(epsilon, ratio, ratio_tv):
    game = 16, 10**16, epsilon
    risks = theory.challenge_kl_bound(*game) / theory.interactive_kl_lower_bound(*game)
    assert risks == pytest.approx(ratio, rel=1e-3)
    averaged = theory.challenge_tv_bound(*game) / theory.interactive_tv_lower_bound(*game)
    assert averaged == pytest.approx(ratio_tv, rel=1e-3)


@pytest.mark.parametrize(("epsilon", "ratio"), [(1e-3, 15.49), (1.0, 21.74)])
def test_minimax_upper_over_lower_bound_with_interaction_for_many_rounds(epsilon, ratio):
    game = 16, 10**16, epsilon
    upper = theory.interactive_minimax_kl_bound(*game)
    assert upper / theory.interactive_kl_lower_bound(*game) == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize(
    ("game", "ratio"),
    [((16, 10**4, 1.0), 14.09), ((128, 10**6, 0.1), 8.596), ((10**15, 10**60, 1e-3), 6.857)],
)
def test_upper_over_lower_bounds_without_interaction(game, ratio):
    """They tend to ``sqrt(pi) 9 / (2 sqrt(3) log 2) = 6.64`` as eps falls and K and T grow."""
    upper = theory.half_space_kl_bound(*game)
    assert upper / theory.noninteractive_kl_lower_bound(*game) == pytest.approx(ratio, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 4.0])
def test_the_interactive_bound_for_many_rounds(epsilon):
    lower = theory.interactive_kl_lower_bound(16, 10**16, epsilon)
    closed = 0.75**2 * math.log(4 / 3) * math.sqrt(15 * 10**16) / (math.exp(epsilon / 2) - 1)
    assert lower == pytest.approx(closed, rel=1e-4)


@pytest.mark.parametrize(("size", "rounds", "epsilon"), [(4, 400, 0.5), (30, 10**5, 3.0)])
def test_the_interactive_bound_for_fewer_rounds(size, rounds, epsilon):
    assert rounds >= 1.125 * (size - 1) / (math.exp(epsilon / 2) - 1) ** 2
    simple = 0.114 * math.sqrt((size - 1) * rounds) / (math.exp(epsilon / 2) - 1)
    assert theory.interactive_kl_lower_bound(size, rounds, epsilon) >= simple


def most_information(loss, way, amplitude, epsilon):
    """The most that an eps-private message tells, summed over seven leaves: a linear program over sets."""
    table = ldp_gym.HYPOTHESES["hadamard-star"](8, amplitude=amplitude, loss=loss).table
    raised = extremal_messages(table.shape[1], epsilon)
    laws = raised @ table.T
    centre = laws[:, :1]
    leaves = laws[:, 1:]
    gains = rel_entr(centre, leaves) if way == "reverse" else rel_entr(leaves, centre)
    program = linprog(-gains.sum(axis=1), A_eq=raised.T, b_eq=np.ones(table.shape[1]))
    return -program.fun


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("amplitude", [0.2, 0.99])
@pytest.mark.parametrize(("way", "share"), [("reverse", reverse), ("forward", forward)])
@pytest.mark.parametrize(("loss", "kappa"), [("kl", star_kappa), ("tv", flat_kappa)])
def test_messages_about_a_star_tell_at_most_kappa(loss, kappa, way, share, amplitude, epsilon):
    told = most_information(loss, way, amplitude, epsilon) / kappa(amplitude, epsilon, share)
    assert 0.15 < told <= 1 + 1e-9


def test_the_star_by_hand():
    signs = hadamard(4)[1:]
    table = ldp_gym.HYPOTHESES["hadamard-star"](4, amplitude=0.4).table
    np.testing.assert_allclose(table[:, 0], 0.6)
    np.testing.assert_allclose(table[1:, 1:], 0.4 * (1 + signs) / 4)
    np.testing.assert_allclose(table[0, 1:], 0.1)


def test_the_star_for_tv_by_hand():
    signs = hadamard(4)[1:]
    table = ldp_gym.HYPOTHESES["hadamard-star"](4, amplitude=0.4, loss="tv").table
    np.testing.assert_allclose(table, [[0.25] * 4, *((1 + 0.4 * signs) / 4)])
    np.testing.assert_allclose(tv(table[0], table[1:]), 0.2)


def test_the_amplitude_of_a_star_by_hand():
    star = ldp_gym.HYPOTHESES["hadamard-star"](5, epsilon=2.0, horizon=900)
    assert star.table.shape == (5, 9)
    assert star.amplitude == pytest.approx(1.5 * math.sqrt(4 / 900) / (math.e - 1), rel=1e-12)
    of_tv = theory.star_amplitude(5, 900, 2.0, "tv")
    assert of_tv == pytest.approx(0.1 / math.sinh(1.0), rel=1e-12)
    assert theory.star_amplitude(5, 2, 0.1) == 1.0


def test_a_level_is_at_most_300():
    with pytest.raises(ValueError, match="at most 300"):
        theory.interactive_kl_lower_bound(8, 100, 800.0)


def test_without_a_signal_every_round_costs_a_divergence():
    centre_and_leaf = 0.75 * math.log(4 / 3)
    assert theory.interactive_kl_lower_bound(2, 1, 1e-20) == pytest.approx(centre_and_leaf)
    assert theory.interactive_kl_lower_bound(2, 2, 1e-20) == pytest.approx(2 * centre_and_leaf)
    assert theory.interactive_tv_lower_bound(5, 100, 1e-20) == pytest.approx(0.25)
    assert theory.noninteractive_kl_lower_bound(10**6, 1, 1e-20) > 0.32
