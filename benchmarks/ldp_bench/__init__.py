"""Benchmark: suites that measure the paper's claims, and a leaderboard of every learner and channel.

>>> import ldp_bench
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     results = ldp_bench.run("limit", size="small", episodes=2, jobs=1, out=directory)
>>> len(results.failures)
0
>>> bool((results.frame["risk"] > 0).all())
True
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from ldp_bench.experiment import Experiment
    from ldp_bench.planning import Models, Plan, Planned, Survey, plan
    from ldp_bench.results import ExperimentResult, Results
    from ldp_bench.runner import run
    from ldp_bench.store import Store
    from ldp_bench.suites import SUITES, Finding, Suite, judge
    from ldp_gym.core.errors import DamagedStoreError

_PLACES = {
    "DamagedStoreError": "ldp_gym.core.errors",
    "Experiment": "ldp_bench.experiment",
    "ExperimentResult": "ldp_bench.results",
    "Models": "ldp_bench.planning",
    "Plan": "ldp_bench.planning",
    "Planned": "ldp_bench.planning",
    "Survey": "ldp_bench.planning",
    "plan": "ldp_bench.planning",
    "Finding": "ldp_bench.suites",
    "Results": "ldp_bench.results",
    "SUITES": "ldp_bench.suites",
    "Store": "ldp_bench.store",
    "Suite": "ldp_bench.suites",
    "judge": "ldp_bench.suites",
    "run": "ldp_bench.runner",
}
"""Modules of the public names. They are imported when a name is first used."""

__all__ = [
    "SUITES",
    "DamagedStoreError",
    "Experiment",
    "ExperimentResult",
    "Finding",
    "Models",
    "Plan",
    "Planned",
    "Results",
    "Store",
    "Suite",
    "Survey",
    "judge",
    "plan",
    "run",
]


def __getattr__(name: str) -> _Any:
    """Import a public name when it is first used."""
    if name in _PLACES:
        value = getattr(_import_module(_PLACES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ldp_bench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
