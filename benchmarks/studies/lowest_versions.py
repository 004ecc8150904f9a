"""The lowest versions that pyproject.toml admits, as constraints for pip: `make lowest` tests with them.

PyTorch's version is in constraints.txt; tools that only developers use are not constrained.
"""

import re
import tomllib
from pathlib import Path

TOOLS = {"docs", "dev", "all"}


def main() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    used = [package for name, packages in extras if name not in TOOLS for package in packages]
    floors = {
        name: version
        for requirement in (*project["dependencies"], *used)
        for name, version in re.findall(r"^([\w-]+)>=([\w.]+)", requirement)
        if name != "torch"
    }
    for name, version in sorted(floors.items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
