"""The strategist: a network that recognises its opponent, by attention and then an LSTM.

The opponent's frame is embedded and attends to the opponent's last frames (`streaming`). Attention
pooling turns the last `window` outputs into one, which is refined into a strategy latent. The
latent joins the whole observation in an LSTM; actor and critic read its output. Auxiliary heads
predict, from the latent alone, the opponent's next action and, where training knows it, which
opponent it is.

In the pooling, a frame's learned score depends on the frame and on its age alone, so the weights
say which frames mattered. `step` and `unroll` both take one softmax over the frames of the match
in the window.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import (
    Params,
    cast,
    init_linear,
    init_norm,
    layer_norm,
    linear,
    product,
    read_out,
    relu,
    softmax_odds,
)
from understudy.policy.lstm import init_lstm, lstm_inputs, lstm_step, lstm_unroll
from understudy.policy.network import Reads
from understudy.policy.streaming import (
    Band,
    band,
    blocks,
    by_distance,
    empty_caches,
    init_stack,
    keep,
    step_stack,
    unroll_stack,
)

_ZERO = np.zeros((), np.float32)


def init_pool(rng: np.random.Generator | None, width: int, window: int) -> dict[str, NDArray]:
    """Scores near 0, so that a fresh pool is nearly a mean. (A bias would cancel out.)"""
    return {
        "pool.score": init_linear(rng, "pool", width, 1, gain=0.1)["pool.w"],
        "pool.bias": np.zeros(window, np.float32),
    }


def step_pool(
    ops: Ops, params: Params, x: Array, frames: Array, scores: Array, held: Array
) -> tuple[Array, Array, Array, Array]:
    """One frame x [B, width] after frames [B, past, width] with scores [B, past].

    held [B, window] as for `step_stack`. Gives the pooled [B, width], the weights [B, window],
    oldest first, and the next frames and scores.
    """
    xp = ops.xp
    frames = xp.concatenate([frames, cast(x[:, None], frames)], 1)
    scores = xp.concatenate([scores, _scores(ops, params, x)], 1)
    weights = _weights(ops, scores + params["pool.bias"][None, ::-1], held)
    pooled = (weights[..., None] * cast(frames, _ZERO)).sum(1)  # written out: see `attend_once`
    return cast(pooled, x), weights, frames[:, 1:], scores[:, 1:]


def unroll_pool(
    ops: Ops, params: Params, x: Array, frames: Array, scores: Array, band: Band
) -> tuple[Array, Array, Array]:
    """A segment x [B, T, width]: the pooled [B, T, width], and the next frames and scores."""
    xp = ops.xp
    batch, length, width = x.shape
    past = scores.shape[1]
    seen = xp.concatenate([cast(frames, x), x], 1)
    rated = xp.concatenate([scores, _scores(ops, params, x)[..., 0]], 1)
    bias = by_distance(ops, params["pool.bias"], band.size)
    weights = _weights(ops, blocks(ops, rated, band.size, past)[:, :, None] + bias, band.allowed)
    pooled = xp.matmul(cast(weights, x), blocks(ops, seen, band.size, past))
    pooled = pooled.reshape(batch, -1, width)[:, :length]
    return (
        pooled,
        keep(ops, seen[:, length:], band.held, frames),
        keep(ops, rated[:, length:], band.held, scores),
    )


def _scores(ops: Ops, params: Params, x: Array) -> Array:
    """x [..., width] to float32 [..., 1]."""
    return product(ops, x, cast(params["pool.score"], _ZERO))


def _weights(ops: Ops, scores: Array, allowed: Array) -> Array:
    """Softmax over the last axis, exactly 0 where not allowed."""
    odds = softmax_odds(ops, scores, allowed)
    return odds / odds.sum(-1, keepdims=True)


class Insight(NamedTuple):
    """All that a strategist knows at a frame [B, ...], or at those of a segment [T, B, ...]."""

    logits: Array
    """[.., options]."""
    values: Array
    """[..]."""
    memory: Tree
    """After the last frame."""
    latent: Array
    """[.., latent]: how the opponent plays."""
    attention: Array | None
    """[B, window], oldest first: the share of each frame in the latent. Of a single frame only."""
    opponent_logits: Array
    """[.., options]: what the opponent does next."""
    kind_logits: Array | None
    """[.., kinds]: who the opponent is; None where it names none."""


class Strategist(msgspec.Struct, frozen=True, tag="strategist", forbid_unknown_fields=True):
    """Sees the opponent's last frames through attention, and the match so far through an LSTM.

    Memory: the caches of its layers (see `streaming`), [B, window - 1, 2 * width] each; what they
    put out [B, window - 1, width] with its scores [B, window - 1] in the pool; which of these slots
    hold a frame, bool [B, window - 1]; and the LSTM's hidden and cell [B, lstm].
    """

    width: int = 64
    heads: int = 4
    layers: int = 2
    feed: int = 128
    """Hidden units between the attention of one layer and that of the next."""
    window: int = 65
    """How many frames one layer, and the pool, sees: the present one and those before it."""
    latent: int = 64
    """Numbers that say how the opponent plays."""
    lstm: int = 128
    head_widths: tuple[int, ...] = (64, 64)
    """Hidden layers of the actor, and of the critic."""
    opponent: int = 32
    """How many features, the last ones of an observation, are the opponent's frame."""
    kinds: int = 0
    """How many kinds of opponent it learns to name; 0: none."""

    def __post_init__(self) -> None:
        if self.kinds < 0:
            raise ConfigError(f"network.kinds: expected 0 or more, got {self.kinds}")
        for name in self.__struct_fields__[:-1]:
            sizes = getattr(self, name)
            if any(size < 1 for size in (sizes if isinstance(sizes, tuple) else (sizes,))):
                raise ConfigError(f"network.{name}: expected whole numbers above 0, got {sizes}")
        if self.width % self.heads:
            raise ConfigError(
                f"network.width: expected a multiple of heads ({self.heads}), got {self.width}"
            )

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        """The embedding reads the opponent's frame, the LSTM everything."""
        return Reads("embed", slice(-self.opponent, None)), Reads("lstm.obs")

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """Small policy weights, so that a fresh policy explores evenly."""
        if self.opponent > inputs:
            raise ConfigError(
                f"network.opponent: expected at most the {inputs} features of an observation, "
                f"got {self.opponent}"
            )
        relu_gain = math.sqrt(2.0)
        params = init_linear(rng, "embed", self.opponent, self.width, gain=relu_gain)
        params |= init_norm("embed.norm", self.width)
        params |= init_stack(rng, self)
        params |= init_pool(rng, self.width, self.window)
        params |= init_linear(rng, "refine.0", self.width, self.latent, gain=relu_gain)
        params |= init_linear(rng, "refine.1", self.latent, self.latent, gain=1.0)
        params |= init_linear(rng, "opponent", self.latent, outputs, gain=0.01)
        params |= init_lstm(rng, inputs, self.latent, self.lstm)
        for head, last, size, gain in (
            ("actor", "policy", outputs, 0.01),
            ("critic", "value", 1, 1.0),
        ):
            before = self.lstm
            for index, after in enumerate(self.head_widths):
                params |= init_linear(rng, f"{head}.{index}", before, after, gain=relu_gain)
                before = after
            params |= init_linear(rng, last, before, size, gain=gain)
        if self.kinds:
            params |= init_linear(rng, "kind", self.latent, self.kinds, gain=0.01)
        return params

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        xp, past = ops.xp, self.window - 1
        return (
            *empty_caches(ops, self, batch, dtype),
            xp.zeros((batch, past, self.width), dtype),
            xp.zeros((batch, past), np.float32),
            xp.zeros((batch, past), np.bool_),
            xp.zeros((batch, self.lstm), np.float32),
            xp.zeros((batch, self.lstm), np.float32),
        )

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [B, F] to logits [B, options], values [B] and the next memory."""
        return self.step_insight(ops, params, obs, memory)[:3]

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """obs [T, B, F] and first [T, B] to logits [T, B, options], values [T, B] and memory."""
        return self.unroll_insight(ops, params, obs, first, memory)[:3]

    def step_insight(
        self, ops: Ops, params: Params, obs: Array, memory: Tree, latent: Array | None = None
    ) -> Insight:
        """`step`, with everything that was found on the way.

        A `latent` [B, latent] is what the LSTM is told in place of what was found: so one can see
        what the finding is worth. The insight still holds the network's own.
        """
        *caches, frames, scores, held, hidden, cell = memory
        held = ops.xp.concatenate([held, ops.xp.ones((len(obs), 1), np.bool_)], 1)
        x = self._embedded(ops, params, obs)
        x, kept = step_stack(ops, params, self, x, tuple(caches), held)
        pooled, attention, *pool = step_pool(ops, params, x, frames, scores, held)
        found = self._latent(ops, params, pooled)
        inputs = lstm_inputs(ops, params, obs, found if latent is None else latent)
        hidden, cell = lstm_step(ops, params, inputs, hidden, cell)
        memory = (*kept, *pool, held[:, 1:], hidden, cell)
        return self._answer(ops, params, hidden, memory, found, attention)

    def unroll_insight(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> Insight:
        """`unroll`, with everything that was found on the way but the pool's weights."""
        *caches, frames, scores, held, hidden, cell = memory
        seen = band(ops, self, first, held)
        # Attention works on [B, T, ..] and the recurrence on [T, B, ..]: what changes sides is the
        # narrowest there is, the opponent's frame on the way in and the latent on the way out.
        x = self._embedded(ops, params, obs[..., -self.opponent :].swapaxes(0, 1))
        x, kept = unroll_stack(ops, params, self, x, tuple(caches), seen)
        pooled, *pool = unroll_pool(ops, params, x, frames, scores, seen)
        latent = self._latent(ops, params, pooled).swapaxes(0, 1)
        inputs = lstm_inputs(ops, params, obs, latent)
        every, hidden, cell = lstm_unroll(ops, params, inputs, first, hidden, cell)
        memory = (*kept, *pool, seen.held, hidden, cell)
        return self._answer(ops, params, every, memory, latent, None)

    def _embedded(self, ops: Ops, params: Params, obs: Array) -> Array:
        x = linear(ops, params, "embed", obs[..., -self.opponent :])
        return relu(ops, layer_norm(ops, params, "embed.norm", x))

    def _latent(self, ops: Ops, params: Params, pooled: Array) -> Array:
        x = relu(ops, linear(ops, params, "refine.0", pooled))
        return linear(ops, params, "refine.1", x)

    def _answer(
        self,
        ops: Ops,
        params: Params,
        hidden: Array,
        memory: Tree,
        latent: Array,
        attention: Array | None,
    ) -> Insight:
        x = y = hidden
        for index in range(len(self.head_widths)):
            x = relu(ops, linear(ops, params, f"actor.{index}", x))
            y = relu(ops, linear(ops, params, f"critic.{index}", y))
        return Insight(
            logits=read_out(ops, params, "policy", x),
            values=read_out(ops, params, "value", y)[..., 0],
            memory=memory,
            latent=latent,
            attention=attention,
            opponent_logits=read_out(ops, params, "opponent", latent),
            kind_logits=read_out(ops, params, "kind", latent) if self.kinds else None,
        )
