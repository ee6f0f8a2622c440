"""The `understudy` command: the commands, grouped, and how errors reach a person."""

from __future__ import annotations

import sys

import typer

from understudy import __version__
from understudy.cli import models
from understudy.cli.games import games
from understudy.cli.learner import learner
from understudy.cli.play import play
from understudy.cli.status import status
from understudy.core.errors import LearnerBusy, UnderstudyError
from understudy.supervise.process import REFUSED
from understudy.telemetry.text import say

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(rich_help_panel="Play")(play)
app.command(rich_help_panel="Play")(learner)
app.command(rich_help_panel="Look")(status)
app.add_typer(models.app, name="models", rich_help_panel="Manage")
app.command(rich_help_panel="Manage")(games)


@app.command(rich_help_panel="Manage")
def version() -> None:
    """Print the version of this program.

    Example: understudy version
    """
    say(__version__)


@app.callback()
def _root() -> None:
    """A game bot keeps playing while a learner improves it in the background."""


def run() -> None:
    """Errors that we raise on purpose are one line on stderr and exit code 2."""
    try:
        app()
    except UnderstudyError as error:
        say(f"understudy: {error}", file=sys.stderr)
        sys.exit(REFUSED if isinstance(error, LearnerBusy) else 2)
