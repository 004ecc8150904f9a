"""Files that are written as a whole or not at all, and read within limits."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_LARGEST_UNPACKED = 2**28
"""Most bytes that a file of arrays may unpack to: 256 MiB."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Write a file that takes the place of ``path`` once it is complete and on the disk.

    A reader of ``path`` finds the old file or the new one, whole, at any time and after a crash.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     with replacing(Path(directory) / "page.html") as part:
        ...         _ = part.write_text("whole")
        ...     (Path(directory) / "page.html").read_text(), len(os.listdir(directory))
        ('whole', 1)
    """
    path = Path(path)
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as a whole, or leave what there is."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def read_arrays(
    source: str | Path | IO[bytes], most_bytes: int = _LARGEST_UNPACKED
) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a ``.npz`` file without running code or unpacking too much.

    Raises:
        ValueError: if it is damaged, or unpacks to more than ``most_bytes``.
    """
    try:
        with zipfile.ZipFile(source) as packed:
            size = sum(member.file_size for member in packed.infolist())
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise ValueError(f"no zip file: {error}") from error
    if size > most_bytes:
        raise ValueError(f"it unpacks to {size:,} bytes, and at most {most_bytes:,} are read")
    try:
        with np.load(source, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, MemoryError, NotImplementedError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def is_whole_zip(path: Path) -> bool:
    """Tell if a zip file can be read to its end with the right checksums."""
    try:
        with zipfile.ZipFile(path) as packed:
            return packed.testzip() is None
    except (OSError, ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        return False
