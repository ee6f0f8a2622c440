"""A StarCraft II bot that learns: what a bot over burnysc2 imports, beside `understudy`.

`Strategist` chooses a strategy every 88 game loops, `play` and `play_async` run the call that plays
a match and keep every ending, `contained` keeps burnysc2 from your logging and your Ctrl-C,
`FEATURES` names the fifteen features, `ladder_arguments` reads what a ladder passes, `ladder_run`
is the run folder of a bot there. These need numpy and msgspec alone: nothing here imports `sc2`.
`stand_in` is a game to try it with where StarCraft II is not installed, and needs burnysc2.
docs/starcraft2.md shows how they fit together.
"""

from __future__ import annotations

import importlib
from typing import Any

from understudy.adapters.sc2.features import FEATURES, SCALES, EnemySightings, features
from understudy.adapters.sc2.ladder import LadderArguments, ladder_arguments, ladder_run
from understudy.adapters.sc2.runner import contained, play, play_async
from understudy.adapters.sc2.strategist import (
    DECISION_LOOPS,
    TIME_LIMIT_LOOPS,
    match_tags,
    outcome_of,
)
from understudy.adapters.sc2.strategist import Sc2Strategist as Strategist

__all__ = [
    "DECISION_LOOPS",
    "EnemySightings",
    "FEATURES",
    "LadderArguments",
    "SCALES",
    "Strategist",
    "TIME_LIMIT_LOOPS",
    "contained",
    "features",
    "ladder_arguments",
    "ladder_run",
    "match_tags",
    "outcome_of",
    "play",
    "play_async",
    "stand_in",  # noqa: F822  loaded when it is used
]


def __getattr__(name: str) -> Any:
    if name != "stand_in":
        raise AttributeError(f"module 'understudy.sc2' has no attribute {name!r}")
    with contained():
        return importlib.import_module("understudy.adapters.sc2.stand_in")
