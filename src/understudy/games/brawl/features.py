"""What each side of brawl sees: 32 numbers about itself, then 32 about its opponent.

Every number is within [-1, 1]. The whole view is mirrored so that the side itself faces right
("forward" is towards larger x), and its keys count the same way. `docs/brawl.md` explains each
number; a test compares the two lists.
"""

from __future__ import annotations

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

_BOTH = (
    "x", "y", "vx", "vy", "facing_other", "grounded", "jumps", "recovery", "jump_wait",
    "dodge_wait", "helpless", "safe", "startup", "active", "recovering", "light", "heavy", "air",
    "special", "aim", "damage", "stocks", "spear", "hammer", "ground_ahead", "ground_behind",
    "item_x",
)  # fmt: skip
_OWN = ("item_spear", "item_hammer", "platform_x", "platform_y", "time_left")
_OPPONENT = ("gap_x", "gap_y", "near_x", "near_y", "chain")
FEATURES = (
    *(f"own.{name}" for name in (*_BOTH, *_OWN)),
    *(f"opponent.{name}" for name in (*_BOTH, *_OPPONENT)),
)
HALF = len(FEATURES) // 2

UNITS, NEAR, ITEM, GROUND = 12.0, 3.0, 7.0, 5.0
"""What 1 means, in units: x and y of a player, what is near, a weapon's distance, the ground's."""
PHASE_FRAMES, FULL_DAMAGE = 20.0, 150.0
_ZERO, _ONE = f32(0), f32(1)
_PER_X, _PER_Y, _PER_SPEED = f32(1 / UNITS), f32(1 / UNITS), f32(1 / 20)
_PER_JUMP, _PER_WAIT, _PER_DODGE_WAIT = f32(1 / 2), f32(1 / 8), f32(1 / 60)
_PER_HELPLESS, _PER_SAFE, _PER_PHASE = f32(1 / 45), f32(1 / 30), f32(1 / PHASE_FRAMES)
_PER_DAMAGE, _PER_STOCK = f32(1 / FULL_DAMAGE), f32(1 / tables.STOCKS)
_PER_GROUND, _PER_ITEM = f32(1 / GROUND), f32(1 / ITEM)
_PER_GAP_X, _PER_GAP_Y, _PER_NEAR, _PER_CHAIN = f32(1 / 16), f32(1 / 10), f32(1 / NEAR), f32(1 / 5)
_PER_FRAME = f32(1 / tables.MAX_FRAMES)
_NOWHERE = f32(5)


def observe(ops: Ops, state: State) -> Array:
    """What each side sees, float32 [2, 64, B]."""
    xp = ops.xp
    players, shared = ops.barrier((_players(ops, state), _shared(ops, state)))
    return xp.clip(xp.stack(_rows(ops, state, players, shared), axis=1), -_ONE, _ONE)


def ground_ahead(ops: Ops, along: Array) -> Array:
    """How far the ground reaches ahead of a place on it; less than 0: how far it is to ground.

    along: the place, counted in the direction of looking.
    """
    where = ops.xp.where
    return where(
        along < -tables.LEDGE,
        along + tables.LEDGE,
        where(
            along <= -tables.PIT,
            -tables.PIT - along,
            where(
                along < tables.PIT,
                along - tables.PIT,
                where(along <= tables.LEDGE, tables.LEDGE - along, -_NOWHERE),
            ),
        ),
    )


def _players(ops: Ops, state: State) -> list[Array]:
    """Numbers about each player that look the same from both sides, each [2, B]."""
    xp = ops.xp
    where, maximum = xp.where, xp.maximum
    f = xp.float32
    looks = xp.asarray(tables.LOOKS).take(state.move, axis=1)
    clock = state.move_clock
    to_active = looks[0] - clock
    to_recovery = to_active + looks[1]
    to_end = to_recovery + looks[2]
    starting, striking = to_active > _ZERO, (to_active <= _ZERO) & (to_recovery > _ZERO)
    gap = (state.x[::-1] - state.x) * state.facing
    along = state.x * state.facing
    helpless = maximum(maximum(state.stun, state.wait), state.out)
    return [
        where(gap >= _ZERO, _ONE, -_ONE),
        state.grounded.astype(f),
        state.jumps * _PER_JUMP,
        state.recoveries,
        state.jump_wait * _PER_WAIT,
        state.dodge_wait * _PER_DODGE_WAIT,
        helpless * _PER_HELPLESS,
        maximum(state.safe, state.dodge) * _PER_SAFE,
        where(starting, to_active * _PER_PHASE, _ZERO),
        where(striking, to_recovery * _PER_PHASE, _ZERO),
        where(starting | striking, _ZERO, maximum(to_end, _ZERO) * _PER_PHASE),
        looks[3],
        looks[4],
        looks[5],
        looks[6],
        looks[7],
        state.damage * _PER_DAMAGE,
        state.stocks * _PER_STOCK,
        (state.weapon == 1).astype(f),
        (state.weapon == 2).astype(f),
        ground_ahead(ops, along) * _PER_GROUND,
        ground_ahead(ops, -along) * _PER_GROUND,
    ]


def _shared(ops: Ops, state: State) -> tuple[Array, Array, Array]:
    """Whether a spear or a hammer lies there, and the time left; each [B]."""
    f = ops.xp.float32
    left = _ONE - state.frame.astype(f) * _PER_FRAME
    return (state.item == 1).astype(f), (state.item == 2).astype(f), left


def _rows(
    ops: Ops, state: State, players: list[Array], shared: tuple[Array, Array, Array]
) -> list[Array]:
    """The 64 rows in order, each [2, B] by the side that sees them."""
    xp = ops.xp
    mine = state.facing
    lies = shared[0] + shared[1]

    def seen(place: Array, motion: Array, sight: Array) -> list[Array]:
        return [place * mine * _PER_X, sight * _PER_Y, motion * mine * _PER_SPEED]

    x, vx, y, vy = state.x, state.vx, state.y, state.vy
    item = (state.item_x - x) * lies * _PER_ITEM
    gap, rise = (x[::-1] - x) * mine, y[::-1] - y
    spear, hammer, left = (xp.broadcast_to(row, x.shape) for row in shared)
    theirs = [row[::-1] for row in players]
    return [
        *seen(x, vx, y), vy * _PER_SPEED, *players, item * mine,
        spear, hammer, (state.platform[0] - x) * mine * _PER_ITEM,
        (state.platform[1] - y) * _PER_NEAR, left,
        *seen(x[::-1], vx[::-1], y[::-1]), vy[::-1] * _PER_SPEED, *theirs, item[::-1] * mine,
        gap * _PER_GAP_X, rise * _PER_GAP_Y, gap * _PER_NEAR, rise * _PER_NEAR,
        state.chain[::-1] * _PER_CHAIN,
    ]  # fmt: skip
