"""Every exception of the packages stands in one module, and is also of a kind that callers know."""

import ast
from pathlib import Path

import ldp_gym

PACKAGES = [Path(ldp_gym.__file__).parent, Path(ldp_gym.__file__).parents[1] / "agents" / "ldp_agents"]


def exceptions_of(module):
    """The classes of a source file that are exceptions by the names of their bases."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            raised = any(base.endswith(("Error", "Warning", "Exception")) for base in bases)
            if raised and not node.name.startswith("_"):
                yield node.name


def test_exceptions_are_defined_in_one_place():
    found = {name: path for root in PACKAGES for path in root.rglob("*.py") for name in exceptions_of(path)}
    assert len(found) >= 4
    assert {path.name for path in found.values()} == {"errors.py"}, found
