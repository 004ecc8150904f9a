"""A small SQLite file of one kind, opened with care: what is not of that kind is left as it is."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from ldp_gym.core.errors import DamagedStoreError, WrongStoreError

MEMORY = ":memory:"
"""The path of a file that is gone when it is closed."""

_WAIT = 10.0
"""For how many seconds another process is waited for."""


class Kind(NamedTuple):
    """A kind of file.

    Attributes:
        name: what it is called in errors.
        application_id: the number by which SQLite's header tells it from others.
        schema: the statements that make an empty one.
    """

    name: str
    application_id: int
    schema: Sequence[str]


class Database:
    """A file of one kind. What a transaction has committed survives a kill of the process.

    Args:
        path: where it is; it is made if there is none.
        kind: what it must be.
        durable: whether what was committed survives a loss of power too, at the cost of speed.
        exclusive: whether no other process may use it meanwhile.

    Raises:
        WrongStoreError: if the file is of another kind, or in use.
        DamagedStoreError: if it cannot be read.
    """

    def __init__(
        self, path: str | Path, kind: Kind, *, durable: bool = False, exclusive: bool = False
    ) -> None:
        self.path, self._kind, self._lock = str(path), kind, RLock()
        if not self.path:  # to SQLite that is a file without a name, which is gone with the process
            raise WrongStoreError(f'the {kind.name} needs a path, got ""; "{MEMORY}" keeps nothing')
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise DamagedStoreError(f"the {kind.name} {self.path} cannot be opened: {error}") from error
        weakref.finalize(self, self._connection.close).atexit = False  # whoever forgets to close it
        try:
            self._open(durable, exclusive)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, durable: bool, exclusive: bool) -> None:
        if exclusive:
            self.run("PRAGMA busy_timeout=0")
            self.run("PRAGMA locking_mode=EXCLUSIVE")
        ((tables,),) = self.run("SELECT count(*) FROM sqlite_master")
        ((found,),) = self.run("PRAGMA application_id")
        if tables and found != self._kind.application_id:
            raise WrongStoreError(f"{self.path} is a file of another kind, and no {self._kind.name}")
        ((health,),) = self.run("PRAGMA quick_check(1)")
        if health != "ok":
            raise DamagedStoreError(f"the {self._kind.name} {self.path} is damaged: {health}")
        self.run("PRAGMA journal_mode=WAL")
        self.run(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        with self.transaction():
            for statement in self._kind.schema:
                self.run(statement)
            self.run(f"PRAGMA application_id={self._kind.application_id}")

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            name = f"the {self._kind.name} {self.path}"
            if "closed database" in str(error):
                raise WrongStoreError(f"{name} is closed: open it again") from error
            if "locked" in str(error):
                raise WrongStoreError(f"{name} is in use by another process") from error
            raise DamagedStoreError(f"{name} cannot be used: {error}. It was left as it is") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is run inside happens, or nothing; no other process or thread comes between."""
        with self._lock:
            self.run("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.rollback()
                raise
            self.run("COMMIT")

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
