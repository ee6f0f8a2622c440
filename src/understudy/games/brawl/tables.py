"""What brawl is balanced by: keys and chords, the stage, bodies, moves and weapons.

A change of anything here is a change of rules: it raises `VERSION` and reruns the tables of
`docs/brawl.md`. Lengths are in units (a body is one unit tall), speeds in units a second, times in
frames; x points to the right, y up, and nothing here prefers a side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VERSION = 1
FRAMES_PER_S = 30
MAX_FRAMES = 90 * FRAMES_PER_S
STOCKS = 3


def f32(value: float) -> NDArray[np.float32]:
    """A constant that stays float32 under both engines (see `swarm.tables.f32`)."""
    return np.array(value, np.float32)


# --- keys and chords

KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
"""Aim up, back, down, forward, jump, hand (pick up, throw away), dodge, light, heavy, taunt."""
UP, BACK, DOWN, FORWARD, JUMP, HAND, DODGE, LIGHT, HEAVY, TAUNT = range(len(KEYS))

CHORDS: dict[str, tuple[str, ...]] = {
    "idle": (),
    "forward": ("d",),
    "back": ("a",),
    "leap": ("space", "d"),
    "dodge": ("l",),
    "light": ("d", "j"),
    "heavy": ("d", "k"),
    "low": ("s", "j"),
    "recover": ("w", "k"),
    "grab": ("h",),
}
CHORD_KEYS = np.array([[key in chord for chord in CHORDS.values()] for key in KEYS], np.bool_)
"""[keys, chords]"""

# --- the stage

PIT, LEDGE = f32(2), f32(7)
"""The blocks stand where |x| is between these; their tops are at y = 0, their walls endless."""
BLAST_X, BLAST_BELOW, BLAST_ABOVE = f32(11), f32(-8), f32(11.5)
PLATFORM_HALF = f32(0.9)
PLATFORM_REACH_X, PLATFORM_Y, PLATFORM_REACH_Y = f32(0.7), f32(1.1), f32(0.7)
PLATFORM_PERIOD = 240
"""The platform goes from (tilt * 0.7, 1.8) to (-tilt * 0.7, 0.4) and back in so many frames."""
SPOTS = f32(4.5)
"""Weapons appear where |x| is this, give or take `SPOTS_SPREAD`."""
SPOTS_SPREAD = f32(1.5)

# --- bodies

DT = f32(1 / FRAMES_PER_S)
HALF_WIDTH, HALF_HEIGHT = f32(0.4), f32(0.5)
BODY_GAP, BODY_RISE = f32(0.75), f32(0.8)
"""Bodies nearer than this block each other's way."""
FALL = f32(17.8 / FRAMES_PER_S)
"""What gravity adds to the speed of falling in a frame."""
FALL_MAX, FAST_FALL_MAX, FAST_FALL = f32(10), f32(16), f32(1.0)
WALK, RUN, AIR = f32(5.5), f32(8), f32(6.5)
GRIP, AIR_GRIP, STUN_GRIP, STUN_AIR_GRIP, SWING_GRIP = (
    f32(1.5),
    f32(0.55),
    f32(0.35),
    f32(0.1),
    f32(0.6),
)
"""How much of the wanted change of speed a frame gives, at most."""
JUMP_SPEED, LEAP_SPEED = f32(8.9), f32(5.0)
AIR_JUMPS = f32(2)
STEP_UP = f32(0.4)
"""Who comes to a wall no deeper than this below its top gets onto it."""
DASH_SPEED, DASH_FRAMES = f32(10), f32(9)
BACKDASH_SPEED, BACKDASH_FRAMES = f32(7), f32(7)
DASH_WAIT = f32(20)
DODGE_FRAMES, DODGE_WAIT, AIR_DODGE_WAIT = f32(10), f32(35), f32(60)
JUMP_WAIT, TURN_WAIT, HAND_WAIT = f32(8), f32(6), f32(15)
"""Keys act while they are held: these waits keep one press from acting twice."""
OUT_FRAMES, SAFE_FRAMES = f32(45), f32(45)
"""How long a knocked out player is gone, and how long nothing hurts it when it is back."""
RETURN_X, RETURN_Y = f32(4.5), f32(3)
START_WAIT = f32(30)
STRIDE = f32(12)
"""Frames of walking that become running."""

# --- weapons

WEAPONS = ("fists", "spear", "hammer")
FIRST_WEAPON, WEAPON_WAIT, WEAPON_WAIT_SPREAD, WEAPON_LIES = f32(60), f32(150), f32(200), f32(400)
HAND_REACH_X, HAND_REACH_Y = f32(1.0), f32(0.8)

# --- moves


class Move(NamedTuple):
    """One attack in numbers."""

    startup: float
    active: float
    recovery: float
    """Frames of each phase; a move hits at most once, in its active frames."""
    damage: float
    ahead: float
    above: float
    """The middle of what it hits, from the middle of the body, in the direction of facing."""
    half_width: float
    half_height: float
    stun: float
    fixed: float
    variable: float
    """Force of the knockback: fixed + variable * (X / 70 + X^2 / 12000), X the damage so far."""
    away: float
    up: float
    """The direction of the knockback; a unit vector."""
    push_x: float = 0.0
    push_y: float = 0.0
    """What the move does to its maker's own speed as it starts; 0 leaves it."""


FISTS: dict[str, Move] = {
    "light_neutral": Move(2, 3, 6, 8, 0.55, 0.1, 0.5, 0.45, 14, 20, 16, 0.80, 0.60),
    "light_side": Move(3, 3, 7, 9, 0.80, 0.0, 0.6, 0.40, 15, 24, 22, 0.92, 0.39, 4.0),
    "light_down": Move(3, 3, 8, 9, 0.60, -0.3, 0.7, 0.25, 17, 18, 14, 0.50, 0.87),
    "heavy_neutral": Move(6, 4, 12, 19, 0.50, 0.6, 0.6, 0.70, 13, 40, 60, 0.31, 0.95),
    "heavy_side": Move(7, 4, 12, 20, 1.00, 0.0, 0.7, 0.45, 13, 44, 64, 0.86, 0.51, 3.0),
    "heavy_down": Move(8, 5, 12, 18, 0.00, -0.2, 1.3, 0.35, 13, 40, 58, 0.80, 0.60),
    "air_neutral": Move(3, 5, 7, 9, 0.20, 0.0, 0.7, 0.60, 12, 24, 26, 0.71, 0.71),
    "air_side": Move(4, 4, 8, 12, 0.80, 0.0, 0.6, 0.45, 13, 28, 38, 0.92, 0.39),
    "air_down": Move(5, 5, 9, 13, 0.30, -0.7, 0.5, 0.50, 13, 26, 36, 0.80, -0.60),
    "recovery": Move(3, 8, 10, 12, 0.40, 0.5, 0.5, 0.70, 13, 30, 40, 0.45, 0.89, 3.0, 11.5),
    "ground_pound": Move(6, 19, 11, 18, 0.00, -0.4, 0.6, 0.60, 13, 36, 54, 0.60, -0.80, 0.0, -12.0),
}  # fmt: skip
"""Bare-handed moves. Light, heavy and air come neutral, side and down, in this order."""
MOVES = tuple(FISTS)
RECOVERY, GROUND_POUND = MOVES.index("recovery"), MOVES.index("ground_pound")


class Handling(NamedTuple):
    """What a weapon makes of a bare-handed move."""

    startup: float
    recovery: float
    """Frames more."""
    damage: float
    reach: float
    force: float
    """Times as much."""


HANDLING: dict[str, Handling] = {
    "fists": Handling(0, 0, 1.0, 1.0, 1.0),
    "spear": Handling(0, 1, 1.05, 1.45, 1.05),
    "hammer": Handling(2, 2, 1.5, 1.15, 1.35),
}
_TAUNT_FRAMES = 30


def _with(handling: Handling, move: Move) -> Move:
    return move._replace(
        startup=move.startup + handling.startup,
        recovery=move.recovery + handling.recovery,
        damage=move.damage * handling.damage,
        ahead=move.ahead * handling.reach,
        half_width=move.half_width * handling.reach,
        fixed=move.fixed * handling.force,
        variable=move.variable * handling.force,
    )


NOTHING = Move(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
TAUNTING = NOTHING._replace(recovery=_TAUNT_FRAMES)
_ALL = [
    NOTHING,
    TAUNTING,
    *(_with(how, move) for how in HANDLING.values() for move in FISTS.values()),
]
NO_MOVE, TAUNT_MOVE, FIRST_MOVE = 0, 1, 2
"""Move numbers: nothing, a taunt, then the moves of each weapon in turn."""
MOVE_TABLE = np.array(_ALL, np.float32).T.copy()
"""[numbers of a move, moves]"""
(
    STARTUP, ACTIVE, RECOVERING, DAMAGE, AHEAD, ABOVE, WIDTH, HEIGHT, STUN, FIXED, VARIABLE,
    AWAY, UPWARD, PUSH_X, PUSH_Y,
) = range(len(Move._fields))  # fmt: skip


def _looks() -> NDArray[np.float32]:
    """What one sees of a move: startup, active, recovery, then its kind and aim; [8, moves]."""
    kinds = ("light", "heavy", "air", "special")
    rows = np.zeros((3 + len(kinds) + 1, len(_ALL)), np.float32)
    rows[:3] = MOVE_TABLE[:3]
    for index in range(FIRST_MOVE, len(_ALL)):
        name = MOVES[(index - FIRST_MOVE) % len(MOVES)]
        kind, _, aim = name.partition("_")
        rows[3 + (kinds.index(kind) if kind in kinds else 3), index] = 1
        rows[7, index] = {"side": 1, "down": -1, "pound": -1}.get(aim, 0)
    return rows


LOOKS = _looks()

FORCE_SPEED = f32(0.128)
"""Speed that one unit of force gives."""
STUN_PER_SPEED = f32(0.6)
"""Frames of stun that each unit of that speed adds."""
COMBO_RELIEF, STUN_LEAST = f32(2), f32(4)
"""Each hit in a row stuns so many frames less, but never less than these."""
