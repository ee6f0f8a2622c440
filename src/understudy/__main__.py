"""`python -m understudy`, and the `understudy` command."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line, or say what it needs.

    Ctrl-C never prints a traceback: before the first command is known and after the last word was
    said there is nothing to keep, and the process just ends.
    """
    handler = signal.getsignal(signal.SIGINT)
    ours = handler is signal.default_int_handler  # it may be ignored: `nohup understudy ... &`
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from understudy.cli.app import run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.exit('understudy: the command line needs typer: pip install ".[learn]" in your clone')
    if ours:
        signal.signal(signal.SIGINT, handler)
    try:
        run()
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
