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


def test_modules_are_imported_by_a_string_only_where_names_load_lazily():
    """Layers are about import statements: a string would go round them."""
    importers = set()
    for package in ("ldp_gym", "agents", "benchmarks/ldp_bench"):
        for path in (ROOT / package).rglob("*.py"):
            if re.search(r"\b_*import_module\(|\b__import__\(", path.read_text(encoding="utf-8")):
                importers.add(path.relative_to(ROOT).as_posix())
    lazy = {
        "ldp_gym/__init__.py",
        "agents/ldp_agents/rl/__init__.py",
        "benchmarks/ldp_bench/__init__.py",
    }
    users_parts = {"ldp_gym/core/registry.py", "agents/ldp_agents/rl/policies.py"}
    assert importers == lazy | users_parts
