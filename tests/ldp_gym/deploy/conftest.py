"""A client and a server with files of their own."""

import pytest
from deployment import RULES

from ldp_gym.deploy import Client, Server


@pytest.fixture
def client(tmp_path):
    with Client(RULES, budget=100.0, ledger=tmp_path / "ledger.sqlite") as made:
        yield made


@pytest.fixture
def server(tmp_path):
    with Server(RULES, store=tmp_path / "server.sqlite") as made:
        yield made
