"""A small arena over the toy of two players, and the matches that it plays there.

JAX compiles once per plan, so tests take these plans rather than plans of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from match.tug import Moody, Steady, Tug
from policy.makers import lively_params

from understudy.arena.arena import Arena
from understudy.arena.columns import Columns, MatchCounts, Plan, begin, per_column
from understudy.arena.mix import Mix, parse
from understudy.arena.rollout import Rollout, RolloutParameters, rollout
from understudy.core.arrays import NDArray
from understudy.core.config import Config, with_values
from understudy.core.ops import Array, Ops
from understudy.games.base import Bot
from understudy.games.moments import Moment, RewardSet
from understudy.learner.maths.descent import FixedInputs
from understudy.learner.maths.segments import Segments
from understudy.learner.trainer import Trainer
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist

GAMES, SEGMENT, GROUPS = 16, 16, 2
NETWORK = Strategist(
    width=8,
    heads=2,
    layers=1,
    feed=8,
    window=5,
    latent=4,
    lstm=6,
    head_widths=(8,),
    opponent=1,
    kinds=3,
)
BOTS: dict[str, Bot] = {"rest": Steady(0), "pull": Steady(1), "moody": Moody()}
CONFIG = with_values(
    Config(),
    {
        "train.games": GAMES,
        "train.segment": SEGMENT,
        "train.groups": GROUPS,
        "learner.minibatches": 2,
        "learner.epochs": 2,
        "learner.precision": "float32",
    },
)


class ShortTug(Tug):
    """Ends soon enough that every column plays several matches, late enough that some are cut."""

    max_frames = 24


GAME = ShortTug()
MIX = "rest=1,pull=1,moody=1,self=2"


def gained(ops: Ops, moment: Moment) -> Array:
    """What the toy pays by itself."""
    return GAME.reward(ops, moment.before, moment.after)


def ending(ops: Ops, moment: Moment) -> Array:
    """The result, in the last frame."""
    return GAME.score(ops, moment.after) * GAME.over(ops, moment.after)


def strength(ops: Ops, moment: Moment) -> Array:
    """How hard each side pulled."""
    return moment.actions[:, 0].astype(ops.xp.float32)


REWARDS = RewardSet.of({"gained": gained, "ending": ending})
WEIGHTS = np.array([1.0, 0.3], np.float32)
MEASURES = RewardSet.of({"strength": strength})
KINDS = (2, 0, 1, 7)
"""Names of the bots and of snapshots; the network has none for the last."""


def fixed_of(spec: PolicySpec) -> FixedInputs:
    """A normaliser that does something, and a return scale."""
    inputs = len(spec.features)
    return FixedInputs(
        np.linspace(0.1, 0.05, inputs, dtype=np.float32),
        np.linspace(1.5, 0.8, inputs, dtype=np.float32),
        np.float32(2.0),
        np.float32(1e-3),
        np.float32(0.01),
    )


FIXED = fixed_of(PolicySpec(GAME.features, GAME.actions, NETWORK))


def spec_of(network: AnyNetwork = NETWORK) -> PolicySpec:
    return PolicySpec(GAME.features, GAME.actions, network)


def mix_of(text: str = MIX) -> Mix:
    return parse(text, tuple(BOTS))


@cache
def plan(mix: str = MIX, network: AnyNetwork = NETWORK, recorded: tuple[int, ...] = ()) -> Plan:
    parsed = mix_of(mix)
    return Plan(
        spec=spec_of(network),
        config=CONFIG.learner,
        game=GAME,
        bots=tuple(BOTS[name] for name in parsed.scripted),
        meets_itself=parsed.meets_itself,
        rewards=REWARDS,
        measures=MEASURES,
        games=GAMES,
        segment=SEGMENT,
        groups=GROUPS if parsed.meets_itself else 1,
        kinds=KINDS,
        recorded=recorded,
    )


def arena(
    mix: str = MIX, *, seed: int = 0, stint: int = 4, record: int = 0, devices: int = 1
) -> Arena:
    parsed = mix_of(mix)
    made = Arena(
        Trainer(spec_of(), CONFIG.learner),
        with_values(CONFIG, {"league.stint": stint, "train.record": record}),
        GAME,
        {name: BOTS[name] for name in parsed.scripted},
        meets_itself=parsed.meets_itself,
        rewards=REWARDS,
        measures=MEASURES,
        kinds=KINDS,
        seed=seed,
        devices=devices,
    )
    made.order(parsed, WEIGHTS)
    return made


def params_of(plan: Plan, seed: int) -> dict[str, NDArray]:
    inputs = len(plan.spec.features)
    return lively_params(plan.spec.network, seed, inputs=inputs, outputs=plan.spec.actions.options)


class Chapter(NamedTuple):
    """One rollout: what it began with and what came of it, as NumPy arrays."""

    free: tuple[bool, ...]
    before: Columns
    rolled: Rollout
    after: Columns

    @property
    def segments(self) -> Segments:
        return self.rolled.segments

    @property
    def counts(self) -> MatchCounts:
        return self.rolled.counts


class Story(NamedTuple):
    """Several rollouts, one after the other, under the same parameters."""

    plan: Plan
    mix: Mix
    ours: dict[str, NDArray]
    snapshots: tuple[dict[str, NDArray], ...]
    chapters: tuple[Chapter, ...]


FREE = ((False, False), (False, False), (True, False), (True, True), (True, True), (False, True))
"""Whom the groups may meet in each chapter: nobody, then their own version, then one waits."""


def bounds_of(plan: Plan, mix: Mix, free: Sequence[bool]) -> NDArray:
    """[groups, N]: the mix where a group's rival is free, and no rival elsewhere."""
    return np.stack([mix.bounds(mix.own_share if one else 0.0) for one in free])


@cache
def _begin(plan: Plan) -> Any:
    return jax.jit(partial(begin, plan))


@cache
def _rollout(plan: Plan) -> Any:
    def one(ours: Any, snapshots: Any, bounds: Any, columns: Columns) -> Any:
        parameters = RolloutParameters(
            ours,
            snapshots,
            per_column(plan, bounds),
            jnp.asarray(WEIGHTS[: len(plan.rewards.names)]),
        )
        return rollout(plan, parameters, fixed_of(plan.spec), columns)

    return jax.jit(one)


@cache
def story(plan: Plan, seed: int = 0, mix: Mix | None = None) -> Story:
    parsed = mix or mix_of()
    ours = params_of(plan, 1)
    snapshots = tuple(params_of(plan, 2 + group) for group in range(plan.groups))
    stacked = jax.tree.map(lambda *arrays: np.stack(arrays), *snapshots)
    columns = _begin(plan)(np.uint32(seed), bounds_of(plan, parsed, [False] * plan.groups))
    chapters = []
    for all_groups in FREE:
        free = all_groups[: plan.groups]
        bounds = bounds_of(plan, parsed, free)
        after, rolled = _rollout(plan)(ours, stacked, bounds, columns)
        chapters.append(Chapter(free, *jax.tree.map(np.asarray, (columns, rolled, after))))
        columns = after
    return Story(plan, parsed, ours, snapshots, tuple(chapters))


def rows(story: Story, field: str) -> NDArray:
    """One field of all chapters' segments, end to end: [frames, B, ...]."""
    return np.concatenate([getattr(chapter.segments, field) for chapter in story.chapters])
