"""A small arena over the toy of two players, and the matches that it plays there.

JAX compiles once per plan, so tests take these plans rather than plans of their own.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from match.tug import Moody, Steady, Tug
from policy.makers import lively_params

from understudy.arena import slots as slotting
from understudy.arena.arena import Arena
from understudy.arena.iteration import bounds
from understudy.arena.mix import parse
from understudy.arena.rollout import Cast, rollout
from understudy.arena.slots import Counts, Plan, Slots
from understudy.core.arrays import NDArray
from understudy.core.config import Config, with_values
from understudy.games.base import Bot
from understudy.learner.descent import Frozen
from understudy.learner.segments import Segments
from understudy.learner.trainer import Trainer
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist

GAMES, SEGMENT, GROUPS = 16, 16, 2
NETWORK = Strategist(
    width=8, heads=2, layers=1, feed=8, window=5, latent=4, lstm=6, head_widths=(8,), opponent=1
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
    """Ends soon enough that every slot plays several matches, late enough that some are cut."""

    max_frames = 24


GAME = ShortTug()


def frozen_of(spec: PolicySpec) -> Frozen:
    """A normaliser that does something, and a return scale."""
    inputs = len(spec.features)
    return Frozen(
        np.linspace(0.1, 0.05, inputs, dtype=np.float32),
        np.linspace(1.5, 0.8, inputs, dtype=np.float32),
        np.float32(2.0),
        np.float32(1e-3),
        np.float32(0.01),
    )


FROZEN = frozen_of(PolicySpec(GAME.features, GAME.actions, NETWORK))


def spec_of(network: AnyNetwork = NETWORK) -> PolicySpec:
    return PolicySpec(GAME.features, GAME.actions, network)


@cache
def plan(mix: str = "rest=1,pull=1,moody=1,self=2", network: AnyNetwork = NETWORK) -> Plan:
    parsed = parse(mix, tuple(BOTS))
    return Plan(
        spec=spec_of(network),
        config=CONFIG.learner,
        game=GAME,
        bots=tuple(BOTS[name] for name in parsed.scripted),
        mix=parsed,
        games=GAMES,
        segment=SEGMENT,
        groups=GROUPS if parsed.meets_itself else 1,
    )


def arena(mix: str = "rest=1,pull=1,moody=1,self=2", *, seed: int = 0) -> Arena:
    return Arena(
        Trainer(spec_of(), CONFIG.learner), CONFIG, GAME, BOTS, parse(mix, tuple(BOTS)), seed=seed
    )


def params_of(plan: Plan, seed: int) -> dict[str, NDArray]:
    inputs = len(plan.spec.features)
    return lively_params(plan.spec.network, seed, inputs=inputs, outputs=plan.spec.actions.options)


class Chapter(NamedTuple):
    """One rollout: what it began with and what came of it, as NumPy arrays."""

    free: tuple[bool, ...]
    before: Slots
    segments: Segments
    counts: Counts
    after: Slots


class Story(NamedTuple):
    """Several rollouts, one after the other, under the same parameters."""

    plan: Plan
    ours: dict[str, NDArray]
    rivals: tuple[dict[str, NDArray], ...]
    chapters: tuple[Chapter, ...]


FREE = ((False, False), (False, False), (True, False), (True, True), (True, True), (False, True))
"""Whom the groups may meet in each chapter: nobody, then their own version, then one waits."""


@cache
def _begin(plan: Plan) -> Any:
    return jax.jit(
        lambda seed: slotting.begin(plan, seed, jnp.asarray(plan.mix.bounds(with_self=False)))
    )


@cache
def _rollout(plan: Plan) -> Any:
    def one(ours: Any, rivals: Any, free: Any, slots: Slots) -> Any:
        return rollout(plan, Cast(ours, rivals, bounds(plan, free)), frozen_of(plan.spec), slots)

    return jax.jit(one)


@cache
def story(plan: Plan, seed: int = 0) -> Story:
    ours = params_of(plan, 1)
    rivals = tuple(params_of(plan, 2 + group) for group in range(plan.groups))
    stacked = jax.tree.map(lambda *arrays: np.stack(arrays), *rivals)
    slots = _begin(plan)(np.uint32(seed))
    chapters = []
    for all_groups in FREE:
        free = all_groups[: plan.groups]
        after, segments, counts = _rollout(plan)(ours, stacked, np.array(free), slots)
        chapters.append(Chapter(free, *jax.tree.map(np.asarray, (slots, segments, counts, after))))
        slots = after
    return Story(plan, ours, rivals, tuple(chapters))


def rows(story: Story, field: str) -> NDArray:
    """One field of all chapters' segments, end to end: [frames, B, ...]."""
    return np.concatenate([getattr(chapter.segments, field) for chapter in story.chapters])
