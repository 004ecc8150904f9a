"""The benchmark: suites that measure the paper's claims, and a leaderboard for every learner and channel.

>>> from ldp_gym import bench
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as directory:
...     results = bench.run("limit", size="small", episodes=2, out=directory)
>>> len(results.failures)
0
"""

from ldp_gym.bench.experiment import Entry
from ldp_gym.bench.results import Played, Results
from ldp_gym.bench.runner import run
from ldp_gym.bench.statistics import Estimate
from ldp_gym.bench.store import Store
from ldp_gym.bench.suites import SUITES, Finding, Suite
from ldp_gym.errors import DamagedStoreError

__all__ = [
    "SUITES",
    "DamagedStoreError",
    "Entry",
    "Estimate",
    "Finding",
    "Played",
    "Results",
    "Store",
    "Suite",
    "run",
]
