"""Every example runs, at a small size."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = {
    "calibration.py": ["--horizon", "20", "--episodes", "2"],
    "limit.py": ["--sizes", "3", "--horizon", "20", "--episodes", "4"],
    "own_channel.py": ["--horizon", "20", "--episodes", "2"],
    "vector.py": ["--games", "4", "--horizon", "20"],
    "hypothesis_selection.py": [
        *["--users", "10", "20", "--users-outside", "20", "--sizes", "4", "--most", "64"],
        *["--classes", "2", "--episodes", "4", "--picture", "PICTURE"],
    ],
    "model_selection.py": ["--users", "12", "--repeats", "2"],
    "languages.py": ["--words", "6", "--users", "10", "--episodes", "2", "--picture", "PICTURE"],
    "train_ppo.py": ["--steps", "4096", "--episodes", "2"],
    "cleanrl_ppo.py": ["--updates", "1", "--episodes", "2", "--horizon", "50"],
    "channels.py": ["--shapes", "3x4", "--horizon", "20", "--episodes", "4", "--classes", "2"],
    "optimum.py": ["--size", "3", "--horizon", "8", "--episodes", "20", "--iterations", "2"],
    "refined.py": ["--parts", "1", "3", "--horizon", "20", "--episodes", "2"],
}
SAYS = {
    "calibration.py": "gaussian-vector",
    "channels.py": "adaptive-split",
    "limit.py": "adaptive-groups",
    "optimum.py": "policy 1",
    "refined.py": "randomized-response",
    "first_episode.py": "total KL",
    "own_learner.py": "Hedge",
    "own_channel.py": "sharper    claims eps = 1, has 1.0000: holds",
    "vector.py": "in lock step",
    "hypothesis_selection.py": "tournament",
    "model_selection.py": "uniform mixture",
    "languages.py": "M = ",
    "train_ppo.py": "ppo      total KL",
    "cleanrl_ppo.py": "cleanrl  total KL",
}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(script, monkeypatch, capsys, tmp_path):
    picture = tmp_path / "picture.png"
    small = [str(picture) if word == "PICTURE" else word for word in SMALL.get(script, [])]
    monkeypatch.setattr(sys, "argv", [script, *small])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert SAYS[script] in capsys.readouterr().out
    assert picture.exists() == (str(picture) in small)
