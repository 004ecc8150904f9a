"""Every public callable, with every kind of wrong value: our own errors, which name the argument."""

import inspect
import pkgutil

import numpy as np
import pytest
from attack.calls import all_calls, attempt, is_ours, run

import ldp_gym
from ldp_gym import theory

CALLS = all_calls()
PUBLIC = """
    ldp_agents ldp_gym ldp_gym.audit ldp_gym.bench.batch ldp_gym.bench ldp_gym.channels ldp_gym.deploy
    ldp_gym.hypotheses ldp_gym.natures ldp_gym.bench.splits
    ldp_gym.bench.search ldp_gym.core.simplex ldp_gym.testing ldp_gym.theory ldp_gym.truths ldp_gym.wrappers
    ldp_gym.channels.accounting ldp_gym.channels.two_level ldp_gym.channels.clipping
"""
RESULTS = {
    "Cells",
    "Certificate",
    "DeltaBounds",
    "Design",
    "Entry",
    "EpsilonEstimate",
    "Estimate",
    "Evaluation",
    "Evidence",
    "ExactEpsilon",
    "ExactTable",
    "ExperimentResult",
    "Family",
    "HardContexts",
    "InformationRate",
    "NatureView",
    "Reachability",
    "Results",
    "SplitScore",
    "TruthView",
    "Verdict",
}
"""What calls return and show: users make none of them."""


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_wrong_values_end_in_our_own_errors(call):
    with np.errstate(all="ignore"):
        fallen = [
            attempt(call, argument, value) for argument in call.right for value in call.wrong_values(argument)
        ]
    assert not [str(one) for one in fallen if one is not None]


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_right_values_are_taken(call):
    """Else an error about something else would pass for one about the wrong value."""
    if call.name != "check_channel":  # seconds, and tested elsewhere
        call.function(**call.right)


def public_callables():
    for module in map(pkgutil.resolve_name, PUBLIC.split()):
        for name in getattr(module, "__all__", vars(module)):
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").partition(".")[0] in ("ldp_gym", "ldp_agents")
            here = hasattr(module, "__all__") or getattr(thing, "__module__", "") == module.__name__
            if callable(thing) and ours and here and not name.startswith("_"):
                yield name, thing


def is_error(thing):
    return isinstance(thing, type) and issubclass(thing, Exception)


def test_every_public_callable_is_on_the_list():
    covered = {id(inspect.unwrap(call.function)) for call in CALLS} | {id(call.covers) for call in CALLS}
    missing = {
        name
        for name, thing in public_callables()
        if not (id(thing) in covered or name in RESULTS or is_error(thing) or inspect.isabstract(thing))
    }
    assert not missing


def test_every_argument_of_a_function_is_tried():
    for call in CALLS:
        if inspect.isfunction(call.function) and call.function.__module__.startswith("ldp_"):
            takes = inspect.signature(call.function).parameters.values()
            named = {p.name for p in takes if p.kind is not p.VAR_KEYWORD}
            assert named <= {*call.right, "hypotheses"}, call.name


def test_an_error_of_python_or_numpy_is_not_ours():
    for wrong in (lambda: len(3), lambda: np.zeros(3) @ np.zeros(4), lambda: ldp_gym.Simplex()):
        with pytest.raises((TypeError, ValueError)) as caught:
            wrong()
        assert not is_ours(caught.value)
    with pytest.raises(ValueError, match="epsilon") as caught:
        theory.capacity(-1)
    assert is_ours(caught.value)


def test_the_program_draws_from_the_list_by_a_seed():
    tried, fallen = run(np.random.default_rng(3), 200)
    assert tried == 200
    assert not [str(one) for one in fallen]


def test_gymnasium_adds_no_arguments_to_our_errors():
    import gymnasium as gym

    models = [type("Model", (), {"__repr__": lambda self: "a whole model"})() for _ in range(2)]
    for make in (gym.make, lambda *args, **rules: gym.make_vec(*args, num_envs=2, **rules)):
        for wrong in ({"horizn": 3}, {"horizon": "3"}, {"nature_kwargs": {"x": 1}}, {"channel": "math:pi"}):
            with pytest.raises(TypeError) as caught:
                make(
                    "LDPDist-v0", **{"hypotheses": [models, models], **wrong} if "horizn" in wrong else wrong
                )
            assert "kwargs (" not in str(caught.value)
            assert "whole model" not in str(caught.value)
    with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
        gym.make("LDPDist-v0", frameskip=4)
