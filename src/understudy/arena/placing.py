"""Where the slots lie: on one device, or shared out evenly among several.

Every array of a slot is cut along its batch; parameters are whole on every device. XLA sees from
that how to share the work and where to add gradients up.
"""

from __future__ import annotations

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from understudy.arena.slots import Plan, Slots
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Tree

_GAMES = "games"


def placed(plan: Plan, slots: Slots) -> Slots:
    """The slots on all devices of this process."""
    devices = jax.devices()
    if len(devices) == 1:
        return slots
    check_devices(plan.games, plan.groups)
    mesh = Mesh(devices, (_GAMES,))

    def cut(array: Array, axis: int) -> Array:
        names = [None] * array.ndim
        names[axis] = _GAMES  # type: ignore[call-overload]
        return jax.device_put(array, NamedSharding(mesh, PartitionSpec(*names)))  # type: ignore[no-untyped-call]

    rest = {
        name: jax.tree.map(lambda array: cut(array, 0), getattr(slots, name))
        for name in Slots._fields
        if name not in ("state", "theirs", "ledger")
    }
    return Slots(
        state=jax.tree.map(lambda array: cut(array, array.ndim - 1), slots.state),
        ledger=cut(slots.ledger, 1),
        theirs=jax.tree.map(lambda array: cut(array, 1), slots.theirs),
        **rest,
    )


def check_devices(games: int, groups: int) -> None:
    """Games that cannot be shared out evenly are an error that says so."""
    devices = len(jax.devices())
    if devices > 1 and games % (devices * groups):
        raise ConfigError(
            f"train.games: expected a multiple of {devices * groups} ({devices} devices, "
            f"{groups} groups), got {games}"
        )


def everywhere(tree: Tree) -> Tree:
    """The tree whole on every device: left to itself it would lie there or not, from one iteration
    to the next, and each way of lying is compiled anew."""
    devices = jax.devices()
    if len(devices) == 1:
        return tree
    return jax.device_put(tree, NamedSharding(Mesh(devices, (_GAMES,)), PartitionSpec()))  # type: ignore[no-untyped-call]
