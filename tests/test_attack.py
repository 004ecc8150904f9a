"""A sample of ``make attack``, by a seed: what it tries holds."""

import numpy as np
import pytest
from attack import hostile_code, kills, stores


@pytest.mark.parametrize("seed", range(2))
def test_damaged_stores_lose_nothing_else(seed):
    tried, fallen = stores.run(np.random.default_rng([seed, 1]), count=3)
    assert (tried, fallen) == (3, [])


def test_hostile_code_does_no_harm():
    tried, fallen = hostile_code.run(np.random.default_rng(3), count=2)
    assert (tried, fallen) == (2, [])


def test_killed_runs_go_on():
    tried, fallen = kills.run(np.random.default_rng(0), count=2)
    assert (tried, fallen) == (2, [])
