"""Results on disk: one SQLite file in an output directory, one transaction per cell.

A run that was killed goes on from the finished cells. Another configuration, code or seed has another key, so
old and new results never mix.
"""

from __future__ import annotations

import csv
import json
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ldp_bench.experiment import Cell
from ldp_bench.fingerprints import fingerprint, own_code
from ldp_gym.core import validation
from ldp_gym.core.errors import DamagedStoreError, printable
from ldp_gym.core.files import (
    before_file_operation,
    pack_arrays,
    replacing,
    unpack_arrays,
    versions,
)
from ldp_gym.core.validation import shorten
from ldp_gym.engine.rules import Rules, canonical
from ldp_gym.evaluation import Evaluation, join_episodes

FILE = "results.sqlite"

EXPORTED = ("learner", "options", "channel", "rules", "version", "code", "truth", "seed", "round")
"""First columns of an export, before one column per loss: one row per episode and checkpoint."""

_CELLS_AT_A_TIME = 100
"""Number of cells that an export reads at a time."""

_CODE_DIGITS = 12
"""Number of digits of the code's fingerprint that are shown."""

_DIGITS_SHOWN = 12
"""Number of digits of a cell's key that a message shows."""

_LOCK_SECONDS = 60.0
"""Longest time to wait for another process that writes to the file."""

_CELLS = {
    "key": "TEXT PRIMARY KEY",
    "configuration": "TEXT NOT NULL",
    "status": "TEXT NOT NULL",
    "message": "TEXT",
    "evaluation": "BLOB",
    "seconds": "REAL NOT NULL",
    "finished": "TEXT NOT NULL",
}
"""Columns of the table of cells, with their types in SQL."""

_RUNS = {
    "id": "INTEGER PRIMARY KEY",
    "suite": "TEXT NOT NULL",
    "settings": "TEXT NOT NULL",
    "keys": "TEXT NOT NULL",
    "command": "TEXT NOT NULL",
    "machine": "TEXT NOT NULL",
    "versions": "TEXT NOT NULL",
    "started": "TEXT NOT NULL",
    "finished": "TEXT",
}
"""Columns of the table of runs, with their types in SQL."""

_TABLES = {"cells": _CELLS, "runs": _RUNS}

_STATUSES = ("done", "incompatible", "failed")
"""Ends of a cell: played, refused by its learner, failed."""

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of reading a damaged row."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of playing a cell, or all cells of an experiment.

    Attributes:
        status: "done", "incompatible" (the learner does not understand the channel), or "failed".
        evaluation: its results, if it is done.
        message: the reason why it has none; its first line is the short one.
        seconds: duration.
    """

    status: str
    evaluation: Evaluation | None
    message: str | None
    seconds: float


def join_outcomes(outcomes: Sequence[Outcome]) -> Outcome:
    """Join the outcomes of an experiment's cells into one: if the cells end differently, it has failed."""
    seconds = sum(outcome.seconds for outcome in outcomes)
    played = [outcome.evaluation for outcome in outcomes if outcome.evaluation is not None]
    # From the last cell to the first: of several cells with one status the first remains.
    first_by_status = {outcome.status: outcome for outcome in reversed(outcomes)}
    if set(first_by_status) == {"done"}:
        return Outcome("done", join_episodes(played), message=None, seconds=seconds)

    if "failed" in first_by_status:
        message = first_by_status["failed"].message
        return Outcome("failed", evaluation=None, message=message, seconds=seconds)

    message = first_by_status["incompatible"].message
    if not played:
        return Outcome("incompatible", evaluation=None, message=message, seconds=seconds)
    num_refused = len(outcomes) - len(played)
    message = f"it refused {num_refused} of {len(outcomes)} cells, and played the others: {message}"
    return Outcome("failed", evaluation=None, message=message, seconds=seconds)


class Store:
    """The results in a directory. A row that cannot be read counts as not played, and is noted.

    Args:
        directory: made if it does not exist.
        read_only: whether nothing is to be written; then the file must exist.

    Attributes:
        path: the file.
        faults: one line for each row that could not be read.

    Raises:
        DamagedStoreError: if the file is not a database of results.
    """

    def __init__(self, directory: str | Path, *, read_only: bool = False) -> None:
        """Open the file, or make it with its tables, and check that the tables are those of results."""
        self.path = validation.path("directory", directory) / FILE
        if self.path.parent.is_file():
            raise FileExistsError(
                f"{directory} is a file, not a directory of results: choose another name"
            )
        self.faults: list[str] = []
        if not read_only:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        elif not self.path.exists():
            raise FileNotFoundError(
                f"there are no results in {directory}: run ldp-gym bench --out {directory} first"
            )
        with self._open() as database:
            if not read_only:
                # All tables are made or none, should this process be killed.
                database.execute("BEGIN IMMEDIATE")
                self._make_tables(database)
                before_file_operation("commit")
            self._check_tables(database)

    def _make_tables(self, database: sqlite3.Connection) -> None:
        """Make the tables of a file that has none."""
        tables = database.execute("SELECT name FROM sqlite_master").fetchall()
        if not tables:
            for table, columns in _TABLES.items():
                declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
                database.execute(f"CREATE TABLE {table} ({declared})")

    def _check_tables(self, database: sqlite3.Connection) -> None:
        """Refuse a database with other tables, or with views: the query of a view may never end."""
        for kind, name in database.execute("SELECT type, name FROM sqlite_master"):
            is_ours = kind == "table" and name in _TABLES
            if not is_ours and not name.startswith("sqlite_"):
                raise self._refusal(f"it has a {kind} {name!r}: it is another program's database")
        for table, columns in _TABLES.items():
            rows = database.execute(f"PRAGMA table_info({table})")
            if [row["name"] for row in rows] != list(columns):
                raise self._refusal("it is another program's database, or of another version")

    def _refusal(self, reason: object) -> DamagedStoreError:
        """Error that names the file, the reason why it cannot be read, and what to do."""
        return DamagedStoreError(
            f"{self.path} cannot be read as results ({reason}). It is left as it is: move it away, or choose "
            f"another directory"
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect to the database for one transaction; its rows have columns by name.

        The transaction is committed at the end of the block, or rolled back if the block raises an error.
        """
        try:
            with closing(sqlite3.connect(self.path, timeout=_LOCK_SECONDS)) as database, database:
                database.row_factory = sqlite3.Row
                # Bytes that are not UTF-8 must not hide the other rows.
                database.text_factory = lambda text: text.decode(errors="backslashreplace")
                yield database
        except sqlite3.OperationalError as error:  # a full disk, no permission, a locked file
            raise OSError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from error

    def _select(self, query: str, *values: str) -> list[sqlite3.Row]:
        """Rows of the query ``SELECT ...``, with these values in place of its question marks."""
        with self._open() as database:
            return database.execute(f"SELECT {query}", values).fetchall()

    def _note(self, fault: str) -> None:
        """Add a line to :attr:`faults`, unless it stands there."""
        if fault not in self.faults:
            self.faults.append(fault)

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Keep a cell's outcome, in one transaction."""
        self.save_all([(cell, outcome)])

    def save_all(self, played: Sequence[tuple[Cell, Outcome]]) -> None:
        """Keep cells' outcomes, in one transaction."""
        rows = []
        for cell, outcome in played:
            packed = None
            if outcome.evaluation is not None:
                packed = _pack(outcome.evaluation)
            row = (
                cell.key,
                cell.configuration,
                outcome.status,
                outcome.message,
                packed,
                outcome.seconds,
                _now(),
            )
            rows.append(row)
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            before_file_operation("commit")

    def finished(self, keys: Sequence[str]) -> set[str]:
        """Return the given keys whose cells need not be played: neither failed nor unreadable."""
        outcomes = self.outcomes(keys)
        return {key for key, outcome in outcomes.items() if outcome.status != "failed"}

    def outcomes(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """Outcomes by key of those of the given cells that were played and can be read."""
        keys_as_json = json.dumps(keys)  # one value: SQLite limits the number of values
        rows = self._select(
            "* FROM cells WHERE key IN (SELECT value FROM json_each(?))", keys_as_json
        )
        cells = [self._read(row) for row in rows]
        return {cell.key: cell.outcome for cell in cells if cell is not None}

    def _read(self, row: sqlite3.Row) -> StoredCell | None:
        """A cell from its row; None, and a note, if the row cannot be read."""
        try:
            configuration = read_configuration(row["configuration"])
            if fingerprint(row["configuration"].encode()) != row["key"]:
                raise ValueError("its configuration has changed")
            if row["status"] not in _STATUSES:
                raise ValueError(f"its status is {row['status']!r}")
            evaluation = None
            if row["status"] == "done":
                evaluation = _unpack(row["evaluation"])
            outcome = Outcome(row["status"], evaluation, row["message"], float(row["seconds"]))
            return StoredCell(row["key"], configuration, outcome)
        except _UNREADABLE as error:
            self._note(
                f"the cell {str(row['key'])[:_DIGITS_SHOWN]} cannot be read ({error}): bench plays it again"
            )
            return None

    def begin_run(self, suite: str, settings: Mapping[str, Any], keys: Iterable[str]) -> int:
        """Record the start of a run: its suite, settings, machine, versions and cells; return its number."""
        made_by = versions("ldp-gym", "numpy", "scipy", "gymnasium")
        made_by["code"] = own_code()[:_CODE_DIGITS]
        row = {
            "suite": suite,
            "settings": json.dumps(dict(settings), sort_keys=True),
            "keys": json.dumps(list(keys)),
            "command": printable(" ".join(sys.argv)),
            "machine": platform.platform(),
            "versions": json.dumps(made_by, sort_keys=True),
            "started": _now(),
        }
        columns = ", ".join(row)
        question_marks = ", ".join("?" for _ in row)
        with self._open() as database:
            added = database.execute(
                f"INSERT INTO runs ({columns}) VALUES ({question_marks})", list(row.values())
            )
            before_file_operation("commit")
            return int(added.lastrowid or 0)

    def end_run(self, run: int) -> None:
        """Record the time at which the run of this number ended."""
        with self._open() as database:
            database.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now(), run))
            before_file_operation("commit")

    def runs(self) -> list[dict[str, Any]]:
        """The runs that can be read, in order, with their settings."""
        runs = []
        for row in self._select("* FROM runs ORDER BY id"):
            try:
                runs.append(_read_run(row))
            except _UNREADABLE as error:
                self._note(f"the record of run {row['id']} cannot be read ({error}): run it again")
        return runs

    def export(self, path: str | Path, *, all_code: bool = False) -> int:
        """Write one row per episode and checkpoint to a CSV file; return the number of rows.

        The last columns are the cumulative losses, one column for each loss that a cell of the store has.
        A loss that a row's own cell does not have is left empty.

        Where an episode was played by several versions of the code, its latest result is written; with
        ``all_code`` each of them, told apart by the column ``code``.
        """
        path = Path(path)
        if path.suffix != ".csv":
            raise ValueError(f"an export is a .csv file, got {path.name!r}")
        losses = self._stored_losses()
        count = 0
        with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*EXPORTED, *losses])
            for row in self._exported_rows(losses, all_code):
                writer.writerow(row)
                count += 1
        return count

    def _stored_losses(self) -> list[str]:
        """Names of all losses of the cells that can be read: those of the latest cell come first."""
        names: dict[str, None] = {}  # a dict keeps their order
        for cell in self._latest_first():
            if cell.outcome.evaluation is not None:
                names.update(dict.fromkeys(cell.outcome.evaluation.losses))
        return list(names)

    def _exported_rows(self, losses: Sequence[str], all_code: bool) -> Iterator[list[Any]]:
        """Rows of an export, the latest cells first; an episode is written once.

        Args:
            losses: names of the last columns.
            all_code: whether an episode is written once for every version of the code that played it.
        """
        written_seeds: dict[tuple[str, ...], set[int]] = {}  # by all else that tells episodes apart
        for cell in self._latest_first():
            if cell.outcome.evaluation is None:
                continue
            game = cell.game
            if all_code:
                game += (cell.code,)
            seeds = written_seeds.setdefault(game, set())
            yield from _rows_of(cell, cell.outcome.evaluation, losses, without=frozenset(seeds))
            seeds.update(cell.seeds)

    def _latest_first(self) -> Iterator[StoredCell]:
        """Yield the cells that can be read, the latest first; only a few are in memory at a time."""
        order = "ORDER BY finished DESC, rowid DESC"
        keys = [row["key"] for row in self._select(f"key FROM cells {order}")]
        for start in range(0, len(keys), _CELLS_AT_A_TIME):
            keys_as_json = json.dumps(keys[start : start + _CELLS_AT_A_TIME])
            rows = self._select(
                f"* FROM cells WHERE key IN (SELECT value FROM json_each(?)) {order}", keys_as_json
            )
            for row in rows:
                cell = self._read(row)
                if cell is not None:
                    yield cell


@dataclass(frozen=True)
class StoredCell:
    """A cell as it was read from a store."""

    key: str
    configuration: dict[str, Any]
    outcome: Outcome

    @property
    def code(self) -> str:
        """Fingerprint of all code that played it."""
        return fingerprint(canonical(self.configuration["sources"]).encode())[:_CODE_DIGITS]

    @property
    def seeds(self) -> range:
        """Seeds of its episodes."""
        first = self.configuration["seed"]
        return range(first, first + self.configuration["episodes"])

    @property
    def game(self) -> tuple[str, ...]:
        """Key of the game and learner: cells with one key, code and seed hold the same episodes."""
        names = ("learner", "options", "rules", "truth")
        return tuple(json.dumps(self.configuration[name], sort_keys=True) for name in names)


def _rows_of(
    cell: StoredCell, evaluation: Evaluation, losses: Sequence[str], without: frozenset[int]
) -> Iterator[list[Any]]:
    """Rows of an export for the episodes of a cell, without those of the given seeds.

    Args:
        cell: the cell.
        evaluation: its evaluation, with losses ``(episodes, checkpoints)``, or
            ``(K, episodes, checkpoints)`` if each of the K truths was played.
        losses: names of the losses, one column each; empty where the evaluation does not have one.
        without: seeds of episodes to leave out.
    """
    configuration = cell.configuration
    rules = configuration["rules"]
    common = [
        configuration["learner"],
        json.dumps(configuration["options"], sort_keys=True),
        rules.get("channel", Rules.channel),
        json.dumps(rules, sort_keys=True),
        configuration["version"],
        cell.code,
    ]
    for index in np.ndindex(evaluation.kl.shape):
        *truths, episode, checkpoint = index
        truth = configuration["truth"]
        if truths:  # each truth was played: the first axis
            truth = truths[0]
        seed = cell.seeds[episode]
        if seed in without:
            continue
        values: list[Any] = [""] * len(losses)
        for column, name in enumerate(losses):
            if name in evaluation.losses:
                values[column] = evaluation.losses[name][index]
        yield [*common, truth, seed, evaluation.rounds[checkpoint], *values]


# -- What a store says is data ------------------------------------------------------------------------------


def read_configuration(text: str) -> dict[str, Any]:
    """Configuration of a cell, checked: its entries have the types that :class:`Cell` writes.

    Raises:
        ValueError: if an entry is missing, or something else.
    """
    configuration = json.loads(text)
    kinds: dict[str, Any] = {
        "rules": dict,
        "learner": str,
        "options": dict,
        "truth": (int, str, type(None)),
        "leaders": bool,
        "episodes": int,
        "seed": int,
        "version": str,
        "sources": dict,
    }
    return _checked("configuration", configuration, kinds)


def _read_run(row: sqlite3.Row) -> dict[str, Any]:
    """A run's record, checked like :func:`read_configuration`."""
    kinds: dict[str, Any] = {
        "learners": list,
        "channels": list,
        "parameters": dict,
        "episodes": (int, type(None)),
        "seed": int,
        "size": str,
    }
    settings = _checked("settings", json.loads(row["settings"]), kinds)
    for entry in ("learners", "channels"):
        if not all(isinstance(name, str) for name in settings[entry]):
            raise ValueError(f"its settings has {entry} = {shorten(settings[entry])}")
    keys = json.loads(row["keys"])
    made_by = json.loads(row["versions"])
    if not isinstance(keys, list) or not isinstance(made_by, dict):
        raise ValueError("its keys are no list, or its versions no table")
    return {**dict(row), "settings": settings, "keys": keys, "versions": made_by}


def _checked(name: str, value: object, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A dict with exactly these entries, of these types."""
    if not isinstance(value, dict) or set(value) != set(kinds):
        raise ValueError(f"its {name} has other entries than {', '.join(kinds)}")
    for entry, kind in kinds.items():
        if not isinstance(value[entry], kind):
            raise ValueError(f"its {name} has {entry} = {shorten(value[entry])}")
    return value


def _pack(evaluation: Evaluation) -> bytes:
    """Arrays of an evaluation as bytes with a checksum."""
    return pack_arrays(evaluation.arrays)


def _unpack(packed: bytes) -> Evaluation:
    """Evaluation of the bytes that :func:`_pack` has made."""
    return Evaluation.from_arrays(unpack_arrays(packed).arrays)


def _now() -> str:
    """Time in UTC, in whole seconds, such as 2026-01-31T12:00:00+00:00."""
    return datetime.now(UTC).isoformat(timespec="seconds")
