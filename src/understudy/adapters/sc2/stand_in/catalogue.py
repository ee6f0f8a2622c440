"""What the stand-in's things are called in StarCraft II: unit types, abilities, upgrades and costs.

The rules know seven kinds of things; each race has names for them. `game_data` lists every unit
type and ability that burnysc2 knows, so that a bot may ask about any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import data_pb2 as data_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.dicts.unit_research_abilities import RESEARCH_INFO
from sc2.dicts.unit_train_build_abilities import TRAIN_INFO
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId

from understudy.adapters.sc2.stand_in.rules import PRICES, Kind

RaceName: TypeAlias = Literal["Terran", "Zerg", "Protoss"]
SOLDIER_HP = 70.0
_STRUCTURE = 8
"""The attribute of structures."""


class RaceNames(NamedTuple):
    """The unit types of a race."""

    worker: UnitTypeId
    soldier: UnitTypeId
    supply: UnitTypeId
    hall: UnitTypeId
    defence: UnitTypeId
    laboratory: UnitTypeId
    upgrades: tuple[UpgradeId, ...]
    barracks: UnitTypeId
    """Where soldiers come from; it is there from the start."""
    gas: UnitTypeId
    """The same for gas."""
    heads: float
    """Units of the army for each soldier of the rules."""

    def type_of(self, kind: Kind) -> UnitTypeId:
        """The unit type of a kind that is no upgrade."""
        found = getattr(self, kind)
        assert isinstance(found, UnitTypeId)
        return found


RACES: dict[RaceName, RaceNames] = {
    "Zerg": RaceNames(
        worker=UnitTypeId.DRONE,
        soldier=UnitTypeId.ZERGLING,
        supply=UnitTypeId.OVERLORD,
        hall=UnitTypeId.HATCHERY,
        defence=UnitTypeId.SPINECRAWLER,
        laboratory=UnitTypeId.EVOLUTIONCHAMBER,
        upgrades=(
            UpgradeId.ZERGMELEEWEAPONSLEVEL1,
            UpgradeId.ZERGGROUNDARMORSLEVEL1,
            UpgradeId.ZERGMISSILEWEAPONSLEVEL1,
        ),
        barracks=UnitTypeId.SPAWNINGPOOL,
        gas=UnitTypeId.EXTRACTOR,
        heads=2.0,
    ),
    "Terran": RaceNames(
        worker=UnitTypeId.SCV,
        soldier=UnitTypeId.MARINE,
        supply=UnitTypeId.SUPPLYDEPOT,
        hall=UnitTypeId.COMMANDCENTER,
        defence=UnitTypeId.BUNKER,
        laboratory=UnitTypeId.ENGINEERINGBAY,
        upgrades=(
            UpgradeId.TERRANINFANTRYWEAPONSLEVEL1,
            UpgradeId.TERRANINFANTRYARMORSLEVEL1,
            UpgradeId.HISECAUTOTRACKING,
        ),
        barracks=UnitTypeId.BARRACKS,
        gas=UnitTypeId.REFINERY,
        heads=1.0,
    ),
    "Protoss": RaceNames(
        worker=UnitTypeId.PROBE,
        soldier=UnitTypeId.ZEALOT,
        supply=UnitTypeId.PYLON,
        hall=UnitTypeId.NEXUS,
        defence=UnitTypeId.PHOTONCANNON,
        laboratory=UnitTypeId.FORGE,
        upgrades=(
            UpgradeId.PROTOSSGROUNDWEAPONSLEVEL1,
            UpgradeId.PROTOSSGROUNDARMORSLEVEL1,
            UpgradeId.PROTOSSSHIELDSLEVEL1,
        ),
        barracks=UnitTypeId.GATEWAY,
        gas=UnitTypeId.ASSIMILATOR,
        heads=0.5,
    ),
}
KINDS: tuple[Kind, ...] = ("worker", "soldier", "supply", "hall", "defence", "laboratory")
"""Kinds that are units or structures."""
ATTACKS = frozenset(
    one.value for one in (AbilityId.ATTACK, AbilityId.ATTACK_ATTACK, AbilityId.PATROL)
)
MOVES = frozenset(
    one.value for one in (AbilityId.MOVE, AbilityId.MOVE_MOVE, AbilityId.SMART, AbilityId.STOP)
)
GATHERS = frozenset(
    one.value
    for one in (
        AbilityId.HARVEST_GATHER,
        AbilityId.HARVEST_GATHER_DRONE,
        AbilityId.HARVEST_GATHER_SCV,
        AbilityId.HARVEST_GATHER_PROBE,
        AbilityId.HARVEST_RETURN,
    )
)


def ability_of(unit: UnitTypeId) -> int:
    """The ability that makes a unit of this type; 0: none is known."""
    return _abilities().get(unit, 0)


@cache
def purchases(race: RaceName) -> dict[int, Kind]:
    """The abilities with which a race buys something."""
    names = RACES[race]
    found: dict[int, Kind] = {ability_of(names.type_of(kind)): kind for kind in KINDS}
    return found | {research_of(one): "upgrade" for one in names.upgrades}


def research_of(upgrade: UpgradeId) -> int:
    """The ability that researches an upgrade; 0: none is known."""
    return _research().get(upgrade, 0)


@cache
def game_data() -> bytes:
    """A response with `data`, serialised."""
    data = sc_pb.ResponseData(
        abilities=(_ability(one) for one in AbilityId if one.value),
        units=(_unit_type(one) for one in UnitTypeId if one.value),
        upgrades=(_upgrade(one) for one in UpgradeId if one.value),
    )
    return bytes(sc_pb.Response(data=data).SerializeToString())


@cache
def _abilities() -> dict[UnitTypeId, int]:
    found: dict[UnitTypeId, int] = {}
    for units in TRAIN_INFO.values():
        for unit, info in units.items():
            ability = info["ability"]
            assert isinstance(ability, AbilityId)
            found.setdefault(unit, ability.value)
    return found


@cache
def _research() -> dict[UpgradeId, int]:
    found: dict[UpgradeId, int] = {}
    for upgrades in RESEARCH_INFO.values():
        for upgrade, info in upgrades.items():
            ability = info["ability"]
            assert isinstance(ability, AbilityId)
            found.setdefault(upgrade, ability.value)
    return found


def _ability(ability: AbilityId) -> data_pb.AbilityData:
    return data_pb.AbilityData(
        ability_id=ability.value, link_name=ability.name, target=_target(ability), available=True
    )


def _target(ability: AbilityId) -> data_pb.AbilityData.Target.ValueType:
    if ability.value in ATTACKS | MOVES | GATHERS and ability is not AbilityId.STOP:
        return data_pb.AbilityData.PointOrUnit
    if ability.name.endswith(("BUILD_EXTRACTOR", "BUILD_REFINERY", "BUILD_ASSIMILATOR")):
        return data_pb.AbilityData.Unit
    return data_pb.AbilityData.PointOrNone


def _unit_type(unit: UnitTypeId) -> data_pb.UnitTypeData:
    known = _known().get(unit)
    race, kind = known if known else (None, None)
    found = data_pb.UnitTypeData(
        unit_id=unit.value, name=unit.name.title(), available=True, ability_id=ability_of(unit)
    )
    if race is not None:
        found.race = common_pb.Race.Value(race)
    if unit in _structures():
        found.attributes.append(_STRUCTURE)
    if race is not None and kind is not None:
        price, names = PRICES[kind], RACES[race]
        count = 1.0 / names.heads if kind == "soldier" else 1.0
        # burnysc2 takes the price of a drone off the structures of Zerg.
        drone = 50 if race == "Zerg" and kind in ("hall", "defence", "laboratory") else 0
        found.mineral_cost = round(price.minerals * count) + drone
        found.vespene_cost = round(price.gas * count)
        found.food_required = price.supply * count
        found.build_time = price.loops
    return found


def _upgrade(upgrade: UpgradeId) -> data_pb.UpgradeData:
    price = PRICES["upgrade"]
    return data_pb.UpgradeData(
        upgrade_id=upgrade.value,
        name=upgrade.name.title(),
        mineral_cost=round(price.minerals),
        vespene_cost=round(price.gas),
        research_time=price.loops,
        ability_id=research_of(upgrade),
    )


@cache
def _known() -> dict[UnitTypeId, tuple[RaceName, Kind | None]]:
    found: dict[UnitTypeId, tuple[RaceName, Kind | None]] = {}
    for race, names in RACES.items():
        found[names.barracks] = found[names.gas] = (race, None)
        for kind in KINDS:
            found[names.type_of(kind)] = (race, kind)
    return found


@cache
def _structures() -> frozenset[UnitTypeId]:
    return frozenset(_structure_types())


def _structure_types() -> Iterator[UnitTypeId]:
    yield from (UnitTypeId.LAIR, UnitTypeId.HIVE)
    for names in RACES.values():
        yield from (names.hall, names.defence, names.laboratory, names.barracks, names.gas)
    yield from (RACES["Terran"].supply, RACES["Protoss"].supply)
