"""Write the floors under the risk on disjoint supports that the package ships: ldp_gym/theory/floors.json.

python benchmarks/floors.py      # about ten minutes
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

import ldp_gym.theory.disjoint as disjoint

EPSILONS = (4.0, 2.0, 1.0, 0.5)
MOST_ROUNDS = 1000
NUM_ROUNDS = 48
"""Number of horizons that a table has."""


def main() -> None:
    """Work out every table, rounded down to six decimals, and write them after each."""
    path = Path(disjoint.__file__).with_name("floors.json")
    tables: dict[str, dict[str, list[list[float]]]] = {}
    for epsilon in EPSILONS:
        of_epsilon = tables.setdefault(f"{epsilon:g}", {})
        for size, depth in disjoint.DEPTHS.items():
            deep = min(depth + 1, math.ceil(16.0 / epsilon))
            floors = disjoint.disjoint_floors(size, epsilon, deep, MOST_ROUNDS)
            rounds = np.unique(np.geomspace(1, len(floors), NUM_ROUNDS).round().astype(int))
            kept = np.floor(floors[rounds - 1] * 1e6) / 1e6
            of_epsilon[str(size)] = [rounds.tolist(), kept.round(6).tolist()]
            print(epsilon, size, len(floors), floors[-1], flush=True)
    path.write_text(json.dumps(tables, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
