# PYTHON_ARGCOMPLETE_OK
"""The command ``losscurv``, also ``python -m losscurv``."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command line and return its exit status."""
    from verify.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
