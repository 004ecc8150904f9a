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
    "train_ppo.py": ["--steps", "4096", "--episodes", "2"],
    "cleanrl_ppo.py": ["--updates", "1", "--episodes", "2", "--horizon", "50"],
    "channels.py": ["--shapes", "3x4", "--horizon", "20", "--episodes", "4", "--classes", "2"],
}
SAYS = {
    "calibration.py": "gaussian-vector",
    "channels.py": "adaptive-split",
    "limit.py": "adaptive-wheel",
    "leaderboard.py": "laplace-single",
    "first_episode.py": "total KL",
    "own_learner.py": "Hedge",
    "train_ppo.py": "ppo      total KL",
    "cleanrl_ppo.py": "cleanrl  total KL",
}


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_example(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, *SMALL.get(script, [])])
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert SAYS[script] in capsys.readouterr().out
