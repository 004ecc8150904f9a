"""What ships: models that learn and play with NumPy alone, and how one gets there."""

import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import run_in_line as run
from helpers import ALPHA
from rl_helpers import untrained
from scipy.stats import t as student

import ldp_gym
from ldp_agents.rl import Config, commands
from ldp_agents.rl.model import CARD, WEIGHTS
from ldp_agents.rl.pretrained import WEIGHTS_DIRECTORY, model_of
from ldp_agents.rl.sb3 import OnPolicySettings
from ldp_agents.rl.shipping import JUDGES, MOST_TIMES_BAYES, ship

ALGORITHMS = ("ppo", "amortized")


@pytest.mark.parametrize("game", JUDGES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_shipped_models_learn(algorithm, game):
    """At most 1.15 times Bayes; paired, error rate 1e-6."""
    assert model_of(algorithm).name == algorithm
    ours, bayes = (
        ldp_gym.evaluate(name, JUDGES[game], episodes=60, seed=50).kl[:, -1] for name in (algorithm, "bayes")
    )
    gap = ours - MOST_TIMES_BAYES * bayes
    assert gap.mean() < student.isf(ALPHA, 59) * gap.std(ddof=1) / np.sqrt(60)
    assert ours.mean() < 1.25 * bayes.mean()


def test_the_shipped_models_play_without_torch():
    code = """
import sys
sys.modules["torch"] = None
sys.modules["stable_baselines3"] = None
import ldp_agents, ldp_gym
for name in ("ppo", "amortized", "any-truth"):
    print(ldp_gym.evaluate(name, {"horizon": 100}, episodes=2).risk > 0)
assert not any(name.startswith(("torch.", "stable_baselines3.")) for name in sys.modules)
from typer.testing import CliRunner
from ldp_gym.cli import app
result = CliRunner().invoke(app, ["train", "ppo"], env={"COLUMNS": "200"})
print(result.exit_code, "pip install 'ldp-gym[rl]'" in result.output)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "True", "2", "True"]


def test_a_trained_directory_becomes_a_shipped_weight(tmp_path, monkeypatch):
    trained = WEIGHTS_DIRECTORY / "amortized"
    target, ratios = ship(trained, tmp_path, episodes=8)
    assert target == tmp_path / "amortized"
    for name in (WEIGHTS, CARD):
        assert (target / name).read_bytes() == (trained / name).read_bytes()
    assert set(ratios) == set(JUDGES)
    with pytest.raises(FileExistsError, match="--replace puts this one in its place"):
        ship(trained, tmp_path, episodes=8)
    monkeypatch.setattr(commands, "WEIGHTS_DIRECTORY", tmp_path)
    code, output = run("ship", str(trained), "--replace")
    assert code == 0, output
    assert re.search(r"split, eps = 4: [\d.]+ times Bayes shipped: ", output)


def test_a_model_that_does_not_learn_does_not_ship(tmp_path):
    card = Config("amortized", {}, 1).card(OnPolicySettings())
    untrained(**card).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"what ships has at most 1.15 times: train for longer"):
        ship(tmp_path / "model", tmp_path / "weights", episodes=8)
    assert not (tmp_path / "weights").exists()


def test_a_model_that_ships_says_what_made_it(tmp_path):
    untrained().save(tmp_path / "model")
    with pytest.raises(ValueError, match="does not say what made the model"):
        ship(tmp_path / "model", tmp_path / "weights")


def test_only_arrays_ship(tmp_path):
    """A stored policy runs code when it is read: it is turned down unread."""
    code, output = run("ship", str(tmp_path))
    assert code == 2
    assert "it has no model.json" in output
    (tmp_path / CARD).write_text("{}")
    code, output = run("ship", str(tmp_path))
    assert code == 2
    assert "Only arrays ship: train 'amortized', 'ppo' or 'any-truth'" in output
