"""A match of the stand-in as StarCraft II shows it: units with tags, places, orders and hit points.

The rules count; this module deals the counts out to units. A unit's tag is its kind's first tag and
its number, so a unit keeps its tag as long as there are that many of its kind.

A response is put together from serialised parts: bytes of one protobuf message that follow each
other are read as the merged message. Most units of a match do not change from step to step, and
their bytes are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId

from understudy.adapters.sc2.stand_in import ground, rules
from understudy.adapters.sc2.stand_in.catalogue import (
    RACES,
    SOLDIER_HP,
    RaceName,
    RaceNames,
    ability_of,
    research_of,
)
from understudy.adapters.sc2.stand_in.ground import Point
from understudy.adapters.sc2.stand_in.players import SCOUTED
from understudy.adapters.sc2.stand_in.rules import PRICES, Kind, MatchState, Purchase, Side, making

WORKERS, SOLDIERS, HALLS, DEFENCES, SUPPLIES = 1000, 2000, 3000, 3100, 3200
LABORATORIES, BARRACKS, GAS, SITES, LARVAE, EGGS = 3300, 3400, 3500, 3600, 4000, 5000
"""The first tag of each kind of our units."""
ENEMY = 100_000
"""What is added to the tags of the opponent's units."""
_LARVAE_SHOWN, _SUPPLIES_SHOWN = 8, 4
"""At most: burnysc2 takes its time for every unit, and a bot needs no more of these in a step."""
_WORKER_HP, _STRUCTURE_HP, _HALL_HP = 40.0, 300.0, 1500.0
_SITES: tuple[Kind, ...] = ("hall", "defence", "laboratory")
_FROM_LARVAE: tuple[Kind, ...] = ("worker", "soldier", "supply")


class MatchView:
    """One match as its player is shown it."""

    def __init__(self, race: RaceName, enemy_race: RaceName) -> None:
        self._names, self._enemy_names = RACES[race], RACES[enemy_race]
        self._army = _ArmyMessage(self._names, SOLDIERS, raw_pb.Self)
        self._enemy_army = _ArmyMessage(self._enemy_names, ENEMY + SOLDIERS, raw_pb.Enemy)
        self._shown: dict[int, int] = {}
        """How many mortal units there were in the last observation, by their first tags."""

    def observation(self, game: MatchState, *, result: str | None) -> bytes:
        """A response with what our side sees, serialised; without a status.

        `result`: of a match that is over.
        """
        ours, theirs = game.sides
        scouted = game.loop >= SCOUTED or theirs.front > 0.5
        counts = _mortal(ours, self._names, 0)
        parts = [_landscape(), self._army.serialised(ours, ground.place(ours.front))]
        parts.extend(_side(ours, self._names, game.loop))
        if scouted:
            counts |= _mortal(theirs, self._enemy_names, ENEMY)
            place = ground.place(theirs.front, of_enemy=True)
            parts.append(self._enemy_army.serialised(theirs, place))
            parts.extend(_enemy_base(theirs, self._enemy_names))
        dead = _dead(self._shown, counts)
        self._shown = counts
        return b"".join((_summary(game, self._names, dead, result), *parts))


def soldiers_shown(side: Side, names: RaceNames) -> int:
    """Units of the army that are seen."""
    return math.ceil(round(side.army * names.heads, 3))


def halls_shown(side: Side) -> int:
    """Townhalls that are seen: one for each place, though a side that rebuilds what is half razed
    may have a part of one more."""
    return min(math.ceil(side.halls), len(ground.OUR_BASES))


def _summary(game: MatchState, names: RaceNames, dead: list[int], result: str | None) -> bytes:
    """All but the units and the map."""
    response = sc_pb.Response()
    seen = response.observation
    ours = game.sides[0]
    seen.observation.game_loop = game.loop
    seen.observation.player_common.CopyFrom(_common(ours, names))
    raw = seen.observation.raw_data
    raw.player.upgrade_ids.extend(one.value for one in names.upgrades[: ours.upgrades])
    raw.event.dead_units.extend(dead)
    if result is not None:
        other = {"Victory": "Defeat", "Defeat": "Victory"}.get(result, result)
        for player, name in ((1, result), (2, other)):
            seen.player_result.add(player_id=player, result=sc_pb.Result.Value(name))
    return bytes(response.SerializeToString())


def _common(side: Side, names: RaceNames) -> sc_pb.PlayerCommon:
    return sc_pb.PlayerCommon(
        player_id=1,
        minerals=int(side.minerals),
        vespene=int(side.gas),
        food_cap=side.supply_cap,
        food_used=math.ceil(rules.supply_used(side)),
        food_workers=math.ceil(side.workers),
        food_army=math.ceil(side.army),
        army_count=soldiers_shown(side, names),
        larva_count=int(side.larvae) if names is RACES["Zerg"] else 0,
    )


def _mortal(side: Side, names: RaceNames, offset: int) -> dict[int, int]:
    """How many units there are that can be killed, by their first tags."""
    return {
        offset + WORKERS: math.ceil(side.workers),
        offset + SOLDIERS: soldiers_shown(side, names),
        offset + HALLS: halls_shown(side),
        offset + DEFENCES: math.ceil(side.defences),
    }


def _dead(before: dict[int, int], now: dict[int, int]) -> list[int]:
    """The tags of units that were there before."""
    return [
        first + number
        for first, count in before.items()
        for number in range(now.get(first, count), count)
    ]


# --- armies --------------------------------------------------------------------------------------


class _ArmyMessage:
    """An army as one message that is changed from step to step: making one takes ten times as long.

    Soldiers stand around one point. The last of them is the wounded one.
    """

    def __init__(
        self, names: RaceNames, first_tag: int, alliance: raw_pb.Alliance.ValueType
    ) -> None:
        self._names, self._first_tag, self._alliance = names, first_tag, alliance
        self._message = sc_pb.Response()
        self._units = self._message.observation.observation.raw_data.units
        self._place: Point = ground.HOME
        self._army = -1.0
        self._bytes = b""

    def serialised(self, side: Side, place: Point) -> bytes:
        """The army of a side at a place, serialised."""
        if (side.army, place) == (self._army, self._place):
            return self._bytes
        count, each = soldiers_shown(side, self._names), SOLDIER_HP / self._names.heads
        units = self._units
        moved = 0 if place != self._place else len(units)
        if count < len(units):
            del units[count:]
        if units:
            units[-1].health = each
        while len(units) < count:
            tag = self._first_tag + len(units)
            units.append(_unit(tag, self._names.soldier, place, each, alliance=self._alliance))
        if units:
            units[-1].health = min(each, max(side.army * SOLDIER_HP - each * (count - 1), 1.0))
        x, y = place
        for number in range(moved, count):
            position = units[number].pos
            position.x, position.y = x + number % 7 * 0.3, y + number % 5 * 0.3
        self._army, self._place = side.army, place
        self._bytes = bytes(self._message.SerializeToString())
        return self._bytes


# --- bases ---------------------------------------------------------------------------------------


def _side(side: Side, names: RaceNames, loop: int) -> Iterator[bytes]:
    """Our side, but for its army."""
    zerg = names is RACES["Zerg"]
    pulled = round(rules.militia(side))
    yield _still(WORKERS, names.worker, pulled, math.ceil(side.workers))
    yield _still(DEFENCES, names.defence, 0, math.ceil(side.defences))
    supplies = min(round(rules.owned(side, "supply")) + 1, _SUPPLIES_SHOWN)
    yield _still(SUPPLIES, names.supply, 0, supplies)
    yield _still(GAS, names.gas, 0, 1)
    if zerg:
        yield _still(LARVAE, UnitTypeId.LARVA, 0, min(int(side.larvae), _LARVAE_SHOWN))
    trained: Kind
    for first, kind, count, trained in (
        (HALLS, names.hall, halls_shown(side), "worker"),
        (BARRACKS, names.barracks, 1, "soldier"),
        (LABORATORIES, names.laboratory, side.laboratories, "upgrade"),
    ):
        orders = () if zerg and trained != "upgrade" else _queue(side, names, loop, trained)
        if orders:
            yield _serialised(
                _placed(first, number, kind, orders=orders[:5]) for number in range(count)
            )
        else:
            yield _still(first, kind, 0, count)
    changing = [*_pulled_workers(side, names, pulled), *_unfinished(side, names, loop)]
    if changing:
        yield _serialised(changing)


def _enemy_base(side: Side, names: RaceNames) -> Iterator[bytes]:
    yield _still(ENEMY + HALLS, names.hall, 0, halls_shown(side))
    yield _still(ENEMY + DEFENCES, names.defence, 0, math.ceil(side.defences))


def _pulled_workers(side: Side, names: RaceNames, pulled: int) -> Iterator[raw_pb.Unit]:
    """Workers that go along with the army."""
    if not pulled:
        return
    attacking = _order(AbilityId.ATTACK.value, 0.0)
    attacking.target_world_space_pos.x, attacking.target_world_space_pos.y = ground.ENEMY_HOME
    front = ground.place(side.front)
    for number in range(pulled):
        yield _unit(WORKERS + number, names.worker, front, _WORKER_HP, orders=(attacking,))


def _unfinished(side: Side, names: RaceNames, loop: int) -> Iterator[raw_pb.Unit]:
    """Structures that are being built, and eggs."""
    zerg = names is RACES["Zerg"]
    for number, one in enumerate(side.making):
        if one.kind in _SITES or (one.kind == "supply" and not zerg):
            yield _site(SITES + number, names, one, loop)
        elif zerg and one.kind in _FROM_LARVAE:
            order = _order(ability_of(names.type_of(one.kind)), _done(one, loop))
            yield _unit(EGGS + number, UnitTypeId.EGG, (_X + 2, _Y + 2), 200.0, orders=(order,))


class _Row(NamedTuple):
    """Where units of a kind stand, by their numbers, and their hit points."""

    place: Callable[[int], Point]
    health: float


_X, _Y = ground.HOME
_ENEMY_X, _ENEMY_Y = ground.ENEMY_HOME
_ROWS = {
    WORKERS: _Row(lambda number: (_X - 4, _Y - 3), _WORKER_HP),
    HALLS: _Row(lambda number: ground.OUR_BASES[number], _HALL_HP),
    DEFENCES: _Row(lambda number: (_X + 4 + number % 4, _Y + 5), _STRUCTURE_HP),
    SUPPLIES: _Row(lambda number: (_X - 4, _Y + number % 8), 200.0),
    LABORATORIES: _Row(lambda number: (_X + 6, _Y - 4 + number), _STRUCTURE_HP),
    BARRACKS: _Row(lambda number: (_X, _Y + 7), _STRUCTURE_HP),
    GAS: _Row(lambda number: (_X - 7, _Y), _STRUCTURE_HP),
    LARVAE: _Row(lambda number: (_X + number % 3, _Y - 3), 25.0),
    ENEMY + HALLS: _Row(lambda number: ground.THEIR_BASES[number], _HALL_HP),
    ENEMY + DEFENCES: _Row(lambda number: (_ENEMY_X - 4 - number % 4, _ENEMY_Y - 5), _STRUCTURE_HP),
}
"""By the first tag of each kind."""


@cache
def _still(first: int, kind: UnitTypeId, start: int, stop: int) -> bytes:
    """Units of one kind, by their numbers, that do nothing new; workers mine. Serialised."""
    orders: tuple[raw_pb.UnitOrder, ...] = ()
    if first == WORKERS:
        gathering = _order(AbilityId.HARVEST_GATHER.value, 0.0)
        gathering.target_unit_tag = ground.minerals()[0].tag
        orders = (gathering,)
    return _serialised(_placed(first, number, kind, orders=orders) for number in range(start, stop))


def _placed(
    first: int, number: int, kind: UnitTypeId, *, orders: tuple[raw_pb.UnitOrder, ...]
) -> raw_pb.Unit:
    row = _ROWS[first]
    alliance = raw_pb.Enemy if first >= ENEMY else raw_pb.Self
    tag, place = first + number, row.place(number)
    return _unit(tag, kind, place, row.health, alliance=alliance, orders=orders)


@cache
def _landscape() -> bytes:
    """The map and its minerals, serialised."""
    response = sc_pb.Response()
    raw = response.observation.observation.raw_data
    raw.map_state.CopyFrom(ground.map_state())
    raw.units.extend(ground.minerals())
    return bytes(response.SerializeToString())


def _serialised(units: Iterable[raw_pb.Unit]) -> bytes:
    """A response with these units alone."""
    response = sc_pb.Response()
    response.observation.observation.raw_data.units.extend(units)
    return bytes(response.SerializeToString())


def _queue(side: Side, names: RaceNames, loop: int, kind: Kind) -> tuple[raw_pb.UnitOrder, ...]:
    """What is being trained or researched, as the orders of a structure."""
    if not making(side, kind):
        return ()
    if kind == "upgrade":
        ability = research_of(names.upgrades[min(side.upgrades, len(names.upgrades) - 1)])
    else:
        ability = ability_of(names.type_of(kind))
    return tuple(_order(ability, _done(one, loop)) for one in side.making if one.kind == kind)


def _site(tag: int, names: RaceNames, purchase: Purchase, loop: int) -> raw_pb.Unit:
    """A structure that is being built."""
    at = ground.OUR_BASES[1] if purchase.kind == "hall" else (_X + 5, _Y + 5)
    kind = names.type_of(purchase.kind)
    return _unit(tag, kind, at, 50.0, built=min(_done(purchase, loop), 0.99))


def _done(purchase: Purchase, loop: int) -> float:
    return 1.0 - max(purchase.done - loop, 0) / PRICES[purchase.kind].loops


def _order(ability: int, progress: float) -> raw_pb.UnitOrder:
    return raw_pb.UnitOrder(ability_id=ability, progress=progress)


def _unit(
    tag: int,
    kind: UnitTypeId,
    place: Point,
    health: float,
    *,
    alliance: raw_pb.Alliance.ValueType = raw_pb.Self,
    orders: tuple[raw_pb.UnitOrder, ...] = (),
    built: float = 1.0,
) -> raw_pb.Unit:
    x, y = place
    return raw_pb.Unit(
        display_type=raw_pb.Visible,
        alliance=alliance,
        tag=tag,
        unit_type=kind.value,
        owner=1 if alliance == raw_pb.Self else 2,
        pos=common_pb.Point(x=x, y=y, z=8.0),
        build_progress=built,
        health=health,
        health_max=health,
        is_powered=True,
        orders=orders,
    )
