"""The map of the stand-in: two bases in opposite corners, and two more places for townhalls."""

from __future__ import annotations

import math
from functools import cache

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.ids.unit_typeid import UnitTypeId

NAME = "StandIn"
SIZE = 48
"""Small: burnysc2 looks at every cell when a match begins."""
OUR_BASES = ((11.5, 11.5), (11.5, 29.5), (29.5, 11.5))
THEIR_BASES = ((36.5, 36.5), (36.5, 18.5), (18.5, 36.5))
HOME, ENEMY_HOME = OUR_BASES[0], THEIR_BASES[0]
_MINERALS_FROM = 9000
_NEUTRAL = 3
Point = tuple[float, float]


def place(front: float, *, of_enemy: bool = False) -> Point:
    """The point at which an army stands, by its front."""
    share = 1.0 - front if of_enemy else front
    (x, y), (to_x, to_y) = HOME, ENEMY_HOME
    return x + (to_x - x) * share, y + (to_y - y) * share


def progress(x: float, y: float) -> float:
    """How far a point lies on the way from our base, 0, to the enemy's, 1."""
    (from_x, from_y), (to_x, to_y) = HOME, ENEMY_HOME
    along_x, along_y = to_x - from_x, to_y - from_y
    share = ((x - from_x) * along_x + (y - from_y) * along_y) / (along_x**2 + along_y**2)
    return min(max(share, 0.0), 1.0)


@cache
def game_info(map_name: str, our_race: int, enemy_race: int) -> bytes:
    """A response with `game_info`, serialised. Races as numbers of the protocol."""
    cells = SIZE * SIZE
    size = common_pb.Size2DI(x=SIZE, y=SIZE)
    ones = common_pb.ImageData(bits_per_pixel=1, size=size, data=b"\xff" * (cells // 8))
    info = sc_pb.ResponseGameInfo(
        map_name=map_name,
        local_map_path=f"{map_name}.SC2Map",
        start_raw=raw_pb.StartRaw(
            map_size=size,
            pathing_grid=ones,
            placement_grid=ones,
            terrain_height=common_pb.ImageData(bits_per_pixel=8, size=size, data=b"\x80" * cells),
            playable_area=common_pb.RectangleI(
                p0=common_pb.PointI(x=1, y=1), p1=common_pb.PointI(x=SIZE - 1, y=SIZE - 1)
            ),
            start_locations=[common_pb.Point2D(x=ENEMY_HOME[0], y=ENEMY_HOME[1])],
        ),
    )
    for player, race in ((1, our_race), (2, enemy_race)):
        one = info.player_info.add(player_id=player, race_requested=race, race_actual=race)
        one.type = sc_pb.Participant if player == 1 else sc_pb.Computer
        if player == 2:
            one.difficulty = sc_pb.Hard
    return bytes(sc_pb.Response(game_info=info).SerializeToString())


@cache
def minerals() -> tuple[raw_pb.Unit, ...]:
    """The mineral fields at our three places for townhalls."""
    found = []
    for base, (x, y) in enumerate(OUR_BASES):
        fields = 8 if base == 0 else 4
        for number in range(fields):
            angle = math.pi * (0.75 + number / (fields - 1))
            found.append(
                raw_pb.Unit(
                    display_type=raw_pb.Visible,
                    alliance=raw_pb.Neutral,
                    tag=_MINERALS_FROM + 10 * base + number,
                    unit_type=UnitTypeId.MINERALFIELD.value,
                    pos=common_pb.Point(
                        x=x + 6.5 * math.cos(angle), y=y + 6.5 * math.sin(angle), z=8.0
                    ),
                    mineral_contents=1800,
                    build_progress=1.0,
                    owner=16,
                )
            )
    return tuple(found)


@cache
def map_state() -> raw_pb.MapState:
    """All of the map in sight, all of it creep."""
    size = common_pb.Size2DI(x=SIZE, y=SIZE)
    cells = SIZE * SIZE
    return raw_pb.MapState(
        visibility=common_pb.ImageData(bits_per_pixel=8, size=size, data=b"\x02" * cells),
        creep=common_pb.ImageData(bits_per_pixel=1, size=size, data=b"\xff" * (cells // 8)),
    )
