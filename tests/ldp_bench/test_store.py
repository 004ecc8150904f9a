"""The store: keys of cells, damaged rows and files, exports."""

import csv
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import with_each_bit_flipped

import ldp_bench
import ldp_gym
from ldp_bench import Experiment, Store, experiment, fingerprints
from ldp_bench import store as store_module
from ldp_bench.runner import play
from ldp_bench.store import Outcome
from ldp_gym.channels import RandomizedResponse, Split
from ldp_gym.core.errors import DamagedStoreError

EXPERIMENT = Experiment({"hypotheses": "dirichlet", "horizon": 30}, "exp3", episodes=5, block=2)
CHECKPOINTS = len(ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=1).rounds)


def keys_of(experiment, seed=3):
    return [cell.key for cell in experiment.cells(seed)]


def play_into(store, experiment, seed=3):
    for cell in experiment.cells(seed):
        store.save(cell, play(cell))


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path)
    play_into(store, EXPERIMENT)
    return store


# -- Keys ---------------------------------------------------------------------------------------------------


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
def test_another_configuration_has_another_key(change):
    assert not set(keys_of(EXPERIMENT)) & set(keys_of(replace(EXPERIMENT, **change)))


def test_another_seed_has_another_key():
    assert not set(keys_of(EXPERIMENT, seed=3)) & set(keys_of(EXPERIMENT, seed=100))


def test_rules_at_their_default_are_no_part_of_a_key():
    spelled = Experiment(
        {"hypotheses": "dirichlet", "horizon": 30, "batch": 1, "epsilon": 1.0},
        "exp3",
        episodes=5,
        block=2,
    )
    assert keys_of(spelled) == keys_of(EXPERIMENT)
    assert (
        '"rules": {"horizon": 30, "hypotheses": "dirichlet"}' in spelled.cells(3)[0].configuration
    )


def key_of_channel(channel):
    return keys_of(Experiment({"horizon": 30, "channel": channel}, "uniform"))[0]


def test_a_channel_given_as_an_object_is_known_by_its_options():
    first = RandomizedResponse(8, 16, 30, epsilon=1.0)
    same = RandomizedResponse(8, 16, 30, epsilon=1.0)
    same.log_density(np.array(3), np.full((8, 16), 1 / 16))  # it has been used
    assert key_of_channel(first) == key_of_channel(same)
    assert key_of_channel(first) != key_of_channel(RandomizedResponse(8, 16, 30, epsilon=2.0))


def test_a_channel_given_as_an_object_is_known_by_its_class():
    response = RandomizedResponse(8, 16, 30, epsilon=1.0)
    assert key_of_channel(response) != key_of_channel(Split(8, 16, 30))


def test_a_function_without_a_name_has_no_key():
    nameless = Experiment({"hypotheses": [lambda x: x, lambda x: x]}, "uniform")
    with pytest.raises(TypeError, match="put it into a module"):
        keys_of(nameless)


# -- Keys: the code -----------------------------------------------------------------------------------------


@pytest.fixture
def copied_code(tmp_path, monkeypatch):
    """A copy of the package, of which ``own_code()`` takes the fingerprint."""
    copy = tmp_path / "ldp_gym"
    shutil.copytree(Path(ldp_gym.__file__).parent, copy)
    monkeypatch.setattr(fingerprints, "_places", lambda package: [tmp_path / package])
    monkeypatch.setattr(fingerprints, "_PLAYING_PACKAGES", ("ldp_gym",))
    return copy


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_comments_docstrings_and_layout_do_not_change_the_fingerprint(copied_code):
    before = fingerprints.own_code.__wrapped__()
    response = copied_code / "channels" / "randomized_response.py"
    edit(response, '"""', '"""Edited. ')
    edit(response, "\nimport ", "\n\n# A comment.\nimport ")
    assert fingerprints.own_code.__wrapped__() == before


def test_a_changed_number_changes_the_fingerprint(copied_code):
    before = fingerprints.own_code.__wrapped__()
    with (copied_code / "core" / "sampling.py").open("a") as file:
        file.write("ANSWER = 42\n")
    with_number = fingerprints.own_code.__wrapped__()
    edit(copied_code / "core" / "sampling.py", "ANSWER = 42", "ANSWER = 43")
    assert len({before, with_number, fingerprints.own_code.__wrapped__()}) == 3


def test_a_moved_module_changes_the_fingerprint(copied_code):
    before = fingerprints.own_code.__wrapped__()
    (copied_code / "core" / "sampling.py").rename(copied_code / "core" / "drawing.py")
    assert fingerprints.own_code.__wrapped__() != before


def test_code_that_draws_frames_does_not_change_the_fingerprint(copied_code):
    before = fingerprints.own_code.__wrapped__()
    with (copied_code / "envs" / "rendering" / "frames.py").open("a") as file:
        file.write("ANSWER = 42\n")
    assert fingerprints.own_code.__wrapped__() == before


@pytest.mark.parametrize(
    ("name", "changed"), [("own_code", lambda: "other code"), ("VERSION", "9.9.9")]
)
def test_other_code_has_another_key(store, monkeypatch, name, changed):
    before = keys_of(EXPERIMENT)
    monkeypatch.setattr(experiment, name, changed)
    assert not set(keys_of(EXPERIMENT)) & set(before)
    assert store.finished(before) == set(before)


def test_a_third_party_learner_is_fingerprinted_without_being_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')\n")
    cell = replace(EXPERIMENT, learner="trap:Learner").cells(seed=0)[0]
    assert "trap:Learner" in cell.sources
    assert "trap" not in sys.modules


def test_a_learner_that_is_nowhere_has_no_key():
    with pytest.raises(ValueError, match="cannot import learner 'nowhere:Learner'"):
        keys_of(replace(EXPERIMENT, learner="nowhere:Learner"))


MODULE = """
import ldp_agents
from ldp_gym.hypotheses.families import Dirichlet as Table

class Mine(ldp_agents.Uniform):
    rate = {}
"""


@pytest.mark.parametrize(
    "named", [{"learner": "homemade:Mine"}, {"rules": {"hypotheses": "homemade:Table"}}]
)
def test_changed_code_of_a_user_has_another_key(tmp_path, monkeypatch, named):
    """Wherever in its package it is; and a key is that of the code before it was played."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "homemade"
    package.mkdir()
    (package / "__init__.py").write_text("from homemade.core import Mine, Table\n")
    (package / "core.py").write_text(MODULE.format(0.0))
    (cell, *_) = replace(EXPERIMENT, **named).cells(seed=0)
    before = cell.key

    (package / "core.py").write_text(MODULE.format(1.0))
    assert cell.key == before
    assert replace(EXPERIMENT, **named).cells(seed=0)[0].key != before


# -- Damage -------------------------------------------------------------------------------------------------


def change(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


def overwrite_first_page(path):
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"x" * 2900 + content[3000:])


def replace_tables(table):
    def damage(path):
        change(path, "DROP TABLE cells", "DROP TABLE runs", f"CREATE TABLE {table}")

    return damage


ENDLESS = """
CREATE VIEW runs AS WITH RECURSIVE numbers (id, suite, settings, keys, command, machine, versions, started,
finished) AS (SELECT 1, 1, 1, 1, 1, 1, 1, 1, 1 UNION ALL SELECT id + 1, 1, 1, 1, 1, 1, 1, 1, 1 FROM numbers)
SELECT * FROM numbers
"""
TRIGGER = "CREATE TRIGGER mine AFTER INSERT ON cells BEGIN DELETE FROM runs; END"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: change(path, "DROP TABLE runs", ENDLESS),
        lambda path: change(path, TRIGGER),
        lambda path: path.write_text("my thesis"),
        overwrite_first_page,
        replace_tables("cells (key TEXT)"),
        replace_tables("mine (name TEXT)"),
    ],
    ids=[
        "endless view",
        "trigger",
        "text",
        "damaged first page",
        "other columns",
        "another database",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_a_store_is_refused_and_left_as_it_is(store, damage, read_only):
    damage(store.path)
    content = store.path.read_bytes()
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
def test_a_row_that_cannot_be_read_counts_as_not_played(store, column):
    first, damaged, last = keys_of(EXPERIMENT)
    change(store.path, f"UPDATE cells SET {column} WHERE key = '{damaged}'")
    assert store.finished([first, damaged, last]) == {first, last}
    (fault,) = store.faults
    assert fault.startswith(f"the cell {damaged[:12]} cannot be read (")


def test_a_flipped_bit_in_a_cell_is_named_by_a_run_and_by_an_export(store, tmp_path):
    first, damaged, last = keys_of(EXPERIMENT)
    with closing(sqlite3.connect(store.path)) as database:
        (packed,) = database.execute(
            "SELECT evaluation FROM cells WHERE key = ?", [damaged]
        ).fetchone()

    for blob in list(with_each_bit_flipped(packed))[::97]:  # test_files.py flips each bit
        with closing(sqlite3.connect(store.path)) as database, database:
            database.execute("UPDATE cells SET evaluation = ? WHERE key = ?", [blob, damaged])
        opened = Store(store.path.parent)
        assert opened.finished([first, damaged, last]) == {first, last}
        assert opened.export(tmp_path / "all.csv") == 3 * CHECKPOINTS
        (fault,) = opened.faults
        assert fault.startswith(f"the cell {damaged[:12]} cannot be read (")


def test_a_run_whose_record_cannot_be_read_is_left_out(store):
    settings = {
        "learners": [],
        "channels": [],
        "parameters": {},
        "episodes": None,
        "seed": 0,
        "size": "small",
    }
    store.begin_run("limit", settings, ["a"])
    store.begin_run("quick", settings, ["a"])
    change(store.path, "UPDATE runs SET settings = '[' WHERE suite = 'limit'")
    assert [run["suite"] for run in store.runs()] == ["quick"]
    assert "the record of run 1 cannot be read" in store.faults[0]


@pytest.mark.parametrize(
    "settings", ["{}", '{"seed": 0}', "[1]", "{}".join(['{"learners": ', "}"])]
)
def test_a_run_s_settings_have_all_entries_and_no_others(store, settings):
    store.begin_run("quick", {}, ["a"])
    change(store.path, f"UPDATE runs SET settings = '{settings}'")
    assert store.runs() == []
    assert "its settings has other entries than learners, channels" in store.faults[0]


def test_a_run_plays_a_damaged_cell_again(tmp_path):
    first = ldp_bench.run("limit", size="small", episodes=1, jobs=1, out=tmp_path)
    change(tmp_path / "results.sqlite", "UPDATE cells SET evaluation = x'00' WHERE rowid = 1")
    with pytest.warns(UserWarning, match="cannot be read .* bench plays it again"):
        again = ldp_bench.run("limit", size="small", episodes=1, jobs=1, out=tmp_path)
    assert len(again.successes) == len(first.successes)


def test_a_kill_while_the_file_is_made_leaves_no_half_of_it(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(store_module._TABLES, "runs", {"id": "no SQL (at all"})
        with pytest.raises(OSError, match="syntax error"):
            Store(tmp_path)  # the end comes before the second table
    assert Store(tmp_path).runs() == []


# -- Exports ------------------------------------------------------------------------------------------------


def exported(store, **options):
    path = store.path.with_name("all.csv")
    count = store.export(path, **options)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count
    return rows


@pytest.mark.parametrize("loss", ["kl", "tv", "tv_squared"])
def test_an_export_holds_each_stored_loss_of_each_episode(store, loss):
    rows = exported(store)
    evaluation = ldp_gym.evaluate("exp3", EXPERIMENT.rules, episodes=5, seed=3, losses=[loss])
    totals = evaluation.losses[loss][:, -1]
    final = {int(row["seed"]): float(row[loss]) for row in rows if row["round"] == "30"}
    assert final == {3: totals[0], 4: totals[1], 5: totals[2], 6: totals[3], 7: totals[4]}


def test_an_export_has_a_row_per_episode_and_checkpoint(store):
    assert len(exported(store)) == 5 * CHECKPOINTS


def test_an_export_leaves_a_loss_empty_that_a_cell_does_not_have(store):
    cell = replace(EXPERIMENT, episodes=1).cells(seed=100)[0]
    evaluation = ldp_gym.evaluate(
        "exp3", EXPERIMENT.rules, episodes=1, seed=100, losses=["hellinger"]
    )
    store.save(cell, Outcome("done", evaluation, message=None, seconds=0.0))
    rows = exported(store)
    with_hellinger = {row["seed"] for row in rows if row["hellinger"]}
    with_tv = {row["seed"] for row in rows if row["tv"]}
    assert with_hellinger == {"100"}
    assert with_tv == {"3", "4", "5", "6", "7"}


def test_an_export_names_the_code_that_played(store):
    rows = exported(store)
    assert {len(row["code"]) for row in rows} == {12}
    assert {row["channel"] for row in rows} == {"laplace-single"}


def test_an_export_has_the_latest_code_s_results(store, monkeypatch):
    ours = {row["code"] for row in exported(store)}
    monkeypatch.setattr(experiment, "own_code", lambda: "other code")
    play_into(store, EXPERIMENT)
    rows = exported(store)
    assert len(rows) == 5 * CHECKPOINTS
    assert {row["code"] for row in rows}.isdisjoint(ours)


def test_an_export_of_all_code_tells_it_apart(store, monkeypatch):
    monkeypatch.setattr(experiment, "own_code", lambda: "other code")
    play_into(store, EXPERIMENT)
    rows = exported(store, all_code=True)
    assert Counter(Counter(row["code"] for row in rows).values()) == {5 * CHECKPOINTS: 2}


def test_an_episode_that_stands_in_several_cells_is_exported_once(store):
    play_into(store, replace(EXPERIMENT, block=5))
    seeds = Counter(row["seed"] for row in exported(store))
    assert seeds == dict.fromkeys("34567", CHECKPOINTS)


def test_an_export_is_a_csv_file(store, tmp_path):
    with pytest.raises(ValueError, match=r"a \.csv file, got 'all\.xlsx'"):
        store.export(tmp_path / "all.xlsx")


# -- Many cells ---------------------------------------------------------------------------------------------


def test_cells_of_other_runs_are_not_read(store, monkeypatch):
    read = []
    monkeypatch.setattr(store_module, "unpack_arrays", lambda packed: read.append(packed))
    assert store.finished(["no", "such", "key"]) == set()
    assert read == []
