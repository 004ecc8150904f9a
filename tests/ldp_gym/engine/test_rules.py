"""The rules: defaults, and the one place where a rule has its name."""

import inspect
import typing

import pytest

import ldp_gym
from ldp_gym.engine.rules import DEFAULTS, Rules, complete_rules
from ldp_gym.engine.scenario import Scenario


def test_the_default_game_is_the_design_s():
    """Section 1 of the design: K = 8, M = 16, d = 4, laplace-single at eps = 1, T = 1000."""
    scenario = Scenario()
    f, channel = scenario.hypotheses, scenario.channel
    assert (f.num_hypotheses, f.num_labels, f.context_dim) == (8, 16, 4)
    assert type(channel) is ldp_gym.CHANNELS["laplace-single"]
    assert type(f) is ldp_gym.HYPOTHESES["softmax-linear"]
    assert type(scenario.nature) is ldp_gym.NATURES["iid"]
    assert (channel.epsilon, channel.delta, scenario.horizon) == (1.0, 0.0, 1000)
    assert (repr(scenario.truth), scenario.max_loss) == ("Member(drawn)", 100.0)
    assert (scenario.observe_candidates, scenario.redraws, scenario.reveal) == (False, False, False)


def test_every_rule_has_a_type_a_default_and_a_word():
    assert set(DEFAULTS) == set(typing.get_type_hints(Rules, localns=vars(ldp_gym)))
    for name in DEFAULTS:
        assert f"\n    {name}: " in inspect.getdoc(Rules), name


@pytest.mark.parametrize("env", [ldp_gym.LDPDistEnv, ldp_gym.LDPDistVectorEnv])
def test_an_environment_s_signature_has_every_rule_with_its_default(env):
    parameters = inspect.signature(env).parameters
    assert {name: parameters[name].default for name in DEFAULTS} == DEFAULTS
    others = {"render_mode", "num_envs", "autoreset_mode", "unknown"}
    assert set(parameters) - set(DEFAULTS) <= others


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"horzion": 5}, "unexpected keyword argument 'horzion'; did you mean 'horizon'"),
        ({"render": 5}, "unexpected keyword argument 'render'"),
        ({"zzz": 5}, "unexpected keyword argument 'zzz'. It takes hypotheses, num_hypotheses, .*max_loss"),
    ],
)
def test_a_rule_that_there_is_not_is_named(rules, message):
    with pytest.raises(TypeError, match=message):
        complete_rules(rules)
    with pytest.raises(TypeError, match=message):
        ldp_gym.LDPDistEnv(**rules)
