"""A match of the stand-in as StarCraft II shows it: units with tags, places, orders and hit points.

The rules count; this module deals the counts out to units. A unit's tag is its kind's first tag and
its number, so a unit keeps its tag as long as there are that many of its kind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

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


def fill_observation(
    seen: sc_pb.ResponseObservation,
    game: MatchState,
    race: RaceName,
    enemy_race: RaceName,
    *,
    result: str | None,
) -> None:
    """Fills in what our side sees. `result`: of a match that is over."""
    ours, theirs = game.sides
    names = RACES[race]
    seen.observation.game_loop = game.loop
    _fill_common(seen.observation.player_common, ours, names)
    raw = seen.observation.raw_data
    raw.map_state.CopyFrom(ground.map_state())
    raw.player.upgrade_ids.extend(one.value for one in names.upgrades[: ours.upgrades])
    raw.units.extend(ground.minerals())
    raw.units.extend(_side(ours, names, game.loop))
    if game.loop >= SCOUTED or theirs.front > 0.5:
        raw.units.extend(_enemies(theirs, RACES[enemy_race]))
    if result is not None:
        other = {"Victory": "Defeat", "Defeat": "Victory"}.get(result, result)
        for player, name in ((1, result), (2, other)):
            seen.player_result.add(player_id=player, result=sc_pb.Result.Value(name))


def soldiers_shown(side: Side, names: RaceNames) -> int:
    """Units of the army that are seen."""
    return math.ceil(round(side.army * names.heads, 3))


def _fill_common(common: sc_pb.PlayerCommon, side: Side, names: RaceNames) -> None:
    common.player_id = 1
    common.minerals = int(side.minerals)
    common.vespene = int(side.gas)
    common.food_cap = side.supply_cap
    common.food_used = math.ceil(rules.supply_used(side))
    common.food_workers = math.ceil(side.workers)
    common.food_army = math.ceil(side.army)
    common.army_count = soldiers_shown(side, names)
    common.larva_count = int(side.larvae) if names is RACES["Zerg"] else 0


def _side(side: Side, names: RaceNames, loop: int) -> Iterator[raw_pb.Unit]:
    zerg = names is RACES["Zerg"]
    yield from _workers(side, names)
    yield from _army(side, names, SOLDIERS, ground.place(side.front), raw_pb.Self)
    x, y = ground.HOME
    for number in range(math.ceil(side.halls)):
        orders = () if zerg else _queue(side, names, loop, "worker")
        yield _unit(
            HALLS + number, names.hall, ground.OUR_BASES[number], _HALL_HP, orders=orders[:5]
        )
    for number in range(math.ceil(side.defences)):
        yield _idler(DEFENCES + number, names.defence, (x + 4 + number % 4, y + 5), _STRUCTURE_HP)
    for number in range(min(round(rules.owned(side, "supply")) + 1, _SUPPLIES_SHOWN)):
        yield _idler(SUPPLIES + number, names.supply, (x - 4, y + number % 8), 200.0)
    research = _queue(side, names, loop, "upgrade")
    for number in range(side.laboratories):
        place = (x + 6, y - 4 + number)
        yield _unit(LABORATORIES + number, names.laboratory, place, _STRUCTURE_HP, orders=research)
    training = () if zerg else _queue(side, names, loop, "soldier")
    yield _unit(BARRACKS, names.barracks, (x, y + 7), _STRUCTURE_HP, orders=training[:5])
    yield _idler(GAS, names.gas, (x - 7, y), _STRUCTURE_HP)
    for number, one in enumerate(side.making):
        if one.kind in _SITES or (one.kind == "supply" and not zerg):
            yield _site(SITES + number, names, one, loop)
        elif zerg and one.kind in _FROM_LARVAE:
            order = _order(ability_of(names.type_of(one.kind)), _done(one, loop))
            yield _unit(EGGS + number, UnitTypeId.EGG, (x + 2, y + 2), 200.0, orders=(order,))
    if zerg:
        for number in range(min(int(side.larvae), _LARVAE_SHOWN)):
            yield _idler(LARVAE + number, UnitTypeId.LARVA, (x + number % 3, y - 3), 25.0)


def _workers(side: Side, names: RaceNames) -> Iterator[raw_pb.Unit]:
    pulled = round(rules.militia(side))
    attacking = _order(AbilityId.ATTACK.value, 0.0)
    attacking.target_world_space_pos.x, attacking.target_world_space_pos.y = ground.ENEMY_HOME
    front = ground.place(side.front)
    for number in range(math.ceil(side.workers)):
        if number < pulled:
            yield _unit(WORKERS + number, names.worker, front, _WORKER_HP, orders=(attacking,))
        else:
            yield _gatherer(WORKERS + number, names.worker)


@cache
def _gatherer(tag: int, kind: UnitTypeId) -> raw_pb.Unit:
    """A worker that mines; most units of a match are such."""
    order = _order(AbilityId.HARVEST_GATHER.value, 0.0)
    order.target_unit_tag = ground.minerals()[0].tag
    x, y = ground.HOME
    return _unit(tag, kind, (x - 4, y - 3), _WORKER_HP, orders=(order,))


@cache
def _soldier(tag: int, kind: UnitTypeId, alliance: raw_pb.Alliance.ValueType) -> raw_pb.Unit:
    """One message for each soldier, filled in anew: making one takes ten times as long."""
    return _unit(tag, kind, ground.HOME, SOLDIER_HP, alliance=alliance)


@cache
def _idler(tag: int, kind: UnitTypeId, place: Point, health: float) -> raw_pb.Unit:
    """A unit that never changes."""
    return _unit(tag, kind, place, health)


def _army(
    side: Side, names: RaceNames, first: int, place: Point, alliance: raw_pb.Alliance.ValueType
) -> Iterator[raw_pb.Unit]:
    """The last one is the wounded one."""
    each = SOLDIER_HP / names.heads
    left = side.army * SOLDIER_HP
    x, y = place
    for number in range(soldiers_shown(side, names)):
        soldier = _soldier(first + number, names.soldier, alliance)
        soldier.health = min(each, max(left, 1.0))
        left -= each
        soldier.pos.x, soldier.pos.y = x + number % 7 * 0.3, y + number % 5 * 0.3
        yield soldier


def _enemies(side: Side, names: RaceNames) -> Iterator[raw_pb.Unit]:
    enemy = raw_pb.Enemy
    place = ground.place(side.front, of_enemy=True)
    yield from _army(side, names, ENEMY + SOLDIERS, place, enemy)
    for number in range(math.ceil(side.halls)):
        tag, at = ENEMY + HALLS + number, ground.THEIR_BASES[number]
        yield _unit(tag, names.hall, at, _HALL_HP, alliance=enemy)
    x, y = ground.ENEMY_HOME
    for number in range(math.ceil(side.defences)):
        at = (x - 4 - number % 4, y - 5)
        tag = ENEMY + DEFENCES + number
        yield _unit(tag, names.defence, at, _STRUCTURE_HP, alliance=enemy)


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
    x, y = ground.HOME
    at = ground.OUR_BASES[1] if purchase.kind == "hall" else (x + 5, y + 5)
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
