"""evaluate against stepping the environment, and what an Evaluation says."""

import math
import pickle
import tracemalloc
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from helpers import ALPHA, CHANNELS, LOSSLESS, NATURES, Stepwise, infos_of, record, small_rules
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_gym import evaluate, statistics, theory
from ldp_gym.engine.losses import LOSSES
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Recording

FULL = ("laplace-single", "split", "adaptive-groups")
GAMES = [
    (name, small_rules(channel, nature))
    for channel in CHANNELS
    for nature in (NATURES if channel in FULL else ["iid", "adversary"])
    for name in ("bayes", "exp3")
    if name == "bayes" or channel not in LOSSLESS
] + [
    ("wma", small_rules("laplace-vector", hypotheses="dirichlet")),
    ("uniform", small_rules(hypotheses="disjoint")),
    ("mle", small_rules("unary-encoding", epsilon=6.0)),  # half of the messages are zeros
    ("bayes", small_rules(hypotheses="dirichlet", observe_candidates=True, redraw_hypotheses=True)),
    ("bayes", small_rules(observe_candidates=True, redraw_hypotheses=True)),
]


@pytest.mark.parametrize(("name", "game"), GAMES, ids=str)
def test_evaluate_gives_the_losses_of_stepping_the_environment(name, game):
    learner = partial(ldp_agents.make, name)
    checkpoints = [1, 2, 7, 33]
    names = list(LOSSES)
    result = evaluate(learner, game, episodes=3, seed=20, checkpoints=checkpoints, losses=names)
    assert result.rounds.tolist() == [*checkpoints, 40]

    env = gym.make("LDPDist-v0", losses=names, **game)
    for episode in range(3):
        infos = infos_of(learner, env, seed=20 + episode)
        for name in names:
            losses = np.array([info[name] for info in infos])
            totals = losses.cumsum()[result.rounds - 1]
            np.testing.assert_allclose(
                result.losses[name][episode], totals, rtol=1e-9, err_msg=name
            )


class Slack(Stepwise):
    """Sums off one within the tolerance, in one buffer for all predictions."""

    def predict(self, candidates):
        if not hasattr(self, "buffer"):
            self.buffer = super().predict(candidates)
        self.buffer[...] = super().predict(candidates) * (1 + 9e-5)
        return self.buffer


def test_predictions_within_the_tolerance_are_renormalised_and_may_share_a_buffer():
    ours, exact = (evaluate(learner, small_rules(), episodes=3) for learner in (Slack, Stepwise))
    np.testing.assert_allclose(ours.kl, exact.kl, rtol=1e-9)


def test_every_truth_and_the_worst():
    game = small_rules("randomized-response")
    result = evaluate(
        ldp_agents.Bayes, gym.make("LDPDist-v0", **game), episodes=3, seed=5, truth="all"
    )
    assert result.kl.shape == (4, 3, len(result.rounds))
    ten_per_decade = {round(10 ** (i / 10)) for i in range(21)}
    assert evaluate("uniform", {"horizon": 100}, episodes=1).rounds.tolist() == sorted(
        ten_per_decade
    )
    for j in range(4):
        alone = evaluate(ldp_agents.Bayes, game, episodes=3, seed=5, truth=j)
        np.testing.assert_allclose(result.kl[j], alone.kl, rtol=1e-12)
    means = result.kl[..., -1].mean(axis=1)
    assert result.worst_truth == means.argmax()
    assert math.isclose(result.risk, means.max())
    low, high = result.interval()
    assert low < result.risk < high


def test_an_interval_needs_two_episodes_and_a_worst_truth_all_of_them():
    kl = np.array([[1.0], [2.0], [6.0]])
    result = ldp_gym.Evaluation(np.array([5]), {"kl": kl}, np.zeros((3, 2)))
    expected = statistics.mean(kl[:, 0], least=0.0)
    assert result.interval() == (expected.low, expected.high)
    with pytest.raises(ValueError, match="at least 2 episodes"):
        ldp_gym.Evaluation(np.array([5]), {"kl": kl[:1]}, np.zeros((1, 2))).interval()
    with pytest.raises(ValueError, match='truth="all"'):
        _ = result.worst_truth


def test_memory_does_not_grow_with_the_horizon():
    """Peak allocations at 10^5 and at 10^6 rounds."""

    def peak(horizon):
        tracemalloc.start()
        evaluate(ldp_agents.EXP3, {"hypotheses": "dirichlet", "horizon": horizon}, episodes=2)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(10**6) < 1.3 * peak(10**5)


def test_bayes_without_privacy_pays_at_most_log_k():
    """On disjoint supports it pays exactly that: both sides are equal up to rounding."""
    for name in ("dirichlet", "softmax-linear", "disjoint"):
        game = {"hypotheses": name, "channel": "identity", "horizon": 1000}
        totals = evaluate(ldp_agents.Bayes, game, episodes=200).kl[:, -1]
        low = totals.mean() - stats.t.isf(ALPHA, len(totals) - 1) * stats.sem(totals)
        assert low <= theory.nonprivate_bound(8) * (1 + 1e-12)


def test_leaders_are_those_of_the_summed_log_likelihoods():
    """At every checkpoint, whatever blocks it is played in; equal weights have no leader."""
    rules = {"hypotheses": "dirichlet", "channel": "split", "horizon": 90, "epsilon": 2.0}
    game, tape = record(rules, episodes=5)
    sums = game.channel.log_likelihood(tape.messages, tape.candidates).cumsum(axis=1)[
        :, [6, 49, 89]
    ]
    assert (np.diff(np.sort(sums, axis=-1)[..., -2:]) > 1e-9).all()
    checkpoints = [7, 50, 90]
    result = evaluate("bayes", rules, episodes=5, checkpoints=checkpoints, leaders=True)
    np.testing.assert_array_equal(result.leaders, sums.argmax(axis=-1))
    without = evaluate("bayes", rules, episodes=5, checkpoints=checkpoints)
    np.testing.assert_allclose(result.kl, without.kl, rtol=1e-12)
    uniform = evaluate("uniform", rules, episodes=5, leaders=True)
    assert (uniform.leaders == -1).all()
    assert uniform.identification_rate == 0.0


def test_weights_that_are_not_of_hypotheses_are_left_alone():
    other = type("OtherWeights", (Stepwise,), {"weights": {"linear": np.zeros((3, 7))}})
    assert ldp_gym.evaluate(other, small_rules(), episodes=2).weights is None


def test_where_opt_is_infinite_nothing_is_found_and_the_regret_says_so():
    rules = {
        "hypotheses": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        "truth": [0.3, 0.2, 0.5],
        "horizon": 30,
    }
    result = evaluate("bayes", {**rules, "channel": "randomized-response"}, episodes=4)
    assert np.isinf(result.opt).all()
    assert np.isinf(result.kl[:, -1]).all()
    assert np.isnan(result.regret).all()
    assert result.identification_rate == 0.0
    assert "found" not in str(result)
    assert "OPT is infinite in 4 of 4 episodes" in str(result)


@pytest.mark.parametrize(
    "rules", [{"channel": "adaptive-split"}, {"truth": "switching"}, {"nature": "drift"}]
)
@pytest.mark.parametrize("most_bytes", [10**5, 10**8])
def test_learners_that_share_a_recording_play_as_on_their_own(rules, most_bytes):
    recording = Recording(Rules(horizon=60, **rules).scenario(), most_bytes)
    for learner in ("bayes", "thompson", "centred-exp3", "bayes"):
        shared = evaluate(learner, recording, episodes=40, seed=3)
        alone = evaluate(learner, {"horizon": 60, **rules}, episodes=40, seed=3)
        for name in ("kl", "tv", "comparator"):
            np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    assert bool(recording._kept) == (most_bytes == 10**8)


HANDED = [
    {"hypotheses": "dirichlet", "horizon": 40},
    {"horizon": 40},
    {
        "hypotheses": "dirichlet",
        "horizon": 40,
        "redraw_hypotheses": True,
        "observe_candidates": True,
    },
    {"hypotheses": "dirichlet", "horizon": 40, "channel": "adaptive-split"},
]


@pytest.mark.parametrize("rules", HANDED)
@pytest.mark.parametrize(
    ("base", "method", "argument"),
    [(Stepwise, "update", 0), (Stepwise, "update", 1), (ldp_agents.Uniform, "play", 1)],
)
def test_a_learner_that_changes_its_arrays_in_place_is_stopped(rules, base, method, argument):
    def change(self, *arrays):
        arrays[argument][...] = 0

    with pytest.raises(ValueError, match="read-only"):
        evaluate(type("Changes", (base,), {method: change}), rules, episodes=3)


def test_the_floor_is_that_of_the_class_where_it_is_proved():
    table = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
    rules = {"hypotheses": table, "channel": "split", "horizon": 50}
    proved = theory.class_floor(table, 50, 1.0)
    assert evaluate("bayes", rules, episodes=2).floor == proved
    assert evaluate("bayes", rules, episodes=2, truth="all").floor == proved
    drawn = evaluate("bayes", {"horizon": 50}, episodes=2)
    assert drawn.floor == theory.class_floor("softmax-linear", 50, 1.0)
    assert pickle.loads(pickle.dumps(drawn)).floor is None
    assert evaluate("bayes", rules, episodes=2, truth=1).floor is None
    vector = {"channel": "laplace-vector", "delta": 1e-5}
    leaks = {"nature": "omniscient"}
    for other in ({"truth": 1}, {"truth": [0.3, 0.7]}, vector, {"channel": "identity"}, leaks):
        assert evaluate("bayes", rules | other, episodes=2).floor is None
    for other in ({"nature": "adversary"}, {"redraw_hypotheses": True, "observe_candidates": True}):
        assert evaluate("bayes", {"horizon": 50} | other, episodes=2).floor is None


# -- High probability, and the largest of K estimates -------------------------------------------------------


def evaluation_of(totals):
    """Evaluation whose total KL is given, ``(episodes,)`` or ``(K, episodes)``."""
    kl = np.asarray(totals, dtype=np.float64)[..., None]
    return ldp_gym.Evaluation(np.array([5]), {"kl": kl}, np.zeros((*kl.shape[:-1], 2)))


@pytest.mark.parametrize("q", [0.5, 0.9])
@pytest.mark.parametrize(
    "law", [stats.expon(), stats.pareto(1.1), stats.poisson(2.0)], ids=["exp", "heavy", "discrete"]
)
def test_quantile_intervals_hold_the_quantile_of_known_laws(law, q):
    """At 95% 2,000 repetitions miss at most 6.7%, but for a chance of 1e-3 (their level is exact or more)."""
    samples = law.rvs(size=(2000, 100), random_state=np.random.default_rng(0))
    truth = law.ppf(q)
    estimates = [evaluation_of(row).quantile(q) for row in samples]
    misses = np.mean([not estimate.contains(truth) for estimate in estimates])
    assert misses < 0.067


def test_a_quantile_is_the_order_statistic_of_its_share():
    totals = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
    assert evaluation_of(totals).quantile(0.9).value == 90.0
    assert evaluation_of(totals).quantile(0.001).value == 1.0
    assert evaluation_of(totals).quantile(0.999).value == 100.0


def test_the_ranks_of_a_quantile_s_interval_are_binomial():
    """P(Bin(100, 0.9) < 83) and P(Bin(100, 0.9) >= 96) are at most 2.5%, and 84 and 95 would be too many."""
    estimate = evaluation_of(np.arange(1.0, 101.0)).quantile(0.9)
    assert (
        stats.binom.cdf(estimate.low - 1, 100, 0.9)
        <= 0.025
        < stats.binom.cdf(estimate.low, 100, 0.9)
    )
    assert stats.binom.sf(estimate.high - 1, 100, 0.9) <= 0.025
    assert stats.binom.sf(estimate.high - 2, 100, 0.9) > 0.025


def test_few_episodes_have_no_upper_end_for_a_high_quantile():
    estimate = evaluation_of(np.arange(1.0, 21.0)).quantile(0.99)
    assert estimate.value == 20.0
    assert estimate.high == math.inf
    assert not estimate.known


def test_the_quantile_of_all_truths_is_the_largest():
    totals = np.stack([np.arange(1.0, 101.0), np.arange(1.0, 101.0) + 50.0])
    result = evaluation_of(totals)
    worst = evaluation_of(totals[1]).quantile(0.9)
    assert result.quantile(0.9).value == worst.value
    assert result.quantile(0.9).high == worst.high
    assert result.quantile(0.9).low < worst.low, "two lower ends hold together"


def test_a_quantile_of_another_loss_needs_that_loss():
    result = evaluate("uniform", {"horizon": 5}, episodes=3, losses=["hellinger"])
    totals = result.losses["hellinger"][:, -1]
    assert result.quantile(0.5, of="hellinger").value == np.sort(totals)[1]
    with pytest.raises(ValueError, match="'tv' was not computed"):
        result.quantile(0.5, of="tv")
    with pytest.raises(ValueError, match="q must lie in"):
        result.quantile(1.0)


def test_the_held_out_estimate_is_the_second_half_at_the_truth_that_is_worst_in_the_first():
    totals = np.array([[1.0, 1.0, 9.0, 9.0], [5.0, 5.0, 2.0, 4.0]])
    assert evaluation_of(totals).held_out_estimate().value == 3.0


def test_the_held_out_estimate_has_no_bias_where_the_risk_has():
    """Eight equal truths of mean 1: 400 repetitions with 16 episodes each, five standard errors."""
    totals = np.random.default_rng(0).exponential(size=(400, 8, 16))
    results = [evaluation_of(one) for one in totals]
    held_out = np.array([result.held_out_estimate().value for result in results])
    assert abs(held_out.mean() - 1.0) < 5.0 * held_out.std() / np.sqrt(400)
    assert np.mean([result.risk for result in results]) > 1.3


def test_the_text_about_all_truths_says_that_the_largest_estimate_is_biased():
    text = str(evaluate("uniform", {"horizon": 5}, episodes=4, truth="all"))
    assert "the largest of 8 estimates, biased upwards" in text
    assert "in the second half of the episodes, at the truth that is worst in the first" in text


def test_the_text_about_one_truth_says_nothing_of_others():
    text = str(evaluate("uniform", {"horizon": 5}, episodes=4))
    assert "biased" not in text
    assert "half" not in text


def test_arrays_of_an_evaluation_are_all_that_it_consists_of():
    result = evaluate("bayes", {"horizon": 5}, episodes=2, leaders=True, losses=["hellinger"])
    assert list(result.arrays) == [
        "rounds",
        "losses/kl",
        "losses/hellinger",
        "comparator",
        "weights",
        "leaders",
    ]
    again = ldp_gym.Evaluation.from_arrays(result.arrays)
    np.testing.assert_array_equal(again.losses["hellinger"], result.losses["hellinger"])
    np.testing.assert_array_equal(again.leaders, result.leaders)
