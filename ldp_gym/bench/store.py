"""Where results are kept: one SQLite file in an output directory, one transaction per cell.

A run that was killed finds what it had finished; another configuration, code or seed has another key, so old
and new results never mix.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_gym.bench.experiment import Cell, own_code
from ldp_gym.errors import DamagedStoreError
from ldp_gym.evaluation import Evaluation

DIRECTORY = Path("ldp-gym-results")
"""Where results go, unless another place is given."""

FILE = "results.sqlite"

COLUMNS = ("learner", "options", "channel", "rules", "version", "truth", "seed", "round", "kl", "tv")
"""Of an export: one row per episode and checkpoint."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY, configuration TEXT NOT NULL, status TEXT NOT NULL, message TEXT,
    evaluation BLOB, seconds REAL NOT NULL, finished TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, suite TEXT NOT NULL, settings TEXT NOT NULL, keys TEXT NOT NULL,
    command TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT NOT NULL, started TEXT NOT NULL, finished TEXT
);
"""


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

    Args:
        directory: made if it does not exist.

    Raises:
        DamagedStoreError: if there is a file that cannot be read as results.
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory) / FILE
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._open() as database:
                state = database.execute("PRAGMA quick_check").fetchone()[0]
                if state != "ok":
                    raise sqlite3.DatabaseError(state)
                database.executescript(_SCHEMA)
                database.execute("SELECT key, configuration, status, evaluation FROM cells LIMIT 1")
        except sqlite3.DatabaseError as error:
            raise DamagedStoreError(
                f"{self.path} cannot be read ({error}). It is left as it is: move it away, or choose another "
                f"directory"
            ) from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=60.0)) as database, database:
            yield database

    # -- Cells --------------------------------------------------------------------------------------------

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Keep a cell's outcome, in one transaction."""
        blob = None if outcome.evaluation is None else _pack(outcome.evaluation)
        row = (cell.key, cell.configuration, outcome.status, outcome.message, blob, outcome.seconds, _now())
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def finished(self) -> set[str]:
        """The keys of cells that need no playing: those that failed are tried again."""
        with self._open() as database:
            rows = database.execute("SELECT key FROM cells WHERE status != 'failed'")
            return {key for (key,) in rows}

    def outcome(self, key: str) -> Outcome | None:
        """What became of a cell, if it has been played."""
        query = "SELECT status, evaluation, message, seconds FROM cells WHERE key = ?"
        with self._open() as database:
            row = database.execute(query, (key,)).fetchone()
        if row is None:
            return None
        status, blob, message, seconds = row
        return Outcome(status, None if blob is None else Evaluation(**_unpack(blob)), message, seconds)

    # -- Runs ---------------------------------------------------------------------------------------------

    def begin_run(self, suite: str, settings: Mapping[str, Any], keys: Iterable[str]) -> int:
        """Note that a suite is run: how, on what, and with which cells."""
        facts = (json.dumps(dict(settings), sort_keys=True), json.dumps(list(keys)), " ".join(sys.argv))
        with self._open() as database:
            run = database.execute(
                "INSERT INTO runs (suite, settings, keys, command, machine, versions, started) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (suite, *facts, platform.platform(), json.dumps(_versions()), _now()),
            ).lastrowid
        assert run is not None
        return run

    def end_run(self, run: int) -> None:
        """Note that it has come to its end."""
        with self._open() as database:
            database.execute("UPDATE runs SET finished = ? WHERE id = ?", (_now(), run))

    def runs(self) -> list[dict[str, Any]]:
        """The runs, in order, with their settings."""
        with self._open() as database:
            database.row_factory = sqlite3.Row
            rows = [dict(row) for row in database.execute("SELECT * FROM runs ORDER BY id")]
        for row in rows:
            row |= {name: json.loads(row[name]) for name in ("settings", "keys", "versions")}
        return rows

    # -- Export -------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per episode and checkpoint of every cell that is done."""
        query = "SELECT configuration, evaluation FROM cells WHERE status = 'done' ORDER BY configuration"
        with self._open() as database:
            cells = database.execute(query).fetchall()
        for text, blob in cells:
            configuration, arrays = json.loads(text), _unpack(blob)
            rules = configuration["rules"]
            shared = {
                "learner": configuration["learner"],
                "options": json.dumps(configuration["options"], sort_keys=True),
                "channel": rules["channel"],
                "rules": json.dumps(rules, sort_keys=True),
                "version": configuration["version"],
            }
            kl, tv, rounds = (arrays[name] for name in ("kl", "tv", "rounds"))
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
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                writer.writeheader()
                return sum(1 for row in self.rows() if writer.writerow(row))
        if path.suffix == ".parquet":
            try:
                from pyarrow import Table, parquet
            except ImportError as error:
                raise ImportError("Parquet needs pyarrow: pip install 'ldp-gym[bench]'") from error
            rows = list(self.rows())
            parquet.write_table(Table.from_pylist(rows), path)
            return len(rows)
        raise ValueError(f"an export ends in .csv or .parquet, got {path.name!r}")


def _pack(evaluation: Evaluation) -> bytes:
    buffer = io.BytesIO()
    arrays = {name: array for name, array in asdict(evaluation).items() if array is not None}
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _unpack(blob: bytes) -> dict[str, npt.NDArray[Any]]:
    with np.load(io.BytesIO(blob)) as arrays:
        return dict(arrays)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Of what results depend on; the package's own code goes by its fingerprint too."""
    packages = {name: version(name) for name in ("ldp-gym", "numpy", "scipy", "gymnasium")}
    return {"python": platform.python_version(), **packages, "code": own_code()[:12]}
