"""The exit status of the command: 1 is a verdict, and nothing else ends with it."""

import os
import subprocess
import sys

import pytest

from ldp_bench import commands

MAIN = "from ldp_bench.__main__ import main; main()"


def call(*arguments, before="", **options):
    """The command in its own process, after some lines of Python."""
    program = f"import sys\n{before}\n{MAIN}"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_help_ends_with_0():
    done = call("--help")
    assert done.returncode == 0
    assert done.stderr == ""


def test_help_imports_neither_the_game_nor_numpy():
    program = (
        "import sys, ldp_bench.commands\n"
        "print([name for name in ('numpy', 'gymnasium', 'ldp_gym', 'rich') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", commands._OWN)
def test_the_overview_has_the_first_sentence_of_each_command(name):
    address, sentence = commands._OWN[name]
    function = commands.EntryPoint(name, address, commands.GROUP).load()
    assert " ".join(function.__doc__.split()).startswith(sentence)


def test_a_wrong_call_ends_with_2_and_one_line():
    done = call("bench", "quik")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean 'quick'?" in done.stderr


def test_a_missing_extra_ends_with_2_and_one_line():
    done = call(before="sys.modules['typer'] = None")
    assert done.returncode == 2
    assert done.stderr == "the command ldp-gym needs typer: pip install 'ldp-gym[bench]'\n"


def test_importing_the_command_without_its_extra_says_what_to_install():
    program = "import sys; sys.modules['typer'] = None; import ldp_bench.commands"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr.endswith("the command ldp-gym needs typer: pip install 'ldp-gym[bench]'\n")


def test_an_error_in_the_program_is_no_verdict():
    broken = "import ldp_bench.commands.auditing as auditing; auditing.Rules = None"
    done = call("audit", "split", before=broken)
    assert done.returncode == 70
    assert "Traceback" in done.stderr


@pytest.mark.posix_only("a closed pipe")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["list", "channels"], 0),
        (["audit", "split"], 0),
        (["bench", "quik"], 2),
    ],
)
def test_the_status_is_the_same_if_nobody_reads_the_output(arguments, status):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


INTERRUPTED_IMPORT = """
import importlib.abc
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize("name", ["typer", "numpy", "gymnasium", "ldp_bench.commands.auditing"])
def test_an_interrupt_while_importing_ends_with_130_and_one_line(name):
    done = call("audit", "split", before=INTERRUPTED_IMPORT.format(name=name))
    assert done.returncode == 130
    assert done.stderr == "ldp-gym: stopped\n"


INTERRUPTED = """
import os, signal, ldp_bench.commands.catalogue as catalogue
catalogue.headings = lambda *_: os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.posix_only("SIGINT")
def test_an_interrupt_of_a_command_ends_with_130_and_one_line():
    done = call("list", before=INTERRUPTED)
    assert done.returncode == 130
    assert done.stderr == "ldp-gym: stopped\n"


def test_under_the_highest_level_of_optimization_a_suite_can_be_played(tmp_path):
    """Without docstrings and assertions."""
    arguments = ["bench", "limit", "--size", "small", "--episodes", "1", "--out", str(tmp_path)]
    done = call(*arguments, env={**os.environ, "PYTHONOPTIMIZE": "2"})
    assert done.returncode == 0
    assert (tmp_path / "report.html").exists()
