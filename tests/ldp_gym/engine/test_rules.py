"""One description of a game: names, defaults, sentences, keys and JSON."""

import inspect
import json
from dataclasses import replace
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from helpers import small_rules
from sklearn.naive_bayes import GaussianNB

import ldp_bench
import ldp_gym
from ldp_gym.engine.rules import Rules
from ldp_gym.engine.scenario import Scenario
from ldp_gym.envs.box import LDPDistBoxEnv, LDPDistBoxVectorEnv
from ldp_gym.hypotheses import SoftmaxLinear
from ldp_gym.truths import Mixture

NAMES = """hypotheses num_hypotheses num_labels context_dim class_seed hypotheses_kwargs channel
channel_kwargs epsilon delta horizon nature nature_kwargs truth truth_kwargs observe_candidates
redraw_hypotheses batch reveal max_loss"""
DEFAULTS = dict.fromkeys(NAMES.split()) | {
    "hypotheses": "softmax-linear",
    "channel": "laplace-single",
}
DEFAULTS |= {"class_seed": 0, "truth": "uniform", "batch": 1, "max_loss": 100.0}
DEFAULTS |= dict.fromkeys(("observe_candidates", "redraw_hypotheses", "reveal"), False)
SINGLE = {"render_mode": None}
VECTOR = {**SINGLE, "num_envs": 1, "autoreset_mode": gym.vector.AutoresetMode.NEXT_STEP}
BOX = {"logit_range": 5.0, "observation": "evidence"}
ENVIRONMENTS = {
    Scenario: {},
    ldp_gym.LDPDistEnv: SINGLE,
    ldp_gym.LDPDistVectorEnv: VECTOR,
    LDPDistBoxEnv: SINGLE | BOX,
    LDPDistBoxVectorEnv: VECTOR | BOX,
}
ROWS = [[0.5, 0.5], [0.9, 0.1]]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_signature_and_help_have_every_rule_with_its_default(env):
    parameters, doc = inspect.signature(env).parameters, inspect.getdoc(env.__init__)
    assert {name: p.default for name, p in parameters.items()} == DEFAULTS | ENVIRONMENTS[env]
    assert list(inspect.signature(Rules).parameters) == list(DEFAULTS)
    for name in parameters:
        assert f"\n    {name}: " in doc, name
    positional = [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY]
    assert positional == (["num_envs"] if "num_envs" in parameters else [])


@pytest.mark.parametrize(
    "call",
    [
        *[
            partial(make, name)
            for make in (gym.make, gym.make_vec)
            for name in ("LDPDist-v0", "LDPDistBox-v0")
        ],
        lambda **rules: Rules.of(rules),
        lambda **rules: ldp_gym.evaluate("bayes", rules, episodes=1),
        partial(ldp_gym.testing.check_learner, "bayes"),
        lambda **rules: ldp_bench.Experiment(rules, "bayes"),
    ],
)
def test_an_unknown_rule_names_the_nearest(call):
    with pytest.raises(TypeError, match="did you mean 'max_loss'"):
        call(max_los=10)


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


class Drifting(SoftmaxLinear):
    default_nature = "drift"


def test_the_default_nature_is_that_of_the_class():
    made = Rules(hypotheses=Drifting())
    assert Rules(hypotheses=made.hypotheses, nature="drift") == made
    assert Rules(hypotheses=made.hypotheses, nature="iid") != made
    assert Rules(hypotheses="numpy:eye") != Rules(hypotheses="numpy:eye", nature="iid"), (
        "it may have its own"
    )


def test_a_table_is_the_same_as_list_tuple_and_array():
    tables = [ROWS, tuple(map(tuple, ROWS)), np.array(ROWS)]
    assert len({Rules(hypotheses=table) for table in tables}) == 1
    assert Rules(hypotheses=ROWS) != Rules(hypotheses=ROWS[::-1])


def test_objects_made_or_fitted_differently_are_told_apart():
    y = np.array([0, 1, 1, 0])
    fitted = [
        [GaussianNB().fit(np.eye(4), labels) for labels in (y, other)] for other in (y, 1 - y, y)
    ]
    assert Rules(hypotheses=fitted[0]) == Rules(hypotheses=fitted[2]) != Rules(hypotheses=fitted[1])
    for make in (lambda x: Mixture(8, members=[0, x]), partial(SoftmaxLinear, 8, 16, 4)):
        assert Rules(truth=make(1)) == Rules(truth=make(1)) != Rules(truth=make(2))


@pytest.mark.parametrize(
    "rule", sorted(set(DEFAULTS) - {"channel", "nature", "truth", "hypotheses"})
)
def test_every_rule_tells_games_apart(rule):
    other = {"reveal": True, "observe_candidates": True, "redraw_hypotheses": True, "delta": 0.25}
    value = {"x": 1} if rule.endswith("_kwargs") else other.get(rule, 7)
    assert replace(Rules(), **{rule: value}) != Rules()


def test_a_replayed_log_has_as_many_rounds_as_rows():
    """So that leaving T out and 1000 are two games."""
    rules = Rules(
        truth="replay", truth_kwargs={"contexts": np.zeros((5, 4)), "labels": [0, 1, 2, 3, 4]}
    )
    assert (rules.rounds, rules.scenario().horizon) == (None, 5)
    assert rules != replace(rules, horizon=1000)
    assert replace(rules, horizon=3).rounds == 3
    assert Rules(truth=rules.scenario().truth).rounds == 5
    assert Rules(truth="mixture").rounds == Rules(truth=3).rounds == 1000
    assert Rules(truth="mixture", horizon=1000) == Rules(truth="mixture")


def test_a_made_channel_brings_its_promise():
    made = ldp_gym.CHANNELS["split"](8, 16, 1000, epsilon=2.5)
    assert Rules(channel=made).promise == {"epsilon": 2.5, "delta": 0.0}
    assert Rules(epsilon=3.0, delta=0.5).promise == {"epsilon": 3.0, "delta": 0.5}
    with pytest.warns(ldp_gym.NoPrivacyWarning):
        clear = ldp_gym.CHANNELS["identity"](8, 16, 1000)
    assert Rules(channel=clear).promise["epsilon"] == 1.0, "a class is made for some finite eps"


def test_rules_come_back_from_json():
    rules = Rules.of(
        small_rules(hypotheses=np.array(ROWS), nature="cycle", reveal=True) | {"num_labels": 2}
    )
    assert Rules.of(json.loads(rules.to_json())) == rules
    assert Rules().to_json() == "{}"
    assert Rules(**rules.given) == rules
    with pytest.raises(
        TypeError, match="put models and data into a module and name them as 'module:object'"
    ):
        Rules(hypotheses=[np.mean, np.sum]).to_json()
