"""Territory: a queen spawns parasites against a scripted player's workers and protectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.core.spaces import Discrete
from understudy.games.shapes import Drawing
from understudy.games.territory import drawing, hunting, observation, rewards, tables, working
from understudy.games.territory.observation import Seen
from understudy.games.territory.state import State, at_work, chunk_of, on_guard, place_of
from understudy.games.territory.tables import f32, i32

_VEINS, _WORKERS, _PROTECTORS = tables.VEINS, tables.WORKERS_MOST, tables.PROTECTORS_MOST
_START_DRAWS = np.arange(3 + 2 * _VEINS + _WORKERS, dtype=np.uint32)
_PARTS = np.cumsum([_PROTECTORS, tables.LIFETIME, _WORKERS, 2 * _VEINS, _VEINS * _WORKERS])
_TICK_DRAWS = np.arange(_PARTS[-1], dtype=np.uint32)
_STYLE_WORKERS, _STYLE_PROTECTORS = (
    np.array([getattr(style, field) for style in tables.STYLES], np.int32)
    for field in ("workers", "protectors")
)
_WORKER_ROWS = np.arange(_WORKERS, dtype=np.int32)[:, None]
_TICK = i32(1)
_ZERO, _DRAIN, _UPKEEP = f32(0), f32(tables.DRAIN), f32(tables.PLAYER_ENERGY_UPKEEP)
_QUEEN_GAIN, _QUEEN_MAX = f32(tables.QUEEN_ENERGY_GAIN), f32(tables.QUEEN_ENERGY_MAX)
_PLAYER_GAIN, _PLAYER_MAX = f32(tables.PLAYER_ENERGY_GAIN), f32(tables.PLAYER_ENERGY_MAX)
GOOD, BAD = f32(0.5), f32(0.7)
"""The share of all that the workers could have mined: below it the queen has won, above lost."""


@dataclass(frozen=True)
class Territory:
    """The rules; a `Game` of one player, the queen."""

    name = "territory"
    version = tables.VERSION
    players = 1
    features = observation.FEATURES
    actions = Discrete(tables.action_names())
    max_frames = tables.MAX_FRAMES
    frames_per_s, seconds_per_frame = 6.0, tables.SECONDS_PER_TICK

    def start(self, ops: Ops, seeds: Array) -> State:
        """New matches from seeds uint32 [B]: whom she meets, and where everything is."""
        xp = ops.xp
        key = chance.fold(xp.asarray(seeds, xp.uint32), tables.VERSION)
        draw = chance.uniform(ops, key, _START_DRAWS)
        style = (draw[0] * f32(len(tables.STYLES))).astype(xp.int32)
        # The base lies around the middle, veins anywhere.
        base = (draw[1:3] * f32(8)).astype(xp.int32) + i32(4)
        vein = place_of(ops, (draw[3 : 3 + _VEINS] * f32(tables.CHUNKS)).astype(xp.int32))
        rich = draw[3 + _VEINS : 3 + 2 * _VEINS]
        errand = (draw[3 + 2 * _VEINS :] * f32(_VEINS)).astype(xp.int32)
        workers = xp.asarray(_STYLE_WORKERS).take(style)
        half = xp.full_like(draw[:2], tables.PLAYER_ENERGY_MAX / 2)
        rows = (tables.LIFETIME, len(seeds))
        return State(
            frame=xp.zeros_like(style),
            key=key,
            style=style,
            base=base,
            queen_energy=xp.full_like(draw[0], tables.QUEEN_ENERGY_START),
            player_energy=half,
            minerals=xp.zeros_like(half),
            vein=vein,
            # Some veins were worked before: else they would all run dry together.
            ore=f32(tables.ORE_MOST) * (f32(0.25) + rich * f32(0.75)),
            workers=workers,
            worker=xp.stack([xp.take_along_axis(axis, errand, axis=0) for axis in vein]),
            errand=errand,
            mining=workers > _WORKER_ROWS,
            protectors=xp.asarray(_STYLE_PROTECTORS).take(style),
            protector=base[:, None] + xp.zeros((2, _PROTECTORS, len(seeds)), xp.int32),
            absence=xp.zeros((_PROTECTORS, len(seeds)), xp.int32),
            parasite=xp.zeros((2, *rows), xp.int32),
            kind=xp.zeros(rows, xp.int32),
            health=xp.zeros(rows, xp.float32),
            spawned=xp.zeros_like(style),
        )

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """One tick further; actions int32 [1, 1, B]. What she cannot pay for is no spawn."""
        xp = ops.xp
        key = chance.fold(state.key, state.frame.astype(xp.uint32))
        aim, hunger, fright, find, whim = xp.split(
            chance.uniform(ops, key, _TICK_DRAWS), _PARTS[:-1]
        )
        batch = state.frame.shape[0]
        wanted = actions[0, 0]
        paid = state.queen_energy >= _cost(ops, wanted)
        action = xp.where(paid, wanted, i32(tables.NO_SPAWN))
        chunk, kind = tables.spawn_of(action)

        state = hunting.spawn(ops, state, action, place_of(ops, chunk), kind)
        state = ops.barrier(hunting.march(ops, state))
        state = ops.barrier(hunting.fight(ops, state, aim, hunger))
        state = working.work(
            ops,
            state,
            fright,
            whim.reshape(_VEINS, _WORKERS, batch),
            find.reshape(2, _VEINS, batch),
        )
        state = ops.barrier(state)
        energy = xp.minimum(state.queen_energy - _cost(ops, action) + _QUEEN_GAIN, _QUEEN_MAX)
        mined = state.mining.astype(xp.float32).sum(axis=0)
        return state._replace(
            frame=state.frame + _TICK,
            queen_energy=energy,
            player_energy=xp.stack([state.player_energy[1], _player_energy(ops, state)]),
            minerals=xp.stack([state.minerals[1], state.minerals[1] + mined]),
            spawned=action,
        )

    def seen(self, ops: Ops, state: State) -> Seen:
        """What a client of these matches would report."""
        return observation.seen(ops, state)

    def observe(self, ops: Ops, state: State) -> Array:
        """What the queen sees, float32 [1, 28, B]."""
        return observation.features(ops, observation.seen(ops, state))[None]

    def legal(self, ops: Ops, state: State) -> Array:
        """What she can pay for, bool [1, 513, B]."""
        return observation.payable(ops, state.queen_energy)[None]

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the last tick was worth, float32 [1, B]."""
        spawned = after.spawned
        one, two = observation.seen(ops, before), observation.seen(ops, after)
        return rewards.reward(ops, one, spawned, spawned != tables.NO_SPAWN, two)[None]

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended, bool [B]: by time alone, since a territory has no end."""
        return state.frame >= tables.MAX_FRAMES

    def score(self, ops: Ops, state: State) -> Array:
        """+1 where the player mined little of what he could have, -1 much, float32 [1, B]."""
        xp = ops.xp
        par = state.workers.astype(xp.float32) * f32(tables.MAX_FRAMES)
        share = state.minerals[1] / xp.maximum(par, f32(1))
        won = (share < GOOD).astype(xp.float32) - (share > BAD).astype(xp.float32)
        return xp.where(self.over(ops, state), won, _ZERO)[None]

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        """Who the player of one match is."""
        return {"opponent": tables.STYLES[int(state.style[index])].name}

    def draw(self, state: State, index: int) -> Drawing:
        """The map as it is: more than the queen sees."""
        one = State(*(leaf[..., index : index + 1] for leaf in state))
        return drawing.drawn(one, won_below=float(GOOD), lost_above=float(BAD))

    def tell(self, before: State, after: State, index: int) -> list[str]:
        """What happened in the tick between two states, in words."""
        return drawing.told(before, after, index)


def _cost(ops: Ops, action: Array) -> Array:
    """What actions int32 [B] cost the queen, float32 [B]."""
    _, kind = tables.spawn_of(action)
    dear = kind == tables.COMBAT
    price = ops.xp.where(dear, f32(tables.COSTS[tables.COMBAT]), f32(tables.COSTS[tables.ENERGY]))
    return ops.xp.where(action == tables.NO_SPAWN, _ZERO, price)


def _player_energy(ops: Ops, state: State) -> Array:
    """What the player has after this tick, float32 [B]."""
    xp = ops.xp
    alive = (state.health > _ZERO) & (state.kind == tables.ENERGY)
    shared = chunk_of(state.parasite)[:, None] == chunk_of(state.worker)[None]
    fed = (shared & at_work(state)[None]).any(axis=1)
    drained = (alive & fed).astype(xp.float32).sum(axis=0) * _DRAIN
    upkeep = on_guard(state).astype(xp.float32).sum(axis=0) * _UPKEEP
    energy = state.player_energy[1] + _PLAYER_GAIN - upkeep - drained
    return xp.minimum(xp.maximum(energy, _ZERO), _PLAYER_MAX)
