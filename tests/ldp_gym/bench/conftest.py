"""What the tests of the benchmark share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def strangers_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
