"""Matches of the stand-in of StarCraft II in this process, for the benchmarks of the adapter."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from typing import Any

from understudy import Understudy
from understudy.sc2 import contained, play_async, stand_in

with contained():
    from sc2.data import Race
    from sc2.main import play_from_websocket
    from sc2.player import Bot

from understudy.adapters.sc2.template.bot import STRATEGIES, LearningBot

NO_PORTS: Any = None
GAME_STEP = 8
ACTIONS = tuple(STRATEGIES)
gc.set_threshold(20_000, 20, 1)  # as the template's run.py does


async def matches(mind: Understudy, *, first_seed: int) -> AsyncIterator[LearningBot]:
    """Plays one match after the other, each with the next seed; the bot of each when it is over."""
    socket = stand_in.local_socket(stand_in.Scenario(seed=first_seed))
    while True:
        bot = LearningBot(mind, opponent="stand-in", game_step=GAME_STEP)
        player = Bot(Race.Zerg, bot)
        game = play_from_websocket(socket, player, False, NO_PORTS, should_close=False)
        await play_async(game, bot.strategist)
        yield bot
