"""``ldp-gym bench``, ``report`` and ``export``, as a user types them."""

import csv
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run, run_in_line

import ldp_gym
from ldp_bench import SUITES, Results, Store

RUN = {"channels": [], "learners": [], "episodes": 1, "seed": 0, "size": "small", "parameters": {}}
SMALL = ("--size", "small", "--jobs", 1, "--episodes")


def test_the_story_comes_first_and_the_leaderboard_has_every_channel_and_learner(played):
    out, output = played
    results = Results(Store(out), SUITES["quick"]().experiments("small", episodes=5), 0)
    assert all(name in output for name in (*results.channels, *results.learners))
    (uniform,) = results.select(learner="uniform", channel="laplace-single")
    story = output.index(f"{uniform.risk.value:.3g} if nothing is learned")
    assert (
        story
        < output.index("In every row: Game: softmax-linear")
        < output.index("· On no channel does")
    )
    assert "reads a noisy log-likelihood" in output


def test_the_report_and_an_export_are_written(played):
    out, output = played
    assert "report.html" in output
    (out / "report.html").unlink()
    assert run("report", out)[0] == 0
    assert (out / "report.html").exists()
    code, output = run("export", out / "results.csv", out)
    assert code == 0
    lines = (out / "results.csv").read_text().splitlines()
    assert f"{len(lines) - 1:,} rows" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench",), "name a suite, or describe your game"),
        (("bench", "quik"), "did you mean 'quick'"),
        (("bench", "builtins:dict"), "suite must be a suite (made, not its class), or its name"),
        (
            ("bench", "quick", "--learner", "nowhere:Learner"),
            "cannot import learner 'nowhere:Learner'",
        ),
        (("bench", "quick", "--learner", "nowhere[/red]:X"), "nowhere[/red]"),
        (("bench", "quick", "--learner", "\x1b[2Jbays"), "unknown learner"),
        (("bench", "quick", "--channel", "builtins:dict"), "builtins:dict is not a channel"),
        (("bench", "quick", "--rule", "horizon=10"), "not both"),
        (("bench", "--rule", "horizn=10"), "did you mean 'horizon'"),
        (
            ("bench", "--rule", "hypotheses=nowhere:models"),
            "cannot import hypothesis class 'nowhere:models'",
        ),
        (("bench", "--rule", "hypotheses=" + "[" * 50_000), "recursion"),
        (("bench", "--rule", "epsilon=[]"), "got an empty list"),
        (("bench", "limit", *SMALL, 1, "--out", "file"), "file is a file, not a directory"),
        (("bench", "limit", *SMALL, 1, "--out", "/proc/nowhere"), "/proc/"),
        (("report", "no-such-place"), "there are no results in no-such-place"),
        (("export", "results.csv", "."), "there are no results in ."),
        (("export", "/proc/nowhere.csv", "store"), "/proc/"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    Store(tmp_path / "store").begin_run("limit", RUN, [])
    code, output = run_in_line(*arguments)
    assert code == 2
    assert message in output
    assert "Traceback" not in output
    assert "\x1b[2J" not in output


def call(directory, *arguments, path=()):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), *sys.path[1:]])}
    command = [
        sys.executable,
        "-P",
        "-c",
        "from ldp_bench.__main__ import main; main()",
        *map(str, arguments),
    ]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("columns", ["0", "1", "no number"])
def test_an_absurd_width_of_the_terminal_hides_nothing(tmp_path, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, output = call(tmp_path, "list", "natures")
    assert code == 0
    assert "Names that ldp-gym knows" in output
    assert "omniscient" in output


PLUGIN = """
[ldp_gym.commands]
broken = bad_plugin:command
[ldp_gym.channels]
bad = bad_plugin:Channel
"""


def test_a_broken_plugin_is_named_and_breaks_nothing(tmp_path):
    information = tmp_path / "bad_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: bad-plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(PLUGIN)
    (tmp_path / "bad_plugin.py").write_text("raise RuntimeError('[/red]')")
    assert call(tmp_path, "--version", path=[tmp_path]) == (0, f"ldp-gym {ldp_gym.__version__}")
    code, output = call(tmp_path, "list", "channels", path=[tmp_path])
    assert code == 0
    assert "channel 'bad' of bad-plugin cannot be loaded" in output
    assert "split" in output
    code, output = call(tmp_path, "broken", path=[tmp_path])
    assert code == 2
    assert "command 'broken' of bad-plugin cannot be loaded" in output


def test_the_pages_take_findings_figures_and_the_leaderboard_of_a_run(
    played, monkeypatch, tmp_path
):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    pages = importlib.import_module("tables")
    monkeypatch.setattr(pages, "DATA", tmp_path)
    monkeypatch.setattr(pages, "FIGURES", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("![Bounds](pictures/results/theorems.png)")
    monkeypatch.setattr(pages, "pages", lambda: [page])
    (tmp_path / "findings.json").write_text('{"kept": 1}')
    pages.take_results(shutil.copytree(played[0], tmp_path / "run"))
    found = json.loads((tmp_path / "findings.json").read_text())
    assert [found["kept"], *found] == [1, "kept", "quick", "theorems"]
    assert found["quick"]["findings"][0]["text"].startswith("Loss in nats over 100 users")
    with (tmp_path / "leaderboard.csv").open() as file:
        rows = {row["channel"]: row for row in csv.DictReader(file)}
    assert "[" in rows["split"]["bayes"]
    assert rows["split"]["wma"] == "-"
    assert (tmp_path / "theorems.png").exists()
