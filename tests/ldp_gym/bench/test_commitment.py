"""Seeds from a secret: nothing of them is on disk before the last cell, and all of them after it."""

import hashlib
import json
import sqlite3
from contextlib import closing

from test_runner import Tiny, table

from ldp_gym import bench
from ldp_gym.bench.commitment import commitment_to, seed_from


def test_a_run_is_committed_to_and_revealed(tmp_path):
    looks = []

    def look(*_):
        with closing(sqlite3.connect(tmp_path / "results.sqlite")) as database, database:
            cells = database.execute("SELECT count(*) FROM cells").fetchone()[0]
            looks.append((cells, database.execute("SELECT settings FROM runs").fetchone()[0]))

    results = bench.run(
        Tiny(), size="small", episodes=2, jobs=1, out=tmp_path, secret="rosebud", on_cell=look
    )
    seed, commitment = seed_from("rosebud"), commitment_to("rosebud")
    assert commitment == hashlib.sha256(b"ldp-gym commitment rosebud").hexdigest()
    for cells, settings in looks:
        assert cells == 0
        assert json.loads(settings)["commitment"] == commitment
        assert "rosebud" not in settings
        assert str(seed) not in settings
    revealed = bench.Store(tmp_path).runs()[0]["settings"]
    assert (revealed["secret"], revealed["seed"]) == ("rosebud", seed)
    again = bench.run(Tiny(), size="small", episodes=2, jobs=1, out=tmp_path / "again", seed=seed)
    assert table(again) == table(results)
