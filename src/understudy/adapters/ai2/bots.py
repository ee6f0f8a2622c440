"""The tournament's scripted agents as opponents of a league: they decide inside the game's process.

`random` is missing, since every league has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from understudy.adapters.ai2.game_process import AGENTS, AgentAction


def _bot(name: str) -> Callable[[Any, Any, Any], AgentAction]:
    action = AgentAction(name)
    return lambda observation, legal, rng: action


BOTS = {name: _bot(name) for name in AGENTS if name != "random"}
