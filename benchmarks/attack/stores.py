"""Damaged stores: each must be reported, left as it is, and lose nothing but what is damaged."""

from __future__ import annotations

import json
import pickle
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from attack.tiny import play

from ldp_gym.bench import Store
from ldp_gym.bench.sections import EVERYTHING, gather
from ldp_gym.core.errors import DamagedStoreError

Damage = Callable[[Path], None]


def run(rng: np.random.Generator, count: int = 60) -> tuple[int, list[str]]:
    """Damage a store in so many ways, drawn by ``rng``; how many were tried, and those that fell."""
    fallen = []
    with tempfile.TemporaryDirectory() as directory:
        expected = play(Path(directory) / "whole")
        whole = (Path(directory) / "whole" / "results.sqlite").read_bytes()
        ways = [*_edits(), *_cuts(rng, 8), *_flips(rng, count)]
        damages = [ways[i] for i in sorted(rng.permutation(len(ways))[:count])]
        for number, (name, damage) in enumerate(damages):
            place = Path(directory) / str(number)
            place.mkdir()
            (place / "results.sqlite").write_bytes(whole)
            damage(place / "results.sqlite")
            try:
                fault = _fault(place, expected)
            except Exception as error:
                fault = f"{type(error).__name__}: {error}"
            if fault:
                fallen.append(f"{name}: {fault}")
    return len(damages), fallen


def _fault(place: Path, expected: list[dict[str, object]]) -> str | None:
    """What is wrong with how a damaged store is treated."""
    path = place / "results.sqlite"
    before = path.read_bytes()
    try:
        store = Store(place, read_only=True)
        runs = store.runs()
        for name in {run["suite"] for run in runs}:
            gather(store, name, runs, EVERYTHING)
        store.export(place / "rows.csv")
        rows = list(store.rows())
    except DamagedStoreError as error:
        if "left as it is" not in str(error):
            return f"it is not said what to do: {error}"
        return None if path.read_bytes() == before else "the file was changed"
    except OSError as error:  # what SQLite cannot open
        return None if str(path) in str(error) and path.read_bytes() == before else f"an OSError: {error}"
    if path.read_bytes() != before:
        return "reading changed the file"
    if not store.faults and (rows != expected or not runs):
        return "rows are missing or changed, and nobody says so"
    if any(row not in expected for row in rows):
        return "rows are changed"
    try:
        again = play(place)
    except DamagedStoreError:  # what writing finds, and reading did not
        return None
    if again != expected:
        return "the cells that were damaged are not played again"
    return None


# -- Ways to damage it ------------------------------------------------------------------------------------


def _edits() -> Iterator[tuple[str, Damage]]:
    cell = "(SELECT key FROM cells ORDER BY key LIMIT 1)"
    texts = {
        "a blob that is NULL": f"UPDATE cells SET evaluation = NULL WHERE key = {cell}",
        "an empty blob": f"UPDATE cells SET evaluation = x'' WHERE key = {cell}",
        "a blob of text": f"UPDATE cells SET evaluation = 'none' WHERE key = {cell}",
        "a number as a blob": f"UPDATE cells SET evaluation = 3 WHERE key = {cell}",
        "half a blob": f"UPDATE cells SET evaluation = substr(evaluation, 1, length(evaluation) / 2)"
        f" WHERE key = {cell}",
        "all blobs NULL": "UPDATE cells SET evaluation = NULL",
        "an unknown status": f"UPDATE cells SET status = 'maybe' WHERE key = {cell}",
        "a status that is no UTF-8": f"UPDATE cells SET status = CAST(x'ff64' AS TEXT) WHERE key = {cell}",
        "failed with results": f"UPDATE cells SET status = 'incompatible' WHERE key = {cell}",
        "text for seconds": f"UPDATE cells SET seconds = 'long' WHERE key = {cell}",
        "a blob for a message": f"UPDATE cells SET message = x'00ff' WHERE key = {cell}",
        "an edited configuration": f"UPDATE cells SET configuration = replace(configuration, '400', '401')"
        f" WHERE key = {cell}",
        "a broken configuration": f"UPDATE cells SET configuration = '{{' WHERE key = {cell}",
        "another key": f"UPDATE cells SET key = 'abc' WHERE key = {cell}",
        "broken settings": "UPDATE runs SET settings = '{'",
        "settings of another kind": "UPDATE runs SET settings = '[1]'",
        "settings without a seed": "UPDATE runs SET settings = json_remove(settings, '$.seed')",
        "a seed of text": "UPDATE runs SET settings = json_set(settings, '$.seed', 'x')",
        "learners that are no list": "UPDATE runs SET settings = json_set(settings, '$.learners', 3)",
        "channels of numbers": "UPDATE runs SET settings = json_set(settings, '$.channels', json('[1]'))",
        "deep settings": f"UPDATE runs SET settings = '{'[' * 5000}'",
        "broken keys": "UPDATE runs SET keys = 'none'",
        "versions of another kind": "UPDATE runs SET versions = '3'",
        "a machine that is a blob": "UPDATE runs SET machine = x'ff'",
        "a start that is a number": "UPDATE runs SET started = x'00'",
        "a suite that is a blob": "UPDATE runs SET suite = x'00'",
        "no table of cells": "DROP TABLE cells",
        "no table of runs": "DROP TABLE runs",
        **{
            f"no column {column}": f"ALTER TABLE {table} DROP COLUMN {column}"
            for table, column in (
                ("cells", "evaluation"), ("cells", "seconds"), ("cells", "message"), ("runs", "settings"),
                ("runs", "versions"), ("runs", "started"),
            )
        },
    }  # fmt: skip
    for name, text in texts.items():
        yield name, partial(_execute, text=text)
    for make_blob in (_bomb, _other_arrays, _objects, _pickle, _json):
        yield make_blob.__name__[1:].replace("_", " "), partial(_put, make_blob=make_blob)
    yield "no bytes", partial(_overwrite, content=b"")
    yield "a thesis", partial(_overwrite, content=b"my thesis")


def _overwrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _execute(path: Path, text: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(text)


def _put(path: Path, make_blob: Callable[[], bytes]) -> None:
    blob = make_blob()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE cells SET evaluation = ? WHERE key = (SELECT min(key) FROM cells)", (blob,))


def _bomb() -> bytes:
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("kl.npy", "w") as member:
        for _ in range(1100):
            member.write(bytes(2**20))
    return bomb.getvalue()


def _other_arrays() -> bytes:
    other = BytesIO()
    np.savez(other, kl=np.zeros(3), tv=np.zeros((2, 2)), rounds=np.array(["a"]), comparator=np.zeros(1))
    return other.getvalue()


def _objects() -> bytes:
    objects = BytesIO()
    np.savez(objects, kl=np.array([None]), tv=np.zeros(1), rounds=np.zeros(1), comparator=np.zeros(1))
    return objects.getvalue()


def _pickle() -> bytes:
    return pickle.dumps({"kl": 1})


def _json() -> bytes:
    return json.dumps({"kl": [1]}).encode()


def _cuts(rng: np.random.Generator, count: int) -> Iterator[tuple[str, Damage]]:
    for share in (0.99, 0.999, 0.5, *rng.uniform(0.01, 0.99, count - 3)):
        yield f"cut at {share:.1%}", partial(_cut, share=share)


def _cut(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def _flips(rng: np.random.Generator, count: int) -> Iterator[tuple[str, Damage]]:
    for _ in range(count):
        yield "flipped bits", partial(_flip, seed=int(rng.integers(2**32)))


def _flip(path: Path, seed: int) -> None:
    rng, content = np.random.default_rng(seed), bytearray(path.read_bytes())
    for place in rng.integers(len(content), size=int(rng.integers(1, 40))):
        content[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
