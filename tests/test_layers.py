"""The layers: the page lists what pyproject.toml demands, and a wrong import breaks the check."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_lists_the_layers_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    page = (ROOT / "docs" / "contributing.md").read_text()
    table = page[page.index("| layer | what it is |") :].split("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.split("\n")[2:]]
    assert rows == [layer.split(" | ") for layer in contracts[0]["layers"]]


def check_layers(directory):
    import_module("importlinter")  # which the other process needs
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    return subprocess.run([*command, "--no-cache"], cwd=directory, capture_output=True, text=True)


def test_the_code_keeps_its_layers():
    outcome = check_layers(ROOT)
    assert outcome.returncode == 0, outcome.stdout


PLANTED = """
from typing import TYPE_CHECKING
import ldp_agents
from ldp_gym.theory import bounds
def lazy():
    from ldp_gym.bench import store
if TYPE_CHECKING:
    from ldp_gym.engine import tape
"""


def test_wrong_imports_break_the_check(tmp_path):
    for name in ("ldp_gym", "agents/ldp_agents"):
        shutil.copytree(ROOT / name, tmp_path / Path(name).name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / "ldp_gym" / "core" / "divergences.py").open("a") as module:
        module.write(PLANTED)
    outcome = check_layers(tmp_path)
    assert outcome.returncode != 0
    for imported in ("ldp_gym.theory.bounds", "ldp_gym.bench.store", "ldp_gym.engine.tape", "ldp_agents"):
        assert re.search(rf"ldp_gym.core.divergences -> {imported} \(l", outcome.stdout), imported


def test_no_module_is_imported_by_a_string():
    """Layers are about import statements. Only the registry, and the policies of RL, import by name."""
    importers = {
        str(path.relative_to(ROOT))
        for package in ("ldp_gym", "agents")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"\bimport_module\b|\b__import__\b|\bimport importlib$", path.read_text(), re.MULTILINE)
    }
    assert importers == {"ldp_gym/core/registry.py", "agents/ldp_agents/rl/policies.py"}
