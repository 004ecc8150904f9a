"""Files that are written as a whole or not at all, and the versions that are noted in them."""

from __future__ import annotations

import os
import platform
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

DIRECTORY = Path("ldp-gym-results")
"""Default directory of results and of trained models."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Write a file that takes the place of ``path`` once it is complete and on the disk.

    A reader of ``path`` finds the old file or the new one, whole, at any time and after a crash. An OSError,
    as on a full disk, names ``path``.
    """
    path = Path(path)
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        yield part
        with part.open("r+b") as written:  # Windows syncs only files that are open for writing
            os.fsync(written.fileno())
        os.replace(part, path)
    except OSError as error:
        if error.errno is None or (error.filename is not None and Path(error.filename) != part):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as a whole, or leave what there is."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def read_arrays(source: str | Path | IO[bytes]) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a ``.npz`` file without running code; a damaged file is a ValueError."""
    try:
        with np.load(source, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
