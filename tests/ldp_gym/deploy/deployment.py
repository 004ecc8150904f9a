"""What the tests of deployments share: rules, a server with a client, and what is done to their files."""

import json
import sqlite3
from contextlib import closing

from ldp_gym.deploy import Client, Server

RULES = {"hypotheses": "dirichlet", "num_hypotheses": 4, "num_labels": 6, "channel": "split", "horizon": 50}
ADAPTIVE = {**RULES, "channel": "adaptive-split"}


def make_pair(rules, budget=100.0):
    """A server and a client of these rules, in memory."""
    return Server(rules), Client(rules, budget=budget, ledger=":memory:")


def through_json(data):
    return json.loads(json.dumps(data))


def change_file(path, statement):
    """Run a statement on an SQLite file, behind the back of whoever keeps it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
