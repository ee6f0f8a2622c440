"""Scripted bots of a user for an environment: any Python callables, from a file or a module.

    # my_bots.py
    def cautious(observation, legal, rng):      # returns an action as the environment takes it
        return int(rng.choice(legal.nonzero()[0]))

    BOTS = {"cautious": cautious}

The module is loaded as one of bots for the arena is (`games.custom`); here a bot is a callable.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from understudy.adapters.environments.sides import RANDOM, ScriptedBot
from understudy.core.errors import ConfigError
from understudy.games import custom

_TAKEN = (RANDOM, "learner", "champion")
_ARGUMENTS = ("observation", "legal", "rng")


def load_bots(sources: Sequence[str], *, flag: str = "--bots") -> dict[str, ScriptedBot]:
    """The bots of these files and modules, by name; what is wrong is a `ConfigError`."""
    found: dict[str, ScriptedBot] = {}
    for source in sources:
        where = f"{flag} {source}"
        for name, bot in custom.load_bots(source, flag=flag).items():
            if name in found or name in _TAKEN:
                raise ConfigError(f"{where}: there is an opponent {name!r} already; rename the bot")
            _check(name, bot, where)
            found[name] = bot
    return found


def _check(name: str, bot: Any, where: str) -> None:
    wanted = f"a callable {name}({', '.join(_ARGUMENTS)}) for an environment"
    if not callable(bot):
        raise ConfigError(f"{where}: {name}: expected {wanted}, got {bot!r}")
    try:
        signature = inspect.signature(bot)
    except ValueError:
        return  # a callable without a signature, such as one of C: it shows when it plays
    try:
        signature.bind(*_ARGUMENTS)
    except TypeError as error:
        raise ConfigError(
            f"{where}: {name}: expected {wanted}, but it takes {signature}"
        ) from error
