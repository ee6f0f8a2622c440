"""The `understudy` command: the commands, grouped, and how errors reach a person."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from understudy import __version__
from understudy.cli import config, learner, models, promotion
from understudy.cli.analyze import analyze
from understudy.cli.doctor import doctor
from understudy.cli.eval import evaluate
from understudy.cli.export import export
from understudy.cli.forget import forget
from understudy.cli.games import games
from understudy.cli.gate import gate
from understudy.cli.import_ import import_
from understudy.cli.monitor import monitor
from understudy.cli.play import play
from understudy.cli.ratings import ratings
from understudy.cli.report import report
from understudy.cli.serve import serve
from understudy.cli.status import status
from understudy.cli.tournament import tournament
from understudy.cli.train import train
from understudy.cli.watch import watch
from understudy.core.errors import Fenced, LearnerBusy, UnderstudyError
from understudy.supervise.interrupts import INTERRUPTED
from understudy.supervise.process import REFUSED
from understudy.telemetry.text import say

# Typer brings a click of its own and exports of its errors only this one's child.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(rich_help_panel="Play")(play)
app.command(rich_help_panel="Play")(serve)
app.add_typer(learner.app, name="learner", rich_help_panel="Play")
app.command(rich_help_panel="Train")(train)
app.command("eval", rich_help_panel="Judge")(evaluate)
app.command(rich_help_panel="Judge")(tournament)
app.command(rich_help_panel="Judge")(analyze)
app.command(rich_help_panel="Judge")(gate)
app.command(rich_help_panel="Look")(status)
app.command(rich_help_panel="Look")(monitor)
app.command(rich_help_panel="Look")(doctor)
app.command(rich_help_panel="Look")(report)
app.command(rich_help_panel="Look")(watch)
app.add_typer(models.app, name="models", rich_help_panel="Manage")
app.add_typer(promotion.app, name="promotion", rich_help_panel="Manage")
app.command(rich_help_panel="Manage")(ratings)
app.command(rich_help_panel="Manage")(games)
app.add_typer(config.app, name="config", rich_help_panel="Manage")
app.command("import", rich_help_panel="Manage")(import_)
app.command(rich_help_panel="Manage")(export)
app.command(rich_help_panel="Manage")(forget)


@app.command(rich_help_panel="Manage")
def version() -> None:
    """Print the version of this program.

    Example: understudy version
    """
    say(__version__)


@app.command("help", rich_help_panel="Manage")
def help_(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(help="A command, such as `play` or `models list`.")
    ] = None,
) -> None:
    """Print what --help prints: of this program, or of one command.

    Example: understudy help play
    """
    assert context.parent is not None
    app([*(command or []), "--help"], prog_name=context.parent.info_name, standalone_mode=False)


def _print_version(asked: bool) -> None:
    if asked:
        say(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A game bot keeps playing while a learner improves it in the background.

    Example: understudy play swarm
    """


def run() -> None:
    """A mistake is one line on stderr and exit code 2, never a traceback."""
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        _explain(error)
        code = 2
    except (LearnerBusy, Fenced) as error:
        say(f"understudy: {error}", file=sys.stderr)
        code = REFUSED
    except (UnderstudyError, OSError) as error:
        say(f"understudy: {error}", file=sys.stderr)
        code = 2
    except (KeyboardInterrupt, typer.Abort):  # where no session was there to end in good order
        code = INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _explain(error: Any) -> None:
    """What typer has to say, in one line instead of a box."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return  # making this error has printed the help
    message = " ".join(error.format_message().split())
    where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
    say(f"understudy: {message}{where}", file=sys.stderr)
