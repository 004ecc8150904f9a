"""One description of a game: names, defaults, sentences, keys and JSON."""

import inspect
import json
import subprocess
import sys
from dataclasses import dataclass, fields, replace

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules
from sklearn.naive_bayes import GaussianNB

import ldp_bench
import ldp_gym
from ldp_gym.engine.rules import Rules, rule
from ldp_gym.envs.ask import LDPAskEnv, LDPAskVectorEnv
from ldp_gym.envs.base import EnvArguments
from ldp_gym.envs.box import LDPDistBoxEnv, LDPDistBoxVectorEnv
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.truths import Mixture

DEFAULTS = {
    "hypotheses": "softmax-linear",
    "num_hypotheses": None,
    "num_labels": None,
    "context_dim": None,
    "class_seed": 0,
    "hypotheses_kwargs": None,
    "channel": "laplace-single",
    "channel_kwargs": None,
    "epsilon": None,
    "delta": None,
    "horizon": None,
    "nature": None,
    "nature_kwargs": None,
    "truth": "uniform",
    "truth_kwargs": None,
    "observe_candidates": False,
    "redraw_hypotheses": False,
    "batch": 1,
    "losses": ("kl", "tv"),
    "reveal": False,
    "max_loss": 100.0,
}
ASK_DEFAULTS = {
    "hypotheses": "dirichlet",
    "num_hypotheses": None,
    "num_labels": None,
    "context_dim": None,
    "class_seed": 0,
    "hypotheses_kwargs": None,
    "epsilon": None,
    "horizon": 200,
    "nature": None,
    "nature_kwargs": None,
    "truth": "uniform",
    "truth_kwargs": None,
    "observe_candidates": False,
    "redraw_hypotheses": False,
    "losses": ("kl", "tv"),
    "reveal": False,
}
SINGLE = {"render_mode": None}
GAMES = {"num_envs": 1, "autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}
BOX = {"logit_range": 5.0, "observation": "evidence"}
ARGUMENTS = {
    ldp_gym.LDPDistEnv: DEFAULTS | SINGLE,
    ldp_gym.LDPDistVectorEnv: DEFAULTS | SINGLE | GAMES,
    LDPDistBoxEnv: DEFAULTS | SINGLE | BOX,
    LDPDistBoxVectorEnv: DEFAULTS | SINGLE | BOX | GAMES,
    LDPAskEnv: ASK_DEFAULTS | SINGLE,
    LDPAskVectorEnv: ASK_DEFAULTS | SINGLE | GAMES,
}
ROWS = [[0.5, 0.5], [0.9, 0.1]]


# -- Names, defaults and sentences --------------------------------------------------------------------------


def test_the_rules_have_these_defaults():
    parameters = inspect.signature(Rules).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == DEFAULTS


@pytest.mark.parametrize("env", ARGUMENTS)
def test_a_signature_shows_every_argument_with_its_default(env):
    parameters = inspect.signature(env).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == ARGUMENTS[env]


@pytest.mark.parametrize("env", ARGUMENTS)
def test_help_has_a_sentence_about_every_argument(env):
    documentation = inspect.getdoc(env.__init__)
    for name in ARGUMENTS[env]:
        assert f"\n    {name}: " in documentation, name


@pytest.mark.parametrize("env", ARGUMENTS)
def test_only_the_number_of_games_may_be_given_by_position(env):
    parameters = inspect.signature(env).parameters.values()
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert positional == (["num_envs"] if "num_envs" in ARGUMENTS[env] else [])


def test_sentences_are_there_without_docstrings():
    program = (
        "import ldp_gym, ldp_bench.commands; "
        "print('max_loss: cap of the KL' in ldp_gym.LDPDistEnv.__init__.__doc__, ldp_gym.__doc__)"
    )
    done = subprocess.run(
        [sys.executable, "-OO", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True None\n"


# -- The rules that an id takes -----------------------------------------------------------------------------


def test_the_main_game_takes_every_rule():
    """A new rule is named in Rules.takes, and in the list of every other environment that knows it."""
    assert sorted(Rules.takes) == sorted(declared.name for declared in fields(Rules))
    assert sorted(EnvArguments.takes) == sorted(declared.name for declared in fields(Rules))


@pytest.mark.parametrize("refused", ["channel", "channel_kwargs", "delta", "batch", "max_loss"])
def test_an_id_refuses_a_rule_that_it_does_not_name(refused):
    with pytest.raises(TypeError, match=f"LDPAsk-v0 takes no '{refused}': leave it out"):
        LDPAskEnv(**{refused: 1})


def test_an_id_refuses_other_rules_of_a_made_description():
    @dataclass(frozen=True, kw_only=True, eq=False)
    class Coins(Rules):
        env_id = "Coins-v0"
        takes = ("horizon",)
        sides: int = rule(2, "number of sides.")

    assert Coins.of(Rules(horizon=7)).horizon == 7
    assert list(Coins.sentences()) == ["horizon", "sides"]
    with pytest.raises(TypeError, match="Coins-v0 takes no 'batch'"):
        Coins.of(Rules(batch=3))


def test_a_value_is_checked_once_for_each_game(monkeypatch):
    checked = []
    check = Rules.__post_init__
    monkeypatch.setattr(Rules, "__post_init__", lambda self: checked.append(check(self)))

    gym.make("LDPDist-v0")
    assert len(checked) == 1


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
@pytest.mark.parametrize("env_id", ["LDPDist-v0", "LDPDistBox-v0"])
def test_an_unknown_rule_of_an_environment_names_the_nearest(make, env_id):
    with pytest.raises(TypeError, match="did you mean 'max_loss'"):
        make(env_id, max_los=10)


@pytest.mark.parametrize(
    "call",
    [
        Rules.of,
        lambda rules: ldp_gym.evaluate("bayes", rules, episodes=1),
        lambda rules: ldp_gym.testing.check_learner("bayes", **rules),
        lambda rules: ldp_bench.Experiment(rules, "bayes"),
    ],
)
def test_an_unknown_rule_of_a_description_names_the_nearest(call):
    with pytest.raises(TypeError, match="did you mean 'max_loss'"):
        call({"max_los": 10})


# -- Keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spelled",
    [
        {"epsilon": 1, "delta": 0, "horizon": 1000, "nature": "iid", "max_loss": 100},
        {"channel": "laplace-single", "channel_kwargs": {}, "truth_kwargs": {}},
        {"class_seed": np.int64(0), "reveal": np.False_, "epsilon": np.float64(1.0)},
    ],
)
def test_a_default_may_be_left_out(spelled):
    assert Rules(**spelled) == Rules()
    assert hash(Rules(**spelled)) == hash(Rules())


def test_a_key_names_only_the_rules_that_are_not_at_their_default():
    """So that a new rule leaves the results of older games where they are."""
    assert Rules().key == "{}"
    rules = Rules(epsilon=2, horizon=1000, nature="drift", batch=1)
    assert rules.key == '{"epsilon": 2.0, "nature": "drift"}'


class Drifting(SoftmaxLinear):
    default_nature = "drift"


def test_the_default_nature_is_that_of_the_class():
    made = Rules(hypotheses=Drifting())
    assert Rules(hypotheses=made.hypotheses, nature="drift") == made
    assert Rules(hypotheses=made.hypotheses, nature="iid") != made


def test_a_class_of_another_package_may_have_its_own_default_nature():
    assert Rules(hypotheses="numpy:eye") != Rules(hypotheses="numpy:eye", nature="iid")


def test_a_table_is_the_same_as_list_tuple_and_array():
    as_list = Rules(hypotheses=ROWS)
    assert as_list == Rules(hypotheses=tuple(map(tuple, ROWS)))
    assert as_list == Rules(hypotheses=np.array(ROWS))
    assert as_list != Rules(hypotheses=ROWS[::-1])


def test_classifiers_that_are_fitted_differently_are_told_apart():
    def fitted(labels):
        return [GaussianNB().fit(np.eye(4), labels), GaussianNB().fit(np.eye(4), 1 - labels)]

    one_way = np.array([0, 1, 1, 0])
    assert Rules(hypotheses=fitted(one_way)) == Rules(hypotheses=fitted(one_way))
    assert Rules(hypotheses=fitted(one_way)) != Rules(hypotheses=fitted(1 - one_way))


def test_truths_that_are_made_differently_are_told_apart():
    assert Rules(truth=Mixture(8, members=[0, 1])) == Rules(truth=Mixture(8, members=[0, 1]))
    assert Rules(truth=Mixture(8, members=[0, 1])) != Rules(truth=Mixture(8, members=[0, 2]))


def test_classes_that_are_made_differently_are_told_apart():
    assert Rules(truth=SoftmaxLinear(8, 16, 4, 1)) == Rules(truth=SoftmaxLinear(8, 16, 4, 1))
    assert Rules(truth=SoftmaxLinear(8, 16, 4, 1)) != Rules(truth=SoftmaxLinear(8, 16, 4, 2))


@pytest.mark.parametrize(
    "rule", sorted(set(DEFAULTS) - {"channel", "nature", "truth", "hypotheses"})
)
def test_every_rule_tells_games_apart(rule):
    other = {"reveal": True, "observe_candidates": True, "redraw_hypotheses": True, "delta": 0.25}
    other["losses"] = ["hellinger"]
    value = {"x": 1} if rule.endswith("_kwargs") else other.get(rule, 7)
    assert replace(Rules(), **{rule: value}) != Rules()


# -- Values that depend on others ---------------------------------------------------------------------------


def test_a_replayed_log_has_as_many_rounds_as_rows():
    """So that leaving T out and 1000 are two games."""
    log = {"contexts": np.zeros((5, 4)), "labels": [0, 1, 2, 3, 4]}
    rules = Rules(truth="replay", truth_kwargs=log)
    assert rules.rounds is None
    assert rules.scenario().horizon == 5
    assert rules != replace(rules, horizon=1000)
    assert replace(rules, horizon=3).rounds == 3
    assert Rules(truth=rules.scenario().truth).rounds == 5


def test_other_truths_have_a_thousand_rounds():
    assert Rules(truth="mixture").rounds == 1000
    assert Rules(truth=3).rounds == 1000
    assert Rules(truth="mixture", horizon=1000) == Rules(truth="mixture")


def test_a_made_channel_brings_its_promise():
    made = ldp_gym.CHANNELS["split"](8, 16, 1000, epsilon=2.5)
    assert Rules(channel=made).promise == {"epsilon": 2.5, "delta": 0.0}


def test_a_given_promise_is_kept():
    assert Rules(epsilon=3.0, delta=0.5).promise == {"epsilon": 3.0, "delta": 0.5}


def test_a_class_on_a_channel_without_privacy_is_made_for_a_finite_epsilon():
    with pytest.warns(ldp_gym.NoPrivacyWarning):
        clear = ldp_gym.CHANNELS["identity"](8, 16, 1000)
    assert Rules(channel=clear).promise["epsilon"] == 1.0


# -- JSON ---------------------------------------------------------------------------------------------------


def test_rules_come_back_from_json():
    given = small_rules(hypotheses=np.array(ROWS), nature="cycle", reveal=True) | {"num_labels": 2}
    rules = Rules.of(given)
    assert Rules.of(json.loads(rules.to_json())) == rules


def test_default_rules_are_an_empty_object_in_json():
    assert Rules().to_json() == "{}"


def test_given_rules_describe_the_game():
    rules = Rules(horizon=7, hypotheses=ROWS)
    assert rules.given == {"horizon": 7, "hypotheses": ROWS}
    assert Rules(**rules.given) == rules


def test_functions_are_no_json():
    with pytest.raises(TypeError, match="put models and data into a module and name them as 'mod"):
        Rules(hypotheses=[np.mean, np.sum]).to_json()
