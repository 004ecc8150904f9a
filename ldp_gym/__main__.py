"""The console script ``ldp-gym``, and ``python -m ldp_gym``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command."""
    try:
        from ldp_gym.cli import app
    except ImportError as error:  # an extra is missing; the message says which
        sys.exit(str(error))
    app()


if __name__ == "__main__":
    main()
