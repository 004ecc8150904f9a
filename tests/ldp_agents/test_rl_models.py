"""Networks and models: NumPy plays what PyTorch trains, and a model says which games it fits."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch
from helpers import small_rules
from rl_helpers import KINDS, untrained

import ldp_agents
import ldp_gym
from ldp_agents.rl import ModelLearner, load, network
from ldp_agents.rl.amortized import Rounds, mixture_kl
from ldp_gym import wrappers
from ldp_gym.engine.scenario import Scenario
from ldp_gym.features.sums import FEATURES
from ldp_gym.numerics.divergences import kl
from ldp_gym.testing import check_learner


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_plays_what_pytorch_trains(kind):
    game = Scenario(**small_rules()).game
    parameters = untrained(game, kind).parameters
    shape = FEATURES[network.features_of(kind)](game).shape
    features = np.random.default_rng(0).standard_normal((9, *shape))
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    np.testing.assert_allclose(
        network.logits(parameters, features),
        network.logits(tensors, torch.tensor(features)).numpy(),
        rtol=1e-9,
    )


@pytest.mark.parametrize("num_hypotheses", [4, 9])
def test_an_equivariant_network_renames_and_takes_any_number(num_hypotheses):
    parameters = untrained(Scenario(**small_rules()).game).parameters
    features = np.random.default_rng(0).standard_normal((3, num_hypotheses, 6))
    order = np.random.default_rng(1).permutation(num_hypotheses)
    logits = network.logits(parameters, features)
    assert logits.shape == (3, num_hypotheses)
    np.testing.assert_allclose(network.logits(parameters, features[:, order]), logits[:, order], rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channel", ["laplace-single", "laplace-vector", "split", "randomized-response"])
@pytest.mark.parametrize("more", [{}, {"hypotheses": "dirichlet", "horizon": 12}], ids=["contexts", "table"])
def test_a_model_keeps_the_learner_s_contract(kind, channel, more):
    rules = small_rules(channel, **more)
    check_learner(untrained(Scenario(**rules).game, kind), **rules)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_plays_in_evaluate_as_its_network_does_through_the_wrappers(kind):
    """The features of training and of play are the same: equal losses on the same seed."""
    rules = small_rules(horizon=30)
    env = gym.make("LDPDist-v0", **rules)
    model = untrained(env.unwrapped.game, kind)
    view = wrappers.Evidence if kind == "flat" else wrappers.HypothesisFeatures
    seen, _ = (env := view(wrappers.MixtureAction(env, logit_range=50.0))).reset(seed=6)
    total = 0.0
    for _ in range(30):
        logits = network.logits(model.parameters, seen.astype(np.float64))
        logits -= logits.mean()
        seen, _, _, _, info = env.step(logits / 50.0)
        total += info["kl"]
    played = ldp_gym.evaluate(model, rules, episodes=1, seed=6).kl[0, -1]
    np.testing.assert_allclose(played, total, rtol=1e-4)


def test_the_differentiable_loss_is_the_environment_s():
    """The KL from the mixture ``(1 - 1/T) sum_j w_j f_j + (1/T) l / N'``, written out once more."""
    rng = np.random.default_rng(0)
    game = Scenario(**small_rules()).game
    candidates = rng.dirichlet(np.full(6, 0.2), size=(10, 4))
    candidates[:, :, 0] = 0.0  # a label that nobody allows
    candidates /= candidates.sum(axis=-1, keepdims=True)
    logits, truth = rng.standard_normal((10, 4)), candidates[:, 2]
    smooth = game.clipping.smooth_candidates(candidates)
    ours = mixture_kl(torch.tensor(logits), Rounds(*map(torch.tensor, (logits, smooth, truth))))
    weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    shares = candidates.max(axis=1) / candidates.max(axis=1).sum(axis=-1, keepdims=True)
    prediction = 39 / 40 * np.einsum("bk,bkm->bm", weights, candidates) + shares / 40
    np.testing.assert_allclose(ours.numpy(), kl(truth, prediction), rtol=1e-6, atol=1e-9)


def test_a_model_smooths_its_mixture_as_the_paper_s_learners_do():
    """With equal weights all predict the same, on the literal channel (whose cells have ceilings) too."""
    for channel_kwargs in ({}, {"clipping": "paper"}):
        rules = small_rules(channel_kwargs=channel_kwargs)
        env = gym.make("LDPDist-v0", **rules)
        model = untrained(env.unwrapped.game)
        for array in model.parameters.values():
            array[:] = 0.0
        observation, _ = env.reset(seed=0)
        ours, theirs = (make(env.unwrapped.game).act(observation) for make in (model, ldp_agents.EXP3))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        np.testing.assert_allclose(wrappers.MixtureAction(env).action(np.zeros(4)), theirs, rtol=1e-12)


def test_a_stored_model_is_the_model(tmp_path):
    rules = small_rules()
    model = untrained(Scenario(**rules).game)
    model.save(tmp_path)
    for stored in (load(tmp_path), pickle.loads(pickle.dumps(load(str(tmp_path))))):
        assert isinstance(stored(Scenario(**rules).game), ModelLearner)
        theirs, ours = (ldp_gym.evaluate(factory, rules, episodes=2).kl for factory in (stored, model))
        np.testing.assert_allclose(theirs, ours, rtol=1e-4)  # stored in single precision
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 100_000
    with pytest.raises(FileNotFoundError, match=r"it has no model\.json"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("flat", {"num_hypotheses": 5}, r"trained for K 4 \(not 5\), class \w+ \(not"),
        ("flat", {"horizon": 41}, r"T 40 \(not 41\)"),
        ("flat", {"class_seed": 1}, r"trained for class \w+ \(not \w+\): train one"),
        ("equivariant", {"epsilon": 2.0}, r"trained for epsilon 1.0 \(not 2.0\): train one"),
        ("equivariant", {"channel": "split"}, r"channel LaplaceSingle \(not Split\)"),
        ("equivariant", {"channel_kwargs": {"calibration": "tight"}}, r"calibration paper \(not tight\)"),
    ],
)
def test_a_model_says_what_does_not_fit(kind, more, message):
    model = untrained(Scenario(**small_rules()).game, kind)
    with pytest.raises(ldp_agents.IncompatibleChannelError, match=message):
        model(Scenario(**small_rules(**more)).game)


def test_an_equivariant_model_plays_other_classes():
    model = untrained(Scenario(**small_rules()).game)
    for more in ({"num_hypotheses": 9}, {"num_labels": 3}, {"horizon": 90}, {"class_seed": 7}):
        check_learner(model, **small_rules(**more))
