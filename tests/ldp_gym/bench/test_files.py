"""The command line among broken plugins, odd names, and files that name code."""

import os
import subprocess
import sys
from pathlib import Path

from command_line import run_in_line as run

import ldp_gym
from ldp_gym import bench
from ldp_gym.bench import Store, report

PLUGIN = """
[ldp_gym.commands]
broken = bad_plugin:command
[ldp_gym.learners]
bad = bad_plugin:Learner
[ldp_gym.channels]
bad = bad_plugin:Channel
"""


def call(directory, *arguments, path=()):
    """The console script in a directory, with further places for modules."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *sys.path[1:]])}
    command = [sys.executable, "-P", "-c", "from ldp_gym.__main__ import main; main()", *map(str, arguments)]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_broken_plugin_is_named_and_breaks_nothing(tmp_path):
    place = tmp_path / "site"
    (place / "bad_plugin-1.0.dist-info").mkdir(parents=True)
    (place / "bad_plugin-1.0.dist-info" / "METADATA").write_text("Name: bad-plugin\nVersion: 1.0\n")
    (place / "bad_plugin-1.0.dist-info" / "entry_points.txt").write_text(PLUGIN)
    (place / "bad_plugin.py").write_text("raise RuntimeError('[/red]')")
    assert call(tmp_path, "--version", path=[place]) == (0, f"ldp-gym {ldp_gym.__version__}")
    code, output = call(tmp_path, "list", "channels", path=[place])
    assert code == 0
    assert "channel 'bad' of bad-plugin cannot be loaded" in output
    assert "split" in output
    code, output = call(tmp_path, "broken", path=[place])
    assert code == 2
    assert "command 'broken' of bad-plugin cannot be loaded" in output


def test_brackets_are_text(tmp_path):
    name = "a [/red] b"
    out = tmp_path / name
    code, output = run("bench", "limit", "--size", "small", "--episodes", 1, "--jobs", 1, "--out", out)
    assert code == 0, output
    assert f"{name}/report.html" in output.replace(" ", "") or name in output
    code, output = run("bench", "limit", "--learner", f"nowhere{name}:X", "--out", tmp_path / "other")
    assert code == 2
    assert "nowhere" in output


def test_a_store_that_names_a_module_runs_no_code(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\n")
    for name in ("typer", "numpy", "rich"):  # nor does a module beside it that is called like one of ours
        (tmp_path / f"{name}.py").write_text(trap.read_text())
    settings = {"channels": [], "learners": ["trap:L"], "episodes": 1, "seed": 0, "size": "small"}
    store = Store(tmp_path)
    store.begin_run("trap:Suite", settings, [])
    store.begin_run("limit", settings | {"channels": ["trap:Channel"]}, [])
    store.begin_run("own-game", settings | {
        "parameters": {"rules": {"hypotheses": "trap:models"}}}, [])  # fmt: skip
    code, output = call(tmp_path, "report", ".")
    assert code == 0, output
    assert "report.html" in output
    assert not (tmp_path / "sprung").exists()


def test_the_leaderboard_has_the_learners_of_earlier_runs(tmp_path):
    common = {"size": "small", "episodes": 1, "jobs": 1, "out": tmp_path}
    bench.run("limit", learners=["fixed-share"], **common)
    bench.run("limit", **common)
    (section,) = report.read(tmp_path)
    assert "fixed-share" in section.results.learners


def test_files_that_cannot_be_written_are_told_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "", "/proc/nowhere"):
        code, output = run("bench", "limit", "--size", "small", "--episodes", 1, "--out", out)
        assert code == 2, output
        assert "Traceback" not in output
    code, output = run("audit", "split", "--picture", "/")
    assert code == 2
    assert "cannot save the picture" in output
    Store(tmp_path).begin_run("limit", {
        "channels": [], "learners": [], "episodes": 1, "seed": 0, "size": "small"}, [])  # fmt: skip
    code, output = run("export", "/proc/nowhere.csv", tmp_path)
    assert code == 2
    assert "/proc/" in output
    assert not Path("/.png").exists()
