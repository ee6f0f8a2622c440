"""Fifteen numbers about a match of StarCraft II, named and scaled as the older bot had them.

They are read from a `BotAI` by attribute, so nothing here imports `sc2`. What the opponent has is
what was last seen of it: units out of sight are remembered until they are seen to die, or for two
minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

LOOPS_PER_S = 22.4
SCALES = {
    "minerals": 2000.0,
    "vespene": 1000.0,
    "supply_used": 200.0,
    "supply_cap": 200.0,
    "workers": 100.0,
    "units": 100.0,
    "enemy_units": 100.0,
    "townhalls": 10.0,
    "time_s": 1000.0,
    "enemy_bases": 5.0,
    "upgrades": 10.0,
    "larva": 20.0,
    "map_control": 1.0,
    "our_army_hp": 5000.0,
    "enemy_hp": 5000.0,
}
"""Each feature in its order, with what it is divided by. None is clipped."""
FEATURES = tuple(SCALES)
_DIVISORS = tuple(SCALES.values())

NO_SOLDIERS = frozenset(
    {
        *("DRONE", "DRONEBURROWED", "SCV", "PROBE", "MULE"),
        *(
            "LARVA",
            "EGG",
            "OVERLORD",
            "OVERLORDTRANSPORT",
            "OVERLORDCOCOON",
            "TRANSPORTOVERLORDCOCOON",
        ),
        *("OVERSEER", "OVERSEERSIEGEMODE", "OBSERVER", "OBSERVERSIEGEMODE", "CHANGELING"),
        *(
            "BROODLING",
            "LOCUSTMP",
            "LOCUSTMPFLYING",
            "INTERCEPTOR",
            "ADEPTPHASESHIFT",
            "AUTOTURRET",
        ),
        *("CREEPTUMORQUEEN", "KD8CHARGE", "POINTDEFENSEDRONE"),
    }
)
"""Unit types that are no part of an army."""
TOWNHALLS = frozenset(
    {
        *("HATCHERY", "LAIR", "HIVE", "NEXUS", "COMMANDCENTER", "COMMANDCENTERFLYING"),
        *("ORBITALCOMMAND", "ORBITALCOMMANDFLYING", "PLANETARYFORTRESS"),
    }
)
FORGOTTEN_LOOPS = round(120 * LOOPS_PER_S)
"""A unit that was not seen for so long is forgotten."""
_AT_HOME, _REACH, _LOSS = 0.3, 0.7, 0.3


class ArmyReport(NamedTuple):
    """An army, summed up."""

    units: int = 0
    hp: float = 0.0
    x: float = 0.0
    y: float = 0.0
    """Where it is, on average."""


_Place: TypeAlias = tuple[float, float]


class EnemySightings:
    """The soldiers of the opponent as they were last seen."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, _Place, int]] = {}
        """Hit points, place and the loop in which it was seen, by the tags of units: plain tuples,
        which are made three times as fast as named ones."""

    def bury(self, dead: Iterable[int]) -> None:
        """Forgets units by their tags. Call it in every step: the game names the dead once."""
        for tag in dead:
            self._seen.pop(tag, None)

    def update(self, bot: Any) -> None:
        """Takes in what is in sight now, and who died."""
        loop = bot.state.game_loop
        seen = self._seen
        for unit in bot.enemy_units:
            tag = unit.tag
            if tag in seen or unit.type_id.name not in NO_SOLDIERS:
                seen[tag] = (unit.health + unit.shield, unit.position_tuple, loop)
        self.bury(bot.state.dead_units)

    def report(self, loop: int) -> ArmyReport:
        """The army that is remembered at this loop."""
        oldest = loop - FORGOTTEN_LOOPS
        for tag in [tag for tag, (_, _, at) in self._seen.items() if at < oldest]:
            del self._seen[tag]
        units = len(self._seen)
        if not units:
            return ArmyReport()
        hp, sum_x, sum_y = 0.0, 0.0, 0.0
        for one_hp, (x, y), _ in self._seen.values():
            hp += one_hp
            sum_x += x
            sum_y += y
        return ArmyReport(units, hp, sum_x / units, sum_y / units)


def features(bot: Any, enemy: ArmyReport) -> list[float]:
    """The features [15], each divided by its scale.

    Args:
        bot: A `BotAI` inside a match.
        enemy: What is known of the opponent's army.
    """
    ours = own_army(bot)
    numbers = (
        bot.minerals,
        bot.vespene,
        bot.supply_used,
        bot.supply_cap,
        len(bot.workers),
        ours.units,
        enemy.units,
        len(bot.townhalls),
        bot.state.game_loop / LOOPS_PER_S,
        sum(one.type_id.name in TOWNHALLS for one in bot.enemy_structures),
        len(bot.state.upgrades),
        len(bot.larva),
        map_control(bot, ours, enemy),
        ours.hp,
        enemy.hp,
    )
    return [number / divisor for number, divisor in zip(numbers, _DIVISORS, strict=True)]


def own_army(bot: Any) -> ArmyReport:
    """Our units that fight: no workers, larvae, eggs, overlords, summoned units."""
    units, hp, sum_x, sum_y = 0, 0.0, 0.0, 0.0
    for unit in bot.units:  # a plain loop: at 200 units it is the longest part of a decision
        if unit.type_id.name not in NO_SOLDIERS:
            x, y = unit.position_tuple
            units += 1
            hp += unit.health + unit.shield
            sum_x += x
            sum_y += y
    return ArmyReport(units, hp, sum_x / units, sum_y / units) if units else ArmyReport()


def map_control(bot: Any, ours: ArmyReport, enemy: ArmyReport) -> float:
    """How much of the map is ours, from 0 to 1: 0.3 with the army at home, 1 with it in the enemy's
    base; an enemy army on our half takes up to 0.3 from that. The same formula as in `swarm`."""
    front = _progress(bot, ours) if ours.units else 0.0
    theirs = 1.0 - _progress(bot, enemy) if enemy.units else 0.0
    control = _AT_HOME + _REACH * front - _LOSS * max(2.0 * theirs - 1.0, 0.0)
    return min(max(control, 0.0), 1.0)


def _progress(bot: Any, army: ArmyReport) -> float:
    """How far an army is on the way from our start, 0, to the opponent's, 1."""
    starts = bot.enemy_start_locations
    if not starts or bot.start_location is None:
        return 0.0
    (from_x, from_y), (to_x, to_y) = bot.start_location, starts[0]
    along_x, along_y = to_x - from_x, to_y - from_y
    length = along_x * along_x + along_y * along_y
    if not length:
        return 0.0
    share = ((army.x - from_x) * along_x + (army.y - from_y) * along_y) / length
    return float(min(max(share, 0.0), 1.0))
