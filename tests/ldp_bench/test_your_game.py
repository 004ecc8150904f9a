"""A user's game by its rules: names, experiments and the report."""

import importlib
import json
import sys
from functools import partial

import numpy as np
import pytest
from command_line import run_in_line

from ldp_bench import Experiment
from ldp_bench.report import Report
from ldp_bench.suites import YourGame

MODULE = """
from pathlib import Path
import numpy as np
models = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
X = np.load(Path(__file__).parent / "rows.npy")
y = np.repeat([0, 1, 2], [6, 48, 6])
"""
RULES = {
    "hypotheses": "my_game:models",
    "truth": "replay",
    "truth_kwargs": {"contexts": "my_game:X", "labels": "my_game:y", "order": "shuffled"},
}
run = partial(run_in_line, "bench")


@pytest.fixture
def game(tmp_path, monkeypatch):
    (tmp_path / "my_game.py").write_text(MODULE)
    np.save(tmp_path / "rows.npy", np.zeros((60, 1)))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_game", None)


def as_options(rules):
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in rules.items()
    }
    return [f"--rule={name}={text}" for name, text in texts.items()]


def test_the_command_plays_it_and_reports_it(game):
    narrow = ["--learner", "bayes", "--channel", "split", "--channel", "identity"]
    narrow += ["--epsilon", 0.01, "--epsilon", 8]
    code, output = run(
        *as_options(RULES), *narrow, "--episodes", 40, "--jobs", 1, "--out", game / "out"
    )
    assert code == 0, output
    assert "split" in output
    page = (game / "out" / "report.html").read_text()
    assert "my_game:models" in page
    assert "no score and no bound" in page
    assert (game / "out" / "figures" / "your-game.svg").exists()
    sys.modules.pop("my_game")
    assert "no score and no bound" not in Report(game / "out").write().read_text(), (
        "the store names code"
    )
    assert "my_game" not in sys.modules
    assert "no score and no bound" in Report(game / "out", trust=True).write().read_text()


def test_every_learner_and_channel_that_fits(game):
    experiments = YourGame(RULES).experiments()
    played = {(e.channel, e.learner) for e in experiments}
    assert {("wheel", "bayes"), ("laplace-vector", "wma"), ("identity", "mle")} <= played
    assert sum(e.channel == "identity" and e.learner == "bayes" for e in experiments) == 1
    assert {e.rules.epsilon for e in experiments if e.channel == "split"} == {0.5, 1.0, 2.0, 4.0}
    assert {e.horizon for e in experiments} == {60}
    assert {e.channel for e in YourGame(RULES | {"channel": "vote"}).experiments()} == {"vote"}
    with pytest.raises(TypeError, match="name them as 'module:object'"):
        YourGame({"hypotheses": [print, print]})


def test_other_data_is_another_configuration(game):

    def key():
        sys.modules.pop("my_game", None)
        importlib.invalidate_caches()
        return Experiment(RULES | {"channel": "split"}, "bayes", episodes=2).cells(0)[0].key

    before = key()
    assert key() == before
    np.save(game / "rows.npy", np.ones((60, 1)))
    assert key() != before
