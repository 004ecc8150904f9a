"""What `import ldp_gym` alone gives, by the names that the pages and errors use."""

import subprocess
import sys

import pytest

import ldp_agents
import ldp_gym


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "audit.certify",
        "bench.run",
        "testing.check_learner",
        "theory.capacity",
        "wrappers.MixtureAction",
    ],
)
def test_a_part_needs_no_import_of_its_own(name):
    run(f"import ldp_gym; assert '{name.partition('.')[0]}' in dir(ldp_gym); ldp_gym.{name}")


def test_the_learned_agents_need_no_import_of_their_own():
    assert run("import ldp_agents; print(ldp_agents.rl.load.__module__)") == "ldp_agents.rl.storage\n"


def test_parts_are_not_imported_before_they_are_used():
    loaded = "import sys, ldp_gym, ldp_agents; print(*(m for m in sys.modules if m.startswith('ldp_')))"
    modules = run(loaded).split()
    for part in ("ldp_gym.bench", "ldp_gym.testing", "ldp_gym.wrappers", "ldp_agents.rl"):
        assert part not in modules


@pytest.mark.parametrize("package", [ldp_gym, ldp_agents])
def test_what_is_not_there_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018
