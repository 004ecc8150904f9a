"""Names and words of the packages: every name once, plain first lines."""

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = [ROOT / "ldp_gym", ROOT / "agents" / "ldp_agents", ROOT / "benchmarks" / "ldp_bench"]
FILES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
PROGRAMS = sorted(
    path for name in ("benchmarks", "examples", "docs") for path in (ROOT / name).rglob("*.py")
)
SHARED_MODULES = {"base", "__init__", "__main__"}
TREES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in FILES
}
HEADLESS = re.compile(
    r'^ *"""((?:What|Who|How|Whether|Which|Where|So many|So often|Of|Those)\b.*)', re.MULTILINE
)
"""Docstrings whose opening leaves out the noun that they are about."""


def test_no_public_class_function_or_module_has_a_name_twice():
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        if (module := Path(path).stem) not in SHARED_MODULES:
            places[module].append(path)
        for node in tree.body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    for package in (path for root in PACKAGES for path in root.rglob("__init__.py")):
        places[package.parent.name].append(package.parent.relative_to(ROOT).as_posix())
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice, f"a public name stands for one thing: rename one of each pair in {twice}"


def test_docstrings_open_with_a_noun_or_a_verb():
    found = {
        str(path): HEADLESS.findall(path.read_text(encoding="utf-8"))
        for path in [*FILES, *PROGRAMS]
    }
    headless = {name: lines for name, lines in found.items() if lines}
    assert not headless, (
        f"open these docstrings with a noun phrase or an imperative verb: {headless}"
    )
