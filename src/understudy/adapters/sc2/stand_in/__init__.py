"""A stand-in of StarCraft II: a small game of our own behind the game's real protocol.

It needs burnysc2, for the protocol, and nothing of the game. Three ways to play it:

    socket = stand_in.local_socket(stand_in.Scenario(seed=1))               # in this process
    await play_from_websocket(socket, Bot(Race.Zerg, ai), False, portconfig=None)

    stand_in.install(Path("stand-in"))          # a folder for SC2PATH: run_game(...) starts it
    a_run_multiple_games([GameMatch(map, [BotProcess(...), Computer(...)])])     # as a ladder does

`serving` and `connected` are the first way over a real socket. docs/starcraft2.md has the rules of
the game; ADR 0042 says why they are so.
"""

from understudy.core.dependencies import needs

with needs("the stand-in of StarCraft II needs {}", extra="sc2"):
    from understudy.adapters.sc2.stand_in.connection import GameConnection, Scenario
    from understudy.adapters.sc2.stand_in.ground import NAME as MAP
    from understudy.adapters.sc2.stand_in.installation import install
    from understudy.adapters.sc2.stand_in.server import connected, local_socket, serving

__all__ = ["GameConnection", "MAP", "Scenario", "connected", "install", "local_socket", "serving"]
