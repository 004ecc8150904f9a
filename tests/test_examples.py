"""Every example runs, at a small size."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = {
    "leaderboard.py": ["--horizon", "20", "--episodes", "2"],
    "calibration.py": ["--horizon", "20", "--episodes", "2"],
    "limit.py": ["--sizes", "3", "--horizon", "20", "--episodes", "4"],
    "channels.py": ["--shapes", "3x4", "--horizon", "20", "--episodes", "4", "--classes", "2"],
    "optimum.py": ["--size", "3", "--horizon", "8", "--episodes", "20", "--iterations", "2"],
    "refined.py": ["--parts", "1", "3", "--horizon", "20", "--episodes", "2"],
}
SAYS = {
    "calibration.py": "gaussian-vector",
    "channels.py": "adaptive-split",
    "limit.py": "adaptive-groups",
    "leaderboard.py": "laplace-single",
    "optimum.py": "policy 1",
    "refined.py": "randomized-response",
    "first_episode.py": "total KL",
    "own_learner.py": "Hedge",
}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, *SMALL.get(script, [])])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert SAYS[script] in capsys.readouterr().out
