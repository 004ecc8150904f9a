"""Relations, networks and models: NumPy plays what PyTorch trains, on every channel, class, K, M and T."""

import math
import pickle
import warnings

import numpy as np
import pytest
from helpers import (
    ALPHA,
    CHANNELS,
    TABLE,
    make_channel,
    record,
    small_rules,
    totals,
    with_each_bit_flipped,
)
from rl_helpers import untrained
from scipy import stats

import ldp_agents
import ldp_gym
from ldp_agents.rl import Model, NetworkLearner, amortized, load, network, save
from ldp_agents.rl.learner import _warn, describe_outside
from ldp_agents.rl.network import Relation, learned_log_likelihood
from ldp_agents.rl.settings import settings_of
from ldp_gym.core.errors import IncompatibleChannelError, OutsideTrainingWarning
from ldp_gym.core.seed_ranges import TRAINING
from ldp_gym.engine.learners import build_learner, track_of
from ldp_gym.engine.rules import Rules
from ldp_gym.testing import check_learner

PRIVATE = [name for name in CHANNELS if name != "identity"]


def exact_weights(relation):
    """The weight with which the learned log-likelihood is the channel's, written out per kind of relation."""
    points, epsilon = relation.nodes, relation.channel.epsilon
    if relation.kind == "agreement":
        return np.log(np.exp(-epsilon) + points * (1.0 - np.exp(-epsilon)))
    return -points if relation.kind == "laplace" else -(points**2) / 2.0


@pytest.mark.parametrize("channel", PRIVATE)
def test_with_the_right_weight_learned_log_likelihoods_is_the_likelihood(channel):
    """Up to a constant of each message, and to the error between nodes. Relations lie within their ends."""
    game, tape = record(small_rules(channel), 12, episodes=2)
    posterior = None
    if tape.log_likelihoods is not None:
        posterior = game.public_posterior((2,)).along(tape.log_likelihoods)
    relation, transcript = Relation(game.channel), (tape.messages, tape.candidates, posterior)
    exact = learned_log_likelihood(relation, exact_weights(relation), *transcript)
    gap = exact - game.channel.log_likelihood(*transcript)
    np.testing.assert_allclose(gap - gap.mean(axis=-1, keepdims=True), 0.0, atol=3e-3)
    for values in relation.read(*transcript):
        assert values.shape == (2, 12, 6)
        assert values.min() >= relation.nodes[0]
        assert values.max() <= relation.nodes[-1]


def test_a_channel_without_agreement_is_refused():
    class Silent(ldp_gym.channels.Split):
        agreement = ldp_gym.channels.Channel.agreement

    with pytest.raises(
        IncompatibleChannelError, match=r"Silent does not say .* define agreement\(\)"
    ):
        next(Relation(Silent(3, 4, 40)).read(np.ones((1, 3)), TABLE))


def test_the_inputs_and_the_first_parameters_of_the_network():
    """Kind, eps / 4, log eps; the relation, its root, its square / 4; distances up to 16, divided by 4."""
    split, laplace = (
        make_channel(name, 4, 6, 40, epsilon=2.0) for name in ("split", "laplace-single")
    )
    first, zeros = [0.5, math.log(2)], [0.0, 0.0, 0.0]
    expected = [1, 0, 0, *first, 0.75, math.sqrt(0.75), 0.75**2 / 4, *zeros, *zeros]
    np.testing.assert_allclose(network.describe_nodes(split)[48], expected)  # 48 of 64
    expected = [0, 1, 0, *first, *zeros, 9 / 4, 3 / 2, 81 / 64, *zeros]
    np.testing.assert_allclose(network.describe_nodes(laplace)[72], expected)  # 72 of 128, times 16
    made = network.make_parameters((2000, 50), np.random.default_rng(0))
    assert made["w0"].std() == pytest.approx(math.sqrt(2 / 14), rel=0.02)
    assert made["w1"].std() == pytest.approx(math.sqrt(2 / 2000), rel=0.02)
    assert made["w"].std() == pytest.approx(0.1 / math.sqrt(50), rel=0.4)
    assert (made["w"].shape, made["b"].shape) == ((50, 1), (1,))
    assert 0.49 < np.abs(made["b0"]).max() <= 0.5


def test_games_to_train_on():
    """Sizes that the family allows; eps log-uniform; at least two episodes, as many as the cells allow."""
    for size in ((9, 4), (4, 9)):
        assert amortized.make_rules("disjoint", "split", 1.0, *size, 50)["num_labels"] == 9
    hadamard = amortized.make_rules("hadamard", "gaussian-vector", 1.0, 7, 4, 50)
    assert (hadamard["num_hypotheses"], hadamard["delta"], "num_labels" in hadamard) == (
        8,
        1e-5,
        False,
    )
    assert amortized.make_rules("dirichlet(1)", "split", 1.0, 7, 4, 50)["delta"] == 0.0
    rng = np.random.default_rng(0)
    settings = amortized.AmortizedSettings.of(settings_of("amortized", {"cells": 10**5}))
    drawn = [amortized.draw_rules(rng, ["split"])["epsilon"] for _ in range(400)]
    assert 0.25 < min(drawn) < 0.3 < 7.0 < max(drawn) < 8.0
    assert 0.35 < np.mean(np.less(drawn, math.sqrt(0.25 * 8.0))) < 0.65
    for _ in range(4):
        assert 2 <= len(amortized.draw_batch(settings, rng).truth) <= 32


def test_a_message_and_its_opposite_have_likelihoods_that_sum_to_one():
    """Of each label: else some hypothesis would be favoured in every round, whatever the messages are."""
    weights = network.learned_weights(
        untrained().parameters, Rules(**small_rules("one-bit")).scenario().channel
    )
    assert np.ptp(weights) > 0.01
    np.testing.assert_allclose(np.exp(weights) + np.exp(weights[::-1]), 1.0, rtol=1e-12)


@pytest.mark.parametrize("channel", ["laplace-single", "gaussian-vector", "split", "one-bit"])
@pytest.mark.parametrize(
    "more", [{}, {"hypotheses": "dirichlet", "horizon": 12}], ids=["contexts", "table"]
)
def test_the_differentiable_loss_is_the_environment_s(channel, more):
    """What training descends, against a learner that steps through the same episodes."""
    rules = small_rules(channel, **more)
    net = amortized.TorchNetwork(untrained().parameters)
    batch = amortized.simulate(rules, 3, np.random.default_rng(5))
    ours = amortized.total_kl(amortized.learned_log_likelihoods(net, batch), batch).item()
    seeds = np.random.default_rng(5).integers(TRAINING.start, TRAINING.stop, size=3)
    model = Model(net.numpy(), {})
    played = [ldp_gym.evaluate(model, rules, episodes=1, seed=int(seed)).risk for seed in seeds]
    np.testing.assert_allclose(ours, np.mean(played), rtol=1e-4)


def test_a_model_plays_any_class_and_size():
    for more in (
        {"num_hypotheses": 9},
        {"num_labels": 3},
        {"horizon": 90},
        {"hypotheses": "dirichlet"},
    ):
        check_learner(untrained(), **small_rules(**more))


def test_a_model_smooths_its_mixture_a_little():
    """``(1 - 1/T^2) sum_j w_j f_j + (1/T^2) l / N'``: a label that the leader rules out has a finite KL."""
    game, tape = record({"hypotheses": TABLE.tolist(), "horizon": 40}, 1)
    learner = untrained()(game)
    learner.reset((1,))
    shares = TABLE.max(axis=0) / TABLE.max(axis=0).sum()
    expected = (1 - 1 / 1600) * TABLE.mean(axis=0) + shares / 1600
    np.testing.assert_allclose(learner.predict(tape.candidates)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("channel", "epsilon"), [("laplace-single", 1.0), ("split", 4.0)])
def test_the_shipped_model_is_near_bayes(channel, epsilon):
    """At most 1.15 times Bayes; paired, error rate 1e-6."""
    rules = {"channel": channel, "epsilon": epsilon}
    ours, bayes = (totals(name, rules, 60, seed=50) for name in ("amortized", "bayes"))
    assert stats.ttest_rel(ours, 1.15 * bayes, alternative="greater").pvalue > ALPHA
    assert ours.mean() < 1.25 * bayes.mean()


def test_a_model_with_a_flipped_bit_is_refused(tmp_path):
    save(Model({"w": np.ones(3)}, {}), tmp_path)
    file = tmp_path / "model.ldp"
    for damaged in with_each_bit_flipped(file.read_bytes()):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="model.ldp is not a model"):
            load(tmp_path)


def test_saving_a_model_writes_one_file(tmp_path):
    """So that nobody can read new weights with the old card."""
    save(untrained(), tmp_path)
    save(untrained(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.ldp"]


def test_a_stored_model_is_the_model(tmp_path):
    rules = small_rules()
    model = untrained()
    save(model, tmp_path)
    for stored in (str(tmp_path), load(tmp_path), pickle.loads(pickle.dumps(load(str(tmp_path))))):
        assert isinstance(build_learner(stored, Rules(**rules).scenario().game), NetworkLearner)
        theirs, ours = (
            ldp_gym.evaluate(factory, rules, episodes=2).kl for factory in (stored, model)
        )
        np.testing.assert_allclose(theirs, ours, rtol=1e-4)  # stored in single precision
    assert track_of(load(tmp_path)) == "uninformed"
    with pytest.raises(TypeError, match="a trained model has no options, got .'rate'. for"):
        ldp_agents.make(str(tmp_path), Rules(**rules).scenario().game, rate=2.0)


TRAINED_ON = {"epsilon": [0.25, 8.0], "K": [2, 64], "M": [2, 128], "T": [100, 3000]}
TRAINED_ON |= {"classes": ["dirichlet", "softmax-linear"]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({"num_hypotheses": 64, "num_labels": 2, "horizon": 3000, "epsilon": 0.25}, ""),
        ({"num_hypotheses": 65}, "K = 65, trained on 2 to 64"),
        ({"num_labels": 129}, "M = 129, trained on 2 to 128"),
        (
            {"epsilon": 9.0, "horizon": 99},
            "eps = 9, trained on 0.25 to 8; T = 99, trained on 100 to 3000",
        ),
        (
            {"hypotheses": "disjoint"},
            "class family 'disjoint', trained on dirichlet, softmax-linear",
        ),
        ({"hypotheses": TABLE}, "class family 'Table', trained on dirichlet, softmax-linear"),
        ({"hypotheses": "refined", "redraw_hypotheses": True, "observe_candidates": True}, ""),
    ],
)
def test_it_says_in_which_respects_a_game_is_outside_of_the_training(rules, expected):
    assert describe_outside(TRAINED_ON, Rules(**rules).scenario().game) == expected


def test_a_model_outside_of_its_training_says_so_once():
    _warn.cache_clear()
    model = Model(untrained().parameters, TRAINED_ON, {"config": {"algorithm": "mine"}})
    game = Rules(horizon=50).scenario().game
    with pytest.warns(
        OutsideTrainingWarning, match=r"'mine' plays outside of .*: T = 50, trained on 100"
    ):
        model(game)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.simplefilter("error", OutsideTrainingWarning)
        model(game)
