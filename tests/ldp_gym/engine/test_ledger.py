"""The ledger of losses: every entry against an independent formula, and who reads the table."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import rel_entr

import ldp_gym
from ldp_gym import LOSSES, Loss
from ldp_gym.engine.losses import as_loss, charge, loss_names
from ldp_gym.engine.rules import Rules

ALL = ["kl", "tv", "tv_squared", "hellinger", "chi_square"]

BRIER = Loss(lambda truth, prediction: np.square(truth - prediction).sum(axis=-1))

NOT_A_LOSS = np.square


def draw(*, zeros):
    """A truth for each of 40 games, and their predictions in 60 rounds, with zeros or without."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(7, 0.3), size=(40, 1))
    predictions = rng.dirichlet(np.full(7, 0.5), size=(40, 60))
    if zeros:
        predictions[..., 0] = 0.0
        predictions /= predictions.sum(axis=-1, keepdims=True)
    return truth, predictions


EXPECTED = {
    "kl": lambda p, q: rel_entr(p, q).sum(axis=-1),
    "tv": lambda p, q: np.abs(p - q).sum(axis=-1) / 2.0,
    "tv_squared": lambda p, q: np.abs(p - q).sum(axis=-1) ** 2 / 4.0,
    "hellinger": lambda p, q: 1.0 - np.sqrt(p * q).sum(axis=-1),
    "chi_square": lambda p, q: (p**2 / q).sum(axis=-1) - 1.0,
}
"""Other forms of the formulas."""


def test_every_loss_has_an_independent_formula_here():
    assert set(EXPECTED) == set(LOSSES.own) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_loss_is_its_formula(name):
    truth, predictions = draw(zeros=False)
    expected = EXPECTED[name](truth, predictions)
    np.testing.assert_allclose(LOSSES[name](truth, predictions), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_losses_computed_together_are_those_computed_alone(name):
    truth, predictions = draw(zeros=False)
    together = charge(ALL, truth, predictions)
    np.testing.assert_array_equal(together[name], LOSSES[name](truth, predictions))


@pytest.mark.parametrize("name", ALL)
def test_the_truth_itself_loses_nothing(name):
    truth, _ = draw(zeros=False)
    np.testing.assert_allclose(LOSSES[name](truth, truth), 0.0, atol=1e-15)


@pytest.mark.parametrize("name", ALL)
def test_only_losses_that_say_so_are_infinite_off_the_support(name):
    truth, predictions = draw(zeros=True)
    losses = LOSSES[name](truth, predictions)
    if LOSSES[name].infinite_off_support:
        assert np.isposinf(losses).all()
    else:
        assert np.isfinite(losses).all()


@pytest.mark.parametrize("name", ALL)
def test_a_label_that_truth_and_prediction_exclude_costs_nothing(name):
    truth = np.array([0.5, 0.5, 0.0])
    prediction = np.array([0.25, 0.75, 0.0])
    without = LOSSES[name](truth[:2], prediction[:2])
    assert LOSSES[name](truth, prediction) == pytest.approx(without, rel=1e-12)


def test_names_come_without_repetitions_and_the_kl_first():
    assert loss_names(["hellinger", "tv", "hellinger"]) == ("kl", "hellinger", "tv")
    assert loss_names([]) == ("kl",)


def test_an_unknown_loss_names_the_nearest():
    with pytest.raises(ValueError, match="unknown loss 'helinger'; did you mean 'hellinger'"):
        gym.make("LDPDist-v0", losses=["helinger"])
    with pytest.raises(ValueError, match="unknown loss 'chisquare'; did you mean 'chi_square'"):
        ldp_gym.evaluate("uniform", {"horizon": 5}, episodes=1, losses=["chisquare"])


def test_one_name_is_not_a_list_of_names():
    with pytest.raises(TypeError, match="losses must be a list of names of losses"):
        gym.make("LDPDist-v0", losses="tv")


def test_a_function_is_not_a_loss():
    with pytest.raises(TypeError, match="must be an ldp_gym.Loss"):
        as_loss(f"{__name__}:NOT_A_LOSS")


def test_the_rules_name_the_losses_of_info():
    env = gym.make("LDPDist-v0", horizon=3, losses=["hellinger"])
    env.reset(seed=0)
    info = env.step(np.full(16, 1 / 16))[-1]
    assert sorted(info) == ["hellinger", "kl"]


def test_the_rules_name_the_losses_of_box_environments_too():
    envs = gym.make_vec("LDPDistBox-v0", num_envs=2, horizon=3, losses=["chi_square"])
    envs.reset(seed=0)
    infos = envs.step(np.zeros((2, 8)))[-1]
    assert infos["chi_square"].shape == (2,)
    assert (infos["chi_square"] >= infos["kl"]).all()


def test_evaluate_sums_up_the_losses_of_the_rules_unless_others_are_asked_for():
    rules = {"horizon": 20, "losses": ["hellinger"]}
    by_rules = ldp_gym.evaluate("uniform", rules, episodes=2)
    asked = ldp_gym.evaluate("uniform", rules, episodes=2, losses=["tv"])
    assert list(by_rules.losses) == ["kl", "hellinger"]
    assert list(asked.losses) == ["kl", "tv"]
    np.testing.assert_array_equal(by_rules.kl, asked.kl)


def test_a_loss_that_was_not_asked_for_says_how_to_ask():
    result = ldp_gym.evaluate("uniform", {"horizon": 5}, episodes=1, losses=["hellinger"])
    with pytest.raises(
        ValueError, match=r"only kl, hellinger: call evaluate\(..., losses=\['tv'\]"
    ):
        _ = result.tv


def test_a_user_s_loss_goes_by_its_address():
    address = f"{__name__}:BRIER"
    env = gym.make("LDPDist-v0", hypotheses=[[1.0, 0.0], [0.0, 1.0]], horizon=3, losses=[address])
    env.reset(seed=0)
    info = env.step([0.5, 0.5])[-1]
    assert info[address] == 0.5


def test_rules_that_come_from_a_file_import_no_loss():
    assert Rules(losses=["nowhere:LOSS"]).losses == ["nowhere:LOSS"]


def test_reveal_shows_the_distribution_from_which_any_loss_can_be_computed():
    env = gym.make("LDPDist-v0", truth=[0.2, 0.8], hypotheses=[[0.5, 0.5], [0.9, 0.1]], reveal=True)
    env.reset(seed=0)
    info = env.step([0.5, 0.5])[-1]
    assert info["distribution"].tolist() == [0.2, 0.8]
