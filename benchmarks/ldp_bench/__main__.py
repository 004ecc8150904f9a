"""The console script ``ldp-gym``, and ``python -m ldp_bench``."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Run the command; modules in the working directory never replace installed ones."""
    os.environ["PYTHONSAFEPATH"] = "1"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="replace"
            )  # a terminal without Unicode shows "?" for a check mark
    try:
        from ldp_bench.commands import app
    except ImportError as error:  # an extra is missing; the message says which
        sys.exit(str(error))
    app()


if __name__ == "__main__":
    main()
