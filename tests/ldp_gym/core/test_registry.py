"""The registry of parts: names, entry points of other packages, and addresses of objects."""

import numpy as np
import pytest

import ldp_agents
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.core.registry import addresses_in, is_builtin, refuse_addresses
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import Rules
from ldp_gym.hypotheses import Table


@pytest.fixture
def rival_package(tmp_path, monkeypatch):
    """A package with two learners, ``bayes`` and ``rival``: metadata beside a module, as pip leaves them."""
    (tmp_path / "rival.py").write_text(
        "class Bayes:\n    def __init__(self, size): self.size = size\n"
    )
    info = tmp_path / "rival-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ldp_gym.learners]\nbayes = rival:Bayes\nrival = rival:Bayes\n"
    )
    list(LEARNERS)  # fills the cache of entry points, which is restored after the test
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(vars(LEARNERS), "_points")


def test_another_package_offers_its_learner_by_an_entry_point(request):
    names_before = list(LEARNERS)
    request.getfixturevalue("rival_package")
    assert list(LEARNERS) == sorted([*names_before, "rival"])


@pytest.mark.usefixtures("rival_package")
def test_a_name_of_ours_stays_ours():
    assert LEARNERS["bayes"] is ldp_agents.Bayes


@pytest.mark.usefixtures("rival_package")
def test_the_registry_knows_the_package_of_a_name():
    assert LEARNERS.package_of("bayes") == "ldp_agents"
    assert LEARNERS.package_of("rival") == "rival"


def test_the_package_of_an_address_is_its_first_name():
    assert LEARNERS.package_of("a.b:c") == "a"


@pytest.mark.usefixtures("rival_package")
def test_a_learner_of_another_package_is_built_with_its_options():
    assert LEARNERS.build("rival", {"size": 3}, {}).size == 3


@pytest.mark.usefixtures("rival_package")
def test_a_learner_of_another_package_is_not_built_in():
    assert not is_builtin(LEARNERS["rival"])


@pytest.mark.parametrize(
    "rules",
    [
        {"channel": "module:Object"},
        {"hypotheses": "package.module:rows"},
        {"truth": "replay", "truth_kwargs": {"contexts": [1.0], "labels": "os:system"}},
        {"nature_kwargs": {"pool": ["a", ("x", "b:c")]}},
    ],
)
def test_rules_from_a_file_name_no_code(rules):
    message = "rules.json names code, .*only name registered parts"
    with pytest.raises(UntrustedCodeError, match=message):
        refuse_addresses(rules, "rules.json")


def test_a_colon_before_a_space_is_no_address():
    assert list(addresses_in({"channel": "split", "truth_kwargs": {"labels": ["a: b", 1]}})) == []


ROWS = [[0.9, 0.1], [0.2, 0.8]]
FAIR = Table(ROWS)


def make_rows():
    return ROWS


def replay_rules(contexts):
    """Rules that replay two logged rounds, with the contexts at an address."""
    logs = {"contexts": contexts, "labels": [1, 0]}
    return Rules(context_dim=2, truth="replay", truth_kwargs=logs)


@pytest.mark.parametrize("name", ["ROWS", "FAIR", "make_rows"])
def test_hypotheses_may_be_the_address_of_rows_of_a_class_or_of_a_function(name):
    scenario = Rules(hypotheses=f"{__name__}:{name}").scenario()
    np.testing.assert_allclose(scenario.hypotheses(np.zeros(1)), [[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize("name", ["ROWS", "make_rows"])
def test_the_contexts_of_a_nature_may_be_an_address(name):
    options = {"contexts": f"{__name__}:{name}"}
    scenario = Rules(context_dim=2, nature="cycle", nature_kwargs=options, horizon=5).scenario()
    np.testing.assert_array_equal(scenario.nature.pool, [[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize("name", ["ROWS", "make_rows"])
def test_the_contexts_of_a_replay_may_be_an_address(name):
    assert replay_rules(f"{__name__}:{name}").scenario().horizon == 2


def test_an_address_of_contexts_without_an_object_is_named():
    rules = replay_rules(f"{__name__}:NONE")
    with pytest.raises(ValueError, match="cannot import contexts 'test_registry:NONE'"):
        rules.scenario()
