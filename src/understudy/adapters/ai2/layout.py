"""What a player of the tournament sees and presses, by name, and the reward of a step.

An observation has 64 numbers: 32 of the player itself, then the same 32 of its opponent. Positions
are in units of the game, with y pointing *down*; numbers are as the game gives them, unscaled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray

KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
"""The order of an action: aim up, left, aim down, right, jump, pick up or throw, dash or dodge,
light attack, heavy attack, taunt."""

_PLAYER = (
    "x", "y", "vx", "vy", "facing", "grounded", "aerial", "jumps_left", "state", "recoveries_left",
    "dodge_timer", "stun_frames", "damage", "stocks", "move_type", "weapon_type",
    "spawner_1.x", "spawner_1.y", "spawner_1.weapon", "spawner_2.x", "spawner_2.y",
    "spawner_2.weapon", "spawner_3.x", "spawner_3.y", "spawner_3.weapon", "spawner_4.x",
    "spawner_4.y", "spawner_4.weapon", "platform.x", "platform.y", "platform.vx", "platform.vy",
)  # fmt: skip
FEATURES = tuple(f"{whose}.{name}" for whose in ("own", "opponent") for name in _PLAYER)
"""The order of an observation."""

BOUND = np.float32(1000.0)
"""Numbers of an observation are clipped to this, so that the space that is declared is true."""
STOCKS = 3
DECISION_FRAMES = 4
"""Frames that a decision lasts unless an option says otherwise: the keys are held for so long."""

STOCK_LEAD, DAMAGE_LEAD = 0.25, 0.0025
"""What one stock, and one point of damage, contribute to a player's lead."""


class MatchStanding(NamedTuple):
    """How far both players are, in the order of the game's two slots."""

    stocks: tuple[float, float]
    damage: tuple[float, float]
    """Taken since the match began, over all stocks."""


def as_seen(obs: NDArray) -> NDArray:
    """Observations float32 [..., 64] of the game as networks see them: finite and bounded."""
    seen: NDArray = np.clip(np.nan_to_num(obs), -BOUND, BOUND)
    return seen


def score_of(stocks: tuple[float, float]) -> int:
    """The result for slot 0 of a match that ended with these stocks: +1, 0 or -1."""
    return int(stocks[0] > stocks[1]) - int(stocks[0] < stocks[1])


def reward_terms(before: MatchStanding, after: MatchStanding, *, over: bool) -> dict[str, float]:
    """The terms of the reward of slot 0; slot 1 has the same with the opposite sign.

    A player's lead is `STOCK_LEAD` for each stock and `DAMAGE_LEAD` for each point of damage that
    it is ahead, and when the match is over, its result (+1, 0 or -1). A reward is the change of the
    lead, so that the rewards of a whole match add up to the result exactly: `stocks` and `damage`
    tell earlier what leads to it, and do not change what is best.
    """
    terms = {
        "stocks": STOCK_LEAD * (_ahead(after.stocks) - _ahead(before.stocks)),
        "damage": DAMAGE_LEAD * (_ahead(before.damage) - _ahead(after.damage)),
        "result": 0.0,
    }
    if over:
        lead = STOCK_LEAD * _ahead(after.stocks) - DAMAGE_LEAD * _ahead(after.damage)
        terms["result"] = score_of(after.stocks) - lead
    return terms


def _ahead(pair: tuple[float, float]) -> float:
    return pair[0] - pair[1]
