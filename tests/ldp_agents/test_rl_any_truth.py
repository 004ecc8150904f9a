"""The learned update for truths that are no members: its rule, its training, and its contract."""

import numpy as np
import pytest
import torch
from helpers import CHANNELS, record, small_rules
from rl_helpers import untrained

import ldp_gym
from ldp_agents.rl import Model, any_truth
from ldp_agents.rl.amortized import label_evidence, simulate
from ldp_agents.rl.any_truth_training import total_kl
from ldp_agents.rl.network import ANY_TRUTH
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym.engine.scenario import Scenario
from ldp_gym.testing import check_learner

BAYES = any_truth.Dials(np.ones((5, 1)), np.zeros((5, 1)), np.ones((5, 1)))


def new_model():
    """Untrained label evidence, and dials where they begin."""
    dials = any_truth.make((4,), np.random.default_rng(0))
    named = {any_truth.PREFIX + name: array for name, array in dials.items()}
    return Model({**untrained().parameters, **named}, ANY_TRUTH, {})


def test_with_full_steps_and_nothing_shared_every_expert_is_bayes():
    likelihoods = np.random.default_rng(0).random((20, 3, 4)) + 0.1
    mixtures = any_truth.mixtures_of(4)
    state = any_truth.start(np.full(6, 1 / 6), 4, (3,))
    for likelihood in likelihoods:
        state = any_truth.advance(state, likelihood, BAYES, mixtures)
    product = likelihoods.prod(axis=0)
    for expert in range(5):
        expected = product / product.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(state.weights[:, expert], expected, rtol=1e-9)
    of_pairs = np.einsum("tbk,nk->tbn", likelihoods, mixtures).prod(axis=0)
    np.testing.assert_allclose(state.pairs, of_pairs / of_pairs.sum(axis=-1, keepdims=True), rtol=1e-9)
    foretold = np.column_stack([*[product.mean(axis=-1)] * 5, of_pairs.mean(axis=-1)])
    trust = np.concatenate([state.trust, state.trust_in_pairs], axis=-1)
    np.testing.assert_allclose(trust, foretold / foretold.sum(axis=-1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(state.mix(mixtures).sum(axis=-1), 1.0, rtol=1e-9)


def test_a_part_of_a_step_is_soft_bayes_and_a_share_is_spread_evenly():
    likelihood, weights = np.array([0.5, 1.0]), np.array([0.3, 0.7])
    dials = any_truth.Dials(*(np.full((5, 1), value) for value in (1.0, 0.1, 0.2)))
    mixtures = any_truth.mixtures_of(2)
    state = any_truth.State(np.tile(weights, (5, 1)), np.full(5, 0.2), np.full(5, 0.2), np.zeros(1))
    soft = weights * (1 - 0.2 + 0.2 * likelihood / (weights @ likelihood))
    after = any_truth.advance(state, likelihood, dials, mixtures)
    np.testing.assert_allclose(after.mix(mixtures), 0.9 * soft + 0.05, rtol=1e-9)


def test_experts_are_trusted_by_what_they_foretold():
    weights = np.array([[0.9, 0.1]] + [[0.5, 0.5]] * 4)
    mixtures = any_truth.mixtures_of(2)
    state = any_truth.State(weights, np.full(5, 1 / 6), np.full(5, 0.2), np.full(1, 1 / 6))
    after = any_truth.advance(state, np.array([1.0, 0.25]), BAYES, mixtures)
    expected = np.array([0.925, *[0.625] * 5])  # pairs: five mixtures, a half on average
    trust = np.append(after.trust, after.trust_in_pairs)
    np.testing.assert_allclose(trust, expected / expected.sum(), rtol=1e-9)


def test_what_is_trained_is_what_is_played():
    rules = small_rules("split", truth="switching", horizon=30)
    model = new_model()
    dials = {name.removeprefix("dials_"): a for name, a in model.parameters.items() if name[:6] == "dials_"}
    batch = simulate(rules, 3, np.random.default_rng(5))
    evidence = label_evidence(TorchNetwork({**untrained().parameters}), batch)
    ours = total_kl(TorchNetwork(dials), evidence, batch, Scenario(**rules).game)
    assert isinstance(ours, torch.Tensor)
    seeds = np.random.default_rng(5).integers(2**62, size=3)
    played = [ldp_gym.evaluate(model, rules, episodes=1, seed=int(seed)).risk for seed in seeds]
    np.testing.assert_allclose(ours.item(), np.mean(played), rtol=1e-4)


@pytest.mark.parametrize("channel", [name for name in CHANNELS if name != "identity"])
def test_it_keeps_the_learner_s_contract(channel):
    check_learner(new_model(), **small_rules(channel))


def test_a_restarted_game_begins_again():
    game, tape = record(small_rules("split"), 6, episodes=2)
    learner = new_model()(game)
    learner.reset((2,))
    learner.play(tape.candidates[:, :3], tape.messages[:, :3])
    learner.restart(np.array([True, False]))
    new = new_model()(game)
    new.reset((2,))
    for t in range(3, 6):
        for one in (learner, new):
            one.update(tape.candidates[:, t], tape.messages[:, t])
    np.testing.assert_allclose(learner.weights[0], new.weights[0], rtol=1e-12)
    assert np.abs(learner.weights[1] - new.weights[1]).max() > 1e-6


def test_the_shipped_one_beats_bayes_where_bayes_is_wrong():
    """By more than half, on a truth that switches and on mixtures of two."""
    rules = {"hypotheses": "dirichlet", "channel": "split", "epsilon": 4.0, "horizon": 400}
    for truth in ("switching", "mixture"):
        ours, bayes = (
            ldp_gym.evaluate(name, {**rules, "truth": truth}, episodes=40).kl[:, -1]
            for name in ("any-truth", "bayes")
        )
        assert ours.mean() < 0.5 * bayes.mean()
