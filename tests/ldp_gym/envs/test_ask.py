"""LDPAsk-v0: rewards by brute force, exact privacy, the same games single and vector, and scores."""

import math
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from helpers import assert_same_games
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import rel_entr

from ldp_gym import audit
from ldp_gym.channels.asked_bit import AskedBit
from ldp_gym.core.seed_ranges import TEST
from ldp_gym.envs.ask import greedy_contrast

TABLE = np.array([[0.5, 0.3, 0.2, 0.0], [0.1, 0.1, 0.8, 0.0], [0.0, 0.6, 0.1, 0.3]])
PLANE = [1.0, 0.0, -1.0]
TIED = [
    0.4,
    -0.6,
    -0.1,
]  # 0.3 * 0.4 = 0.6 * 0.1 + 0.6 * 0.1 up to rounding: label 1 is on the plane
SMALL = {"hypotheses": TABLE.tolist(), "epsilon": 1.5, "horizon": 4}
UNIFORM = np.full(3, 1 / 3)
CONTEXTS = {"hypotheses": "softmax-linear", "num_hypotheses": 3, "num_labels": 4, "horizon": 5}
META = {"redraw_hypotheses": True, "num_hypotheses": 3, "num_labels": 4, "horizon": 5}


def losses(weights):
    """KL of the posterior mean under each hypothesis."""
    return rel_entr(TABLE, weights @ TABLE).sum(axis=1)


def branches(weights, contrast):
    """Law under each hypothesis, probability and posterior, of the answers yes and no."""
    totals, flip = contrast @ TABLE, 1 / (1 + math.exp(1.5))
    yes = TABLE @ np.where(abs(totals) < 1e-9, 0.5, np.where(totals > 0, 1 - flip, flip))
    return [(law, weights @ law, weights * law / (weights @ law)) for law in (yes, 1 - yes)]


def ask(weights):
    """A policy that asks other questions at other posteriors, one of them with a tie."""
    return np.array(PLANE if weights[0] < weights[1] else TIED)


@pytest.mark.parametrize(
    "contrast", [PLANE, TIED, [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-0.3, 0.9, 0.2]]
)
def test_a_round_is_that_of_the_formulas(contrast):
    """Posterior, reward and KL of a question, from sums over labels."""
    env = gym.make("LDPAsk-v0", reveal=True, **SMALL)
    for seed in range(12):
        shown, start = env.reset(seed=seed)
        np.testing.assert_allclose(shown, [*UNIFORM, *np.log(UNIFORM), 0.0], rtol=1e-6)
        weights = UNIFORM
        for t in (1, 2, 3, 4):
            after = [(chance, w) for _, chance, w in branches(weights, np.array(contrast))]
            shown, reward, over, _, info = env.step(contrast)
            drop = weights @ losses(weights) - sum(chance * (w @ losses(w)) for chance, w in after)
            assert reward == pytest.approx((4 - t) * drop / (UNIFORM @ losses(UNIFORM)), abs=1e-9)
            assert info["kl"] == pytest.approx(losses(weights)[start["truth"]], rel=1e-9)
            weights = min((w for _, w in after), key=lambda w: abs(w - shown[:3]).max())
            np.testing.assert_allclose(shown, [*weights, *np.log(weights), t / 4], atol=1e-5)
        assert over


def test_the_expected_return_is_the_gain_in_risk():
    """Exactly, over all answers: T - risk / J(uniform), with the risk of the hidden truths."""
    envs = gym.make_vec("LDPAsk-v0", num_envs=300, autoreset_mode="Disabled", **SMALL)
    shown, _ = envs.reset(seed=0)
    returns, path = np.zeros(300), [()] * 300
    for t in range(4):
        before = shown[:, :3].astype(np.float64)
        shown, rewards, *_ = envs.step(np.array([ask(w) for w in before]))
        returns += rewards
        for i, weights in enumerate(before):
            ends = [abs(w - shown[i, :3]).max() for *_, w in branches(weights, ask(weights))]
            path[i] += (int(np.argmin(ends)),) if t < 3 else ()  # the last answer earns nothing
    earned = dict(zip(path, returns, strict=True))
    assert len(earned) == 8, "every path of answers was seen"
    expected = risk = 0.0
    for answers in product((0, 1), repeat=3):
        weights = laws = UNIFORM
        for t in range(4):
            risk += (
                laws @ losses(weights) / 2 ** (3 - t)
            )  # 2^(3 - t) paths share their first t answers
            if t < 3:
                law, _, weights = branches(weights, ask(weights))[answers[t]]
                laws = laws * law
        expected += laws.sum() * earned[answers]
    assert expected == pytest.approx(4 - risk / (UNIFORM @ losses(UNIFORM)), rel=1e-6)


coefficients = st.floats(-1.0, 1.0, width=32) | st.sampled_from([0.0, 1.0, -1.0, 1e-30])


@given(
    contrast=arrays(np.float64, 3, elements=coefficients),
    rows=arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1e-9, 0.1, 0.3, 1.0])),
    epsilon=st.sampled_from([0.01, 1.0, 8.0]),
)
def test_every_action_is_private(contrast, rows, epsilon):
    """Probabilities of an answer differ by a factor of e^eps at most, planes and ties included."""
    rows[:, 0] += 1e-3
    table = rows / rows.sum(axis=1, keepdims=True)
    channel = AskedBit(3, 4, 10, epsilon=epsilon, policy=lambda posterior: contrast)
    both = channel.messages_given_coins(np.zeros(0), table, UNIFORM)
    laws = np.exp(channel.log_density(both, table, UNIFORM))
    np.testing.assert_allclose(laws.sum(axis=0), 1.0, rtol=1e-12)
    assert np.log(laws.max(axis=1) / laws.min(axis=1)).max() <= epsilon * (1 + 1e-9)
    assert audit.certify(channel, table, UNIFORM).holds


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_single_and_vector_environments_agree(mode):
    native = gym.make_vec("LDPAsk-v0", num_envs=3, autoreset_mode=mode, **SMALL)
    sync = SyncVectorEnv([lambda: gym.make("LDPAsk-v0", **SMALL)] * 3, autoreset_mode=mode)
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 3, 3)).astype(np.float32)
    actions[::3] = PLANE
    assert_same_games(native, sync, actions, rtol=1e-6)


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    "rules",
    [
        CONTEXTS,
        META,
        CONTEXTS | {"redraw_hypotheses": True},
        CONTEXTS | {"nature": "omniscient", "nature_kwargs": {"pool_size": 4}},
        CONTEXTS | {"nature": "cycle", "observe_candidates": True},
    ],
)
def test_games_with_contexts_and_with_redrawn_classes_agree(rules, mode):
    native = gym.make_vec("LDPAsk-v0", num_envs=3, autoreset_mode=mode, **rules)
    sync = SyncVectorEnv([lambda: gym.make("LDPAsk-v0", **rules)] * 3, autoreset_mode=mode)
    actions = np.random.default_rng(0).uniform(-1, 1, (14, 3, 3))
    assert_same_games(native, sync, actions, rtol=1e-5)


def test_in_a_class_with_contexts_the_question_is_about_the_hypotheses_there():
    """The posterior after an answer is one of two, by Bayes' rule at the context that the row shows."""
    env = gym.make("LDPAsk-v0", epsilon=1.5, nature="cycle", **CONTEXTS)
    row, _ = env.reset(seed=0)
    contrast = np.array([0.8, -0.1, -0.7])
    for _ in range(5):
        weights = row[:3].astype(np.float64)
        table = row[7:].reshape(3, 4).astype(np.float64)
        flip = 1 / (1 + math.exp(1.5))
        yes = table @ np.where(contrast @ table > 0, 1 - flip, flip)
        after = [weights * law / (weights @ law) for law in (yes, 1 - yes)]
        np.testing.assert_allclose(env.unwrapped.candidates, table, atol=1e-6)
        row, *_ = env.step(contrast)
        distances = [abs(posterior - row[:3]).max() for posterior in after]
        assert min(distances) < 1e-5


def test_with_contexts_the_reward_is_the_mean_saving_over_the_pool():
    """From the losses at each of the pool's contexts, before and after both answers."""
    rules = {**CONTEXTS, "nature": "cycle", "nature_kwargs": {"pool_size": 6}}
    env = gym.make("LDPAsk-v0", epsilon=1.5, **rules)
    row, _ = env.reset(seed=0)
    tables = env.unwrapped.game.hypotheses(env.unwrapped.scenario.nature.pool)
    flip = 1 / (1 + math.exp(1.5))

    def mean_loss(weights):
        losses = [weights @ rel_entr(table, weights @ table).sum(axis=1) for table in tables]
        return np.mean(losses)

    for t, contrast in enumerate(np.random.default_rng(1).uniform(-1, 1, (5, 3))):
        weights = row[:3].astype(np.float64)
        table = env.unwrapped.candidates
        yes = table @ np.where(contrast @ table > 0, 1 - flip, flip)
        later = sum(
            (weights @ law) * mean_loss(weights * law / (weights @ law)) for law in (yes, 1 - yes)
        )
        row, reward, *_ = env.step(contrast)
        expected = (4 - t) * (mean_loss(weights) - later) / mean_loss(UNIFORM)
        assert reward == pytest.approx(max(expected, 0.0), abs=1e-5)


@pytest.mark.parametrize("apart", [0.0, 1e-16, 1e-9, 1e-6])
def test_questions_about_equal_hypotheses_pay_nothing(apart):
    table = [[0.5 + apart, 0.5 - apart], [0.5, 0.5], [0.5, 0.5]]
    env = gym.make("LDPAsk-v0", hypotheses=table, horizon=200)
    env.reset(seed=0)
    rewards = [env.step(np.array([1.0, -0.5, -0.5]))[1] for _ in range(200)]
    assert rewards == [0.0] * 200


def test_the_meta_game_redraws_the_class_and_shows_its_table():
    env = gym.make("LDPAskMeta-v0")
    first, _ = env.reset(seed=0)
    table = env.unwrapped.candidates
    second, _ = env.reset()
    assert first.shape == (2 * 8 + 1 + 8 * 16,)
    np.testing.assert_array_equal(first[17:], table.ravel().astype(np.float32))
    assert not np.allclose(first[17:], second[17:])


def test_greedy_questions_about_tables_of_their_own_are_those_one_by_one():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(3), 5)
    tables = rng.dirichlet(np.ones(4), (5, 3))
    together = greedy_contrast(weights, tables)
    alone = [greedy_contrast(w, table) for w, table in zip(weights, tables, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_the_checkers_of_the_libraries_pass():
    env = gym.make("LDPAsk-v0", horizon=5)
    check_env(env.unwrapped)
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env)
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).spec.kwargs == {
        "horizon": 5
    }


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ({"channel": "split"}, TypeError, "LDPAsk-v0 takes no 'channel': leave it out"),
        ({**CONTEXTS, "nature": "adversary"}, ValueError, "'adversary'.*before the question"),
        ({"horizn": 3}, TypeError, "did you mean 'horizon'"),
    ],
)
def test_wrong_rules_and_actions_are_refused(rules, error, message):
    with pytest.raises(error, match=message):
        gym.make("LDPAsk-v0", **rules)
    env = gym.make("LDPAsk-v0", **SMALL)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"finite coefficients of shape \(3,\)"):
        env.step([0.0, np.nan, 0.0])


def test_greedy_contrasts_find_the_set_whose_answers_vary_most():
    rng = np.random.default_rng(3)
    table, sets = rng.dirichlet(np.ones(6), 4), np.array(list(product((0.0, 1.0), repeat=6)))
    weights = rng.dirichlet(np.ones(4), 50)
    variances = weights @ np.square(table @ sets.T) - np.square(weights @ (table @ sets.T))
    chosen = greedy_contrast(weights, table) @ table > 0
    found = variances[np.arange(50), (chosen @ 2 ** np.arange(5, -1, -1)).astype(int)]
    np.testing.assert_allclose(found, variances.max(axis=1), rtol=1e-9)


def test_scores_are_0_for_random_and_1_for_greedy_contrasts():
    """On other episodes than those of the references; never asking keeps the risk of the first round."""
    rules = {"num_hypotheses": 4, "num_labels": 8, "horizon": 60, "epsilon": 2.0}
    envs = gym.make_vec("LDPAsk-v0", num_envs=600, autoreset_mode="Disabled", **rules)
    table, rng = envs.unwrapped.game.hypotheses(np.zeros(1)), np.random.default_rng(1)
    policies = [
        lambda rows: rng.uniform(-1, 1, (600, 4)),
        lambda rows: greedy_contrast(rows[:, :4].astype(np.float64), table),
        lambda rows: np.zeros((600, 4)),
    ]
    scores = []
    for policy in policies:
        shown, _ = envs.reset(seed=TEST.start)
        for _ in range(60):
            shown, *_, infos = envs.step(policy(shown))
        scores.append(infos["score"].mean())
    assert abs(scores[0]) < 0.15
    assert abs(scores[1] - 1.0) < 0.15
    np.testing.assert_allclose(infos["risk"], 60 * infos["kl"], rtol=1e-9)


def test_a_truth_that_all_hypotheses_rule_out_has_no_score():
    rules = {
        "hypotheses": [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]],
        "truth": [0.3, 0.3, 0.4],
        "horizon": 2,
    }
    env = gym.make("LDPAsk-v0", **rules)
    env.reset(seed=0)
    info = [env.step(np.array([1.0, -1.0]))[-1] for _ in range(2)][-1]
    assert info["risk"] == np.inf
    assert "score" not in info
