"""The command ``ldp-gym``, as the tests call it."""

import re

from typer.testing import CliRunner

from ldp_bench.commands import app


def run(*arguments):
    """The command's exit code, and what it printed."""
    result = CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "200"}
    )
    return result.exit_code, result.output


def run_in_line(*arguments):
    """The same; what it printed in one line, without the boxes' sides."""
    code, output = run(*arguments)
    return code, re.sub(r"[\s│]+", " ", output)
