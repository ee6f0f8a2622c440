"""A stand-in of StarCraft II: a small game of our own behind the game's real protocol.

It needs burnysc2, for the protocol, and nothing of the game. Three ways to play it:

    async with stand_in.serving(stand_in.Scenario(seed=1)) as address:       # in this process
        async with stand_in.connected(address) as socket:
            await play_from_websocket(socket, Bot(Race.Zerg, ai), False, portconfig=None)

    stand_in.install(Path("stand-in"))          # a folder for SC2PATH: run_game(...) starts it
    a_run_multiple_games([GameMatch(map, [BotProcess(...), Computer(...)])])     # as a ladder does

docs/starcraft2.md has its rules; ADR 0042 says why it is as it is.
"""

from understudy.core.dependencies import needs

with needs("the stand-in of StarCraft II needs {}", extra="sc2"):
    from understudy.adapters.sc2.stand_in.connection import GameConnection, Scenario
    from understudy.adapters.sc2.stand_in.ground import NAME as MAP
    from understudy.adapters.sc2.stand_in.installation import install
    from understudy.adapters.sc2.stand_in.server import connected, serving

__all__ = ["GameConnection", "MAP", "Scenario", "connected", "install", "serving"]
