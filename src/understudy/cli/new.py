"""`understudy new`: a folder to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.output import emit_text
from understudy.core.errors import ConfigError, nearest
from understudy.telemetry.text import say

KINDS = ("sc2-bot", "ai2-stand-in")


def new(
    kind: Annotated[str, typer.Argument(help="What to make: `sc2-bot` or `ai2-stand-in`.")],
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name is a bot's.")],
) -> None:
    """Make a folder to begin with: a bot, or a game to try things out with.

    `sc2-bot` is a bot for StarCraft II that learns which of five strategies to follow. It runs as
    it is: against the game, against its stand-in, and where a ladder starts it.

    `ai2-stand-in` looks like a checkout of the AI² tournament, over rules of our own.

    Example: understudy new sc2-bot my_bot
    """
    if kind not in KINDS:
        raise ConfigError(
            f"new: expected one of {', '.join(KINDS)}, got {kind!r}.{nearest(kind, KINDS)}"
        )
    if kind == "ai2-stand-in":
        _make_stand_in(folder)
    else:
        _make_bot(folder)


def _make_stand_in(folder: Path) -> None:
    from understudy.adapters.ai2.stand_in import write_stand_in

    for path in write_stand_in(folder):
        say(str(path))
    say("")
    emit_text(
        f"understudy train ai2 --option home={folder} --config tournament: train in it as in a "
        "checkout of the tournament"
    )


def _make_bot(folder: Path) -> None:
    from understudy.adapters.sc2.template import make_bot
    from understudy.core.dependencies import install_line, not_installed

    for path in make_bot(folder):
        say(str(path))
    run = folder / "run.py"
    say("")
    emit_text(f"python {run} --stand-in: play a small game in the place of StarCraft II")
    emit_text(f"python {run}: play StarCraft II, with a learner beside it")
    missing = not_installed("sc2", "jax")
    if missing:
        emit_text(f"Both need {' and '.join(missing)}: {install_line('sc2')}")
