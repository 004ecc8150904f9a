"""Imports: parts are loaded when they are used, and a missing extra is named."""

import subprocess
import sys
from pathlib import Path

import pytest

import ldp_gym


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


HEAVY = "scipy torch stable_baselines3 ldp_agents rich pygame importlib.metadata matplotlib joblib pandas"
LIGHT = f"""
import sys, gymnasium
known = set(sys.modules)
import ldp_gym
print([module for module in "{HEAVY} typer sqlite3".split() if module in sys.modules.keys() - known])
import ldp_agents
for part in ("ldp_gym.testing", "ldp_gym.wrappers", "ldp_agents.rl.vec_env"):
    assert part not in sys.modules, part
assert {{"audit", "testing", "theory", "wrappers"}} <= set(dir(ldp_gym))
ldp_gym.audit.certify, ldp_gym.testing.check_learner, ldp_gym.theory.capacity
ldp_gym.wrappers.MixtureAction, ldp_agents.rl.load
"""


def test_importing_is_light_and_a_part_or_an_environment_is_found_without_an_import():
    assert run(LIGHT) == "[]\n"
    make = "import gymnasium as gym; print(gym.make('ldp_gym:LDPDist-v0').reset(seed=0)[0]['message'].shape)"
    assert run(make) == "(8,)\n"


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).parents[1]
    assert f'version = "{ldp_gym.__version__}"' in (root / "pyproject.toml").read_text()
    assert f"version: {ldp_gym.__version__}" in (root / "CITATION.cff").read_text()


BLOCKED = """
import importlib, importlib.abc, pkgutil, sys

EXTRAS = {"typer", "rich", "joblib", "matplotlib", "pyarrow", "torch", "stable_baselines3", "sb3_contrib",
          "pygame", "tensorboard", "distributed", "dp_accounting", "sklearn", "pandas", "minari", "moviepy",
          "yaml"}

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import ldp_gym, ldp_agents
from ldp_gym.core.errors import MissingExtraError
named = 0
for package in (ldp_gym, ldp_agents):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        try:
            importlib.import_module(module.name)
        except MissingExtraError as error:
            named += "pip install 'ldp-gym[" in str(error)
assert named >= 5, named
assert ldp_gym.evaluate("amortized", {"horizon": 100}, episodes=2).risk > 0
try:
    ldp_agents.rl.SB3VecEnv
except MissingExtraError as error:
    print(error)
"""


TRAIN = """
import sys
sys.modules |= dict.fromkeys(["jinja2", "joblib", "pyarrow", "threadpoolctl"])  # what only bench needs
sys.argv = ["ldp-gym", "train", "amortized", "--help"]
from ldp_bench.__main__ import main
try:
    main()
except SystemExit:
    pass
"""


def test_training_needs_no_extra_but_its_own():
    pytest.importorskip("torch", reason="needs the extra: pip install 'ldp-gym[rl]'")
    assert "Train an agent" in run(TRAIN)


def test_without_the_extras_every_module_is_imported_or_names_its_extra():
    """And the shipped model plays: it needs NumPy only."""
    assert "SB3VecEnv needs stable_baselines3: pip install 'ldp-gym[rl]'" in run(BLOCKED)
