"""Results that several modules read: the suites theorems and quick, at the small size."""

import sys

import pytest

import ldp_bench


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    from command_line import run  # needs the extra bench

    directory = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["<b>ldp-gym</b>", "bench"])
        ldp_bench.run("theorems", size="small", episodes=2, jobs=1, out=directory)
        code, output = run(
            "bench", "quick", "--size", "small", "--episodes", 5, "--jobs", 1, "--out", directory
        )
    assert code == 0, output
    return directory, output
