"""Brawl: two fighters, a symmetric stage with a pit, three stocks and ninety seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core import chance
from understudy.core.errors import ConfigError, nearest
from understudy.core.ops import Array, Ops
from understudy.core.spaces import Discrete, MultiBinary
from understudy.games.brawl import combat, controls, motion, rewards, tables
from understudy.games.brawl.features import FEATURES, observe
from understudy.games.brawl.state import State, is_over, scores
from understudy.games.brawl.tables import f32

SPACES: Mapping[str, Discrete | MultiBinary] = {
    "chords": Discrete(tuple(tables.CHORDS)),
    "keys": MultiBinary(tables.KEYS),
}
_READ = {"chords": controls.keys_of_chords, "keys": controls.keys_of_switches}
_START_DRAWS = np.arange(10, dtype=np.uint32)
_FRAME_DRAWS = np.arange(combat.DRAWS, dtype=np.uint32)
_ZERO, _HALF, _ONE = f32(0), f32(0.5), f32(1)


@dataclass(frozen=True)
class Brawl:
    """The rules with one kind of action: named chords, or the keys themselves; a `Game`."""

    controls: str = "chords"

    def __post_init__(self) -> None:
        if self.controls not in SPACES:
            raise ConfigError(
                f"actions: expected one of {', '.join(SPACES)}, got {self.controls!r}."
                + nearest(str(self.controls), SPACES)
            )

    name = "brawl"
    version = tables.VERSION
    players = 2
    features = FEATURES
    opponent_features = len(FEATURES) // 2
    max_frames = tables.MAX_FRAMES

    @property
    def actions(self) -> Discrete | MultiBinary:
        """What a side chooses from."""
        return SPACES[self.controls]

    def start(self, ops: Ops, seeds: Array) -> State:
        """New matches from seeds uint32 [B]: places, facings and delays are drawn."""
        xp = ops.xp
        key = chance.fold(xp.asarray(seeds, xp.uint32), tables.VERSION)
        draw = chance.uniform(ops, key, _START_DRAWS)

        def sign(rows: Array) -> Array:
            return xp.where(rows < _HALF, _ONE, -_ONE)

        zero = xp.zeros_like(draw[:2])
        never = zero > _ONE
        nought = zero.astype(xp.int32)
        side = sign(draw[0])
        place = f32(2.6) + draw[1:3] * f32(3.8)
        phase = (draw[3] * f32(tables.PLATFORM_PERIOD)).astype(xp.int32)
        tilt = sign(draw[4])
        frame = xp.zeros_like(phase)
        return State(
            frame=frame,
            key=key,
            tilt=tilt,
            phase=phase,
            platform=motion.platform_at(ops, frame, phase, tilt),
            item=frame,
            item_x=zero[0],
            item_clock=tables.FIRST_WEAPON + draw[5] * tables.WEAPON_WAIT_SPREAD,
            x=xp.stack([side, -side]) * place,
            y=zero,
            vx=zero,
            vy=zero,
            facing=sign(draw[6:8]),
            grounded=~never,
            carried=never,
            stride=zero,
            jumps=zero + tables.AIR_JUMPS,
            recoveries=zero + _ONE,
            jump_wait=zero,
            turn_wait=zero,
            hand_wait=zero,
            dodge_wait=zero,
            dodge=zero,
            dash=zero,
            stun=zero,
            wait=xp.floor(draw[8:10] * tables.START_WAIT),
            out=zero,
            safe=zero,
            move=nought,
            move_clock=zero,
            struck=never,
            weapon=nought,
            damage=zero,
            stocks=zero + f32(tables.STOCKS),
            chain=zero,
            dealt=zero,
            knocked_out=never,
            equipped=never,
            dropped=never,
            combo=never,
        )

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """One frame further; actions int32 [2, parts, B]."""
        xp = ops.xp
        key = chance.fold(state.key, state.frame.astype(xp.uint32))
        draw = chance.uniform(ops, key, _FRAME_DRAWS)
        read = _READ[self.controls]
        keys = read(ops, actions)
        state, keys, draw = ops.barrier((state, keys, draw))
        state = ops.barrier(controls.begin(ops, state, keys))
        state = ops.barrier(motion.steer(ops, state, keys))
        state = ops.barrier(motion.travel(ops, state, keys))
        state = ops.barrier(combat.strike(ops, state))
        state = combat.supply(ops, combat.hands(ops, state, keys), draw)
        state = ops.barrier(state)
        state = combat.knock_out(ops, _tick(ops, state))
        return state._replace(frame=state.frame + xp.int32(1))

    def observe(self, ops: Ops, state: State) -> Array:
        """What each side sees, float32 [2, 64, B]."""
        return observe(ops, state)

    def legal(self, ops: Ops, state: State) -> Array:
        """Everything, always: bool [2, options, B]."""
        return ops.xp.ones((2, self.actions.options, state.frame.shape[0]), ops.xp.bool_)

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the last frame was worth to each side, float32 [2, B], the result included."""
        return rewards.reward(ops, before, after)

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended, bool [B]."""
        return is_over(ops, state)

    def score(self, ops: Ops, state: State) -> Array:
        """+1 win, 0 draw or unfinished, -1 loss, float32 [2, B]."""
        return scores(ops, state)

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        """Nothing sets one match apart from another but who plays it."""
        return {}


_TIMERS = (
    "jump_wait", "turn_wait", "hand_wait", "dodge_wait", "dodge", "dash", "stun", "wait", "out",
    "safe",
)  # fmt: skip


def _tick(ops: Ops, state: State) -> State:
    """Every timer one frame further down."""
    low = ops.xp.maximum
    return state._replace(**{name: low(getattr(state, name) - _ONE, _ZERO) for name in _TIMERS})
