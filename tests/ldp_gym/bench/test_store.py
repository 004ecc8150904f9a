"""What is kept, and what never mixes."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

import ldp_gym
from ldp_gym.bench import Entry, Store
from ldp_gym.bench.runner import play
from ldp_gym.errors import DamagedStoreError

ENTRY = Entry({"hypotheses": "dirichlet", "horizon": 30}, "exp3", episodes=5, block=2)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for cell in ENTRY.cells(seed=3):
        store.save(cell, play(cell))
    return store


def test_cells_are_the_entry_s_episodes(store):
    kept = [store.outcome(cell.key) for cell in ENTRY.cells(seed=3)]
    together = np.concatenate([outcome.arrays["kl"] for outcome in kept])
    alone = ldp_gym.evaluate("exp3", ENTRY.game, episodes=5, seed=3)
    np.testing.assert_array_equal(together, alone.kl)


@pytest.mark.parametrize(
    "change",
    [
        {"game": {"hypotheses": "dirichlet", "horizon": 31}},
        {"game": {"hypotheses": "dirichlet", "horizon": 30, "epsilon": 1.5}},
        {"learner": "wma"},
        {"options": {"rate": "box"}},
        {"truth": 0},
        {"estimates": True},
    ],
)
def test_another_configuration_has_another_key(store, change):
    assert not {cell.key for cell in replace(ENTRY, **change).cells(seed=3)} & store.finished()
    assert not {cell.key for cell in ENTRY.cells(seed=4)} & store.finished()


def test_another_version_has_another_key(store, monkeypatch):
    monkeypatch.setattr(ldp_gym, "__version__", "9.9.9")
    assert not {cell.key for cell in ENTRY.cells(seed=3)} & store.finished()


def test_changed_code_of_one_s_own_has_another_key(tmp_path, monkeypatch):
    """Wherever in its package it is; and a key is that of the code before it was played."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "homemade"
    package.mkdir()
    (package / "__init__.py").write_text("from homemade.core import Mine, Table\n")
    core = "import ldp_agents, ldp_gym\nclass Mine(ldp_agents.Uniform): rate = {}\nclass Table: pass\n"
    (package / "core.py").write_text(core.format(0.0))
    entries = [
        replace(ENTRY, learner="homemade:Mine"),
        replace(ENTRY, game={**ENTRY.game, "hypotheses": "homemade:Table"}),
    ]
    cells = [entry.cells(seed=0)[0] for entry in entries]
    before = [cell.key for cell in cells]
    (package / "core.py").write_text(core.format(1.0))
    assert [cell.key for cell in cells] == before
    assert not {entry.cells(seed=0)[0].key for entry in entries} & set(before)


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


def test_exports_hold_every_episode(store, tmp_path):
    alone = ldp_gym.evaluate("exp3", ENTRY.game, episodes=5, seed=3)
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
