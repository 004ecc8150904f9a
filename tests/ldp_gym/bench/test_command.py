"""``ldp-gym bench``, ``report``, ``export`` and ``list``, as a user types them."""

import pytest
from command_line import run

from ldp_gym.bench import SUITES, Results, Store


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("command")
    code, output = run("bench", "quick", "--size", "small", "--episodes", 4, "--jobs", 1, "--out", directory)
    assert code == 0, output
    return directory, output


def grid(output):
    """The terminal's table: a row per channel, with a risk per learner."""
    lines = output.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("Channel"))
    rows = [line.split() for line in lines[first : lines.index("", first)]]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}


def test_the_story_comes_first_and_the_leaderboard_has_every_channel_and_learner(directory):
    out, output = directory
    results = Results(Store(out), SUITES["quick"]().experiments("small", episodes=4), 0)
    risks = {(r.learner, r.channel): r.risk for r in results.successes}
    shown = grid(output)
    assert {place: risk.short for place, risk in risks.items()} == {
        (learner, channel): text
        for channel, row in shown.items()
        for learner, text in row.items()
        if text != "-"
    }
    assert shown["randomized-response"]["exp3"] == "-", "it does not understand labels"
    story = output.index(f"{risks['uniform', 'laplace-single'].value:.3g} without learning")
    assert story < output.index("level with Bayes") < output.index("In every row: Game: softmax-linear")
    assert "reads a noisy log-likelihood" in output


def test_a_second_run_plays_nothing(directory):
    out, first = directory
    code, output = run("bench", "quick", "--size", "small", "--episodes", 4, "--jobs", 1, "--out", out)
    assert code == 0
    assert "all in the store" in output
    assert grid(output) == grid(first)


def test_the_report_and_an_export_are_written(directory):
    out, output = directory
    assert "report.html" in output
    (out / "report.html").unlink()
    code, output = run("report", out)
    assert code == 0
    assert "bayes" in (out / "report.html").read_text()
    code, output = run("export", out / "results.csv", out)
    assert code == 0
    lines = (out / "results.csv").read_text().splitlines()
    assert f"{len(lines) - 1:,} rows" in output


def test_a_third_party_learner_that_fails(tmp_path):
    arguments = ("bench", "--rule", "horizon=20", "--channel", "split", "--epsilon", 1, "--out", tmp_path)
    code, output = run(*arguments, "--learner", "third_party:Crasher", "--learner", "bayes")
    assert code == 1
    assert "third_party:Crasher" in output
    assert "ZeroDivisionError" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench", "quik"), "did you mean 'quick'"),
        (("bench", "quick", "--learner", "bays"), "did you mean 'bayes'"),
        (("bench", "quick", "--learner", "nowhere:Learner"), "cannot import learner 'nowhere:Learner'"),
        (("bench", "quick", "--channel", "nowhere:Channel"), "cannot import channel"),
        (("bench", "quick", "--size", "huge"), "default, small"),
        (("bench", "quick", "--episodes", "0"), "Invalid value for '--episodes'"),
        (("report", "no-such-place"), "there are no results in no-such-place"),
        (("export", "results.csv", "."), "there are no results in ."),
        (("bench", "quick", "--jobs", "0"), "jobs (-1: one per core)"),
        (("bench", "quick", "--channel", "builtins:dict"), "builtins:dict is not a channel"),
        (("bench", "builtins:dict"), "suite must be a suite (made, not its class), or its name"),
        (("bench", "--rule", "channel_kwargs=3"), "channel_kwargs must be"),
        (("bench", "--rule", "hypotheses=" + "[" * 50_000), "nested too deeply"),
        (("bench", "quick", "--learner", "\x1b[2Jbays"), "unknown learner"),
    ],
)
def test_bad_arguments_say_what_is_allowed(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = run(*arguments)
    assert code == 2
    assert message in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output
    assert "\x1b[2J" not in output


@pytest.mark.parametrize("command", ["bench", "report", "export", "list", "audit"])
def test_help_reads(command):
    code, output = run(command, "--help")
    assert code == 0
    assert "Usage:" in output
