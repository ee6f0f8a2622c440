"""The rules of the stand-in: two sides with a small economy and one army each, as pure functions.

Everything takes a fifth of the time that it takes in StarCraft II, so that a match has 20 to 30
decisions. An army has one place, its `front`: 0 at its own base, 1 at the enemy's. Both sides live
under the same rules and strike at once. Counts of things that are bought are whole; workers, armies
and static defences that fight wear down continuously.

A change of anything here that a match can feel raises `VERSION` and reruns the tables of
docs/adr/0042-stand-in-of-starcraft.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

VERSION = 1
TICK = 8
"""Game loops that are computed at once, at most."""
MATCH_LOOPS = 2640
"""At this loop the side that is worth more wins: 30 decisions of 88 loops."""

Kind: TypeAlias = Literal["worker", "soldier", "supply", "hall", "defence", "laboratory", "upgrade"]
"""What can be bought. A `soldier` is 50 minerals of army: two zerglings, a marine, half a zealot.
A `laboratory` is what upgrades are researched in."""


class Price(NamedTuple):
    minerals: float
    gas: float
    supply: float
    larvae: float
    loops: int
    """Until it is there."""


PRICES: dict[Kind, Price] = {
    "worker": Price(50, 0, 1, 1, 56),
    "soldier": Price(50, 0, 1, 1, 80),
    "supply": Price(100, 0, 0, 1, 64),
    "hall": Price(300, 0, 0, 0, 240),
    "defence": Price(100, 0, 0, 0, 100),
    "laboratory": Price(75, 0, 0, 0, 88),
    "upgrade": Price(125, 125, 0, 0, 160),
}
MOST: dict[Kind, int] = {
    "worker": 44,
    "soldier": 100,
    "supply": 20,
    "hall": 3,
    "defence": 8,
    "laboratory": 1,
    "upgrade": 3,
}
"""Of each kind, with those that are being made."""

INCOME = 0.19
"""Minerals that a worker brings home in a loop."""
GAS_SHARE = 0.15
"""Gas that comes with each of these minerals."""
SATURATION = 16
"""Workers that a townhall keeps busy."""
LARVA_LOOPS = 20
"""Until a townhall has another larva (or can train another unit)."""
LARVAE_AT_HALL = 5
HALL_SUPPLY, OVERLORD_SUPPLY, MOST_SUPPLY = 6, 8, 160
START_WORKERS, START_SUPPLY, START_MINERALS = 12, 16, 100.0

MARCH_LOOPS = 208
"""From base to base."""
BITE = 0.014
"""Soldiers that one soldier kills in a loop."""
UPGRADE_POWER = 0.22
DEFENCE_POWER, DEFENCE_WORTH = 3.0, 3.0
"""Soldiers that a static defence fights as, and that it takes as much to kill as."""
MILITIA = 0.12
"""Soldiers that a worker fights as where its base is attacked."""
PULLED = 0.35
"""Soldiers that a worker fights as where it was sent along with the army."""
HOME_GUARD = 6
"""Workers that stay at home however many are sent along."""
RAZE = 0.003
"""Townhalls that one soldier razes in a loop where nothing is left to defend them."""
PLUNDER = 0.006
"""Workers that one soldier kills in a loop in the same place."""
CONTACT = 0.93
"""Fronts that add up to this much meet; an army whose own front is this far besieges."""
SURRENDER = 5.0
"""A besieged side gives up that is worth this many times less."""
WORKER_WORTH, HALL_WORTH = 0.5, 3.0


class Purchase(NamedTuple):
    """Something that is being made."""

    kind: Kind
    done: int
    """The loop at which it is there."""


class Side(NamedTuple):
    """One player."""

    minerals: float = START_MINERALS
    gas: float = 0.0
    larvae: float = 3.0
    supply_cap: int = START_SUPPLY
    workers: float = START_WORKERS
    army: float = 0.0
    """In soldiers."""
    defences: float = 0.0
    halls: float = 1.0
    laboratories: int = 0
    upgrades: int = 0
    making: tuple[Purchase, ...] = ()
    front: float = 0.0
    goal: float = 0.0
    """Where the army is sent."""
    pulls: bool = False
    """Whether workers go along with the army."""
    skill: float = 1.0
    """How hard it hits: luck, and the difficulty of an opponent."""
    income: float = 1.0
    """What its workers bring home, as a multiple."""


class MatchState(NamedTuple):
    """A match: we are side 0, the opponent is side 1."""

    loop: int
    sides: tuple[Side, Side]


ResultName: TypeAlias = Literal["Victory", "Defeat", "Tie"]


# --- buying --------------------------------------------------------------------------------------


def making(side: Side, kind: Kind) -> int:
    """How many of a kind are being made."""
    return sum(one.kind == kind for one in side.making)


def owned(side: Side, kind: Kind) -> float:
    """How many of a kind are there."""
    counts: dict[Kind, float] = {
        "worker": side.workers,
        "soldier": side.army,
        "supply": (side.supply_cap - START_SUPPLY) / OVERLORD_SUPPLY,
        "hall": side.halls,
        "defence": side.defences,
        "laboratory": side.laboratories,
        "upgrade": side.upgrades,
    }
    return counts[kind]


def supply_used(side: Side) -> float:
    """Workers and army, with those that are being made."""
    return side.workers + side.army + making(side, "worker") + making(side, "soldier")


def can_buy(side: Side, kind: Kind) -> bool:
    """Whether resources, larvae, supply and limits allow one more."""
    price = PRICES[kind]
    return (
        side.minerals >= price.minerals
        and side.gas >= price.gas
        and side.larvae >= price.larvae
        and (not price.supply or supply_used(side) + price.supply <= side.supply_cap)
        and owned(side, kind) + making(side, kind) < MOST[kind]
        and (kind != "upgrade" or (side.laboratories > 0 and not making(side, "upgrade")))
        and side.halls > 0
    )


def short_of_minerals(side: Side, kind: Kind) -> bool:
    """Whether minerals alone are missing for one more: it can be saved for."""
    price = PRICES[kind]
    return side.minerals < price.minerals and can_buy(side._replace(minerals=price.minerals), kind)


def buy(side: Side, kind: Kind, loop: int) -> Side:
    """Pays for one and begins to make it; `can_buy` must hold."""
    price = PRICES[kind]
    return side._replace(
        minerals=side.minerals - price.minerals,
        gas=side.gas - price.gas,
        larvae=side.larvae - price.larvae,
        making=(*side.making, Purchase(kind, loop + price.loops)),
    )


def send(side: Side, goal: float, *, pulls: bool) -> Side:
    """Sends the army to a place between the bases, with the workers or without them."""
    return side._replace(goal=min(max(goal, 0.0), 1.0), pulls=pulls)


# --- time ----------------------------------------------------------------------------------------


def advance(game: MatchState, loops: int) -> MatchState:
    """Lets time pass, up to the loop at which the match is decided."""
    end = game.loop + loops
    while game.loop < end and outcome(game) is None:
        game = _tick(game, min(TICK, end - game.loop))
    return game


def outcome(game: MatchState) -> ResultName | None:
    """The result for side 0; None: the match goes on."""
    ours, theirs = game.sides
    lost, won = _beaten(ours, theirs), _beaten(theirs, ours)
    if lost or won:
        return "Tie" if lost and won else "Defeat" if lost else "Victory"
    if game.loop < MATCH_LOOPS:
        return None
    lead = worth(ours) - worth(theirs)
    return "Victory" if lead > 0.0 else "Defeat" if lead < 0.0 else "Tie"


def power(side: Side) -> float:
    """What the army is worth in a fight in the open, in soldiers without upgrades."""
    return (side.army + militia(side) * PULLED) * (1.0 + side.upgrades * UPGRADE_POWER) * side.skill


def militia(side: Side) -> float:
    """Workers that go along with the army."""
    return max(side.workers - HOME_GUARD, 0.0) if side.pulls and side.goal > 0.0 else 0.0


def worth(side: Side) -> float:
    """What a side is worth when the match is judged, in soldiers."""
    arms = side.army * (1.0 + side.upgrades * UPGRADE_POWER) + side.defences * DEFENCE_WORTH
    return arms + side.workers * WORKER_WORTH + side.halls * HALL_WORTH


def _beaten(side: Side, other: Side) -> bool:
    if side.halls <= 0.0:
        return True
    besieged = other.front >= CONTACT and other.army >= 1.0
    return besieged and worth(other) > worth(side) * SURRENDER


def _tick(game: MatchState, loops: int) -> MatchState:
    loop = game.loop + loops
    ours, theirs = (_grown(side, loop, loops) for side in game.sides)
    ours, theirs = _marched(ours, theirs, loops), _marched(theirs, ours, loops)
    return MatchState(loop, (_fought(ours, theirs, loops), _fought(theirs, ours, loops)))


def _grown(side: Side, loop: int, loops: int) -> Side:
    """Mines, hatches larvae and completes what is done."""
    busy = min(side.workers - militia(side), side.halls * SATURATION)
    mined = max(busy, 0.0) * INCOME * side.income * loops
    room = side.halls * LARVAE_AT_HALL
    side = side._replace(
        minerals=side.minerals + mined,
        gas=side.gas + mined * GAS_SHARE,
        larvae=max(min(side.larvae + side.halls * loops / LARVA_LOOPS, room), side.larvae),
    )
    if all(one.done > loop for one in side.making):
        return side
    for one in side.making:
        if one.done <= loop:
            side = _completed(side, one.kind)
    return side._replace(making=tuple(one for one in side.making if one.done > loop))


def _completed(side: Side, kind: Kind) -> Side:
    match kind:
        case "worker":
            return side._replace(workers=side.workers + 1)
        case "soldier":
            # Recruits start at home, so the middle of the army falls back.
            front = side.front * side.army / (side.army + 1.0)
            return side._replace(army=side.army + 1, front=front)
        case "supply":
            return side._replace(supply_cap=_capped(side.supply_cap + OVERLORD_SUPPLY))
        case "hall":
            cap = _capped(side.supply_cap + HALL_SUPPLY)
            return side._replace(halls=side.halls + 1, supply_cap=cap)
        case "defence":
            return side._replace(defences=side.defences + 1)
        case "laboratory":
            return side._replace(laboratories=side.laboratories + 1)
        case "upgrade":
            return side._replace(upgrades=side.upgrades + 1)


def _capped(supply: int) -> int:
    return min(supply, MOST_SUPPLY)


def _marched(side: Side, other: Side, loops: int) -> Side:
    """Moves the army; one that meets the enemy stops, unless it turns back."""
    pace = loops / MARCH_LOOPS
    meets = _contact(side, other) and other.army >= 1.0
    forth = 0.0 if meets else pace
    return side._replace(front=side.front + min(max(side.goal - side.front, -pace), forth))


def _contact(side: Side, other: Side) -> bool:
    return side.front + other.front >= CONTACT


def _fought(side: Side, other: Side, loops: int) -> Side:
    """What is left of a side after the other side has struck; both strike from the same state."""
    siege = other.front >= CONTACT
    struck = 0.0
    if siege or _contact(side, other):
        struck = power(other) * BITE * loops
    if side.front >= CONTACT:  # its army stands among the other's static defences and workers
        walls = other.defences * DEFENCE_POWER + other.workers * MILITIA
        struck += walls * other.skill * BITE * loops
    if struck <= 0.0:
        return side
    return _wounded(side, struck / (1.0 + side.upgrades * UPGRADE_POWER / 2), siege=siege)


def _wounded(side: Side, struck: float, *, siege: bool) -> Side:
    """Takes losses: pulled workers and soldiers first, static defences beside them, then the base.

    `struck`: in soldiers; `siege`: whether the base is within the enemy's reach.
    """
    walls = side.defences * DEFENCE_WORTH if siege else 0.0
    pulled = militia(side) * PULLED
    shield = side.army + pulled + walls
    taken = min(struck, shield)
    if shield > 0.0:
        part = taken / shield
        side = side._replace(
            army=side.army * (1.0 - part),
            workers=side.workers - militia(side) * part,
            defences=side.defences * (1.0 - part) if siege else side.defences,
        )
    # Soldiers that nothing holds back kill workers and raze townhalls.
    over = (struck - taken) / BITE if siege else 0.0
    return side._replace(
        workers=max(side.workers - over * PLUNDER, 0.0),
        halls=max(side.halls - over * RAZE, 0.0),
    )


def start(*, skills: Sequence[float] = (1.0, 1.0), income: float = 1.0) -> MatchState:
    """The first loop of a match. `income`: the opponent's."""
    ours, theirs = skills
    return MatchState(0, (Side(skill=ours), Side(skill=theirs, income=income)))
