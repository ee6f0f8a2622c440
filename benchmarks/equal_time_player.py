"""The peer as a player of our matches: its LSTM policy from an `.npz`, written out over `ops`.

`equal_time_peer.py` writes the file and holds this forward against PyTorch's on real observations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray, read_npz
from understudy.core.errors import FileFormatError
from understudy.core.ops import Array, Ops, Tree
from understudy.core.spaces import ActionSpace
from understudy.match.players import PlayerView
from understudy.policy import distributions

ACTIVATIONS = ("tanh", "relu")
_NAMES = {"lstm.input", "lstm.hidden", "lstm.b", "action.w", "action.b"}


@dataclass(frozen=True)
class PeerPlayer:
    """A recurrent policy that plays its likeliest action, or draws one."""

    params: Mapping[str, NDArray]
    """`lstm.input` [F, 4H], `lstm.hidden` [H, 4H], `lstm.b` [4H] with gates in PyTorch's order
    (input, forget, proposal, output); `mlp.N.w`, `mlp.N.b`; `action.w`, `action.b`."""
    activation: str
    actions: ActionSpace
    sampled: bool = False

    @property
    def weights(self) -> Tree:
        """The parameters."""
        return dict(self.params)

    def memory(self, ops: Ops, matches: int) -> Tree:
        """Hidden and cell, [B, H]: empty."""
        empty = ops.xp.zeros((matches, self.params["lstm.hidden"].shape[0]), ops.xp.float32)
        return empty, empty

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """Actions int32 [1, B]; all are legal in brawl, so the peer knows of no mask."""
        xp = ops.xp
        logits, memory = self.logits(ops, weights, view.obs.T, memory)
        if self.sampled:
            key = chance.fold(view.key(ops, chance.SAMPLING), view.frame.astype(xp.uint32))
            uniforms = chance.uniform(ops, key, np.zeros(1, np.uint32)).T
            chosen, _ = distributions.choose(ops, self.actions, logits, None, uniforms)
        else:
            chosen, _ = distributions.mode(ops, self.actions, logits, None)
        return chosen.T, memory

    def logits(self, ops: Ops, weights: Tree, obs: Array, memory: Tree) -> tuple[Array, Tree]:
        """obs [B, F] and memory to logits [B, actions] and the next memory."""
        xp = ops.xp
        hidden, cell = memory
        one, half = np.float32(1), np.float32(0.5)
        gates = xp.clip(obs, -one, one) @ weights["lstm.input"]
        gates = gates + hidden @ weights["lstm.hidden"] + weights["lstm.b"]
        size = cell.shape[-1]
        opened = xp.tanh(gates * half) * half + half
        proposed = xp.tanh(gates[:, 2 * size : 3 * size])
        cell = opened[:, size : 2 * size] * cell + opened[:, :size] * proposed
        hidden = opened[:, 3 * size :] * xp.tanh(cell)
        latent = hidden
        for index in range(sum(name.endswith(".w") for name in weights) - 1):
            latent = latent @ weights[f"mlp.{index}.w"] + weights[f"mlp.{index}.b"]
            latent = xp.tanh(latent) if self.activation == "tanh" else xp.maximum(latent, 0)
        return latent @ weights["action.w"] + weights["action.b"], (hidden, cell)


def load(path: Path, actions: ActionSpace, *, sampled: bool = False) -> PeerPlayer:
    """The peer that `equal_time_peer.py` saved."""
    arrays = read_npz(path)
    activation = str(arrays.pop("activation", ""))
    if activation not in ACTIVATIONS or not set(arrays) >= _NAMES:
        raise FileFormatError(f"{path}: expected a policy as equal_time_peer.py saves it")
    return PeerPlayer(arrays, activation, actions, sampled)
