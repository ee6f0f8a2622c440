"""What plays the stand-in: strategies as purchases, opponents with a plan, scripted players.

`play` runs a whole match as function calls. Through the protocol our side's purchases come from
commands instead (`stand_in.commands`), and the opponent is the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from understudy.adapters.sc2.stand_in import rules
from understudy.adapters.sc2.stand_in.rules import Kind, MatchState, ResultName, Side, making

STRATEGIES = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")
GAME_STEP, DECISION_LOOPS = 8, 88
SCOUTED = 176
"""The loop from which on the opponent is seen."""
ATTACKERS, ALL_IN_ARMY = 6, 8
"""Soldiers with which AGGRESSIVE attacks; ALL_IN is legal from so many on."""
SPARE_SUPPLY = 4
_SAVED_FOR: tuple[Kind, ...] = ("supply", "hall", "laboratory", "upgrade", "defence")

# --- strategies ----------------------------------------------------------------------------------


def wishes(strategy: str, side: Side) -> Iterator[Kind]:
    """What a strategy buys in a game step, most wanted first, one of each.

    The bot of the template (`adapters/sc2/template/bot.py`) commands the same purchases.
    """
    if side.supply_cap - rules.supply_used(side) < SPARE_SUPPLY and not making(side, "supply"):
        yield "supply"
    workers = side.workers + making(side, "worker")
    halls = side.halls + making(side, "hall")
    if strategy in ("ECONOMY", "BOOM"):
        if workers >= 14 * halls and not making(side, "hall"):
            yield "hall"
        if workers < 16 * halls + 4:
            yield "worker"
        if strategy == "BOOM" and side.army < GARRISON:
            yield "soldier"
    elif strategy in ("DEFENSIVE", "FORTIFY"):
        walls = 4 if strategy == "DEFENSIVE" else 8
        if side.defences + making(side, "defence") < walls and side.army >= side.defences:
            yield "defence"
        yield "soldier"
    elif strategy in ("TECH", "TEMPER"):
        yield "upgrade" if side.laboratories else "laboratory"
        if workers < 16 * halls:
            yield "worker"
        if strategy == "TEMPER":
            yield "soldier"
    else:  # AGGRESSIVE, ALL_IN, and an opponent's MUSTER
        if strategy == "AGGRESSIVE" and workers < 16:
            yield "worker"
        yield "soldier"


def ordered(side: Side, strategy: str, loop: int) -> Side:
    """One game step of a strategy: buys what it wishes and can, and sends the army."""
    for kind in wishes(strategy, side):
        if rules.can_buy(side, kind):
            side = rules.buy(side, kind, loop)
        elif kind in _SAVED_FOR and rules.short_of_minerals(side, kind):
            break
    attacks = strategy == "ALL_IN" or (strategy == "AGGRESSIVE" and side.army >= ATTACKERS)
    return rules.send(side, 1.0 if attacks else 0.0, pulls=strategy == "ALL_IN")


# --- opponents -----------------------------------------------------------------------------------


class OpponentBuild(NamedTuple):
    """How an opponent plays: three strategies in turn, and the loops at which it moves on."""

    plan: tuple[str, str, str]
    until: tuple[int, int]
    guard: float = 0.5
    """How far our army has to come for its own to go home and defend."""


GARRISON = 3
BUILDS = {
    "Rush": OpponentBuild(("MUSTER", "ALL_IN", "BOOM"), (360, 1100), 2.0),
    "Timing": OpponentBuild(("DEFENSIVE", "BOOM", "ALL_IN"), (360, 940)),
    "Power": OpponentBuild(("FORTIFY", "TEMPER", "AGGRESSIVE"), (560, 1800)),
    "Macro": OpponentBuild(("BOOM", "TEMPER", "AGGRESSIVE"), (960, 1500), 0.6),
}
"""Named as StarCraft II names the builds of its own AI. MUSTER is an army that stays at home."""


class OpponentPlan(NamedTuple):
    """One opponent of one match."""

    build: str
    pace: float
    """Multiplies the loops of its build."""


def strategy_of(opponent: OpponentPlan, game: MatchState) -> str:
    """What the opponent does at this loop."""
    build = BUILDS[opponent.build]
    past = sum(game.loop >= until * opponent.pace for until in build.until)
    planned = build.plan[past]
    if game.sides[0].front >= build.guard and planned != "ALL_IN":
        return "DEFENSIVE"
    return planned


def answered(game: MatchState, opponent: OpponentPlan) -> MatchState:
    """The opponent gives its orders."""
    ours, theirs = game.sides
    return game._replace(sides=(ours, ordered(theirs, strategy_of(opponent, game), game.loop)))


# --- whole matches -------------------------------------------------------------------------------


class ScoutedView(NamedTuple):
    """What a scripted player sees, as the features of a bot show it."""

    loop: int
    ours: Side
    enemy_army: float
    """As far as it was scouted."""
    enemy_halls: int
    enemy_front: float


Player: TypeAlias = Callable[[ScoutedView], str]


def view(game: MatchState) -> ScoutedView:
    ours, theirs = game.sides
    seen = game.loop >= SCOUTED
    return ScoutedView(
        loop=game.loop,
        ours=ours,
        enemy_army=theirs.army if seen else 0.0,
        enemy_halls=math.ceil(theirs.halls) if seen else 0,
        enemy_front=theirs.front if seen else 0.0,
    )


def drawn(seed: int, build: str = "", *, income: float = 1.0) -> tuple[MatchState, OpponentPlan]:
    """A match by its seed; `build`: that of the opponent, else one is drawn."""
    chance = random.Random(seed)
    name = chance.choice(tuple(BUILDS))
    pace = chance.uniform(0.9, 1.1)
    skills = [chance.uniform(0.95, 1.05) for _ in range(2)]
    return rules.start(skills=skills, income=income), OpponentPlan(build or name, pace)


def play(player: Player, seed: int, build: str = "") -> tuple[ResultName, int]:
    """One match: its outcome and its decisions."""
    game, opponent = drawn(seed, build)
    strategy, decisions = "", 0
    while (result := rules.outcome(game)) is None:
        if game.loop % DECISION_LOOPS == 0:
            strategy = legal(player(view(game)), game.sides[0])
            decisions += 1
        ours, theirs = game.sides
        game = game._replace(sides=(ordered(ours, strategy, game.loop), theirs))
        game = rules.advance(answered(game, opponent), GAME_STEP)
    return result, decisions


def legal(strategy: str, side: Side) -> str:
    """ALL_IN without an army becomes AGGRESSIVE."""
    small = strategy == "ALL_IN" and side.army < ALL_IN_ARMY
    return "AGGRESSIVE" if small else strategy


# --- scripted players ----------------------------------------------------------------------------


def constant(strategy: str) -> Player:
    """Always the same strategy."""
    return lambda seen: strategy


def template_rules(seen: ScoutedView) -> str:
    """The rules of the template's bot."""
    if seen.enemy_front > 0.6:
        return "DEFENSIVE"
    if seen.ours.workers < 24:
        return "ECONOMY"
    return "AGGRESSIVE"


def scripted(seen: ScoutedView) -> str:
    """Chooses by what is seen of the opponent, with all five strategies."""
    ours, enemy = seen.ours, seen.enemy_army
    strength = rules.power(ours)
    if seen.enemy_front > 0.2:
        return "DEFENSIVE"
    few = 2 if seen.loop < 300 else 5 if strength < 12 else 8
    if seen.loop > SCOUTED and enemy < few:
        return "ALL_IN" if ours.army >= ALL_IN_ARMY else "AGGRESSIVE"
    if seen.loop < 530 and seen.enemy_halls < 2 and enemy > strength + 3:
        return "DEFENSIVE"
    if ours.workers < 28:
        return "ECONOMY"
    if strength > 1.2 * enemy + (25 if ours.front < 0.5 else 0):
        return "AGGRESSIVE"
    return "TECH" if ours.upgrades < 3 and ours.gas > 100 and enemy < strength + 5 else "DEFENSIVE"
