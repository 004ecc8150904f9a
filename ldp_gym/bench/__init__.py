"""Benchmark: suites that measure the paper's claims, and a leaderboard of every learner and channel.

>>> from ldp_gym import bench
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     results = bench.run("limit", size="small", episodes=2, jobs=1, out=directory)
>>> len(results.failures)
0
>>> bool((results.frame["risk"] > 0).all())
True
"""

from ldp_gym.bench.experiment import Experiment
from ldp_gym.bench.results import ExperimentResult, Results
from ldp_gym.bench.runner import run
from ldp_gym.bench.store import Store
from ldp_gym.bench.suites import SUITES, Finding, Suite, judge
from ldp_gym.core.errors import DamagedStoreError

__all__ = ["SUITES", "DamagedStoreError", "Experiment", "ExperimentResult", "Finding"]
__all__ += ["Results", "Store", "Suite", "judge", "run"]
