"""Files that are written as a whole or not at all, arrays with a checksum, and versions of packages."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

DIRECTORY = Path("ldp-gym-results")
"""Default directory of results and of trained models."""

_FIRST_LINE = b"ldp-gym arrays 1\n"
"""First line of packed arrays; another format gets another number."""

_DIGEST_LENGTH = 64
"""Length of the second line of packed arrays: a SHA-256 hash of what follows, in hexadecimal digits."""

_DTYPES = ("<f8", "<f4", "<i8", "|b1", "|u1")
"""Types of numbers that packed arrays may have."""


# -- Writing ------------------------------------------------------------------------------------------------


def before_file_operation(operation: str) -> None:
    """Do nothing. Called before each change on the disk, so that a test can end the process there.

    Args:
        operation: the change to come, such as "replace".
    """


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Write a file that takes the place of ``path`` once it is complete and on the disk.

    The new file has a random name until then. Whoever reads ``path`` finds the old file or the new one,
    whole, at any time, after a crash, and with several writers. An OSError, as on a full disk, names
    ``path``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "a.txt")) as part:
        ...         _ = part.write_text("whole")
        ...     Path(folder, "a.txt").read_text()
        'whole'
    """
    path = Path(path)
    part = path.with_name(f".part-{secrets.token_hex(8)}{path.suffix}")
    is_ours = False  # another's file of that name is not removed
    try:
        _create(part)
        is_ours = True
        yield part
        before_file_operation("sync")
        _sync(part)
        before_file_operation("replace")
        os.replace(part, path)
    except OSError as error:
        is_about_other_file = error.filename is not None and Path(error.filename) != part
        if error.errno is None or is_about_other_file:
            raise
        # The user knows `path`, not the random name.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if is_ours:
            part.unlink(missing_ok=True)


def _create(path: Path) -> None:
    """Create an empty file; a file or a link of that name is an error."""
    before_file_operation("create")
    created = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    os.close(created)


def _sync(path: Path) -> None:
    """Wait until a file is on the disk."""
    with path.open("r+b") as written:  # Windows syncs only files that are open for writing
        os.fsync(written.fileno())


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as a whole, or leave what there is."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file as a whole, or leave what there is."""
    with replacing(path) as part:
        part.write_bytes(content)


# -- Arrays -------------------------------------------------------------------------------------------------


class Packed(NamedTuple):
    """Arrays by name, and a note about them in JSON's types."""

    arrays: dict[str, npt.NDArray[Any]]
    note: dict[str, Any]


def pack_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], note: Mapping[str, Any] | None = None
) -> bytes:
    """Pack arrays, and a note, into bytes.

    The first line names the format, the second one has a checksum of what follows: a line of JSON with the
    note and each array's name, type and shape, then the numbers.

    Example:
        >>> packed = pack_arrays({"kl": np.array([0.5, 1.0])}, {"learner": "bayes"})
        >>> unpack_arrays(packed)
        Packed(arrays={'kl': array([0.5, 1. ])}, note={'learner': 'bayes'})
    """
    described = []
    numbers = []
    for name, array in arrays.items():
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        dtype = little_endian.dtype.str
        if dtype not in _DTYPES:
            raise TypeError(f"array {name!r} cannot be stored: its type is {array.dtype}")
        described.append({"name": name, "dtype": dtype, "shape": list(array.shape)})
        numbers.append(little_endian.tobytes())

    header = json.dumps({"arrays": described, "note": dict(note or {})}, allow_nan=False)
    content = b"\n".join([header.encode("ascii"), b"".join(numbers)])
    digest = hashlib.sha256(content).hexdigest().encode("ascii")
    return _FIRST_LINE + digest + b"\n" + content


def unpack_arrays(packed: bytes) -> Packed:
    """Arrays, and the note, that :func:`pack_arrays` has packed.

    Nothing in the bytes is run, and the arrays take no more memory than the bytes.

    Raises:
        ValueError: if a single bit has changed, or if this is something else.
    """
    start = len(_FIRST_LINE) + _DIGEST_LENGTH + 1
    if len(packed) < start or not packed.startswith(_FIRST_LINE):
        raise ValueError("it does not hold arrays of this format")
    content = packed[start:]
    digest = hashlib.sha256(content).hexdigest().encode("ascii")
    if packed[len(_FIRST_LINE) : start] != digest + b"\n":
        raise ValueError("its checksum is wrong: it is damaged")

    header, _, numbers = content.partition(b"\n")
    try:
        described = json.loads(header)
        arrays = _arrays_of(described["arrays"], numbers)
        return Packed(arrays, dict(described["note"]))
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"its header does not describe arrays: {error}") from error


def _arrays_of(described: list[dict[str, Any]], numbers: bytes) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name, from their descriptions and the bytes of their numbers, one after the other."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for description in described:
        name = description["name"]
        if description["dtype"] not in _DTYPES:
            raise ValueError(f"array {name!r} has the type {description['dtype']!r}")
        dtype = np.dtype(description["dtype"])
        shape = tuple(description["shape"])
        if any(type(size) is not int or size < 0 for size in shape):  # True is an int too
            raise ValueError(f"array {name!r} has the shape {shape}")

        end = start + math.prod(shape) * dtype.itemsize
        if end > len(numbers):
            raise ValueError(f"array {name!r} is longer than the file")
        read_only = np.frombuffer(numbers[start:end], dtype).reshape(shape)
        arrays[str(name)] = read_only.copy()
        start = end
    if start != len(numbers):
        raise ValueError(f"{len(numbers) - start} bytes belong to no array")
    return arrays


# -- Versions -----------------------------------------------------------------------------------------------


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    installed = {"python": platform.python_version()}
    for package in packages:
        with suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
