"""Change lines of formulas one at a time, and report the changes that no test notices.

Run ``make mutations``. First all tests run once and record which functions they reach, kept in
``build/reached.json`` for this commit. Then each change is tried, in a copy of the tree, on the tests that
reach its function. ``--room theory`` chooses rooms, ``--count`` and ``--seed`` the changes. A change that no
value can show (an equivalent one) survives too: read the list.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (ROOT / "ldp_gym", ROOT / "agents" / "ldp_agents")
WITHOUT_FORMULAS = (
    "/cli/", "/rendering/", "/suites/", "report.py", "figures.py", "tables.py", "contained.py", "store.py",
    "storage.py", "runner.py", "experiment.py", "registry.py", "validation.py", "errors.py", "datasets.py",
    "processes.py", "commands.py", "vec_env.py",
)  # fmt: skip
"""Parts of the paths of files that hold no formula."""
SWAPPED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.Gt, ast.GtE: ast.Lt,
}  # fmt: skip
RENAMED = {
    "maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "argmax": "argmin",
    "argmin": "argmax", "any": "all", "all": "any", "log1p": "log", "expm1": "exp", "ceil": "floor",
    "floor": "ceil", "sinh": "cosh", "tanh": "sinh",
}  # fmt: skip
SECONDS = 300
"""Time limit of a change; one that makes a test hang is noticed."""


@dataclass(frozen=True)
class Change:
    """A piece of a file and its replacement."""

    file: str
    function: tuple[str, int]
    line: int
    start: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


def variants(node: ast.AST) -> list[ast.expr]:
    """Expressions that differ from a node in one operation or number."""
    match node:
        case ast.BinOp(left, ast.Pow(), _):
            return [left]
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return [ast.BinOp(left, SWAPPED[type(op)](), right)]
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            return [ast.Compare(left, [SWAPPED[type(op)]()], right)]
        case ast.UnaryOp(ast.USub(), operand):
            return [operand]
        case ast.Constant(value) if type(value) is int:
            return [ast.Constant(value + 1)]
        case ast.Constant(value) if type(value) is float:
            return [ast.Constant(value * 1.1 if value else 1.0)]
        case ast.Call(ast.Attribute(_, "square"), [argument]):
            return [argument]
        case ast.Call(ast.Attribute(owner, name), arguments, keywords) if name in RENAMED:
            return [ast.Call(ast.Attribute(owner, RENAMED[name]), arguments, keywords)]
        case ast.Call(ast.Name(name), arguments, keywords) if name in RENAMED:
            return [ast.Call(ast.Name(RENAMED[name]), arguments, keywords)]
    return []


def changes(path: Path) -> list[Change]:
    """All changes of the formulas in a file: in functions, outside of errors, texts and annotations."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Change] = []

    def visit(node: ast.AST, function: tuple[str, int] | None) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.Subscript):
            return
        if isinstance(node, ast.If) and any(isinstance(part, ast.Raise) for part in node.body):
            return
        if isinstance(node, ast.FunctionDef):
            if node.name.startswith("__") and node.name != "__call__":
                return
            function = (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)]))
            for statement in node.body:
                visit(statement, function)
            return
        if function is not None:
            for new in variants(node):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                text = f"({ast.unparse(ast.fix_missing_locations(new))})"
                found.append(Change(str(path.relative_to(ROOT)), function, node.lineno, start, end, text))
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list", "axis"):
                for part in child if isinstance(child, list) else [child]:
                    if isinstance(part, ast.AST) and not (
                        isinstance(part, ast.keyword) and part.arg == "axis"
                    ):
                        visit(part, function)

    visit(ast.parse(source), None)
    return found


RECORDER = """
import json, os, sys, time
from pathlib import Path
import pytest

ROOT, FOUND = os.environ["LDP_GYM_ROOT"], {}

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    reached, start = set(), time.process_time()
    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            reached.add(f"{frame.f_code.co_filename[len(ROOT) + 1:]}:{frame.f_code.co_firstlineno}")
    sys.setprofile(note)
    yield
    sys.setprofile(None)
    functions = sorted(name for name in reached if not name.startswith("tests"))
    FOUND[item.nodeid] = (time.process_time() - start, functions)

def pytest_sessionfinish(session):
    if FOUND:
        Path(os.environ["LDP_GYM_REACHED"], f"{os.getpid()}.json").write_text(json.dumps(FOUND))
"""


def run_pytest(tree: Path, arguments: list[str], seconds: float | None = None, **variables: str) -> bool:
    """Run tests in a tree; True if all pass within the time limit."""
    paths = os.pathsep.join(str(tree / place) for place in (".", "agents", "build"))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def reached(jobs: int) -> dict[str, list[tuple[float, str]]]:
    """Tests that reach each function, as (CPU seconds, test), by ``file:line`` of the function."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kept = ROOT / "build" / "reached.json"
    if not kept.exists() or json.loads(kept.read_text())["commit"] != commit.stdout:
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / "build").mkdir(exist_ok=True)
            (ROOT / "build" / "reach_recorder.py").write_text(RECORDER)
            variables = {"LDP_GYM_ROOT": str(ROOT), "LDP_GYM_REACHED": folder}
            run_pytest(ROOT, ["-p", "reach_recorder", "-n", str(jobs), "--dist", "loadscope"], **variables)
            tests = {
                k: v for file in Path(folder).glob("*.json") for k, v in json.loads(file.read_text()).items()
            }
        kept.write_text(json.dumps({"commit": commit.stdout, "tests": tests}))
    found = defaultdict(list)
    for test, (seconds, functions) in json.loads(kept.read_text())["tests"].items():
        for function in functions:
            found[function].append((seconds, test))
    return found


def try_change(change: Change, trees: Queue, tests: list[tuple[float, str]]) -> str:
    """Fate of a change: "noticed", "survived", or "unreached"."""
    if not tests:
        return "unreached"
    tree = trees.get()
    try:
        original = (ROOT / change.file).read_bytes()
        (tree / change.file).write_bytes(change.apply(original))
        module = [f"{change.file}"] if (ROOT / change.file).read_text().count(">>>") else []
        names = [name for _, name in sorted(tests) if not name.startswith(change.file)]
        mirrored = Path(change.file).parent.name
        names.sort(key=lambda name: f"/{mirrored}/" not in name)
        passed = run_pytest(tree, ["-x", *module, *names], seconds=SECONDS)
        (tree / change.file).write_bytes(original)
        return "survived" if passed else "noticed"
    finally:
        trees.put(tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=120, help="number of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", action="append", help="part of a path, such as theory; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--longest", type=float, default=20.0, help="leave out tests of more CPU seconds")
    arguments = parser.parse_args()
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    files = [path for path in files if not any(part in path.as_posix() for part in WITHOUT_FORMULAS)]
    if arguments.room:
        files = [path for path in files if any(room in path.as_posix() for room in arguments.room)]
    every = [change for path in files for change in changes(path)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    tests = reached(arguments.jobs)
    fates: Counter[tuple[str, str]] = Counter()
    trees: Queue = Queue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        ignored = shutil.ignore_patterns(
            ".venv*", ".git", "build", "ldp-gym-results", "__pycache__", ".*_cache"
        )
        for number in range(arguments.jobs):
            trees.put(Path(shutil.copytree(ROOT, Path(folder) / str(number), ignore=ignored)))

        def run(change: Change) -> tuple[Change, str]:
            reaching = tests[f"{change.file}:{change.function[1]}"]
            short = [test for test in reaching if test[0] <= arguments.longest]
            return change, try_change(change, trees, short)

        for change, fate in pool.map(run, chosen):
            room = "/".join(Path(change.file).parts[:-1][-2:])
            fates[room, fate] += 1
            if fate != "noticed":
                old = (ROOT / change.file).read_bytes()[change.start : change.end].decode()
                print(
                    f"{fate}: {change.file}:{change.line} {change.function[0]}: {old} -> {change.new}",
                    flush=True,
                )
    print(f"\n{'room':24}{'changed':>9}{'noticed':>9}{'survived':>9}{'unreached':>10}")
    for room in sorted({room for room, _ in fates}):
        numbers = [fates[room, fate] for fate in ("noticed", "survived", "unreached")]
        print(f"{room:24}{sum(numbers):9}{numbers[0]:9}{numbers[1]:9}{numbers[2]:10}")


if __name__ == "__main__":
    main()
