"""Where results are kept: one SQLite file in an output directory, one transaction per cell.

A run that was killed finds what it had finished; another configuration, code or seed has another key, so old
and new results never mix.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ldp_gym.bench.experiment import Cell, own_code
from ldp_gym.core import validation
from ldp_gym.core.errors import DamagedStoreError, extra, printable
from ldp_gym.core.files import read_arrays, replacing
from ldp_gym.evaluation import Evaluation

DIRECTORY = Path("ldp-gym-results")
"""Where results go, unless another place is given."""

FILE = "results.sqlite"

COLUMNS = ("learner", "options", "channel", "rules", "version", "truth", "seed", "round", "kl", "tv")
"""Of an export: one row per episode and checkpoint."""

_TABLES = {
    "cells": "key TEXT PRIMARY KEY, configuration TEXT NOT NULL, status TEXT NOT NULL, message TEXT, "
    "evaluation BLOB, seconds REAL NOT NULL, finished TEXT NOT NULL",
    "runs": "id INTEGER PRIMARY KEY, suite TEXT NOT NULL, settings TEXT NOT NULL, keys TEXT NOT NULL, "
    "command TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT NOT NULL, started TEXT NOT NULL, "
    "finished TEXT",
}

_CELLS = "SELECT key, configuration, status, evaluation, message, seconds FROM cells"

_RUN: dict[str, Any] = {
    "suite": str, "keys": list, "command": str, "machine": str, "versions": dict, "started": str,
    "finished": str | None,
}  # fmt: skip
"""Of what kind the facts of a run are."""

_SETTINGS: dict[str, Any] = {
    "learners": list, "channels": list, "episodes": int | None, "seed": int, "size": str, "parameters": dict,
}  # fmt: skip
"""Of what kind its settings are."""

HIDDEN = -1
"""The seed that is noted for a run whose seed comes from a secret, until it ends."""

STATUSES = ("done", "incompatible", "failed")

_MOST_BYTES = 2**30
"""How many bytes the results of a cell may unpack to."""


@dataclass(frozen=True)
class Outcome:
    """What became of a cell.

    Attributes:
        status: "done", "incompatible" (the learner does not understand the channel), or "failed".
        evaluation: its results, if it is done.
        message: why not, if it is not: for a failure the traceback.
        seconds: how long it took.
    """

    status: str
    evaluation: Evaluation | None
    message: str | None
    seconds: float


class Store:
    """The results in a directory.

    A file that cannot be read is an error, and left as it is. A damaged row, of a cell or of a run, is left
    out and noted: its cell counts as not played. All other rows are as good as before.

    Args:
        directory: made if it does not exist.
        read_only: whether nothing is to be written; then the file must exist.

    Attributes:
        faults: what is damaged, as far as it has been read, and what to do about it.

    Raises:
        FileNotFoundError: if there are no results to read.
        DamagedStoreError: if there is a file that cannot be read as results.
        OSError: if the directory cannot be made, read or written to.
    """

    def __init__(self, directory: str | Path, *, read_only: bool = False) -> None:
        self.path = validation.path("directory", directory) / FILE
        self.faults: list[str] = []
        mode = "ro" if validation.flag("read_only", read_only) else "rwc"
        self._address = f"{self.path.absolute().as_uri()}?mode={mode}"
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        elif not self.path.exists():
            raise FileNotFoundError(
                f"there are no results in {directory}: run ldp-gym bench --out {directory} first"
            )
        with self._open() as database:
            state = database.execute("PRAGMA quick_check").fetchone()[0]
            if state != "ok":
                raise self._damage_error(state)
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            is_new = not tables and not read_only
            if is_new:
                database.execute("BEGIN IMMEDIATE")  # all tables or none, should this process be killed
            for table, columns in _TABLES.items():
                if is_new:
                    database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
                wanted = {column.split()[0] for column in columns.split(",")}
                lacks = wanted - {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
                if lacks:
                    raise self._damage_error(f"its table {table} lacks {', '.join(sorted(lacks))}")

    def _damage_error(self, why: object) -> DamagedStoreError:
        return DamagedStoreError(
            f"{self.path} cannot be read ({why}). It is left as it is: move it away, or choose another "
            f"directory. What is whole in it, 'sqlite3 {FILE} .recover' may bring back"
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._address, timeout=60.0, uri=True)) as database, database:
                database.text_factory = lambda text: text.decode(errors="backslashreplace")
                yield database
        except sqlite3.OperationalError as error:  # a full disk, no permission, a file that somebody locks
            raise OSError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._damage_error(error) from error

    def _note(self, what: str, why: object, remedy: str) -> None:
        fault = f"{what} is damaged ({why}): {remedy}"
        if fault not in self.faults:
            self.faults.append(fault)

    # -- Cells --------------------------------------------------------------------------------------------

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Keep a cell's outcome, in one transaction."""
        blob = None if outcome.evaluation is None else _pack(outcome.evaluation)
        message = None if outcome.message is None else printable(outcome.message)
        row = (cell.key, cell.configuration, outcome.status, message, blob, outcome.seconds, _now())
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def finished(self) -> set[str]:
        """The keys of cells that need no playing: those that failed, or are damaged, are played again."""
        return {key for key, _, outcome in self._cells() if outcome.status != "failed"}

    def outcomes(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """What became of cells, by their keys: of those that have been played and whose rows are sound."""
        asked = json.dumps(keys)  # as one value: SQLite has a limit for many
        found = self._cells("WHERE key IN (SELECT value FROM json_each(?))", asked)
        return {key: outcome for key, _, outcome in found}

    def _cells(self, where: str = "", *values: str) -> Iterator[tuple[str, dict[str, Any], Outcome]]:
        """The key, configuration and outcome of every sound cell; the others are noted."""
        with self._open() as database:
            rows = database.execute(f"{_CELLS} {where} ORDER BY configuration", values).fetchall()
        for row in rows:
            try:
                yield _read_cell(row)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                self._note(f"the cell {str(row[0])[:12]}", error, "the same bench plays it again")

    def back_up(self) -> None:
        """Keep a copy of the file as it is now: what is damaged in it may be of use."""
        copy = self.path.with_name(f"{self.path.stem}-damaged{self.path.suffix}")
        if not copy.exists():
            with replacing(copy) as part:
                shutil.copyfile(self.path, part)

    # -- Runs ---------------------------------------------------------------------------------------------

    def begin_run(self, suite: str, settings: Mapping[str, Any], keys: Iterable[str]) -> int:
        """Note that a suite is run: how, on what, and with which cells."""
        command = printable(" ".join(sys.argv))
        facts = (json.dumps(dict(settings), sort_keys=True), json.dumps(list(keys)), command)
        with self._open() as database:
            run = database.execute(
                "INSERT INTO runs (suite, settings, keys, command, machine, versions, started) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (suite, *facts, platform.platform(), json.dumps(_versions()), _now()),
            ).lastrowid
        assert run is not None
        return run

    def end_run(self, run: int, settings: Mapping[str, Any]) -> None:
        """Note that it has come to its end, and its settings: some may have been hidden till now."""
        row = (json.dumps(dict(settings), sort_keys=True), _now(), run)
        with self._open() as database:
            database.execute("UPDATE runs SET settings = ?, finished = ? WHERE id = ?", row)

    def runs(self) -> list[dict[str, Any]]:
        """The sound runs, in order, with their settings; the others are noted."""
        with self._open() as database:
            database.row_factory = sqlite3.Row
            rows = [dict(row) for row in database.execute("SELECT * FROM runs ORDER BY id")]
        sound = []
        for row in rows:
            try:
                sound.append(_read_run(row))
            except (ValueError, TypeError, RecursionError) as error:
                self._note(f"the record of run {row['id']}", error, "its cells are kept; run it again")
        return sound

    # -- Export -------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per episode and checkpoint of every cell that is done."""
        for _, configuration, outcome in self._cells():
            if outcome.evaluation is None:
                continue
            rules = configuration["rules"]
            shared = {
                "learner": configuration["learner"],
                "options": json.dumps(configuration["options"], sort_keys=True),
                "channel": rules["channel"],
                "rules": json.dumps(rules, sort_keys=True),
                "version": configuration["version"],
            }
            kl, tv, rounds = (getattr(outcome.evaluation, name) for name in ("kl", "tv", "rounds"))
            for index in np.ndindex(kl.shape):
                yield shared | {
                    "truth": index[0] if kl.ndim == 3 else configuration["truth"],
                    "seed": configuration["seed"] + index[-2],
                    "round": int(rounds[index[-1]]),
                    "kl": float(kl[index]),
                    "tv": float(tv[index]),
                }

    def export(self, path: str | Path) -> int:
        """Write all rows to a ``.csv`` or ``.parquet`` file; returns how many."""
        path = Path(path)
        if path.suffix == ".csv":
            with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                return sum(1 for row in self.rows() if writer.writerow(row))
        if path.suffix == ".parquet":
            with extra("bench", "Parquet"):
                from pyarrow import Table, parquet
            rows = list(self.rows())
            with replacing(path) as part:
                parquet.write_table(Table.from_pylist(rows), part)
            return len(rows)
        raise ValueError(f"an export ends in .csv or .parquet, got {path.name!r}")


def _pack(evaluation: Evaluation) -> bytes:
    buffer = io.BytesIO()
    found = {field.name: getattr(evaluation, field.name) for field in fields(evaluation)}
    arrays = {name: array for name, array in found.items() if array is not None}
    np.savez(buffer, allow_pickle=False, **arrays)  # losses hardly compress
    return buffer.getvalue()


def _read_cell(row: tuple[Any, ...]) -> tuple[str, dict[str, Any], Outcome]:
    """A cell's row.

    Raises:
        ValueError: if it is damaged, saying how.
    """
    key, text, status, blob, message, seconds = row
    if not isinstance(text, str) or hashlib.sha256(text.encode()).hexdigest() != key:
        raise ValueError("its key is not that of its configuration")
    if status not in STATUSES:
        raise ValueError(f"its status is {status!r}, not one of {', '.join(STATUSES)}")
    if not isinstance(seconds, int | float) or not isinstance(message, str | None):
        raise ValueError("its time is no number, or its message no text")
    if (status == "done") != isinstance(blob, bytes):
        raise ValueError("its results are missing" if status == "done" else "it has results, and is not done")
    configuration = json.loads(text)
    evaluation = _unpack(blob, configuration["episodes"]) if status == "done" else None
    return key, configuration, Outcome(status, evaluation, message, float(seconds))


def _unpack(blob: bytes, episodes: int) -> Evaluation:
    arrays = read_arrays(io.BytesIO(blob), _MOST_BYTES)
    names = {field.name: field.default for field in fields(Evaluation)}
    if not arrays.keys() <= names.keys() or any(
        default is MISSING and name not in arrays for name, default in names.items()
    ):
        raise ValueError(f"its results are {', '.join(sorted(arrays))}, not {', '.join(names)}")
    shape = arrays["kl"].shape
    if (
        not all(array.dtype.kind in "fi" for array in arrays.values())
        or arrays["rounds"].shape != shape[-1:]
        or arrays["tv"].shape != shape
        or shape[-2:-1] != (episodes,)
        or any(array.shape[:-1] != shape[:-1] for name, array in arrays.items() if name != "rounds")
    ):
        raise ValueError("its results have other shapes or kinds than losses have")
    return Evaluation(**arrays)


def _read_run(row: dict[str, Any]) -> dict[str, Any]:
    """A run's row, with its JSON read.

    Raises:
        ValueError: if it is damaged, saying how.
        TypeError: likewise.
    """
    row = row | {name: json.loads(row[name]) for name in ("settings", "keys", "versions")}
    settings = row["settings"] = {"parameters": {}, **row["settings"]}
    for facts, kinds in ((row, _RUN), (settings, _SETTINGS)):
        for name, kind in kinds.items():
            if name not in facts or not isinstance(facts[name], kind):
                raise ValueError(f"its {name!r} is missing, or of another kind")
    if not all(isinstance(name, str) for name in (*settings["learners"], *settings["channels"])):
        raise ValueError("its settings name learners or channels by what is no text")
    return row


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Of what results depend on; the package's own code goes by its fingerprint too."""
    packages = {name: version(name) for name in ("ldp-gym", "numpy", "scipy", "gymnasium")}
    return {"python": platform.python_version(), **packages, "code": own_code()[:12]}
