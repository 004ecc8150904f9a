"""The store: keys of cells, damaged rows and files, exports."""

import csv
import shutil
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ldp_bench
import ldp_gym
from ldp_bench import Experiment, Store, experiment
from ldp_bench import store as store_module
from ldp_bench.runner import play
from ldp_gym.channels import RandomizedResponse, Split
from ldp_gym.core.errors import DamagedStoreError

EXPERIMENT = Experiment({"hypotheses": "dirichlet", "horizon": 30}, "exp3", episodes=5, block=2)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    for cell in EXPERIMENT.cells(seed=3):
        store.save(cell, play(cell))
    return store


@pytest.mark.parametrize(
    "change",
    [
        {"rules": {"hypotheses": "dirichlet", "horizon": 31}},
        {"learner": "wma"},
        {"options": {"rate": "box"}},
        {"truth": 0},
        {"leaders": True},
    ],
)
def test_another_configuration_has_another_key(store, change):
    assert not {cell.key for cell in replace(EXPERIMENT, **change).cells(seed=3)} & store.finished()
    assert not {cell.key for cell in EXPERIMENT.cells(seed=4)} & store.finished()


def test_parties_given_as_objects_are_known_by_class_and_options():
    def key(channel):
        return Experiment({"horizon": 30, "channel": channel}, "uniform").cells(seed=0)[0].key

    made = [RandomizedResponse(8, 16, 30, epsilon=epsilon) for epsilon in (1.0, 1.0, 2.0)]
    made[1].log_density(np.array(3), np.full((8, 16), 1 / 16))  # it has been used
    keys = [key(channel) for channel in (*made, Split(8, 16, 30))]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    with pytest.raises(TypeError, match="put it into a module"):
        _ = Experiment({"hypotheses": [lambda x: x, lambda x: x]}, "uniform").cells(seed=0)[0].key


def test_another_version_or_changed_code_that_plays_has_another_key(store, tmp_path, monkeypatch):
    copy = tmp_path / "ldp_gym"
    shutil.copytree(Path(ldp_gym.__file__).parent, copy)
    monkeypatch.setattr(experiment, "_places", lambda package: [tmp_path / package])
    prints = [experiment.own_code.__wrapped__()]
    for edited in ("envs/rendering/frames.py", "channels/split.py", "core/sampling.py"):
        with (copy / edited).open("a") as file:
            file.write("# another line\n")
        prints.append(experiment.own_code.__wrapped__())
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    for name, changed in (("own_code", lambda: prints[2]), ("VERSION", "9.9.9")):
        with monkeypatch.context() as patch:
            patch.setattr(experiment, name, changed)
            assert not {cell.key for cell in EXPERIMENT.cells(seed=3)} & store.finished()


def test_a_third_party_learner_is_fingerprinted_without_being_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    cell = replace(EXPERIMENT, learner="trap:Learner").cells(seed=0)[0]
    assert "trap:Learner" in cell.sources
    assert "trap" not in sys.modules
    with pytest.raises(ValueError, match="cannot import learner 'nowhere:Learner'"):
        replace(EXPERIMENT, learner="nowhere:Learner").cells(seed=0)


def test_changed_code_of_one_s_own_has_another_key(tmp_path, monkeypatch):
    """Wherever in its package it is; and a key is that of the code before it was played."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "homemade"
    package.mkdir()
    (package / "__init__.py").write_text("from homemade.core import Mine, Table\n")
    core = "import ldp_agents\nfrom ldp_gym.hypotheses.families import Dirichlet as Table\n"
    core += "class Mine(ldp_agents.Uniform): rate = {}\n"
    (package / "core.py").write_text(core.format(0.0))
    experiments = [
        replace(EXPERIMENT, learner="homemade:Mine"),
        replace(EXPERIMENT, rules=replace(EXPERIMENT.rules, hypotheses="homemade:Table")),
    ]
    cells = [e.cells(seed=0)[0] for e in experiments]
    before = [cell.key for cell in cells]
    (package / "core.py").write_text(core.format(1.0))
    assert [cell.key for cell in cells] == before
    assert not {e.cells(seed=0)[0].key for e in experiments} & set(before)


def change(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("my thesis"),
        lambda path: path.write_bytes((old := path.read_bytes())[:100] + b"x" * 2900 + old[3000:]),
        lambda path: change(
            path, "DROP TABLE cells", "DROP TABLE runs", "CREATE TABLE cells (key TEXT)"
        ),
        lambda path: change(
            path, "DROP TABLE cells", "DROP TABLE runs", "CREATE TABLE mine (name TEXT)"
        ),
    ],
    ids=["text", "damaged first page", "other columns", "another database"],
)
def test_a_file_that_is_not_a_store_is_refused_and_left_as_it_is(store, damage):
    damage(store.path)
    content = store.path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(DamagedStoreError, match="left as it is: move it away"):
            Store(store.path.parent, read_only=read_only)
    assert store.path.read_bytes() == content


@pytest.mark.parametrize(
    "column",
    [
        "configuration = '{'",
        "configuration = replace(configuration, 'exp3', 'exp2')",
        "status = 'dnne'",
        "evaluation = x'00'",
        "evaluation = NULL",
        "seconds = 'long'",
    ],
)
def test_a_row_that_cannot_be_read_is_played_again(store, column):
    key = EXPERIMENT.cells(seed=3)[1].key
    change(store.path, f"UPDATE cells SET {column} WHERE key = '{key}'")
    assert key not in store.finished()
    assert len(store.finished()) == 2
    (fault,) = store.faults
    assert fault.startswith(f"the cell {key[:12]} cannot be read (")
    checkpoints = len(ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=1).rounds)
    assert store.export(store.path.with_name("all.csv")) in (3 * checkpoints, 4 * checkpoints)


def test_a_run_whose_record_cannot_be_read_is_left_out(store):
    for suite in ("limit", "quick"):
        store.begin_run(suite, {}, ["a"])
    change(store.path, "UPDATE runs SET settings = '[' WHERE suite = 'limit'")
    assert [run["suite"] for run in store.runs()] == ["quick"]
    assert "the record of run 1 cannot be read" in store.faults[0]


def test_a_run_says_so_and_goes_on(tmp_path):
    first = ldp_bench.run("limit", size="small", episodes=1, jobs=1, out=tmp_path)
    change(tmp_path / "results.sqlite", "UPDATE cells SET evaluation = x'00' WHERE rowid = 1")
    with pytest.warns(UserWarning, match="cannot be read .* bench plays it again"):
        again = ldp_bench.run("limit", size="small", episodes=1, jobs=1, out=tmp_path)
    assert len(again.successes) == len(first.successes)


def test_a_kill_while_the_file_is_made_leaves_no_half_of_it(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(
            store_module._TABLES, "runs", "no SQL (at all"
        )  # the end comes before the second table
        with pytest.raises(OSError, match="syntax error"):
            Store(tmp_path)
    assert Store(tmp_path).runs() == []


def test_exports_hold_every_episode(store, tmp_path):
    alone = ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=5, seed=3)
    assert store.export(tmp_path / "all.csv") == alone.kl.size
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    for loss, values in (("kl", alone.kl), ("tv", alone.tv)):
        final = {int(row["seed"]): float(row[loss]) for row in rows if row["round"] == "30"}
        assert final == {3 + i: value for i, value in enumerate(values[:, -1])}
    with pytest.raises(ValueError, match=r"a \.csv file, got 'all\.xlsx'"):
        store.export(tmp_path / "all.xlsx")
