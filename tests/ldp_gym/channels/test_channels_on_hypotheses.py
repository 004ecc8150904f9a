"""Channels that ask about hypotheses: the questions, the posterior they go by, and that M is not seen."""

import math

import numpy as np
import pytest
from helpers import CHANNELS, FREE_OF_NUM_LABELS, TABLE, make_channel

import ldp_gym
from ldp_gym import theory
from ldp_gym.channels.vote import vote_laws_of_winners, votes
from ldp_gym.testing import check_channel, check_learner

NOISY = ["laplace-single", "laplace-vector", "gaussian-vector"]
ADAPTIVE = [name for name in CHANNELS if ldp_gym.CHANNELS[name].adaptive]
KEEP = math.e / (1 + math.e)
"""Probability of a true answer to a question of two sides, at eps = 1."""


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in (*FREE_OF_NUM_LABELS, *NOISY[1:])]
    + [(name, {"calibration": "tight"}) for name in NOISY],
)
def test_m_free_channels_do_not_see_that_labels_are_refined(name, options):
    """With the same coins the message of a label is that of any of its parts, and so is its likelihood."""
    rng = np.random.default_rng(0)
    base = rng.dirichlet(np.full(6, 0.3), size=4)
    fine = np.repeat(base, 7, axis=-1) / 7
    channels = [make_channel(name, *table.shape, 50, **options) for table in (base, fine)]
    labels, coins = rng.integers(6, size=300), rng.random((300, channels[0].num_uniforms))
    public = rng.dirichlet(np.ones(4)) if channels[0].adaptive else None
    coarse = channels[0].encode(labels, base, coins, public)
    likelihood = channels[0].log_likelihood(coarse, base, public)
    likelihood -= likelihood.max(axis=-1, keepdims=True)
    shift = (
        math.log(7) if name in ("one-bit", "hybrid") else 0.0
    )  # their losses are log-likelihoods
    tolerance = {"rtol": 1e-9} if name in NOISY else {"rtol": 1e-7, "atol": 1e-9}
    for part in (0, 6):
        messages = channels[1].encode(7 * labels + part, fine, coins, public)
        np.testing.assert_allclose(
            messages, np.where(coarse != 0.0, coarse + shift, 0.0), **tolerance
        )
        refined = channels[1].log_likelihood(messages, fine, public)
        refined -= refined.max(axis=-1, keepdims=True)
        np.testing.assert_allclose(refined, likelihood, atol=1e-7)


LAW_OF_01_AGAINST_2 = np.array([KEEP, 1 - KEEP, KEEP, 0.5])
"""Probability, by label, of the answer that hypotheses 0 and 1 of TABLE win against 2.

Labels 0 and 2 are likelier under 0 and 1 on average (0.3 against 0, 0.5 against 0.1), label 1 under 2. No
hypothesis allows label 3: a fair coin answers.
"""
WON_BY_0_AND_1 = np.array([-1.0, -1.0, 1.0])


def test_the_law_of_a_comparison_by_hand():
    channel = make_channel("split", 3, 4, 50)
    density = np.exp(channel.log_density(WON_BY_0_AND_1, TABLE))
    np.testing.assert_allclose(density, LAW_OF_01_AGAINST_2)


@pytest.mark.parametrize(
    ("message", "law"),
    [(WON_BY_0_AND_1, LAW_OF_01_AGAINST_2), (-WON_BY_0_AND_1, 1.0 - LAW_OF_01_AGAINST_2)],
)
def test_the_likelihood_of_a_comparison_is_its_mean_under_each_hypothesis(message, law):
    channel = make_channel("split", 3, 4, 50)
    np.testing.assert_allclose(np.exp(channel.log_likelihood(message, TABLE)), TABLE @ law)


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e-30])
def test_a_tie_up_to_rounding_is_a_tie(size):
    """0.1 + 0.2 against 0.3 + 0, at any size of the column.

    Label 0 has a tie, label 1 is off by 1e-13 of the size (still a tie), label 2 by 1e-11 (no tie).
    """
    channel = make_channel("split", 4, 4, 50)
    won_by_0_and_1 = np.array([-1.0, -1.0, 1.0, 1.0])
    column = np.array([0.1, 0.2, 0.3, 0.0]) * size
    one_for_hypothesis_0 = np.array([1.0, 0.0, 0.0, 0.0]) * size
    nearly_tied = column + 1e-13 * one_for_hypothesis_0
    not_tied = column + 1e-11 * one_for_hypothesis_0
    table = np.stack([column, nearly_tied, not_tied, 1.0 - 3.0 * column], axis=-1)
    assert channel.agreement(won_by_0_and_1, table)[:3].tolist() == [0.5, 0.5, 1.0]
    assert channel.agreement(-won_by_0_and_1, table)[:3].tolist() == [0.5, 0.5, 0.0]


def test_sides_of_two_hypotheses_and_of_one_are_compared_by_their_means():
    """Hypotheses 0 and 1 are equal, and differ from 2 by 0.001 in the first two labels, not in the last."""
    table = np.array([[0.3, 0.301, 0.399], [0.3, 0.301, 0.399], [0.301, 0.3, 0.399]])
    channel = make_channel("split", 3, 3, 50)
    assert channel.agreement(WON_BY_0_AND_1, table).tolist() == [0.0, 1.0, 0.5]


def test_sides_of_one_hypothesis_and_of_two_are_compared_by_their_means():
    table = np.array([[0.301, 0.3, 0.399], [0.3, 0.301, 0.399], [0.3, 0.301, 0.399]])
    won_by_0 = np.array([-1.0, 1.0, 1.0])
    channel = make_channel("split", 3, 3, 50)
    assert channel.agreement(won_by_0, table).tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(("named", "chance_of_the_favoured"), [(1, KEEP), (0, 1 - KEEP)])
def test_two_groups_by_hand(named, chance_of_the_favoured):
    """Group 0 is hypothesis 0; group 1 is hypotheses 1 and 2, weighted 0.1 to 0.3.

    Label 1 has probability 0.3 under group 0 and 0.7 under group 1, label 2 has 0.2 and 0.275: both favour
    group 1. Label 0 favours group 0. No hypothesis allows label 3, of which a fair coin decides.
    """
    channel = make_channel("adaptive-groups", 3, 4, 50)
    posterior = np.array([0.6, 0.1, 0.3])
    message = np.array([0, 1, 1, named])
    other = 1 - chance_of_the_favoured
    law = [other, chance_of_the_favoured, chance_of_the_favoured, 0.5]
    density = np.exp(channel.log_density(message, TABLE, posterior))
    np.testing.assert_allclose(density, law)


@pytest.fixture
def law_of_three_groups():
    """Probabilities of the three names, ``(3, M)``, where hypotheses 0, 1, 2 are in groups 1, 0, 2."""
    channel = make_channel("adaptive-groups", 3, 4, 50)
    posterior = np.array([0.6, 0.1, 0.3])
    messages = np.array([[1, 0, 2, 0], [1, 0, 2, 1], [1, 0, 2, 2]])
    return np.exp(channel.log_density(messages, TABLE, posterior))


def test_the_probabilities_of_three_groups_sum_to_one(law_of_three_groups):
    np.testing.assert_allclose(law_of_three_groups.sum(axis=0), 1.0)


def test_a_label_s_likeliest_group_of_three_is_the_one_that_favours_it(law_of_three_groups):
    assert np.argmax(law_of_three_groups, axis=0)[:3].tolist() == [1, 2, 0]


def test_a_label_that_no_hypothesis_allows_names_any_of_three_groups(law_of_three_groups):
    np.testing.assert_allclose(law_of_three_groups[:, 3], 1 / 3)


def test_the_favoured_group_of_three_is_named_with_probability_e_over_e_plus_2(law_of_three_groups):
    np.testing.assert_allclose(np.max(law_of_three_groups), math.e / (math.e + 2))


@pytest.mark.parametrize(
    ("name", "sent"), [("adaptive-split", [-1, 1, 1]), ("adaptive-groups", [0, 1, 1, 0])]
)
def test_sides_are_compared_by_their_posterior_means(name, sent):
    """{1} against {2, 3}: with weights 9 to 1 the second decides for both, where the plain mean would not."""
    table = np.array([[0.4, 0.3, 0.3], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    likes_first = table[0] > np.array([0.9, 0.1]) @ table[1:]
    assert (likes_first != (table[0] > table[1:].mean(axis=0))).any()
    channel = make_channel(name, 3, 3, 50)
    message = np.array(sent, dtype=channel.message_space.dtype)
    density = np.exp(channel.log_density(message, table, np.array([0.8, 0.18, 0.02])))
    np.testing.assert_allclose(density, np.where(likes_first, KEEP, 1 - KEEP))


def deal(posterior, uniforms, count):
    """Deal hypotheses to ``count`` groups, the likely ones first, each to the lightest group.

    Return the group of each hypothesis. The uniforms perturb the order.
    """
    loads = [0.0] * count
    groups = np.zeros(len(posterior), dtype=int)
    order = sorted(range(len(posterior)), key=lambda k: -posterior[k] * (0.5 + uniforms[k]))
    for turn, k in enumerate(order):
        if turn < count:
            groups[k] = turn
        else:
            groups[k] = loads.index(min(loads))
        loads[groups[k]] += posterior[k]
    return groups


def expected_doubt(channel, groups, posterior):
    """The expected sum of square roots of the next posterior: by Bayes' rule on every message."""
    messages = np.array([[*groups, named] for named in range(groups.max() + 1)])
    likelihoods = np.exp(channel.log_likelihood(messages, np.eye(len(posterior)), posterior))
    joint = likelihoods * posterior
    return (np.sqrt(joint).sum(axis=1) * np.sqrt(joint.sum(axis=1))).sum()


LIKELY_0 = np.array([0.96, 0.02, 0.01, 0.004, 0.003, 0.002, 0.001])
"""A posterior of seven hypotheses that is nearly sure of the first."""


@pytest.mark.parametrize("epsilon", [1.0, 1.7, 4.0])
def test_the_groups_are_those_that_leave_least_doubt(epsilon):
    """Of the deals to every number of groups, for 62 posteriors, which do not all want the same number."""
    channel = make_channel("adaptive-groups", 7, 7, 50, epsilon=epsilon)
    rng = np.random.default_rng(3)
    numbers_of_groups = set()
    for posterior in (np.full(7, 1 / 7), LIKELY_0, *rng.dirichlet(np.full(7, 0.7), size=60)):
        uniforms = rng.random(channel.num_uniforms)
        deals = [deal(posterior, uniforms, count) for count in channel.sizes]
        best = min(deals, key=lambda groups: expected_doubt(channel, groups, posterior))
        message = channel.encode(0, np.eye(7), uniforms, posterior)
        assert message[:-1].tolist() == best.tolist()
        numbers_of_groups.add(best.max() + 1)
    assert len(numbers_of_groups) > 1


def test_a_likely_hypothesis_is_put_against_all_others():
    channel = make_channel("adaptive-groups", 7, 7, 50, epsilon=1.0)
    uniforms = np.random.default_rng(3).random((500, channel.num_uniforms))
    groups = channel.encode(0, np.eye(7), uniforms, LIKELY_0)[:, :-1]
    assert (groups == [0, 1, 1, 1, 1, 1, 1]).all()


@pytest.mark.parametrize(
    ("epsilon", "sizes"),
    [(0.1, [2]), (1, [2, 3]), (4, [2, 3, 5, 9, 17]), (800.0, [2, 3, 5, 9, 17, 20])],
)
def test_the_numbers_of_groups_to_choose_from_grow_with_epsilon(epsilon, sizes):
    assert make_channel("adaptive-groups", 20, 20, 50, epsilon=epsilon).sizes == sizes


@pytest.mark.parametrize(("num_hypotheses", "epsilon"), [(8, 1.0), (8, 3.0), (20, 1.0), (20, 0.2)])
def test_a_vote_s_sets_have_the_size_of_most_information(num_hypotheses, epsilon):
    """On disjoint supports, exactly: I(truth; message) for sets of 1, 2, ..., K - 1 names."""
    sizes = np.arange(1, num_hypotheses)
    share = sizes / num_hypotheses
    ratio = math.exp(epsilon)
    holds_the_truth = ratio * share / (ratio * share + 1 - share)
    information = holds_the_truth * np.log(holds_the_truth / share)
    information += (1 - holds_the_truth) * np.log((1 - holds_the_truth) / (1 - share))
    channel = make_channel("vote", num_hypotheses, num_hypotheses, 50, epsilon=epsilon)
    assert channel.size == sizes[information.argmax()]


TWO_WITH_A_TIE = np.array([[0.7, 0.1 + 1e-16, 0.2], [0.2, 0.1, 0.7]])
"""Two hypotheses that agree on the second label up to rounding."""


def test_a_label_votes_for_its_likeliest_hypothesis_and_equals_share_its_vote():
    assert votes(TWO_WITH_A_TIE).tolist() == [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]


def test_the_law_of_the_winner_under_each_hypothesis_by_hand():
    """Under hypothesis 0: 0.7 + 0.1 / 2 for itself."""
    laws = vote_laws_of_winners(TWO_WITH_A_TIE)
    np.testing.assert_allclose(laws, [[0.75, 0.25], [0.25, 0.75]])


WHEELS = [
    (np.eye(4), [0.25, 0.25, 0.25, 0.25], theory.best_share(1.0)),
    (
        np.array([[0.6, 0.2, 0.1, 0.1], *[[0.4, 0.3, 0.2, 0.1]] * 3]),
        [0.475, 0.175, 0.175, 0.175],
        0.475,
    ),
    (np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]]), [0.675, 0.0, 0.0, 0.325], 0.5),
]
"""Four hypotheses, the probability that each gets the vote of a label of their mean, and the arc's length."""


@pytest.mark.parametrize(("table", "chances", "arc"), WHEELS)
def test_neighbours_on_the_wheel_are_apart_by_the_mean_of_their_chances_of_a_vote(
    table, chances, arc
):
    """Each hypothesis stands in the middle of a part of the circle as long as its chance of a vote."""
    channel = make_channel("wheel", *table.shape, 50)
    places = channel.privatize(0, table, np.random.default_rng(0))
    order = places.argsort()
    next_in_order = np.roll(order, -1)
    gaps = (places[next_in_order] - places[order]) % 1.0
    chances = np.array(chances)
    expected = (chances[order] + chances[next_in_order]) / 2
    np.testing.assert_allclose(gaps, expected, atol=1e-12)


@pytest.mark.parametrize(("table", "chances", "arc"), WHEELS)
def test_the_wheel_s_arc_covers_its_length_of_the_circle(table, chances, arc):
    """Of label 0, which votes for hypothesis 0, the others being far away: inside is e times as likely."""
    channel = make_channel("wheel", *table.shape, 50)
    at_the_end_of_the_arc = np.array([arc - 1e-9, 1.0, 1.0, 1.0])
    beyond_the_arc = np.array([arc + 1e-9, 1.0, 1.0, 1.0])
    covered = channel.log_density(at_the_end_of_the_arc, table)[0]
    not_covered = channel.log_density(beyond_the_arc, table)[0]
    assert covered - not_covered == pytest.approx(1.0)


def test_the_wheel_s_last_bits_tell_nothing():
    """Every distance is a whole number of 2^-40: no rounding shows at which hypothesis the arc was put."""
    channel = make_channel("wheel", 3, 4, 50)
    rng = np.random.default_rng(0)
    steps = channel.privatize(rng.integers(4, size=1000), TABLE, rng) * 2.0**40
    assert np.array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("channel", ADAPTIVE)
def test_adaptive_channels_take_the_options_and_keep_their_contract(channel):
    options = {"posterior_rate": 0.5, "posterior_share": 0.05}
    check_channel(make_channel(channel, 4, 5, 12, **options), samples=20_000)
    for learner in ("bayes", "fixed-share"):
        check_learner(learner, channel=channel, channel_kwargs=options)
