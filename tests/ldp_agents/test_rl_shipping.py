"""What ships: models that learn the default game and play with NumPy alone, and how one gets there."""

import re
import subprocess
import sys

import numpy as np
import pytest
from helpers import ALPHA, delta_of
from rl_helpers import run, untrained
from scipy.stats import t as student

import ldp_gym
from ldp_agents.rl import Config, commands
from ldp_agents.rl.model import CARD, WEIGHTS, game_parameters
from ldp_agents.rl.pretrained import WEIGHTS_DIRECTORY, models
from ldp_agents.rl.sb3 import OnPolicySettings
from ldp_agents.rl.shipping import ship
from ldp_gym.engine.scenario import Scenario


@pytest.mark.parametrize("algorithm", ["ppo", "amortized"])
def test_the_shipped_models_learn_the_default_game(algorithm):
    """At most 1.45 times Bayes where it learns at all; paired, error rate 1e-6."""
    assert "laplace-single" in models(algorithm)
    for channel, model in models(algorithm).items():
        rules = {"channel": channel, "delta": delta_of(channel)}
        assert model.card["config"]["algorithm"] == algorithm
        assert model.trained_on == game_parameters(Scenario(**rules).game)
        ours, bayes = (
            ldp_gym.evaluate(name, rules, episodes=24, seed=50).kl[:, -1] for name in (algorithm, "bayes")
        )
        gap = ours - 1.45 * bayes
        assert gap.mean() < student.isf(ALPHA, 23) * gap.std(ddof=1) / np.sqrt(24)
        assert ours.mean() < 1.6 * bayes.mean()


def test_the_shipped_models_play_without_torch():
    code = """
import sys
sys.modules["torch"] = None
sys.modules["stable_baselines3"] = None
import ldp_agents, ldp_gym
for name in ("ppo", "amortized"):
    print(ldp_gym.evaluate(name, {"horizon": 20}, episodes=2).risk > 0)
assert not any(name.startswith(("torch.", "stable_baselines3.")) for name in sys.modules)
from typer.testing import CliRunner
from ldp_gym.cli import app
result = CliRunner().invoke(app, ["train", "ppo"], env={"COLUMNS": "200"})
print(result.exit_code, "pip install 'ldp-gym[rl]'" in result.output)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "2", "True"]


def test_a_trained_directory_becomes_a_shipped_weight(tmp_path, monkeypatch):
    trained = WEIGHTS_DIRECTORY / "amortized" / "split"
    target, risks = ship(trained, tmp_path, episodes=8)
    assert target == tmp_path / "amortized" / "split"
    for name in (WEIGHTS, CARD):
        assert (target / name).read_bytes() == (trained / name).read_bytes()
    assert risks["bayes"] < risks["uniform"]
    with pytest.raises(FileExistsError, match="--replace puts this one in its place"):
        ship(trained, tmp_path, episodes=8)
    monkeypatch.setattr(commands, "WEIGHTS_DIRECTORY", tmp_path)
    code, output = run("ship", str(trained), "--replace")
    assert code == 0, output
    assert re.search(r"this model: total KL \d+.* the model that it replaces: .* shipped: ", output)


@pytest.mark.parametrize(
    ("rules", "kind", "message"),
    [
        ({}, "equivariant", "times that of Bayes; what ships has at most 1.45 times: train for longer"),
        ({}, "flat", "a flat network plays one class alone"),
        ({"horizon": 90}, "equivariant", r"trained on the default game, this one has T 90 \(not 1000\)"),
        ({"epsilon": 2.0}, "equivariant", r"has epsilon 2.0 \(not 1.0\)"),
    ],
)
def test_what_cannot_ship_says_why(rules, kind, message, tmp_path):
    card = Config("amortized", rules, 1).card(OnPolicySettings())
    untrained(Scenario(**rules).game, kind, **card).save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        ship(tmp_path / "model", tmp_path / "weights", episodes=8)
    assert not (tmp_path / "weights").exists()


def test_a_model_that_ships_says_what_made_it(tmp_path):
    untrained(Scenario().game).save(tmp_path / "model")
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
    assert "only arrays ship: train 'ppo' or 'amortized'" in output
