"""Attack the package: wrong calls, kills, damaged stores and hostile code, from a seed. ``make attack``.

Prints how many of each were tried and held, and those that fell; exit status 1 if one did.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack import calls, hostile_code, kills, stores

ATTACKS: dict[str, Callable[[np.random.Generator], tuple[int, list[Any]]]] = {
    "wrong calls": calls.run,
    "kills": kills.run,
    "damaged stores": stores.run,
    "hostile code": hostile_code.run,
}


def main() -> None:
    """Run every attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=ATTACKS, help="one kind alone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    fell = False
    for name, attack in ATTACKS.items():
        if arguments.only in (None, name):
            tried, fallen = attack(np.random.default_rng(arguments.seed))
            print(f"{name}: {tried} tried, {tried - len(fallen)} held", flush=True)
            for one in fallen:
                print(f"  fell: {one}", flush=True)
            fell = fell or bool(fallen)
    sys.exit(1 if fell else 0)


if __name__ == "__main__":
    main()
