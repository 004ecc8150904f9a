"""Fingerprints of the code that a result depends on: hashes that change when the code does."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ldp_gym.core.registry import PACKAGES, Registry
from ldp_gym.engine.learners import LEARNERS, is_directory

_PLAYING_PACKAGES = ("ldp_gym", "ldp_agents")
"""Packages of this distribution that results depend on."""

_WITHOUT_EFFECT = Path("envs", "rendering")
"""Folder of a package that results do not depend on."""


@cache  # imported code is fixed
def own_code() -> str:
    """Fingerprint of the packages that play, and of the weights that come with them.

    Comments, docstrings and the layout of the source do not change it.
    """
    digest = hashlib.sha256()
    for package in _PLAYING_PACKAGES:
        for folder in _places(package):
            for path in sorted(folder.rglob("*")):
                name = path.relative_to(folder)
                has_effect = path.suffix != ".pyc" and _WITHOUT_EFFECT not in name.parents
                if path.is_file() and has_effect:
                    digest.update(f"{package}/{name.as_posix()}\n".encode())
                    digest.update(_content(path))
    return digest.hexdigest()


def learner_code(learner: str) -> str:
    """Fingerprint of a learner's package (without importing it), or of a trained model's files."""
    if is_directory(learner):
        not_hidden = [path for path in Path(learner).iterdir() if not path.name.startswith(".")]
        return _files_hash(not_hidden)
    return part_code(LEARNERS, learner)


def part_code(registry: Registry[Any], name: str) -> str:
    """Fingerprint of the package that defines the part of this name."""
    package = registry.package_of(name)
    if package in PACKAGES:
        return own_code()
    try:
        return _files_hash(_source_files(package))
    except (ImportError, ValueError) as error:
        raise ValueError(f"cannot import {registry.kind} {name!r}: {error}") from error


def fingerprint(content: bytes) -> str:
    """SHA-256 hash of bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _content(path: Path) -> bytes:
    """Bytes of a file; of a Python module, its statements without comments, docstrings and layout."""
    content = path.read_bytes()
    if path.suffix == ".py":
        return "\n".join(_statements(ast.parse(content))).encode()
    return content


def _statements(node: Any) -> Iterator[str]:
    """Yield words that describe a piece of syntax, without docstrings, comments and line numbers.

    Args:
        node: node of a syntax tree, a list of nodes, or the value of a field, such as a name.

    Empty fields are left out, as some versions of Python have more of them.
    """
    if isinstance(node, list):
        for item in node:
            if not _is_docstring(item):
                yield from _statements(item)
        yield "end"
    elif isinstance(node, ast.AST):
        yield type(node).__name__
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != []:
                yield name
                yield from _statements(value)
    else:
        yield repr(node)


def _is_docstring(node: object) -> bool:
    """Tell if a statement is a string and nothing else."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _source_files(package: str) -> Iterator[Path]:
    """Yield the Python files of a package, or the file of a module."""
    for place in _places(package):
        yield place
        yield from place.rglob("*.py")


def _places(package: str) -> list[Path]:
    """A package's folders, or the file of a module."""
    spec = find_spec(package)
    if spec is None:
        raise ImportError(f"No module named {package!r}")
    return [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]


def _files_hash(paths: Iterable[Path]) -> str:
    """Fingerprint of the contents of all files, in the order of their names; folders are left out."""
    files = sorted(path for path in paths if path.is_file())
    return fingerprint(b"".join(path.read_bytes() for path in files))
