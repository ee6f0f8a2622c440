"""`understudy games`: what can be played."""

from __future__ import annotations

from typing import Annotated

import typer

from understudy.cli.options import GameOption, Json, game_options
from understudy.cli.output import emit_text
from understudy.telemetry.text import say, say_json


def games(
    game: Annotated[
        str | None, typer.Argument(help="A game alone: its name, FILE.py:GAME or MODULE:GAME.")
    ] = None,
    option: GameOption = None,
    json: Json = False,
) -> None:
    """List the built-in games with their options, or check and describe one of your own.

    Example: understudy games my_game.py:TicTacToe
    """
    from understudy.games import catalog, custom

    if game is not None and custom.is_custom(game):
        game = custom.load_game(game, game_options(option or []))
    listed = catalog.describe(*([game] if game is not None else []))
    if json:
        table = [
            {
                "name": one.name,
                "version": one.version,
                "summary": one.summary,
                "options": {name: list(choices) for name, choices in one.options.items()},
                "bots": list(catalog.bots(one.name)),
            }
            for one in listed
        ]
        say_json(table)
        return
    for one in listed:
        say(f"{one.name} (rules version {one.version})")
        emit_text(one.summary, indent=2)
        for name, choices in one.options.items():
            more = ", adaptive" if name == "difficulty" else ""
            emit_text(f"--{name}: {', '.join(choices)}{more}", indent=2, more=4)
        emit_text(f"scripted: {', '.join(catalog.bots(one.name))}", indent=2, more=4)
