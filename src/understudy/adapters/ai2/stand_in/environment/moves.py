"""Stage, bodies and moves of the stand-in, as numbers.

Lengths are in units (a body is one unit tall), speeds in units a second, times in frames. x points
to the right and y *down*, as in the tournament.
"""

from __future__ import annotations

from typing import NamedTuple

FRAMES_PER_S = 30
MAX_FRAMES = 90 * FRAMES_PER_S
STOCKS = 3

# --- the stage

BLOCKS = ((-7.0, -2.0, 2.85), (2.0, 7.0, 0.85))
"""Left end, right end and top of the two solid blocks. Their walls have no lower end."""
BLAST_X, BLAST_Y = 14.0, 8.0
SPAWN_X, SPAWN_Y = 5.0, 0.0
PLATFORM_FROM, PLATFORM_TO = (1.0, 0.0), (-1.0, 2.0)
PLATFORM_HALF = 0.9
PLATFORM_FRAMES = 120
"""From one end of its way to the other."""

# --- bodies

DT = 1.0 / FRAMES_PER_S
HALF_WIDTH, HALF_HEIGHT = 0.435, 0.5
BODY_GAP, BODY_RISE = 0.75, 0.8
"""Bodies nearer than this block each other's way."""
GRAVITY, FALL_MAX, FAST_FALL, FAST_FALL_MAX = 17.8 * DT, 12.0, 1.0, 16.0
WALK, RUN, AIR, RUN_AFTER = 6.75, 8.0, 6.5, 12
GRIP, AIR_GRIP, STUN_GRIP, STUN_AIR_GRIP, SWING_GRIP = 1.5, 0.55, 0.35, 0.1, 0.6
"""How much the horizontal speed changes in a frame, at most."""
JUMP_SPEED, AIR_JUMPS, JUMP_WAIT = 8.9, 2, 8
STEP_UP = 0.4
"""A body that meets a wall no deeper than this below its top gets onto it."""
DASH_SPEED, DASH_FRAMES, BACKDASH_SPEED, BACKDASH_FRAMES, DASH_WAIT = 10.0, 9, 4.0, 7, 20
DODGE_FRAMES, DODGE_WAIT, AIR_DODGE_WAIT = 10, 30, 82
TURN_FRAMES, HAND_WAIT = 4, 15
OUT_FRAMES, SAFE_FRAMES = 90, 30
"""How long a knocked-out player is out of play, and how long nothing hurts it afterwards."""
TAUNT_FRAMES = 30

# --- weapons

FISTS, SPEAR, HAMMER = 0, 1, 2
WEAPON_WAIT = (500, 700)
"""Frames between two weapons: at least, at most."""
WEAPON_LIES = 400
HAND_REACH_X, HAND_REACH_Y = 1.0, 0.8
WEAPON_X = (3.0, 6.0)
"""How far from the middle a weapon lies: at least, at most."""

# --- states and moves, numbered as the tournament numbers them

WALKING, STANDING, TURNING, AIR_TURNING, SPRINTING, STUNNED, IN_AIR, DODGING, ATTACKING, DASHING, \
    BACKDASHING, KNOCKED_OUT, TAUNTING = range(13)  # fmt: skip

NO_MOVE, N_LIGHT, D_LIGHT, S_LIGHT, N_SIG, D_SIG, S_SIG, N_AIR, D_AIR, S_AIR, RECOVERY, \
    GROUND_POUND = range(12)  # fmt: skip

FORCE_SPEED = 0.096
"""Speed that one unit of force gives."""
STUN_PER_SPEED = 0.6
COMBO_RELIEF, STUN_LEAST = 2.0, 4.0
"""Each hit in a row stuns so many frames less, but never less than `STUN_LEAST`."""


class Move(NamedTuple):
    """One attack. The force of its knockback is fixed + variable * (X / 70 + X^2 / 12000), where X
    is the damage of its victim after the hit."""

    startup: float
    active: float
    recovery: float
    """Frames of each phase; a move hits at most once, in its active frames."""
    damage: float
    ahead: float
    below: float
    """The middle of its box, from the middle of the body, in the direction that the body faces."""
    half_width: float
    half_height: float
    stun: float
    fixed: float
    variable: float
    away: float
    up: float
    """The direction of the knockback; a unit vector."""
    push_x: float = 0.0
    push_up: float = 0.0
    """The speed that the move gives to its own maker; 0 leaves it."""

    @property
    def frames(self) -> float:
        return self.startup + self.active + self.recovery


_UNARMED = {
    N_LIGHT: Move(2, 3, 6, 9, 0.55, -0.1, 0.50, 0.45, 14, 26, 22, 0.80, 0.60),
    D_LIGHT: Move(3, 3, 8, 9, 0.60, 0.3, 0.70, 0.25, 17, 24, 18, 0.50, 0.87),
    S_LIGHT: Move(3, 3, 7, 10, 0.80, 0.0, 0.60, 0.40, 15, 30, 28, 0.92, 0.39, 4.0),
    N_SIG: Move(6, 4, 11, 20, 0.50, -0.6, 0.60, 0.70, 13, 44, 70, 0.31, 0.95),
    D_SIG: Move(8, 5, 11, 19, 0.00, 0.2, 1.30, 0.35, 13, 44, 68, 0.80, 0.60),
    S_SIG: Move(7, 4, 11, 21, 1.00, 0.0, 0.70, 0.45, 13, 46, 74, 0.86, 0.51, 3.0),
    N_AIR: Move(3, 5, 7, 10, 0.20, 0.0, 0.70, 0.60, 12, 28, 32, 0.71, 0.71),
    D_AIR: Move(5, 5, 9, 13, 0.30, 0.7, 0.50, 0.50, 13, 30, 42, 0.80, -0.60),
    S_AIR: Move(4, 4, 8, 12, 0.80, 0.0, 0.60, 0.45, 13, 32, 44, 0.92, 0.39),
    RECOVERY: Move(3, 8, 10, 12, 0.40, -0.5, 0.50, 0.70, 13, 34, 46, 0.45, 0.89, 3.0, 11.5),
    GROUND_POUND: Move(6, 19, 11, 18, 0.00, 0.4, 0.60, 0.60, 13, 40, 60, 0.60, -0.80, 0.0, -12.0),
}  # fmt: skip


def _armed(move: Move, *, slower: float, damage: float, reach: float, force: float) -> Move:
    return move._replace(
        startup=move.startup + slower,
        damage=move.damage * damage,
        ahead=move.ahead * reach,
        half_width=move.half_width * reach,
        fixed=move.fixed * force,
        variable=move.variable * force,
    )


MOVES = (
    _UNARMED,
    {kind: _armed(move, slower=0, damage=1.05, reach=1.45, force=1.05)
     for kind, move in _UNARMED.items()},
    {kind: _armed(move, slower=2, damage=1.3, reach=1.15, force=1.35)
     for kind, move in _UNARMED.items()},
)  # fmt: skip
"""Moves by weapon, then by kind."""
