"""Networks and models: NumPy plays what PyTorch trains, on every channel, class, K, M and T."""

import pickle

import numpy as np
import pytest
import torch
from helpers import CHANNELS, TABLE, record, small_rules
from rl_helpers import ENDS, untrained

import ldp_agents
import ldp_gym
from ldp_agents.rl import EvidenceLearner, Model, load, network
from ldp_agents.rl.amortized import label_evidence, simulate, total_kl
from ldp_agents.rl.torch_network import TorchNetwork
from ldp_gym.core.errors import OutsideTrainingWarning
from ldp_gym.engine.learners import track_of
from ldp_gym.engine.scenario import Scenario
from ldp_gym.testing import check_learner

PRIVATE = [name for name in CHANNELS if name != "identity"]


@pytest.mark.parametrize("evidence", ENDS)
def test_numpy_plays_what_pytorch_trains(evidence):
    parameters = untrained(evidence).parameters
    channel = Scenario(**small_rules()).channel
    rows = network.describe_nodes(channel) if evidence == "weights" else network.describe(channel)
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    np.testing.assert_allclose(
        network.apply(parameters, rows), network.apply(tensors, torch.tensor(rows)).numpy(), rtol=1e-9
    )


def test_a_message_and_its_opposite_have_likelihoods_that_sum_to_one():
    """Of each label: else some hypothesis would be favoured in every round, whatever the messages are."""
    weights, _ = network.learned_weights(untrained().parameters, Scenario(**small_rules("one-bit")).channel)
    assert np.ptp(weights) > 0.01
    np.testing.assert_allclose(np.exp(weights) + np.exp(weights[:, ::-1]), 1.0, rtol=1e-12)


@pytest.mark.parametrize("channel", ["laplace-single", "gaussian-vector", "split", "one-bit"])
@pytest.mark.parametrize("more", [{}, {"hypotheses": "dirichlet", "horizon": 12}], ids=["contexts", "table"])
def test_the_differentiable_loss_is_the_environment_s(channel, more):
    """What training descends, against a learner that steps through the same episodes."""
    rules = small_rules(channel, **more)
    net = TorchNetwork(untrained().parameters)
    batch = simulate(rules, 3, np.random.default_rng(5))
    ours = total_kl(label_evidence(net, batch), batch).item()
    seeds = np.random.default_rng(5).integers(2**62, size=3)
    model = Model(net.numpy(), "weights", {})
    played = [ldp_gym.evaluate(model, rules, episodes=1, seed=int(seed)).risk for seed in seeds]
    np.testing.assert_allclose(ours, np.mean(played), rtol=1e-4)


@pytest.mark.parametrize("evidence", ENDS)
@pytest.mark.parametrize("channel", PRIVATE)
def test_a_model_keeps_the_learner_s_contract(evidence, channel):
    check_learner(untrained(evidence), **small_rules(channel))


def test_a_model_plays_any_class_and_size():
    for more in ({"num_hypotheses": 9}, {"num_labels": 3}, {"horizon": 90}, {"hypotheses": "dirichlet"}):
        check_learner(untrained(), **small_rules(**more))


def test_naming_hypotheses_otherwise_renames_the_weights():
    game, tape = record(small_rules("subset-selection"), 20, episodes=2)
    order = np.array([2, 0, 3, 1])
    weights = []
    for names in (np.arange(4), order):
        learner = untrained()(game)
        learner.reset((2,))
        learner.play(tape.candidates[..., names, :], tape.messages)
        weights.append(learner.weights)
    np.testing.assert_allclose(weights[1], weights[0][:, order], rtol=1e-9)


def test_the_slopes_of_ppo_are_a_sum_of_evidence():
    """By loops, from the formula."""
    game, tape = record(small_rules("split"), 4)
    model = untrained("slopes")
    learner = model(game)
    learner.reset((1,))
    slopes = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    place, log_count = network.apply(model.parameters, network.describe(game.channel))
    # The slope 2^place counts; between two of them each counts by how near it is.
    shares = [max(0.0, 1.0 - abs(np.clip(place, -2.0, 3.0) - np.log2(slope))) for slope in slopes]
    total = np.zeros(4)
    for t in range(4):
        f, agreement = (
            tape.candidates[0, t],
            game.channel.agreement(tape.messages[0, t], tape.candidates[0, t]),
        )
        for share, slope in zip(shares, slopes, strict=True):
            total += np.exp(log_count) * share * np.log(f @ (1.0 - agreement + agreement * np.exp(slope)))
    learner.play(tape.candidates, tape.messages)
    np.testing.assert_allclose(
        learner.weights[0], np.exp(total) / np.exp(total).sum(), rtol=1e-2
    )  # a weight is linear between its nodes


def test_a_model_smooths_its_mixture_a_little():
    """``(1 - 1/T^2) sum_j w_j f_j + (1/T^2) l / N'``: a label that the leader rules out has a finite KL."""
    game, tape = record({"hypotheses": TABLE.tolist(), "horizon": 40}, 1)
    learner = untrained()(game)
    learner.reset((1,))
    shares = TABLE.max(axis=0) / TABLE.max(axis=0).sum()
    expected = (1 - 1 / 1600) * TABLE.mean(axis=0) + shares / 1600
    np.testing.assert_allclose(learner.predict(tape.candidates)[0], expected, rtol=1e-12)


def test_a_stored_model_is_the_model(tmp_path):
    rules = small_rules()
    model = untrained()
    model.save(tmp_path)
    for stored in (load(tmp_path), pickle.loads(pickle.dumps(load(str(tmp_path))))):
        assert isinstance(stored(Scenario(**rules).game), EvidenceLearner)
        theirs, ours = (ldp_gym.evaluate(factory, rules, episodes=2).kl for factory in (stored, model))
        np.testing.assert_allclose(theirs, ours, rtol=1e-4)  # stored in single precision
    assert track_of(load(tmp_path)) == "uninformed"
    with pytest.raises(FileNotFoundError, match=r"it has no model\.json"):
        load(tmp_path / "nowhere")


@pytest.mark.filterwarnings("ignore::ldp_gym.core.errors.NoPrivacyWarning")
def test_what_is_not_private_is_refused():
    with pytest.raises(ldp_agents.IncompatibleChannelError, match="'bayes' reads every channel"):
        untrained()(Scenario(**small_rules("identity")).game)


def test_a_model_outside_of_its_training_says_so():
    model = untrained(config={"algorithm": "mine"})
    model = Model(model.parameters, "weights", {"epsilon": [0.25, 8.0]}, model.card)
    with pytest.warns(OutsideTrainingWarning, match="'mine' plays outside .*: eps = 9, trained on 0.25 to 8"):
        model(Scenario(**small_rules(epsilon=9.0)).game)
