"""Count the package's files that run code while the environment is made, reset, stepped and evaluated.

Run ``python benchmarks/studies/traces.py``, with ``--files`` to list
them and ``--bench`` to trace ``ldp-gym bench quick`` too, which takes a minute.
"""

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym

import ldp_agents
import ldp_gym

ROOTS = [str(Path(package.__file__).parent) for package in (ldp_gym, ldp_agents)]


def visited(call: Callable[[], Any]) -> tuple[list[str], Any]:
    """The package's files whose functions run during a call, and what the call returns."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":  # an import only reads a file
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return sorted(file for file in files if file.startswith(tuple(ROOTS))), result


def run_quick() -> None:
    from ldp_bench.__main__ import main

    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stdout(io.StringIO()):
        sys.argv = ["ldp-gym", "bench", "quick", "--out", directory]
        with contextlib.suppress(SystemExit):
            main()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files")
    parser.add_argument("--bench", action="store_true", help="trace `ldp-gym bench quick` too")
    arguments = parser.parse_args()
    traces = {}
    traces["gym.make"], env = visited(lambda: gym.make("LDPDist-v0"))
    traces["reset"], _ = visited(lambda: env.reset(seed=0))
    action = env.action_space.sample()
    traces["step"], _ = visited(lambda: env.step(action))
    traces["evaluate"], _ = visited(lambda: ldp_gym.evaluate("bayes", {"horizon": 100}, episodes=2))
    if arguments.bench:
        traces["bench quick"], _ = visited(run_quick)
    for name, files in traces.items():
        print(f"{name:12s} {len(files):3d} files")
        if arguments.files:
            print(
                *(f"    {file.partition('site-packages/')[2] or file}" for file in files), sep="\n"
            )


if __name__ == "__main__":
    main()
