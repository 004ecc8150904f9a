"""Names: where they come from, what is made of them, and what is said of a wrong one."""

import numpy as np
import pytest

import ldp_agents
from ldp_gym.core.errors import UntrustedCodeError
from ldp_gym.core.registry import is_builtin, refuse_addresses
from ldp_gym.engine.learners import LEARNERS
from ldp_gym.engine.rules import Rules
from ldp_gym.hypotheses import Table


def test_another_package_offers_its_own_by_an_entry_point_and_a_name_of_ours_stays_ours(
    tmp_path, monkeypatch
):
    """A package is its metadata beside its modules, as pip leaves them."""
    (tmp_path / "rival.py").write_text(
        "class Bayes:\n    def __init__(self, size): self.size = size\n"
    )
    info = tmp_path / "rival-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ldp_gym.learners]\nbayes = rival:Bayes\nrival = rival:Bayes\n"
    )
    known = list(LEARNERS)  # read before the package is there, so that it is not kept
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(vars(LEARNERS), "_points")
    assert list(LEARNERS) == sorted([*known, "rival"])
    assert LEARNERS["bayes"] is ldp_agents.Bayes
    assert [LEARNERS.package_of(name) for name in ("bayes", "rival", "a.b:c")] == [
        "ldp_agents",
        "rival",
        "a",
    ]
    made = LEARNERS.build("rival", {"size": 3}, {})
    assert made.size == 3
    assert not is_builtin(type(made))


def test_rules_from_a_file_name_no_code():
    for rules in (
        {"channel": "module:Object"},
        {"hypotheses": "package.module:rows"},
        {"truth": "replay", "truth_kwargs": {"contexts": [1.0], "labels": "os:system"}},
        {"nature_kwargs": {"pool": ["a", ("x", "b:c")]}},
    ):
        with pytest.raises(
            UntrustedCodeError, match="rules.json names code, .*only name registered parts"
        ):
            refuse_addresses(rules, "rules.json")
    refuse_addresses({"channel": "split", "truth_kwargs": {"labels": ["a: b", 1]}}, "rules.json")


ROWS = [[0.9, 0.1], [0.2, 0.8]]
FAIR = Table(ROWS)


def make_rows():
    return ROWS


def test_hypotheses_and_contexts_by_their_address():
    """A table, a class that is made, and functions that make one."""
    for name in ("ROWS", "FAIR", "make_rows"):
        scenario = Rules(hypotheses=f"{__name__}:{name}").scenario()
        np.testing.assert_allclose(scenario.hypotheses(np.zeros(1)), ROWS)

    def replay(name):
        logs = {"contexts": f"{__name__}:{name}", "labels": [1, 0]}
        return Rules(context_dim=2, truth="replay", truth_kwargs=logs).scenario()

    for name in ("ROWS", "make_rows"):
        options = {"contexts": f"{__name__}:{name}"}
        cycle = Rules(context_dim=2, nature="cycle", nature_kwargs=options, horizon=5).scenario()
        np.testing.assert_array_equal(cycle.nature.pool, ROWS)
        assert replay(name).horizon == 2
    with pytest.raises(ValueError, match="cannot import contexts 'test_registry:NONE'"):
        replay("NONE")
