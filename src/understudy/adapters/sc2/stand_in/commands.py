"""Commands of a bot, turned into what the rules know: purchases, and where the army goes."""

from __future__ import annotations

from collections.abc import Iterable

from s2clientprotocol import error_pb2 as error_pb
from s2clientprotocol import raw_pb2 as raw_pb

from understudy.adapters.sc2.stand_in import ground, observation, rules
from understudy.adapters.sc2.stand_in.catalogue import (
    ATTACKS,
    GATHERS,
    MOVES,
    RACES,
    RaceName,
    purchases,
)
from understudy.adapters.sc2.stand_in.rules import Side

_AWAY = 0.25
"""Workers that are sent further than this go along with the army."""


def obeyed(
    side: Side, race: RaceName, command: raw_pb.ActionRawUnitCommand, loop: int
) -> tuple[Side, error_pb.ActionResult.ValueType]:
    """What becomes of a side, and the answer to the command."""
    kind = purchases(race).get(command.ability_id)
    if kind is not None:
        count = max(round(1.0 / RACES[race].heads), 1) if kind == "soldier" else 1
        bought = side
        for _ in range(count):
            if not rules.can_buy(bought, kind):
                return side, error_pb.NotEnoughMinerals
            bought = rules.buy(bought, kind, loop)
        return bought, error_pb.Success
    goal = _goal(command)
    if goal is None:
        return side, error_pb.NotSupported
    if any(_is_soldier(tag) for tag in command.unit_tags):
        side = rules.send(side, goal, pulls=side.pulls)
    elif any(_is_worker(tag) for tag in command.unit_tags):
        side = side._replace(pulls=command.ability_id in ATTACKS and goal > _AWAY)
    return side, error_pb.Success


def _goal(command: raw_pb.ActionRawUnitCommand) -> float | None:
    """Where a command sends units, as a front; None: it does not move them."""
    if command.ability_id in GATHERS:
        return 0.0
    if command.ability_id not in ATTACKS | MOVES:
        return None
    if command.HasField("target_world_space_pos"):
        place = command.target_world_space_pos
        return ground.progress(place.x, place.y)
    return 1.0 if command.target_unit_tag >= observation.ENEMY else 0.0


def _is_soldier(tag: int) -> bool:
    return observation.SOLDIERS <= tag < observation.HALLS


def _is_worker(tag: int) -> bool:
    return observation.WORKERS <= tag < observation.SOLDIERS


def unit_commands(actions: Iterable[object]) -> Iterable[raw_pb.ActionRawUnitCommand]:
    """The commands to units among the actions of a request."""
    for action in actions:
        raw = getattr(action, "action_raw", None)
        if raw is not None and raw.HasField("unit_command"):
            yield raw.unit_command
