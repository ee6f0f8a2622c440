"""Swarm: a match against a scripted enemy in the fog, one strategy chosen every four seconds.

The enemy follows a build order by the clock, and reacts to our army.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core import chance
from understudy.core.errors import ConfigError, nearest
from understudy.core.ops import NUMPY, Array, Ops
from understudy.core.spaces import Discrete
from understudy.games.shapes import Drawing
from understudy.games.swarm import combat, drawing, economy, features, rewards, tables
from understudy.games.swarm.combat import power
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

_PLANS = tables.BUILD_PLAN.reshape(-1)
_WAVER_LEAST, _WAVER_RANGE = f32(0.7), f32(0.6)
_RESPECT = f32(0.7)
"""An army of ours below this share of the enemy's own does not worry it."""
_EASE = f32(6)
_PREY, _PREY_UNITS = f32(1.6), f32(10)
"""An enemy so many times (and so many units) stronger comes, whatever its build says."""
_ONE = f32(1)


def plan(ops: Ops, state: State, *, alert: float, mood: Array) -> Array:
    """The orders that the enemy follows this frame, int32 [B]; mood [B] in [0, 1) is its noise.

    It keeps to its build, but defends when our army comes or outgrows its own, and attacks when we
    are easy prey. An enemy that has gone all in listens to nothing.
    """
    xp = ops.xp
    clock = state.frame.astype(xp.float32) * state.pace
    until = xp.asarray(tables.BUILD_UNTIL).take(state.build, axis=1)
    phase = (clock >= until[0]).astype(xp.int32) + (clock >= until[1])
    build = xp.asarray(_PLANS).take(phase * len(tables.BUILDS) + state.build)

    ours, theirs = power(state.army, state.upgrades)
    guard = xp.asarray(tables.BUILD_GUARD).take(state.build) * f32(alert)
    guard = guard * (_WAVER_LEAST + mood * _WAVER_RANGE)
    coming = (state.front[0] > _ONE - guard) & (ours > theirs * _RESPECT)
    outgrown = ours * guard > theirs + _EASE
    prey = (theirs > ours * _PREY + _PREY_UNITS) & (phase > 0)
    answer = xp.where(prey, xp.int32(tables.AGGRESSIVE), xp.int32(tables.DEFENSIVE))
    return xp.where((coming | outgrown | prey) & (build != tables.ALL_IN), answer, build)


_START_DRAWS = np.arange(8, dtype=np.uint32)
_FRAME_DRAWS = np.arange(4, dtype=np.uint32)
_ALL_IN_UNITS = f32(tables.ALL_IN_UNITS)


@dataclass(frozen=True)
class Swarm:
    """The rules at one difficulty; a `Game`."""

    difficulty: str = "hard"

    def __post_init__(self) -> None:
        if self.difficulty not in tables.DIFFICULTIES:
            known = ", ".join(tables.DIFFICULTIES)
            raise ConfigError(
                f"difficulty: expected one of {known}, got {self.difficulty!r}."
                + nearest(str(self.difficulty), tables.DIFFICULTIES)
            )

    name = "swarm"
    version = tables.VERSION
    players = 1
    features = features.FEATURES
    actions = Discrete(tables.STRATEGIES)
    max_frames = tables.MAX_FRAMES
    frames_per_s, seconds_per_frame = 8.0, tables.SECONDS_PER_FRAME

    def start(self, ops: Ops, seeds: Array) -> State:
        """New matches from seeds uint32 [B]."""
        xp = ops.xp
        level = tables.DIFFICULTIES[self.difficulty]
        key = chance.fold(xp.asarray(seeds, xp.uint32), tables.VERSION)
        draw = chance.uniform(ops, key, _START_DRAWS)
        build = (draw[0] * f32(len(tables.BUILDS))).astype(xp.int32)
        race = xp.asarray(tables.BUILD_RACE)[build]
        zero = xp.zeros_like(draw[:2])
        one = xp.ones_like(draw[:2])
        rich = f32(0.9) + draw[1] * f32(0.2)
        return State(
            frame=xp.zeros_like(build),
            key=key,
            build=build,
            distance=f32(5) + draw[4] * f32(4),
            pace=f32(0.85) + draw[5] * f32(0.3),
            heads=xp.asarray(tables.HEADS)[race],
            income=xp.stack([rich, rich * f32(level.income)]),
            minerals=f32(50) + draw[6:8] * f32(100),
            vespene=zero,
            workers=f32(12) + draw[2:4] * f32(4),
            army=one * f32(2),
            defence=zero,
            upgrades=zero,
            halls=one,
            larva=one * f32(3),
            supply_cap=one * f32(22),
            front=zero,
            seen=xp.stack([zero[0], one[0], zero[0]]),
        )

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """One frame further; actions int32 [1, 1, B]."""
        xp = ops.xp
        level = tables.DIFFICULTIES[self.difficulty]
        draw = chance.uniform(ops, _frame_key(ops, state), _FRAME_DRAWS)
        ours = actions[0, 0]
        alone = (ours == tables.ALL_IN) & (state.army[0] < _ALL_IN_UNITS)
        ours = xp.where(alone, xp.int32(tables.AGGRESSIVE), ours)
        theirs = plan(ops, state, alert=level.alert, mood=draw[0])
        orders = xp.asarray(tables.ORDERS_TABLE).take(xp.stack([ours, theirs]), axis=1)
        state, orders = ops.barrier((state, orders))
        state = state._replace(**economy.grow(ops, state, orders)._asdict())
        state = ops.barrier(state)
        state = state._replace(**combat.fight(ops, state, orders, draw[1:3])._asdict())
        state = ops.barrier(state)
        seen = features.scout(ops, state, draw[3])
        return state._replace(seen=seen, frame=state.frame + xp.int32(1))

    def observe(self, ops: Ops, state: State) -> Array:
        """What the player sees, float32 [1, 15, B]."""
        return features.observe(ops, state)

    def legal(self, ops: Ops, state: State) -> Array:
        """Everything, but no ALL_IN without an army: bool [1, 5, B]."""
        able = state.army[0] >= _ALL_IN_UNITS
        always = able | True
        return ops.xp.stack([always, always, always, always, able])[None]

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the last frame was worth, float32 [1, B], the result included."""
        return rewards.reward(ops, before, after, score=self.score(ops, after)[0])

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended, bool [B]."""
        lost = combat.beaten(state)
        return lost[0] | lost[1] | (state.frame >= tables.MAX_FRAMES)

    def score(self, ops: Ops, state: State) -> Array:
        """+1 win, 0 draw or unfinished, -1 loss, float32 [1, B]."""
        lost = combat.beaten(state).astype(ops.xp.float32)
        return (lost[1] - lost[0])[None]

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        """Race, build and difficulty of one match."""
        build = tables.BUILDS[int(state.build[index])]
        return {
            "race": build.race,
            "build": build.name,
            "difficulty": self.difficulty,
            "opponent": f"{build.race}/{build.name}",
        }

    def draw(self, state: State, index: int) -> Drawing:
        """Both sides as they are, not as they are seen through the fog."""
        one = State(*(leaf[..., index : index + 1] for leaf in state))
        mood = chance.uniform(NUMPY, _frame_key(NUMPY, one), _FRAME_DRAWS)[0]
        alert = tables.DIFFICULTIES[self.difficulty].alert
        orders = list(tables.ORDERS)[int(plan(NUMPY, one, alert=alert, mood=mood)[0])]
        return drawing.drawn(one, orders=orders, opponent=self.tags(one, 0)["opponent"])

    def tell(self, before: State, after: State, index: int) -> list[str]:
        """What happened in the frame between two states, in words."""
        return drawing.told(before, after, index)


def _frame_key(ops: Ops, state: State) -> Array:
    return chance.fold(state.key, state.frame.astype(ops.xp.uint32))
