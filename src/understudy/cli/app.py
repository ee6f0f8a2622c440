"""The `understudy` command: the commands, grouped, and how errors reach a person."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

from understudy import __version__
from understudy.core.errors import Fenced, LearnerBusy, UnderstudyError
from understudy.supervise.interrupts import INTERRUPTED
from understudy.supervise.process import REFUSED
from understudy.telemetry.text import say

# Typer brings a click of its own and exports of its errors only this one's child.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_COMMANDS = {
    "play": ("Play", "play:play"),
    "serve": ("Play", "serve:serve"),
    "learner": ("Play", "learner:app"),
    "train": ("Train", "train:train"),
    "eval": ("Judge", "eval:evaluate"),
    "tournament": ("Judge", "tournament:tournament"),
    "analyze": ("Judge", "analyze:analyze"),
    "gate": ("Judge", "gate:gate"),
    "status": ("Look", "status:status"),
    "monitor": ("Look", "monitor:monitor"),
    "dashboard": ("Look", "dashboard:dashboard"),
    "doctor": ("Look", "doctor:doctor"),
    "report": ("Look", "report:report"),
    "watch": ("Look", "watch:watch"),
    "models": ("Manage", "models:app"),
    "promotion": ("Manage", "promotion:app"),
    "ratings": ("Manage", "ratings:ratings"),
    "games": ("Manage", "games:games"),
    "config": ("Manage", "config:app"),
    "new": ("Manage", "new:new"),
    "import": ("Manage", "import_:import_"),
    "export": ("Manage", "export:export"),
    "relay": ("Manage", "relay:relay"),
    "forget": ("Manage", "forget:forget"),
}
"""Commands in the order of the help: their group, and the module of this room that has them."""
_VERSION = ("version",)
"""The command that every program has."""


def make_app(*names: str) -> typer.Typer:
    """The program with these commands alone, or with all of them.

    A command line needs one command, and importing all of them takes a quarter of a second.
    """
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in () if names == _VERSION else names or _COMMANDS:
        panel, where = _COMMANDS[name]
        module, _, attribute = where.partition(":")
        found = getattr(importlib.import_module(f"understudy.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, rich_help_panel=panel)
        else:
            app.command(name, rich_help_panel=panel)(found)
    app.command(rich_help_panel="Manage")(version)
    app.command("help", rich_help_panel="Manage")(help_)
    return app


def version() -> None:
    """Print the version of this program.

    Example: understudy version
    """
    say(__version__)


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
    line = [*(command or []), "--help"]
    make_app()(line, prog_name=context.parent.info_name, standalone_mode=False)


def _print_version(asked: bool) -> None:
    if asked:
        say(__version__)
        raise typer.Exit


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
        code = make_app(*_asked(sys.argv[1:]))(standalone_mode=False)
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


def _asked(line: list[str]) -> list[str]:
    """The command that a line begins with; none where it is a flag, or no command: then all are
    needed for the help, or for the nearest name."""
    if line in (["version"], ["--version"]):
        return [*_VERSION]
    return line[:1] if line and line[0] in _COMMANDS else []


def _explain(error: Any) -> None:
    """What typer has to say, in one line instead of a box."""
    if type(error).__name__ == "NoArgsIsHelpError":
        return  # making this error has printed the help
    message = " ".join(error.format_message().split())
    where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
    say(f"understudy: {message}{where}", file=sys.stderr)
