"""The layers, which `make layers` checks: the page lists what pyproject.toml demands."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_page_lists_the_layers_in_their_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    page = (ROOT / "docs" / "contributing.md").read_text()
    table = page[page.index("| layer | what it is |") :].split("\n\n")[0]
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.split("\n")[2:]]
    assert rows == [layer.split(" | ") for layer in contracts[0]["layers"]]


def test_no_module_is_imported_by_a_string():
    """Layers are about import statements. Only the registry, and the policies of RL, import by name."""
    importers = {
        str(path.relative_to(ROOT))
        for package in ("ldp_gym", "agents", "benchmarks/ldp_bench")
        for path in (ROOT / package).rglob("*.py")
        if re.search(
            r"\bimport_module\b|\b__import__\b|\bimport importlib$", path.read_text(), re.MULTILINE
        )
    }
    assert importers == {
        "ldp_gym/core/registry.py",
        "agents/ldp_agents/rl/policies.py",
        "agents/ldp_agents/rl/__init__.py",
    }
