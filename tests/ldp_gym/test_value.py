"""The value of a game: against enumeration of all transcripts, and what is refused."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

import ldp_agents
import ldp_gym
from ldp_gym import minimax
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import evaluate
from ldp_gym.value import (
    Piece,
    _estimate_risks,
    _simulate,
    all_rounds,
    least_favourable_prior,
    sample_rounds,
)

PAIR = np.array([[0.9, 0.1, 0.0], [0.2, 0.2, 0.6]])
SMALL = {
    "hypotheses": PAIR.tolist(),
    "channel": "randomized-response",
    "epsilon": 1.0,
    "horizon": 4,
}


def exact_risks(prior):
    """Risk of Bayes with a prior at each truth of SMALL, by enumeration of all reports."""
    keep = np.e / (np.e + 2.0)
    channel = np.full((3, 3), (1.0 - keep) / 2.0)
    np.fill_diagonal(channel, keep)
    report_laws = PAIR @ channel
    risks = np.zeros(2)
    for heard in range(4):
        for reports in itertools.product(range(3), repeat=heard):
            likelihoods = report_laws[:, list(reports)].prod(axis=1)
            posterior = prior * likelihoods / (prior @ likelihoods)
            prediction = posterior @ PAIR
            risks += likelihoods * rel_entr(PAIR, prediction).sum(axis=1)
    return risks


def exact_bayes_risk(weight):
    """Risk of Bayes if hypothesis 0 has this weight in the prior and as the truth."""
    prior = np.array([weight, 1.0 - weight])
    return prior @ exact_risks(prior)


BEST = minimize_scalar(
    lambda weight: -exact_bayes_risk(weight), bounds=(0.01, 0.99), method="bounded"
)
VALUE = -BEST.fun
"""The minimax risk of SMALL: the risk of Bayes is concave in the prior."""


def test_the_least_favourable_prior_makes_both_risks_the_value_of_the_game():
    risks = exact_risks(np.array([BEST.x, 1.0 - BEST.x]))
    np.testing.assert_allclose(risks, VALUE, rtol=1e-4)


def test_minimax_brackets_the_value_of_a_game_that_can_be_enumerated():
    result = minimax(SMALL, episodes=2000, seed=1)
    assert result.prior[0] == pytest.approx(BEST.x, abs=0.01)
    assert result.lower.value == pytest.approx(VALUE, rel=0.02)
    assert result.upper.value == pytest.approx(VALUE, rel=0.02)
    assert result.lower.low < VALUE < result.upper.high


def test_estimated_risks_are_those_of_enumeration_for_any_prior():
    prior = np.array([0.3, 0.7])
    totals = _estimate_risks(Rules.of(SMALL).scenario(), prior, range(20_000), 1, None)
    errors = totals.std(axis=1) / np.sqrt(20_000)
    assert (np.abs(totals.mean(axis=1) - exact_risks(prior)) < 5.0 * errors).all()  # 1e-6


@pytest.mark.parametrize(
    "rules",
    [
        {"hypotheses": "dirichlet", "channel": "half-space", "horizon": 60},
        {"channel": "split", "horizon": 60},
        {"hypotheses": "dirichlet", "channel": "challenge", "horizon": 60},
        {
            "num_hypotheses": 3,
            "num_labels": 4,
            "channel": "adaptive-split",
            "nature": "adversary",
            "nature_kwargs": {"pool_size": 4},
            "horizon": 10,
        },
    ],
    ids=["table", "contexts", "adaptive", "adversary"],
)
def test_risks_are_those_of_bayes_with_the_prior(rules):
    """Means over all truths' transcripts agree with means over each truth's own."""
    result = minimax(rules, episodes=100, seed=3)

    def bayes(game):
        return ldp_agents.Bayes(game, prior=result.prior)

    totals = evaluate(bayes, rules, episodes=100, seed=103, truth="all").kl[..., -1]
    errors = totals.std(axis=1) / np.sqrt(100)
    assert (np.abs(totals.mean(axis=1) - result.risks) < 6.0 * errors).all()


def test_losses_of_an_episode_are_those_of_bayes_weighed_by_the_transcript():
    """On one episode of each truth: the loss at k times L_k / sum_i L_i, round by round."""
    rules = {"hypotheses": "dirichlet", "num_hypotheses": 3, "channel": "split", "horizon": 30}
    scenario = Rules.of(rules).scenario()
    prior = np.array([0.5, 0.2, 0.3])
    blocks = list(_simulate(scenario, Piece(1, [7]), all_rounds(30)))
    totals = sum(block.losses(prior) for block in blocks)[0]

    table = scenario.hypotheses(np.zeros(1))
    sums = np.concatenate([block.log_likelihoods for block in blocks], axis=1)[0]
    expected = np.zeros(3)
    for before in sums:
        likelihoods = np.exp(before - before.max())
        posterior = prior * likelihoods / (prior @ likelihoods)
        losses = rel_entr(table, posterior @ table).sum(axis=1)
        expected += likelihoods / likelihoods.sum() * losses
    np.testing.assert_allclose(totals, expected, rtol=1e-10)


def test_on_disjoint_supports_the_prior_stays_uniform():
    rules = {"hypotheses": "disjoint", "channel": "randomized-response", "horizon": 200}
    np.testing.assert_allclose(minimax(rules, episodes=50).prior, 1 / 8, rtol=1e-6)


def test_without_privacy_disjoint_supports_cost_log_k():
    rules = {"hypotheses": "disjoint", "channel": "identity", "horizon": 50}
    with pytest.warns(ldp_gym.NoPrivacyWarning):
        result = minimax(rules, episodes=10)
    assert result.lower.value == pytest.approx(np.log(8))
    assert result.upper.value == pytest.approx(np.log(8))


def test_a_mixture_of_two_hypotheses_gets_no_weight_and_costs_nothing_infinite():
    table = [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]
    rules = {"hypotheses": table, "channel": "randomized-response", "horizon": 3}
    result = minimax(rules, episodes=500)
    assert result.prior[2] < 0.01
    assert result.risks[2] < result.lower.value
    assert np.isfinite(result.upper.high)


def test_equal_hypotheses_share_a_weight():
    table = [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]
    rules = {"hypotheses": table, "channel": "randomized-response", "horizon": 100}
    result = minimax(rules, episodes=200)
    assert result.prior[0] == pytest.approx(0.5, abs=0.05)
    assert result.upper.value < 1.1 * result.lower.value


def test_the_worst_truth_costs_less_than_with_the_uniform_prior():
    rules = {"hypotheses": "dirichlet", "class_seed": 0, "channel": "half-space", "horizon": 400}
    result = minimax(rules, episodes=400)
    uniform = np.full(8, 1 / 8)
    totals = _estimate_risks(Rules.of(rules).scenario(), uniform, range(400, 800), 1, None)
    assert result.upper.value < totals.mean(axis=1).max()
    assert result.upper.value < 1.1 * result.lower.value


def test_the_intervals_contain_the_value_in_most_repetitions():
    """100 repetitions with 40 episodes each: the bracket may miss in 5%, here in 15 with chance 1e-4."""
    misses = 0
    for repetition in range(100):
        result = minimax(SMALL, episodes=40, seed=1000 * repetition)
        misses += not result.lower.low <= VALUE <= result.upper.high
    assert misses < 15


def test_any_number_of_processes_gives_the_same_numbers():
    rules = {"hypotheses": "dirichlet", "channel": "split", "horizon": 50}
    rounds = []
    one = minimax(rules, episodes=20, progress=rounds.append)
    two = minimax(rules, episodes=20, jobs=2)
    assert one.lower == two.lower
    assert one.upper == two.upper
    np.testing.assert_array_equal(one.prior, two.prior)
    assert sum(rounds) == 2 * 8 * 20 * 50


def test_an_environment_is_as_good_as_its_rules():
    env = gym.make("LDPDist-v0", **SMALL)
    assert minimax(env, episodes=20).lower == minimax(SMALL, episodes=20).lower


def test_the_sampled_rounds_stand_for_all_rounds():
    sample = sample_rounds(100_000)
    assert sample.lengths.sum() == 100_000
    assert (np.diff(sample.rounds) > 0).all()
    assert len(sample.rounds) < 200
    assert (sample.lengths <= np.maximum(1, sample.rounds / 16)).all()


def test_the_text_names_both_bounds_and_the_worst_truth():
    text = str(minimax(SMALL, episodes=20))
    assert text.startswith("lower  ")
    assert "its risk at the worst truth" in text
    assert "20 episodes per truth" in text


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"truth": 1}, "another truth"),
        ({"truth": "mixture"}, "another truth"),
        ({"redraw_hypotheses": True, "observe_candidates": True}, "needs one class"),
        ({"nature": "omniscient"}, "looks at the truth"),
    ],
    ids=["truth", "mixture", "redrawn", "omniscient"],
)
def test_games_that_the_bounds_do_not_cover_are_refused(rules, reason):
    with pytest.raises(ValueError, match=reason):
        minimax({"horizon": 10, **rules}, episodes=2)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="episodes must be at least 2"):
        minimax(SMALL, episodes=1)
    with pytest.raises(TypeError, match="progress must be a function"):
        minimax(SMALL, progress=3)
    with pytest.raises(TypeError, match="horizn"):
        minimax({"horizn": 3})


def test_the_learner_minimax_is_bayes_with_the_prior():
    game = gym.make("LDPDist-v0", **SMALL).unwrapped.game
    learner = ldp_agents.make("minimax", game, episodes=50)
    np.testing.assert_array_equal(learner.prior, least_favourable_prior(SMALL, episodes=50))
    np.testing.assert_allclose(learner.weights, learner.prior, rtol=1e-12)
