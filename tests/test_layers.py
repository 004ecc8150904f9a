"""The layers: the page lists what pyproject.toml demands, and a wrong import breaks the check."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def declared_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return contracts[0]["layers"]


def test_the_page_lists_the_layers_in_their_order():
    page = (ROOT / "docs" / "contributing.md").read_text()
    table = page[page.index("| layer | what it is |") :].split("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.split("\n")[2:]]
    assert rows == [layer.split(" | ") for layer in declared_layers()]


def check_layers(directory):
    import_module("importlinter")  # which the other process needs
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    return subprocess.run([*command, "--no-cache"], cwd=directory, capture_output=True, text=True)


@pytest.mark.parametrize(
    "planted",
    [
        "from ldp_gym.theory import bounds",
        "def lazy():\n    from ldp_gym.bench import store",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from ldp_gym.engine import tape",
        "import ldp_agents",
    ],
)
def test_a_wrong_import_breaks_the_check(planted, tmp_path):
    for name in ("ldp_gym", "agents/ldp_agents"):
        shutil.copytree(ROOT / name, tmp_path / Path(name).name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module = tmp_path / "ldp_gym" / "core" / "divergences.py"
    module.write_text(module.read_text() + f"\n\n{planted}\n")
    outcome = check_layers(tmp_path)
    assert outcome.returncode != 0
    assert "BROKEN" in outcome.stdout


def test_the_code_keeps_its_layers():
    outcome = check_layers(ROOT)
    assert outcome.returncode == 0, outcome.stdout


def test_no_module_is_imported_by_a_string():
    """Layers are about import statements. The registry alone imports by name: entry points and users' own."""
    importers = {
        str(path.relative_to(ROOT))
        for package in ("ldp_gym", "agents")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bimport_module\b|\b__import__\b|\bimport importlib$", path.read_text(), re.MULTILINE)
    }
    assert importers == {"ldp_gym/core/registry.py"}
