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

from ldp_bench.experiment import Experiment
from ldp_bench.planning import Models, Plan, Planned, Survey, plan
from ldp_bench.results import ExperimentResult, Results
from ldp_bench.runner import run
from ldp_bench.store import Store
from ldp_bench.suites import SUITES, Finding, Suite, judge
from ldp_gym.core.errors import DamagedStoreError

__all__ = ["SUITES", "DamagedStoreError", "Experiment", "ExperimentResult", "Finding"]
__all__ += [
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
