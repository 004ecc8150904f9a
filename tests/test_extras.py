"""Without the extras every module can be imported, or says in one way which extra it needs."""

import subprocess
import sys

BLOCKED = """
import importlib, importlib.abc, pkgutil, sys

EXTRAS = {"typer", "rich", "joblib", "matplotlib", "pyarrow", "torch", "stable_baselines3", "sb3_contrib",
          "pygame", "tensorboard", "distributed", "dp_accounting", "sklearn", "pandas", "minari", "moviepy"}

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import ldp_gym, ldp_agents
from ldp_gym.core.errors import MissingExtraError
fallen, named = [], 0
for package in (ldp_gym, ldp_agents):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if module.name == "ldp_gym.__main__":
            continue
        try:
            importlib.import_module(module.name)
        except MissingExtraError as error:
            named += "pip install 'ldp-gym[" in str(error)
        except BaseException as error:
            fallen.append(f"{module.name}: {type(error).__name__}: {error}")
try:
    ldp_agents.rl.SB3VecEnv
except MissingExtraError as error:
    print(error)
print("\\n".join(fallen))
sys.exit(bool(fallen) or named < 5)
"""


def test_every_module_is_imported_or_names_its_extra():
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SB3VecEnv needs stable_baselines3: pip install 'ldp-gym[rl]'" in done.stdout
