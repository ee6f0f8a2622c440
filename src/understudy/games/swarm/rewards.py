"""What a frame was worth: the result, and a dozen small terms that say where the match is heading.

The leads and the map are *changes* of something bounded, so whatever is won by them is paid back
when it is lost: they cannot be farmed. A whole match of small terms is worth less than the result.
"""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.swarm.combat import might
from understudy.games.swarm.features import map_control
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

WIN, LOSS = f32(10), f32(-5)
LIMIT = f32(0.1)
"""No frame but the last is worth more than this, either way."""

WEIGHTS: dict[str, float] = {
    "worker_lead": 1.0,
    "army_lead": 2.0,
    "hall_lead": 1.0,
    "upgrade_lead": 0.5,
    "workers_lost": -0.01,
    "army_lost": -0.01,
    "halls_lost": -0.2,
    "kills": 0.01,
    "razed": 0.2,
    "map_control": 0.6,
    "idle_minerals": -0.005,
    "time": -0.015,
}
"""A lead is our share of what both sides have; the rest counts units, townhalls and frames."""
_WEIGHTS = np.array(list(WEIGHTS.values()), np.float32)[:, None]
_HEADSTART = np.array([10.0, 10.0, 1.0, 2.0], np.float32)[:, None]
"""Added to both sides before they are compared: the first drone is no triumph."""
_PER_LIMIT = 1 / LIMIT
_THOUSANDTH = f32(1e-3)
_ZERO = f32(0)


def _leads(ops: Ops, state: State) -> Array:
    """Our share of all workers, arms, townhalls and upgrades, [4, B]; a half is even."""
    both = ops.xp.stack([state.workers, might(state), state.halls, state.upgrades])
    ours, theirs = both[:, 0] + _HEADSTART, both[:, 1] + _HEADSTART
    return ours / (ours + theirs)


def terms(ops: Ops, before: State, after: State) -> Array:
    """The small terms before their weights, float32 [12, B], in the order of `WEIGHTS`."""
    xp = ops.xp
    fallen = xp.maximum(before.army - after.army, _ZERO)
    razed = xp.maximum(before.halls - after.halls, _ZERO)
    slain = xp.maximum(before.workers[0] - after.workers[0], _ZERO)
    ground = map_control(ops, after.front) - map_control(ops, before.front)
    idle = after.minerals[0] * _THOUSANDTH
    rest = [slain, fallen[0], razed[0], fallen[1], razed[1], ground, idle, xp.ones_like(ground)]
    return xp.concatenate([_leads(ops, after) - _leads(ops, before), xp.stack(rest)])


def reward(ops: Ops, before: State, after: State, *, score: Array) -> Array:
    """The result (score [B]) plus the weighted terms, summed and squashed: float32 [1, B]."""
    xp = ops.xp
    total = (terms(ops, before, after) * _WEIGHTS).sum(axis=0)
    result = xp.maximum(score, _ZERO) * WIN - xp.minimum(score, _ZERO) * LOSS
    return (xp.tanh(total * _PER_LIMIT) * LIMIT + result)[None]
