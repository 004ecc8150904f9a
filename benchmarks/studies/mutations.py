"""Change lines of formulas one at a time, and report the changes that no test notices.

Run ``make mutations`` (it forks, so not on Windows). First all tests run once and record which functions they
reach, kept in ``build/reached.json`` until a line changes. Then each change is tried on the tests that reach
its function, those of its room first and the cheapest of them first, until one fails. Everything happens in a
temporary copy, so that a stopped run changes no file. ``--room theory`` chooses rooms, ``--count`` and
``--seed`` the changes, ``--tests tests/ldp_gym/theory`` the tests. A change that no value can show (an
equivalent one) survives too: read the list.
"""

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
UNWRAPPED = ("square", "sqrt", "abs", "accumulate", "cumsum", "sorted", "clip")
"""Functions that a change leaves out."""
SECONDS = 300
"""Time limit of a change; one that makes a test hang is noticed."""
HEAVY = (
    "dp_accounting.pld.privacy_loss_distribution", "gymnasium.utils.env_checker", "joblib", "pandas",
    "matplotlib.pyplot", "pyarrow", "rich", "sb3_contrib", "scipy.optimize", "scipy.stats", "sklearn.svm",
    "stable_baselines3", "typer",
)  # fmt: skip
"""Modules imported once, before the process forks for each change; none of them imports the package."""


@dataclass(frozen=True)
class Change:
    """A piece of a file and its replacement."""

    file: str
    function: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


def variants(node: ast.AST) -> list[ast.expr]:
    """Expressions that differ from a node in one operation, number, order of arguments or left-out part."""
    match node:
        case ast.BinOp(left, ast.Pow(), _):
            return [left]
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return [ast.BinOp(left, SWAPPED[type(op)](), right), left]
        case ast.Compare(left, [op], right) if type(op) in SWAPPED:
            return [ast.Compare(left, [SWAPPED[type(op)]()], right)]
        case ast.BoolOp(op, values):
            return [ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)]
        case ast.IfExp(test, body, other):
            return [ast.IfExp(test, other, body)]
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            return [operand]
        case ast.Constant(value) if type(value) is int:
            return [ast.Constant(value + 1)]
        case ast.Constant(value) if type(value) is float:
            return [ast.Constant(value * 1.1 if value else 1.0)]
        case ast.Call(ast.Attribute(_, name) | ast.Name(name), [argument, *_]) if name in UNWRAPPED:
            return [argument]
        case ast.Call(ast.Attribute(owner, name), arguments, keywords) if name in RENAMED:
            return [ast.Call(ast.Attribute(owner, RENAMED[name]), arguments, keywords)]
        case ast.Call(ast.Name(name), arguments, keywords) if name in RENAMED:
            return [ast.Call(ast.Name(RENAMED[name]), arguments, keywords)]
        case ast.Call(function, [ast.Name() as one, ast.Name() as other, *rest], keywords):
            return [ast.Call(function, [other, one, *rest], keywords)]
    return []


def changes(path: Path) -> list[Change]:
    """All changes of the formulas in a file: in functions, outside of errors, texts and annotations."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Change] = []

    def visit(node: ast.AST, scope: str, inside: bool) -> None:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            return
        if isinstance(node, ast.If) and any(isinstance(part, ast.Raise) for part in node.body):
            return
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                visit(statement, f"{scope}{node.name}.", inside)
            return
        if isinstance(node, ast.FunctionDef):
            if not node.name.startswith("__") or node.name in ("__init__", "__call__"):
                inner = f"{scope}<locals>." if inside else scope
                for statement in node.body:
                    visit(statement, f"{inner}{node.name}.", True)
            return
        if inside:
            for new in variants(node):
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                text = f"({ast.unparse(ast.fix_missing_locations(new))})"
                found.append(
                    Change(str(path.relative_to(ROOT)), scope[:-1], node.lineno, start, end, text)
                )
        if isinstance(
            node, ast.Subscript
        ):  # a number as an index mostly fails, which tells nothing
            visit(node.value, scope, inside)
            return
        for name, child in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for part in child if isinstance(child, list) else [child]:
                    if isinstance(part, ast.AST) and getattr(part, "arg", None) not in (
                        "axis",
                        "ndim",
                    ):
                        visit(part, scope, inside)

    visit(ast.parse(source), "", False)
    return found


RECORDER = """
import json, os, sys, time
from pathlib import Path
import pytest

ROOT, FOUND, FAILED = os.getcwd() + os.sep, {}, set()

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    reached, start = set(), time.process_time()
    def note(frame, event, _):
        if event == "call":
            reached.add(frame.f_code)
    sys.setprofile(note)
    yield
    sys.setprofile(None)
    files = [(code.co_filename.removeprefix(ROOT), code.co_qualname) for code in reached]
    functions = sorted(f"{file}:{name}" for file, name in files if file.startswith(("ldp_gym", "agents")))
    FOUND[item.nodeid] = (time.process_time() - start, functions)

def pytest_runtest_logreport(report):
    if report.outcome != "passed":
        FAILED.add(report.nodeid)

def pytest_sessionfinish(session):
    kept = {name: found for name, found in FOUND.items() if name not in FAILED}
    Path("reached.json").write_text(json.dumps(kept))
"""


def run_tests(tree: Path, arguments: list[str]) -> None:
    """Run tests in a tree, in a process that ends with pytest's exit code."""
    os.chdir(tree)
    sys.path[:0] = [str(tree), str(tree / "agents")]
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    os._exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]))


def passes(tree: Path, arguments: list[str], seconds: float | None = None) -> bool:
    """Tell if tests pass within the time limit, in a fork that has imported all but the package."""
    process = get_context("fork").Process(target=run_tests, args=(tree, arguments))
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode == 0


def reached(tree: Path, places: list[str]) -> dict[str, list[tuple[float, str]]]:
    """Tests that reach each function, as (CPU seconds, test), by file and qualified name."""
    texts = [
        path.read_bytes()
        for part in (*PACKAGES, ROOT / "tests")
        for path in sorted(part.rglob("*.py"))
    ]
    key = hashlib.sha256(b"".join([*texts, *map(str.encode, places)])).hexdigest()
    kept = ROOT / "build" / "reached.json"
    if not kept.exists() or json.loads(kept.read_text()).get("key") != key:
        (tree / "reach_recorder.py").write_text(RECORDER)
        passes(tree, ["-p", "reach_recorder", *places])
        kept.parent.mkdir(exist_ok=True)
        tests = json.loads((tree / "reached.json").read_text())
        kept.write_text(json.dumps({"key": key, "tests": tests}))
    found = defaultdict(list)
    for test, (seconds, functions) in json.loads(kept.read_text())["tests"].items():
        for function in functions:
            found[function].append((seconds, test))
    return found


def chosen_tests(change: Change, reaching: list[tuple[float, str]], most: float) -> list[list[str]]:
    """Tests to run, the cheapest first, ``most`` seconds of them: those of the change's room, then others."""
    room, stem = Path(change.file).parent.name, Path(change.file).stem
    own = (f"test_{stem}.py" if room == "ldp_gym" else f"/{room}/", change.file)
    near = [test for test in sorted(reaching) if any(part in test[1] for part in own)]
    groups, total = [], 0.0
    for group in (near, [test for test in sorted(reaching) if test not in near]):
        groups.append([])
        for seconds, name in group:
            total += seconds
            if total <= most:
                groups[-1].append(name)
    return [group for group in groups if group]


def fates(
    chosen: list[Change], tree: Path, tests: dict, most: float
) -> Iterator[tuple[Change, str]]:
    """Fate of each change: "noticed", "survived", or "unreached"."""
    for change in chosen:
        groups = chosen_tests(change, tests.get(f"{change.file}:{change.function}", []), most)
        if not groups:
            yield change, "unreached"
            continue
        if change is chosen[0] and not passes(tree, ["-x", *groups[0][:9]]):
            raise RuntimeError(f"{groups[0][:9]} do not pass in an unchanged copy")
        original = (tree / change.file).read_bytes()
        (tree / change.file).write_bytes(change.apply(original))
        unnoticed = all(passes(tree, ["-x", *names], SECONDS) for names in groups)
        yield change, "survived" if unnoticed else "noticed"
        (tree / change.file).write_bytes(original)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=120, help="number of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--room", action="append", help="part of a path, such as theory; all by default"
    )
    parser.add_argument("--most", type=float, default=60.0, help="CPU seconds of tests per change")
    parser.add_argument(
        "--tests", action="append", default=[], help="file or folder of tests; all by default"
    )
    arguments = parser.parse_args()
    files = [path for package in PACKAGES for path in sorted(package.rglob("*.py"))]
    files = [
        path for path in files if not any(part in path.as_posix() for part in WITHOUT_FORMULAS)
    ]
    if arguments.room:
        files = [path for path in files if any(room in path.as_posix() for room in arguments.room)]
    every = [change for path in files for change in changes(path)]
    chosen = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the copy is removed
    for module in HEAVY:
        __import__(module)
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns(".venv*", ".git", "build", "ldp-gym-results", ".*_cache")
        tree = Path(shutil.copytree(ROOT, Path(folder).resolve() / "tree", ignore=ignored))
        tests = reached(tree, arguments.tests)
        for change, fate in fates(chosen, tree, tests, arguments.most):
            room = "/".join(Path(change.file).parts[:-1][-2:])
            counts[room, fate] += 1
            if fate != "noticed":
                old = (ROOT / change.file).read_bytes()[change.start : change.end].decode()
                print(
                    f"{fate}: {change.file}:{change.line} {change.function}: {old} -> {change.new}",
                    flush=True,
                )
    print(f"\n{'room':24}{'changed':>9}{'noticed':>9}{'survived':>9}{'unreached':>10}")
    for room in sorted({room for room, _ in counts}):
        numbers = [counts[room, fate] for fate in ("noticed", "survived", "unreached")]
        print(f"{room:24}{sum(numbers):9}{numbers[0]:9}{numbers[1]:9}{numbers[2]:10}")
    print(f"{sum(os.times()[:4]) / 60:.0f} CPU minutes")


if __name__ == "__main__":
    main()
