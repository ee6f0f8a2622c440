"""`python -m understudy`, and the `understudy` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from understudy.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('understudy: the command line needs typer: pip install "understudy[learn]"')
    run()


if __name__ == "__main__":
    main()
