"""`understudy games`: what can be played."""

from __future__ import annotations

from understudy.cli.options import Json
from understudy.cli.output import emit_text
from understudy.telemetry.text import say, say_json


def games(
    json: Json = False,
) -> None:
    """List the built-in games with their options.

    Example: understudy games
    """
    from understudy.games import catalog

    listed = catalog.describe()
    if json:
        table = [
            {
                "name": game.name,
                "version": game.version,
                "summary": game.summary,
                "options": {name: list(choices) for name, choices in game.options.items()},
                "bots": list(catalog.bots(game.name)),
            }
            for game in listed
        ]
        say_json(table)
        return
    for game in listed:
        say(f"{game.name} (rules version {game.version})")
        emit_text(game.summary, indent=2)
        for name, choices in game.options.items():
            more = ", adaptive" if name == "difficulty" else ""
            emit_text(f"--{name}: {', '.join(choices)}{more}", indent=2, more=4)
        emit_text(f"scripted: {', '.join(catalog.bots(game.name))}", indent=2, more=4)
