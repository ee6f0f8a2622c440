"""A network that points: it scores the places that an observation names, not all that exist.

An observation begins with `slots` groups of `slot_width` numbers; the first of a group is a place
as id / (places - 1), below 0 in an empty slot, and the rest describe it. What follows the slots is
about everything. One small network scores every slot for every kind of action, blind to the id: no
place can be preferred for its name, and what is learned at one place holds at all. Scores go to the
options 1 + place * kinds + kind; option 0 is to do nothing.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import Params, cast, init_linear, linear, product, read_out, relu
from understudy.policy.network import Reads

UNSEEN = -6.0
"""Where the logits of places that are not seen begin: for 250 places of two kinds together about
the weight of one that is seen, so that they are tried now and then."""

_ZERO, _HALF, _ONE = (np.full((), value, np.float32) for value in (0.0, 0.5, 1.0))


class Pointer(msgspec.Struct, frozen=True, tag="pointer", forbid_unknown_fields=True):
    """Remembers nothing. The value has layers of its own (see `Mlp`).

    Ids must arrive as they are, and slots must stay comparable with each other, so no slot is
    normalised (`raw_features`). Up to 256 places, ids survive even bfloat16.
    """

    slots: int = 5
    slot_width: int = 5
    places: int = 256
    kinds: int = 2
    widths: tuple[int, ...] = (64, 64)
    """Of the layers that score a slot, and of those of the value."""

    def __post_init__(self) -> None:
        for name, least in (("slots", 1), ("slot_width", 2), ("places", 2), ("kinds", 1)):
            if getattr(self, name) < least:
                raise ConfigError(
                    f"network.{name}: expected {least} or more, got {getattr(self, name)}"
                )
        if not self.widths or any(width < 1 for width in self.widths):
            raise ConfigError(f"network.widths: expected whole numbers above 0, got {self.widths}")

    @property
    def raw_features(self) -> tuple[int, ...]:
        """All numbers of all slots."""
        return tuple(range(self.slots * self.slot_width))

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        """`slot.own` is not among them: it reads raw numbers, and each slot's with one matrix."""
        return Reads("slot.rest", slice(self.slots * self.slot_width, None)), Reads("critic.0")

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """Small policy weights: all that is seen is as likely, and the unseen together as one."""
        rest = inputs - self.slots * self.slot_width
        if rest < 1:
            raise ConfigError(
                f"network.slots: {self.slots} slots of {self.slot_width} numbers and at least one "
                f"more do not fit the {inputs} features of an observation"
            )
        if outputs != 1 + self.places * self.kinds:
            raise ConfigError(
                f"network.places: {self.places} places of {self.kinds} kinds and doing nothing are "
                f"{1 + self.places * self.kinds} options, not the {outputs} of these actions"
            )
        gain, first, last = math.sqrt(2.0), self.widths[0], self.widths[-1]
        # One matrix, cut in two: the parts of a slot's description have one scale together.
        whole = init_linear(rng, "slot", self.slot_width - 1 + rest, first, gain=gain)["slot.w"]
        params = {
            "slot.own.w": whole[: self.slot_width - 1].copy(),
            "slot.rest.w": whole[self.slot_width - 1 :].copy(),
            "slot.rest.b": np.zeros(first, np.float32),
            "slot.rank": np.zeros((self.slots, first), np.float32),
            "unseen": np.full(self.kinds, UNSEEN, np.float32),
        }
        for index, (before, after) in enumerate(pairwise(self.widths), start=1):
            params |= init_linear(rng, f"slot.{index}", before, after, gain=gain)
        for index, (before, after) in enumerate(pairwise((inputs, *self.widths))):
            params |= init_linear(rng, f"critic.{index}", before, after, gain=gain)
        params |= init_linear(rng, "policy", last, self.kinds, gain=0.01)
        params |= init_linear(rng, "nothing", last, 1, gain=0.01)
        params |= init_linear(rng, "value", last, 1, gain=1.0)
        return params

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        return ()

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [..., F] to logits [..., options], values [...] and no memory."""
        value = obs
        for index in range(len(self.widths)):
            value = relu(ops, linear(ops, params, f"critic.{index}", value))
        values = read_out(ops, params, "value", value)[..., 0]

        split = self.slots * self.slot_width
        slots = obs[..., :split].reshape(*obs.shape[:-1], self.slots, self.slot_width)
        hidden = self._describe(ops, params, slots[..., 1:], obs[..., split:])
        scores = read_out(ops, params, "policy", hidden)
        names = cast(slots[..., 0], _ZERO)
        # Pooled over filled slots, so that how many are empty does not dilute what is said.
        filled = (names >= _ZERO)[..., None]
        count = ops.xp.maximum(filled.sum(-2, dtype=np.float32), _ONE)
        pooled = (hidden * filled).sum(-2) / count
        nothing = read_out(ops, params, "nothing", pooled)
        pointed = self._scatter(ops, names, scores, params["unseen"])
        return ops.xp.concatenate([nothing, pointed], -1), values, memory

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """Without memory, all steps at once are one step on a larger batch."""
        return self.step(ops, params, obs, memory)

    def _describe(self, ops: Ops, params: Params, own: Array, rest: Array) -> Array:
        """Slots [..., slots, own] and the rest [..., rest] to [..., slots, width]."""
        shared = linear(ops, params, "slot.rest", rest)[..., None, :]
        hidden = product(ops, own, params["slot.own.w"]) + shared + params["slot.rank"]
        hidden = relu(ops, hidden)
        for index in range(1, len(self.widths)):
            hidden = relu(ops, linear(ops, params, f"slot.{index}", hidden))
        return hidden

    def _scatter(self, ops: Ops, names: Array, scores: Array, unseen: Array) -> Array:
        """names [..., slots] and scores [..., slots, kinds] to logits [..., places * kinds].

        An empty slot is nowhere; of two slots that name one place the later one counts.
        """
        xp = ops.xp
        index = xp.floor(names * np.float32(self.places - 1) + _HALF)
        every = np.arange(self.places, dtype=np.float32)
        rows = [cast(unseen[kind], _ZERO) for kind in range(self.kinds)]
        # A slot and a kind at a time: one-hot rows of all slots are 1.3 MB for 256 decisions, which
        # NumPy takes from the system anew each time (11 ms instead of 1.2).
        for slot in range(self.slots):
            here = index[..., slot, None] == every
            rows = [
                xp.where(here, scores[..., slot, kind, None], row) for kind, row in enumerate(rows)
            ]
        return xp.stack(rows, -1).reshape(*names.shape[:-1], self.places * self.kinds)
