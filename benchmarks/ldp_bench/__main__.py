"""The console script ``ldp-gym``, and ``python -m ldp_bench``.

Exit statuses: 0, or 1 for a verdict (a broken promise, a failed learner), whether anyone reads the output or
not; 2 for a wrong call; 70 for an error in the program; 130 if it was interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

_WRONG_CALL = 2
"""Exit status if the command cannot be done as it was asked for."""

_STOPPED = 130
"""Exit status after an interrupt, as shells have it."""

_OUR_ERROR = 70
"""Exit status after an error in the program: 1 would be a verdict."""


class Output(io.TextIOWrapper):
    """Standard output or error. It goes on, to nowhere, once its reader is gone.

    A character that the terminal cannot show becomes "?".
    """

    def write(self, text: str) -> int:
        """Write a text, and return its length, whether or not anyone still reads."""
        try:
            return super().write(text)
        except BrokenPipeError:
            self._write_to_nowhere()
            return len(text)

    def flush(self) -> None:
        """Write what is kept back, unless nobody reads it any more."""
        try:
            super().flush()
        except BrokenPipeError:
            self._write_to_nowhere()

    def _write_to_nowhere(self) -> None:
        """Let everything that is still to be written go nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def main() -> None:
    """Run the command; modules in the working directory never replace installed ones."""
    os.environ["PYTHONSAFEPATH"] = "1"
    sys.stdout = _guarded(sys.stdout)
    sys.stderr = _guarded(sys.stderr)
    try:
        _run()
    except KeyboardInterrupt:
        print("ldp-gym: stopped", file=sys.stderr)
        sys.exit(_STOPPED)
    except Exception:
        import traceback

        traceback.print_exc()
        sys.exit(_OUR_ERROR)


def _run() -> None:
    """Import the command and run it; it ends by SystemExit."""
    try:
        from ldp_bench.commands import app
    except ImportError as error:  # an extra is missing; the message says which
        print(error, file=sys.stderr)
        sys.exit(_WRONG_CALL)
    app()


def _guarded(stream: TextIO) -> TextIO:
    """Return a stream of the system as :class:`Output`; one that a host has put there stays as it is."""
    if type(stream) is not io.TextIOWrapper:
        return stream
    return Output(
        stream.buffer,
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
    )


if __name__ == "__main__":
    main()
