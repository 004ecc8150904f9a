"""What is kept, and what never mixes."""

import csv
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import ldp_gym
from ldp_gym.bench import Experiment, Store, experiment
from ldp_gym.bench import store as store_module
from ldp_gym.bench.runner import play
from ldp_gym.core.errors import DamagedStoreError

EXPERIMENT = Experiment({"hypotheses": "dirichlet", "horizon": 30}, "exp3", episodes=5, block=2)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for cell in EXPERIMENT.cells(seed=3):
        store.save(cell, play(cell))
    return store


def test_cells_are_the_entry_s_episodes(store):
    keys = [cell.key for cell in EXPERIMENT.cells(seed=3)]
    kept = store.outcomes(keys)
    together = np.concatenate([kept[key].evaluation.kl for key in keys])
    alone = ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=5, seed=3)
    np.testing.assert_array_equal(together, alone.kl)


@pytest.mark.parametrize(
    "change",
    [
        {"rules": {"hypotheses": "dirichlet", "horizon": 31}},
        {"rules": {"hypotheses": "dirichlet", "horizon": 30, "epsilon": 1.5}},
        {"learner": "wma"},
        {"options": {"rate": "box"}},
        {"truth": 0},
        {"averages": True},
    ],
)
def test_another_configuration_has_another_key(store, change):
    assert not {cell.key for cell in replace(EXPERIMENT, **change).cells(seed=3)} & store.finished()
    assert not {cell.key for cell in EXPERIMENT.cells(seed=4)} & store.finished()


def test_a_game_with_its_defaults_spelled_out_is_the_same_game(store):
    spelled = {
        **EXPERIMENT.rules, "num_hypotheses": 8, "num_labels": 16, "class_seed": 0, "nature": "iid",
        "channel": "laplace-single", "channel_kwargs": {"clipping": "continuous"}, "epsilon": 1, "delta": 0,
    }  # fmt: skip
    same = replace(EXPERIMENT, rules=spelled)
    assert {cell.key for cell in same.cells(seed=3)} == store.finished()
    assert same.setup == EXPERIMENT.setup
    np.testing.assert_array_equal(
        play(same.cells(3)[0]).evaluation.kl, play(EXPERIMENT.cells(3)[0]).evaluation.kl
    )


def test_changed_code_of_the_package_has_another_key(store, monkeypatch):
    assert len(experiment.own_code()) == 64
    monkeypatch.setattr(experiment, "own_code", lambda: "edited")
    assert not {cell.key for cell in EXPERIMENT.cells(seed=3)} & store.finished()


@pytest.mark.parametrize("edited", ["channels/split.py", "core/sampling.py", "bench/figures.py"])
def test_the_package_s_fingerprint_is_that_of_what_plays(tmp_path, monkeypatch, edited):
    """An edited channel or sampler changes it; how results are shown does not."""
    copy = tmp_path / "ldp_gym"
    shutil.copytree(Path(ldp_gym.__file__).parent, copy)
    monkeypatch.setattr(experiment, "_places", lambda package: [tmp_path / package])
    before = experiment.own_code.__wrapped__()
    with (copy / edited).open("a") as file:
        file.write("# another line\n")
    assert (experiment.own_code.__wrapped__() == before) == edited.startswith("bench/")


def test_a_third_party_learner_is_fingerprinted_without_being_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    cell = replace(EXPERIMENT, learner="trap:Learner").cells(seed=0)[0]
    assert "trap:Learner" in cell.sources
    assert "trap" not in sys.modules
    with pytest.raises(
        ValueError, match="cannot import learner 'nowhere:Learner': No module named 'nowhere'"
    ):
        replace(EXPERIMENT, learner="nowhere:Learner").cells(seed=0)


def test_another_version_has_another_key(store, monkeypatch):
    monkeypatch.setattr(experiment, "VERSION", "9.9.9")
    assert not {cell.key for cell in EXPERIMENT.cells(seed=3)} & store.finished()


def test_changed_code_of_one_s_own_has_another_key(tmp_path, monkeypatch):
    """Wherever in its package it is; and a key is that of the code before it was played."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "homemade"
    package.mkdir()
    (package / "__init__.py").write_text("from homemade.core import Mine, Table\n")
    core = "import ldp_agents, ldp_gym\nclass Mine(ldp_agents.Uniform): rate = {}\nclass Table: pass\n"
    (package / "core.py").write_text(core.format(0.0))
    experiments = [
        replace(EXPERIMENT, learner="homemade:Mine"),
        replace(EXPERIMENT, rules={**EXPERIMENT.rules, "hypotheses": "homemade:Table"}),
    ]
    cells = [e.cells(seed=0)[0] for e in experiments]
    before = [cell.key for cell in cells]
    (package / "core.py").write_text(core.format(1.0))
    assert [cell.key for cell in cells] == before
    assert not {e.cells(seed=0)[0].key for e in experiments} & set(before)


def test_a_damaged_file_is_reported_and_left_alone(store):
    content = bytearray(store.path.read_bytes())
    content[100:3000] = b"x" * 2900
    store.path.write_bytes(content)
    with pytest.raises(DamagedStoreError, match="left as it is"):
        Store(store.path.parent)
    assert store.path.read_bytes() == bytes(content)


def test_a_file_of_another_kind_is_left_alone(tmp_path):
    (tmp_path / "results.sqlite").write_text("my thesis")
    with pytest.raises(DamagedStoreError, match="move it away"):
        Store(tmp_path)
    assert (tmp_path / "results.sqlite").read_text() == "my thesis"


def test_a_kill_while_the_file_is_made_leaves_no_half_of_it(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(store_module._TABLES, "runs", "no SQL (at all")  # the end comes before the second table
        with pytest.raises(OSError, match="syntax error"):
            Store(tmp_path)
    assert Store(tmp_path).runs() == []


def test_exports_hold_every_episode(store, tmp_path):
    alone = ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=5, seed=3)
    assert store.export(tmp_path / "all.csv") == alone.kl.size
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    final = {int(row["seed"]): float(row["kl"]) for row in rows if row["round"] == "30"}
    assert final == {3 + i: value for i, value in enumerate(alone.kl[:, -1])}
    store.export(tmp_path / "all.parquet")
    table = parquet.read_table(tmp_path / "all.parquet").to_pylist()
    assert [row["tv"] for row in table] == [float(row["tv"]) for row in rows]
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        store.export(tmp_path / "all.xlsx")
