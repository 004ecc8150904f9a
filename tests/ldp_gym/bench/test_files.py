"""The command line among broken plugins, odd names, and files that name code."""

import os
import subprocess
import sys

from command_line import run_in_line as run

import ldp_gym
from ldp_gym import bench
from ldp_gym.bench import Store
from ldp_gym.bench.report import Report

RUN = {"channels": [], "learners": [], "episodes": 1, "seed": 0, "size": "small", "parameters": {}}
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
    out = tmp_path / "a [/red] b"
    code, output = run("bench", "limit", "--size", "small", "--episodes", 1, "--jobs", 1, "--out", out)
    assert code == 0, output
    assert "a [/red] b" in output
    code, output = run("bench", "limit", "--learner", "nowhere[/red]:X", "--out", tmp_path / "other")
    assert code == 2
    assert "nowhere[/red]" in output


def test_a_store_that_names_a_module_runs_no_code(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()\n")
    for name in ("typer", "numpy", "rich"):  # nor does a module beside it that is called like one of ours
        (tmp_path / f"{name}.py").write_text(trap.read_text())
    settings = RUN | {"learners": ["trap:L"]}
    store = Store(tmp_path)
    store.begin_run("trap:Suite", settings, [])
    store.begin_run("limit", settings | {"channels": ["trap:Channel"]}, [])
    store.begin_run("own-game", settings | {"parameters": {"rules": {"hypotheses": "trap:models"}}}, [])
    code, output = call(tmp_path, "report", ".")
    assert code == 0, output
    assert "report.html" in output
    assert not (tmp_path / "sprung").exists()


def test_the_leaderboard_has_the_learners_of_earlier_runs(tmp_path):
    common = {"size": "small", "episodes": 1, "jobs": 1, "out": tmp_path}
    bench.run("limit", learners=["fixed-share"], **common)
    bench.run("limit", **common)
    (section,) = Report(tmp_path).sections
    assert "fixed-share" in section.results.learners


def test_files_that_cannot_be_written_are_told_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", "", "/proc/nowhere"):
        code, output = run("bench", "limit", "--size", "small", "--episodes", 1, "--out", out)
        assert code == 2, output
        assert "Traceback" not in output
    Store(tmp_path).begin_run("limit", RUN, [])
    code, output = run("export", "/proc/nowhere.csv", tmp_path)
    assert code == 2
    assert "/proc/" in output
