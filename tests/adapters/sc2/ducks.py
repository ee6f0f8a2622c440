"""A bot of StarCraft II by its attributes alone: what the adapter reads, without burnysc2."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from understudy import Understudy
from understudy.core.clock import SystemClock
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.registry.run_folder import RunFolder
from understudy.sc2 import FEATURES

STRATEGIES = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")


class Named(NamedTuple):
    name: str


ZERG, TERRAN = Named("Zerg"), Named("Terran")


class DuckUnit(NamedTuple):
    type_id: Named
    tag: int
    position_tuple: tuple[float, float]
    health: float = 40.0
    shield: float = 0.0


@dataclass
class DuckState:
    game_loop: int = 0
    upgrades: set[int] = field(default_factory=set)
    dead_units: set[int] = field(default_factory=set)


@dataclass
class DuckBot:
    """A match in the middle: attributes as `BotAI` has them."""

    state: DuckState = field(default_factory=DuckState)
    minerals: int = 300
    vespene: int = 100
    supply_used: float = 40.0
    supply_cap: float = 60.0
    units: list[DuckUnit] = field(default_factory=list)
    workers: list[DuckUnit] = field(default_factory=list)
    larva: list[DuckUnit] = field(default_factory=list)
    townhalls: list[DuckUnit] = field(default_factory=list)
    enemy_units: list[DuckUnit] = field(default_factory=list)
    enemy_structures: list[DuckUnit] = field(default_factory=list)
    start_location: tuple[float, float] | None = (10.0, 10.0)
    enemy_start_locations: list[tuple[float, float]] = field(default_factory=lambda: [(90.0, 90.0)])
    opponent_id: str | None = "rival"
    game_info: Any = field(default_factory=lambda: Map("AcropolisLE"))
    race: Named = ZERG
    enemy_race: Named | None = TERRAN


class Map(NamedTuple):
    map_name: str


def unit(
    kind: str, tag: int, place: tuple[float, float] = (10.0, 10.0), hp: float = 40
) -> DuckUnit:
    return DuckUnit(Named(kind), tag, place, hp)


def open_mind(run: Path, **options: Any) -> Understudy:
    """A bot's mind that records, without a learner and without lines on the console."""
    return Understudy.open(
        run,
        features=FEATURES,
        actions=options.pop("actions", STRATEGIES),
        learner=options.pop("learner", "off"),
        settings={"report.status_every_s": 0, **options.pop("settings", {})},
        **options,
    )


def episodes(run: Path) -> list[Episode]:
    """What is in the buffer of a run, oldest first."""
    folder = RunFolder.load(run, SystemClock())
    spool = Spool(run, folder.spec, folder.clock)
    return [spool.load(name) for name in spool.pending()]
