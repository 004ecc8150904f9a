"""`make lines`: lines of code, docstrings and blanks per room, of one git revision or of two side by side."""

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from pathlib import PurePath

COLUMNS = ("files", "code", "docstrings", "blank", "lines")


def count(source: str) -> Counter[str]:
    """Lines of a file by kind; comments count as code."""
    kinds, docstrings = Counter(files=1, lines=len(source.splitlines())), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            docstrings |= set(range(node.lineno, node.end_lineno + 1))
    for number, line in enumerate(source.splitlines(), start=1):
        kinds["docstrings" if number in docstrings else "code" if line.strip() else "blank"] += 1
    return kinds


def rooms(revision: str) -> Counter[tuple[str, str]]:
    """Lines of every room and kind in a git revision."""
    archive = subprocess.run(["git", "archive", revision], capture_output=True, check=True).stdout
    total: Counter[tuple[str, str]] = Counter()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in (member for member in files if member.name.endswith(".py")):
            parts = PurePath(member.name).parts
            room = "/".join(parts[:-1][: {"ldp_gym": 2, "agents": 3}.get(parts[0], 1)]) or "(root)"
            lines = count(files.extractfile(member).read().decode())
            sums = (room, "SUM OF PACKAGES") if parts[0] in ("ldp_gym", "agents") else (room,)
            total += Counter({(name, kind): number for name in sums for kind, number in lines.items()})
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD")
    parser.add_argument("--against", metavar="REV", help="an earlier revision, in the same table")
    arguments = parser.parse_args()
    tables = [rooms(revision) for revision in (arguments.against, arguments.revision) if revision]
    print(" " * 22 + "".join(f"{name:>11}" for name in COLUMNS * len(tables)))
    for name in sorted({room for table in tables for room, _ in table}):
        print(f"{name:22}" + "".join(f"{table[name, kind]:11,}" for table in tables for kind in COLUMNS))
