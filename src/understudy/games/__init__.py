"""Games as pure array functions: the contract, the built-in games and the catalog of them.

A game of your own imports what it needs from here: the contract (`Game`, `Bot`, `Ops`, `Array`),
random numbers (`chance`), and the shapes of its `draw` (`shapes`). Every name is loaded when it is
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.core import chance as chance
    from understudy.core.ops import Array as Array
    from understudy.core.ops import Ops as Ops
    from understudy.games.base import Bot as Bot
    from understudy.games.base import Game as Game

_HOMES = {
    "Array": "understudy.core.ops",
    "Bot": "understudy.games.base",
    "Game": "understudy.games.base",
    "Ops": "understudy.core.ops",
}


def __getattr__(name: str) -> Any:
    if name == "chance":
        return importlib.import_module("understudy.core.chance")
    if name not in _HOMES:
        raise AttributeError(f"module 'understudy.games' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
