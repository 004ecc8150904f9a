"""Results on disk: one SQLite file in an output directory, one transaction per cell.

A run that was killed goes on from the finished cells. Another configuration, code or seed has another key, so
old and new results never mix.
"""

from __future__ import annotations

import csv
import io
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

from ldp_bench.experiment import Cell, fingerprint, own_code
from ldp_gym.core import validation
from ldp_gym.core.errors import DamagedStoreError, printable
from ldp_gym.core.files import read_arrays, replacing, versions
from ldp_gym.engine.rules import Rules
from ldp_gym.evaluation import Evaluation, join_episodes

FILE = "results.sqlite"

EXPORTED = (
    "learner",
    "options",
    "channel",
    "rules",
    "version",
    "truth",
    "seed",
    "round",
    "kl",
    "tv",
)
"""Columns of an export: one row per episode and checkpoint."""

_TABLES = {
    "cells": "key TEXT PRIMARY KEY, configuration TEXT NOT NULL, status TEXT NOT NULL, message TEXT, "
    "evaluation BLOB, seconds REAL NOT NULL, finished TEXT NOT NULL",
    "runs": "id INTEGER PRIMARY KEY, suite TEXT NOT NULL, settings TEXT NOT NULL, keys TEXT NOT NULL, "
    "command TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT NOT NULL, started TEXT NOT NULL, "
    "finished TEXT",
}

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
    """The outcome of an experiment from those of its cells: if they end differently, it has failed."""
    seconds = sum(outcome.seconds for outcome in outcomes)
    first = {outcome.status: outcome for outcome in reversed(outcomes)}
    played = [outcome.evaluation for outcome in outcomes if outcome.evaluation is not None]
    if set(first) == {"done"}:
        return Outcome("done", join_episodes(played), None, seconds)
    end = first.get("failed") or first["incompatible"]
    status, message = end.status, end.message
    if played and status == "incompatible":
        refused = f"{len(outcomes) - len(played)} of {len(outcomes)}"
        status, message = "failed", f"it refused {refused} cells, and played the others: {message}"
    return Outcome(status, None, message, seconds)


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
                database.execute(
                    "BEGIN IMMEDIATE"
                )  # all tables or none, should this process be killed
            tables = {row["name"] for row in database.execute("SELECT name FROM sqlite_master")}
            if any(not name.startswith("sqlite_") for name in tables - {*_TABLES}):
                raise self._refusal("it is another program's database")
            for table, columns in _TABLES.items():
                if not read_only:
                    database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
                found = [row["name"] for row in database.execute(f"PRAGMA table_info({table})")]
                if found != [column.split()[0] for column in columns.split(",")]:
                    raise self._refusal("it is another program's database")

    def _refusal(self, reason: object) -> DamagedStoreError:
        return DamagedStoreError(
            f"{self.path} cannot be read as results ({reason}). It is left as it is: move it away, or choose "
            f"another directory"
        )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=60.0)) as database, database:
                database.row_factory = sqlite3.Row
                database.text_factory = lambda text: text.decode(errors="backslashreplace")
                yield database
        except sqlite3.OperationalError as error:  # a full disk, no permission, a locked file
            raise OSError(f"{self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise self._refusal(error) from error

    def _select(self, query: str, *values: str) -> list[sqlite3.Row]:
        with self._open() as database:
            return database.execute(f"SELECT * FROM {query}", values).fetchall()

    def _note(self, fault: str) -> None:
        if fault not in self.faults:
            self.faults.append(fault)

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Keep a cell's outcome, in one transaction."""
        blob = None if outcome.evaluation is None else _pack(outcome.evaluation)
        row = (
            cell.key,
            cell.configuration,
            outcome.status,
            outcome.message,
            blob,
            outcome.seconds,
            _now(),
        )
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def finished(self) -> set[str]:
        """Keys of the cells that need not be played: neither failed nor unreadable."""
        return {key for key, _, outcome in self._cells() if outcome.status != "failed"}

    def outcomes(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """Outcomes of cells by their keys, of those that were played and can be read."""
        asked = json.dumps(keys)  # as one value: SQLite limits their number
        found = self._cells("WHERE key IN (SELECT value FROM json_each(?))", asked)
        return {key: outcome for key, _, outcome in found}

    def _cells(
        self, where: str = "", *values: str
    ) -> Iterator[tuple[str, dict[str, Any], Outcome]]:
        """The key, configuration and outcome of every cell that can be read."""
        for row in self._select(f"cells {where} ORDER BY configuration", *values):
            try:
                if fingerprint(row["configuration"].encode()) != row["key"]:
                    raise ValueError("its configuration has changed")
                if row["status"] not in ("done", "incompatible", "failed"):
                    raise ValueError(f"its status is {row['status']!r}")
                blob = io.BytesIO(row["evaluation"]) if row["status"] == "done" else None
                evaluation = Evaluation.from_arrays(read_arrays(blob)) if blob else None
                outcome = Outcome(row["status"], evaluation, row["message"], float(row["seconds"]))
                yield row["key"], json.loads(row["configuration"]), outcome
            except _UNREADABLE as error:
                self._note(
                    f"the cell {str(row['key'])[:12]} cannot be read ({error}): bench plays it again"
                )

    def begin_run(self, suite: str, settings: Mapping[str, Any], keys: Iterable[str]) -> int:
        """Record the start of a run: its suite, settings, machine, versions and cells; return its number."""
        made_by = versions("ldp-gym", "numpy", "scipy", "gymnasium") | {"code": own_code()[:12]}
        kept = [
            json.dumps(value, sort_keys=True) for value in (dict(settings), list(keys), made_by)
        ]
        row = (suite, *kept, printable(" ".join(sys.argv)), platform.platform(), _now())
        columns = "suite, settings, keys, versions, command, machine, started"
        with self._open() as database:
            added = database.execute(
                f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
            return int(added.lastrowid or 0)

    def end_run(self, run: int) -> None:
        with self._open() as database:
            database.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now(), run))

    def runs(self) -> list[dict[str, Any]]:
        """The runs that can be read, in order, with their settings."""
        found = []
        for row in self._select("runs ORDER BY id"):
            try:
                read = {name: json.loads(row[name]) for name in ("settings", "keys", "versions")}
                found.append(dict(row) | read)
            except _UNREADABLE as error:
                self._note(f"the record of run {row['id']} cannot be read ({error}): run it again")
        return found

    def export(self, path: str | Path) -> int:
        """Write one row per episode and checkpoint to a CSV file; return their number."""
        path, count = Path(path), 0
        if path.suffix != ".csv":
            raise ValueError(f"an export is a .csv file, got {path.name!r}")
        with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(EXPORTED)
            for _, played, outcome in self._cells():
                options, rules = (
                    json.dumps(played[name], sort_keys=True) for name in ("options", "rules")
                )
                shared = (
                    played["learner"],
                    options,
                    played["rules"].get("channel", Rules.channel),
                    rules,
                    played["version"],
                )
                if (result := outcome.evaluation) is None:
                    continue
                for place in np.ndindex(result.kl.shape):
                    *truth, episode, at = place
                    which = truth[0] if truth else played["truth"], played["seed"] + episode
                    writer.writerow(
                        [*shared, *which, result.rounds[at], result.kl[place], result.tv[place]]
                    )
                    count += 1
        return count


def _pack(evaluation: Evaluation) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **evaluation.arrays)  # losses hardly compress
    return buffer.getvalue()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
