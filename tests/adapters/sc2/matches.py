"""Matches of the stand-in through the real protocol, with a real `BotAI`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from understudy import Understudy
from understudy.sc2 import Strategist, contained, play_async, stand_in

with contained():
    from sc2.bot_ai import BotAI
    from sc2.data import Race, Result
    from sc2.main import play_from_websocket
    from sc2.player import Bot

STRATEGIES = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")
NO_PORTS: Any = None


class PassiveBot(BotAI):
    """Decides, commands nothing, and does what a test asks at some step."""

    def __init__(
        self,
        mind: Understudy,
        *,
        game_step: int = 88,
        tags: Mapping[str, object] | None = None,
        starting: Callable[[PassiveBot], None] = lambda bot: None,
        stepping: Callable[[PassiveBot], Awaitable[None] | None] = lambda bot: None,
    ) -> None:
        super().__init__()
        self.strategist = Strategist(self, mind, STRATEGIES, tags=tags)
        self.ended: list[Result] = []
        self._game_step = game_step
        self._starting, self._stepping = starting, stepping

    async def on_start(self) -> None:
        self.client.game_step = self._game_step
        self.strategist.start()
        self._starting(self)

    async def on_step(self, iteration: int) -> None:
        self.strategist.step(fallback="ECONOMY")
        waiting = self._stepping(self)
        if waiting is not None:
            await waiting

    async def on_end(self, game_result: Result) -> None:
        self.ended.append(game_result)
        self.strategist.end(game_result)


async def play_match(
    bot: BotAI,
    strategist: Strategist,
    scenario: stand_in.Scenario,
    *,
    race: str = "Zerg",
    realtime: bool = False,
    limit_s: int | None = None,
) -> Result | None:
    """One match in this process."""
    async with stand_in.serving(scenario) as address, stand_in.connected(address) as socket:
        game = play_from_websocket(
            socket, Bot(Race[race], bot), realtime, NO_PORTS, game_time_limit=limit_s
        )
        found: Result | None = await play_async(game, strategist)
        return found
