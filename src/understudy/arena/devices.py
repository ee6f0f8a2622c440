"""The devices of an arena: one, or several of this host that share its columns evenly.

A column lies on one device with everything that belongs to it: state, memories, decisions. What is
learned (parameters, optimiser, snapshots) is whole on every device. Each device plays its own
columns (`rollout`) and computes its own part of each gradient (`descent`), and the parts are summed
over all devices. No random number depends on a placement.

Devices are a mesh of groups x columns, because columns are grouped by the snapshot that they may
meet. A device holds some whole groups, or an equal part of one group: the columns of a device are
neighbours, so one of the two numbers must be a multiple of the other.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from understudy.arena.columns import Columns, Plan, begin
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Tree
from understudy.learner.hardware import partition

GROUPS = "groups"
COLUMNS = (GROUPS, "columns")
"""The axes of the mesh. An axis of groups is cut along the first, one of columns along both."""


def count_devices(wanted: int | Literal["all"]) -> int:
    """How many devices are meant; a `ConfigError` where this host has fewer."""
    there = jax.local_devices()
    if wanted == "all":
        return len(there)
    if wanted > len(there):
        raise ConfigError(
            f"--devices: expected all, or a number up to {len(there)}, which is what JAX sees here "
            f"({there[0].device_kind}); got {wanted}"
        )
    return wanted


def used_words(used: int) -> str:
    """How many of the host's devices are used; empty where there is one."""
    there = len(jax.local_devices())
    if there == 1:
        return ""
    if used < there:
        return f"{used} of {there} devices used; --devices {there} uses all of them"
    return f"all {there} devices used"


def check_games(games: int, *, devices: int, minibatches: int, groups: int) -> None:
    """Raise a `ConfigError` if the devices cannot share the games evenly."""
    if devices % groups and groups % devices:
        raise ConfigError(
            f"--devices: {devices} devices cannot share train.groups {groups} evenly: one must be "
            f"a multiple of the other, such as --set train.groups={devices}"
        )
    step = math.lcm(devices * minibatches, groups)
    if devices > 1 and games % step:
        raise ConfigError(
            f"--devices: {devices} devices cannot share train.games {games} evenly: expected a "
            f"multiple of {step} ({devices} devices, learner.minibatches {minibatches}, {groups} "
            f"groups), such as --set train.games={-(-games // step) * step}"
        )


@cache
def mesh(plan: Plan) -> Mesh | None:
    """The devices of the plan, by groups and columns; None where there is one."""
    if plan.devices == 1:
        return None
    devices = np.array(jax.local_devices()[: plan.devices])
    return Mesh(devices.reshape(min(plan.devices, plan.groups), -1), COLUMNS)


def columns_placement(plan: Plan) -> Columns:
    """How each array of the columns is cut; the batch is the last axis of `state` and `sums`."""
    bounds = np.zeros((plan.groups, max(plan.opponent_kinds, 1)), np.float32)
    shapes = jax.eval_shape(partial(begin, plan), np.uint32(0), bounds)

    def last(array: Array) -> Any:
        return partition(*[None] * (array.ndim - 1), COLUMNS)

    special = {
        "state": jax.tree.map(last, shapes.state),
        "sums": last(shapes.sums),
        "theirs": partition(*COLUMNS),
    }
    return Columns(**{name: special.get(name, partition(COLUMNS)) for name in Columns._fields})


@cache
def begin_columns(plan: Plan) -> jax.stages.Wrapped:
    """`begin` for this plan, compiled: the columns of each device are made there."""
    made = placed(mesh(plan), columns_placement(plan))
    return jax.jit(partial(begin, plan), out_shardings=made)


def placed(mesh: Mesh | None, placements: Tree) -> Tree:
    """Partitions as placements on the devices of the mesh; None where there is none."""
    return None if mesh is None else jax.tree.map(partial(NamedSharding, mesh), placements)


def everywhere(mesh: Mesh | None, tree: Tree) -> Tree:
    """The tree whole on every device. Without this its placement would change from one iteration
    to the next, and each placement is compiled anew."""
    return tree if mesh is None else jax.device_put(tree, placed(mesh, partition()))
