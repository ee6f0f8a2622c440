"""One client of the stand-in: requests in, responses out, no I/O.

Keeps the status of the protocol: launched, then init_game (created), in_game (joined), ended, and
launched again after leave_game. A match without `create_game` can be joined too, as on a ladder
where another program has created it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.data import AIBuild, Difficulty, PlayerType, Race

from understudy.adapters.sc2.stand_in import catalogue, commands, ground, players, rules
from understudy.adapters.sc2.stand_in.catalogue import RACES, RaceName
from understudy.adapters.sc2.stand_in.observation import MatchView
from understudy.adapters.sc2.stand_in.rules import MatchState

BASE_BUILD = 93333
_INCOME = {
    "VeryEasy": 0.6,
    "Easy": 0.75,
    "Medium": 0.9,
    "MediumHard": 0.95,
    "Hard": 1.0,
    "Harder": 1.05,
    "VeryHard": 1.1,
    "CheatVision": 1.1,
    "CheatMoney": 1.2,
    "CheatInsane": 1.3,
}
"""What the opponent's workers bring home, by its difficulty."""
_LAUNCHED, _CREATED, _PLAYING, _ENDED, _QUIT = (
    sc_pb.launched,
    sc_pb.init_game,
    sc_pb.in_game,
    sc_pb.ended,
    sc_pb.quit,
)


class Scenario(NamedTuple):
    """How matches of a stand-in begin and end."""

    seed: int | None = None
    """Of the first match; each later one has the next number. None: by chance."""
    build: str = ""
    """The opponent's, of `players.BUILDS`; empty: as `create_game` says, else by the seed."""
    enemy_race: RaceName = "Terran"
    """Where there was no `create_game`."""
    closes_at: int | None = None
    """The loop at which the socket closes, as where the game crashes or a ladder's time is up."""
    army: float = 0.0
    """Soldiers of the rules that both sides begin with."""
    peaceful: bool = False
    """Neither side does anything and no match is decided: only `closes_at` ends it."""


class SocketClosed(Exception):
    """The stand-in closes the connection without an answer."""


class GameConnection:
    """The state of one client."""

    def __init__(self, scenario: Scenario = Scenario()) -> None:  # noqa: B008  it is immutable
        self._scenario = scenario
        self._status = _LAUNCHED
        self._created: sc_pb.RequestCreateGame | None = None
        self._map = ground.NAME
        self._game: MatchState = rules.start()
        self._opponent = players.OpponentPlan("Timing", 1.0)
        self._race: RaceName = "Zerg"
        self._enemy_race: RaceName = scenario.enemy_race
        self._view = MatchView(self._race, self._enemy_race)
        self._matches = 0
        self._handlers: dict[str, Callable[[sc_pb.Request, sc_pb.Response], bytes | None]] = {
            "ping": self._ping,
            "create_game": self._create,
            "join_game": self._join,
            "data": self._data,
            "game_info": self._game_info,
            "observation": self._observe,
            "action": self._act,
            "step": self._step,
            "leave_game": self._leave,
            "quit": self._quit,
        }
        """Each fills a response in, or returns a part of it that is serialised already. Other
        requests get an empty response of their kind."""

    @property
    def over(self) -> bool:
        """Whether the client has asked the game to quit."""
        return self._status == _QUIT

    def answer(self, request: bytes) -> bytes:
        """The response to a request; raises SocketClosed where there is none."""
        asked = sc_pb.Request.FromString(request)
        kind = asked.WhichOneof("request")
        response = sc_pb.Response()
        part: bytes | None = None
        if asked.HasField("id"):
            response.id = asked.id
        if kind is None:
            response.error.append("The stand-in does not know this request")
        elif kind in self._handlers:
            part = self._handlers[kind](asked, response)
        else:
            getattr(response, kind).SetInParent()
        response.status = self._status
        return (part or b"") + bytes(response.SerializeToString())

    def _ping(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        response.ping.game_version = "stand-in"
        response.ping.base_build = BASE_BUILD

    def _create(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        made = request.create_game
        response.create_game.SetInParent()
        if not any(one.type == PlayerType.Computer.value for one in made.player_setup):
            response.create_game.error = sc_pb.ResponseCreateGame.MultiplayerUnsupported
            response.create_game.error_details = "the stand-in plays against a Computer(...)"
            return
        self._created = made
        path = made.local_map.map_path or made.battlenet_map_name
        self._map = path.replace("\\", "/").rpartition("/")[2].removesuffix(".SC2Map") or self._map
        self._status = _CREATED

    def _join(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        race = Race(request.join_game.race).name
        income, build, seed = 1.0, self._scenario.build, self._scenario.seed
        made, self._created = self._created, None
        if made is not None:
            computer = next(
                one for one in made.player_setup if one.type == PlayerType.Computer.value
            )
            self._enemy_race = _race(Race(computer.race).name)
            income = _INCOME[Difficulty(computer.difficulty).name]
            build = build or AIBuild(computer.ai_build).name
            if made.HasField("random_seed"):
                seed = made.random_seed
        seed = random.getrandbits(31) if seed is None else seed + self._matches
        self._matches += 1
        self._race = _race(race)
        named = build if build in players.BUILDS else ""
        self._game, self._opponent = players.drawn(seed, named, income=income)
        ours, theirs = (side._replace(army=self._scenario.army) for side in self._game.sides)
        self._game = self._game._replace(sides=(ours, theirs))
        self._view = MatchView(self._race, self._enemy_race)
        self._status = _PLAYING
        response.join_game.player_id = 1

    def _data(self, request: sc_pb.Request, response: sc_pb.Response) -> bytes:
        return catalogue.game_data()

    def _game_info(self, request: sc_pb.Request, response: sc_pb.Response) -> bytes:
        return _game_info(self._map, self._race, self._enemy_race)

    def _observe(self, request: sc_pb.Request, response: sc_pb.Response) -> bytes | None:
        if self._status not in (_PLAYING, _ENDED):
            response.error.append("Not in a game")
            return None
        asked = request.observation.game_loop
        if request.observation.HasField("game_loop") and asked > self._game.loop:
            self._advance(asked - self._game.loop)  # real time: the game has gone on meanwhile
        result = self._result()
        if result is not None:
            self._status = _ENDED
        return self._view.observation(self._game, result=result)

    def _act(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        response.action.SetInParent()
        if self._status != _PLAYING:
            return
        ours, theirs = self._game.sides
        for command in commands.unit_commands(request.action.actions):
            ours, result = commands.obeyed(ours, self._race, command, self._game.loop)
            response.action.result.append(result)
        self._game = self._game._replace(sides=(ours, theirs))

    def _step(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        if self._status != _PLAYING:
            response.error.append("Not in a game")
            return
        self._advance(max(request.step.count, 1))
        response.step.simulation_loop = self._game.loop

    def _leave(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        self._status = _LAUNCHED
        response.leave_game.SetInParent()

    def _quit(self, request: sc_pb.Request, response: sc_pb.Response) -> None:
        self._status = _QUIT
        response.quit.SetInParent()

    def _result(self) -> str | None:
        return None if self._scenario.peaceful else rules.outcome(self._game)

    def _advance(self, loops: int) -> None:
        """Lets time pass; the opponent orders every `players.GAME_STEP` loops."""
        end = self._game.loop + loops
        if self._scenario.closes_at is not None and end >= self._scenario.closes_at:
            raise SocketClosed
        if self._scenario.peaceful:
            self._game = self._game._replace(loop=end)
            return
        while self._game.loop < end and self._result() is None:
            to_order = players.GAME_STEP - self._game.loop % players.GAME_STEP
            if to_order == players.GAME_STEP:
                self._game = players.answered(self._game, self._opponent)
            self._game = rules.advance(self._game, min(to_order, end - self._game.loop))


@cache
def _game_info(map_name: str, race: RaceName, enemy_race: RaceName) -> bytes:
    """The same in every step of a match."""
    return ground.game_info(map_name, Race[race].value, Race[enemy_race].value)


def _race(name: str) -> RaceName:
    """A race of the game; Random is Zerg."""
    return next((race for race in RACES if race == name), "Zerg")
