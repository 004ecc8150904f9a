"""The wheel: complete, and enough to play both environments and the shipped models, without the source."""

import subprocess
import sys
import sysconfig
import venv
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "ldp_gym": ROOT / "ldp_gym",
    "ldp_agents": ROOT / "agents" / "ldp_agents",
    "ldp_bench": ROOT / "benchmarks" / "ldp_bench",
}
PLAY = """
from pathlib import Path
import gymnasium as gym
import ldp_agents, ldp_bench, ldp_gym

for name in ("LDPDist-v0", "LDPDistBox-v0"):
    env = gym.make(name, horizon=20)
    env.reset(seed=0)
    env.action_space.seed(0)
    assert [env.step(env.action_space.sample())[2] for _ in range(20)] == 19 * [False] + [True]
rules = {"channel": "split", "horizon": 300}
uniform = ldp_gym.evaluate("uniform", rules, episodes=4).kl[:, -1].sum()
for model in sorted(path.name for path in (Path(ldp_agents.__file__).parent / "rl" / "weights").iterdir()):
    assert ldp_gym.evaluate(model, rules, episodes=4).kl[:, -1].sum() < 0.5 * uniform
    print(model)
print(ldp_gym.__file__, ldp_agents.__file__, ldp_bench.__file__)
"""


def run(*command: object, cwd: Path) -> str:
    words = [str(part) for part in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source by the installed tools: no index is asked."""
    for tool in ("hatchling", "hatch_fancy_pypi_readme"):
        import_module(tool)
    folder = tmp_path_factory.mktemp("wheel")
    build = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    return folder / run(sys.executable, "-c", build, folder, cwd=ROOT).split()[-1]


def test_it_has_every_file_of_the_packages(wheel):
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in PACKAGES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == source


def test_its_description_is_that_of_a_release(wheel):
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        description = archive.read(metadata).decode("utf-8")
    assert "There is no release yet" not in description
    assert 'pip install "ldp-gym[bench,rl]"' in description
    assert "](docs/" not in description


def test_it_plays_without_the_source(wheel, tmp_path):
    venv.create(tmp_path / "clean", symlinks=sys.platform != "win32")
    scripts = tmp_path / "clean" / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / f"python{sysconfig.get_config_var('EXE') or ''}"
    install = ("install", "--no-index", "--no-deps", wheel)
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=tmp_path)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-I", "-c", where, cwd=tmp_path).strip())
    # The dependencies are those of this environment; what is in the clean one is found first.
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (site / "dependencies.pth").write_text("\n".join(folders))
    *models, places = run(python, "-I", "-W", "ignore", "-c", PLAY, cwd=tmp_path).splitlines()
    assert models == sorted(
        path.name for path in (PACKAGES["ldp_agents"] / "rl" / "weights").iterdir()
    )
    assert "amortized" in models
    assert places.split() == [str(site / name / "__init__.py") for name in PACKAGES]
    assert any(path.stem == "ldp-gym" for path in scripts.iterdir())
