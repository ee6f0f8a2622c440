"""What a script reads: one side's observation by name, questions about it, and reaction noise.

Scripts see exactly what a policy sees; distances in questions are in units.
"""

from __future__ import annotations

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.games.brawl.features import FEATURES, GROUND, ITEM, NEAR, UNITS
from understudy.games.brawl.tables import LEDGE, PIT, f32

_SALT = 41
_DRAWS = np.arange(2, dtype=np.uint32)
_ZERO = f32(0)
_WINDOW = np.array(6, np.int32)
"""A lapse lasts as many frames."""
_PIT_X, _LEDGE_X = PIT / f32(UNITS), LEDGE / f32(UNITS)


class View:
    """B matches from one side in one frame; every answer is [B]."""

    def __init__(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> None:
        xp = ops.xp
        self.xp = xp
        self.frame = xp.asarray(frame).astype(xp.int32)
        self._rows = dict(zip(FEATURES, obs, strict=True))
        key = chance.fold(xp.asarray(seeds, xp.uint32), _SALT)
        slow = chance.fold(key, (self.frame // _WINDOW).astype(xp.uint32))
        fast = chance.fold(slow, self.frame.astype(xp.uint32))
        self.lapse = chance.uniform(ops, slow, _DRAWS)[0]
        """In [0, 1), the same for some frames."""
        self.die = chance.uniform(ops, fast, _DRAWS)[1]
        """In [0, 1), another every frame."""

    def __getitem__(self, name: str) -> Array:
        return self._rows[name]

    @property
    def off_stage(self) -> Array:
        """Neither on nor above a block."""
        return (self["own.ground_ahead"] < _ZERO) & (self["own.ground_behind"] < _ZERO)

    @property
    def beyond(self) -> Array:
        """Further out than the blocks."""
        return self.xp.abs(self["own.x"]) > _LEDGE_X

    @property
    def grounded(self) -> Array:
        """Standing on something."""
        return self["own.grounded"] > _ZERO

    @property
    def outward(self) -> Array:
        """On a block or beyond it, facing away from the pit."""
        return self["own.x"] > _PIT_X

    @property
    def faces(self) -> Array:
        """The opponent is ahead."""
        return self["own.facing_other"] > _ZERO

    @property
    def can_jump(self) -> Array:
        """An air jump is left, and may be used now."""
        return (self["own.jumps"] > _ZERO) & (self["own.jump_wait"] <= _ZERO)

    @property
    def armed(self) -> Array:
        """A weapon is in hand."""
        return (self["own.spear"] + self["own.hammer"]) > _ZERO

    @property
    def weapon_lies(self) -> Array:
        """A weapon lies on the stage."""
        return (self["own.item_spear"] + self["own.item_hammer"]) > _ZERO

    def higher(self, height: float) -> Array:
        """Own feet are above this height."""
        return self["own.y"] > f32(height / UNITS)

    def ends_within(self, length: float) -> Array:
        """The ground ends no further ahead than this."""
        return self["own.ground_ahead"] < f32(length / GROUND)

    def room_behind(self, length: float) -> Array:
        """The ground behind reaches further than this."""
        return self["own.ground_behind"] > f32(length / GROUND)

    def weapon_within(self, length: float) -> Array:
        """Where a weapon lies, it is nearer than this, in x."""
        return self.xp.abs(self["own.item_x"]) < f32(length / ITEM)

    def opponent_within(self, length: float) -> Array:
        """The opponent is nearer than this, in x, ahead or behind."""
        return self.xp.abs(self["opponent.near_x"]) < f32(length / NEAR)

    def opponent_above(self, height: float) -> Array:
        """The opponent is higher by more than this."""
        return self["opponent.near_y"] > f32(height / NEAR)

    def reach(self, length: float, height: float = 0.9) -> Array:
        """The opponent is ahead, nearer than length, and no more than height above or below."""
        ahead = self["opponent.near_x"]
        level = self.xp.abs(self["opponent.near_y"]) < f32(height / NEAR)
        return (ahead >= f32(-0.1)) & (ahead < f32(length / NEAR)) & level
