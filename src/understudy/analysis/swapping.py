"""A player who is told another match's latents in place of its own.

The latents come from a bank of whole matches, frame by frame, from the donor that each column was
given. The bank travels with the parameters and the donors in the memory: so one compiled program
plays any bank, and a column keeps its donor when others end before it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import numpy as np

from understudy.analysis.encoding import Encoder, latents, plain
from understudy.analysis.recording import Record
from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import Params
from understudy.policy.network import Reads
from understudy.policy.policy import Policy
from understudy.policy.strategist import Strategist

_BANK, _STARTS, _LENGTHS = "bank.latents", "bank.starts", "bank.lengths"
_ONE, _TWO = np.int32(1), np.int32(2)


@dataclass(frozen=True)
class Bank:
    """D matches, one after the other."""

    latents: NDArray
    """float32 [frames of all, latent]"""
    starts: NDArray
    """int32 [D]: where a match begins in `latents`."""
    lengths: NDArray
    """int32 [D], each above 0."""
    labels: NDArray
    """int32 [D]: which opponent."""

    @property
    def params(self) -> Params:
        """What is handed to the network beside its own parameters."""
        return {_BANK: self.latents, _STARTS: self.starts, _LENGTHS: self.lengths}


def bank_of(policy: Policy, record: Record, *, encoder: Encoder = plain) -> Bank:
    """The latents of recorded matches, without the frames after their end."""
    found = latents(policy, record.seen, encoder=encoder)
    rows = [found[:length, column] for column, length in enumerate(record.lengths)]
    ends = np.cumsum(record.lengths)
    return Bank(
        latents=np.concatenate(rows),
        starts=(ends - record.lengths).astype(np.int32),
        lengths=record.lengths.astype(np.int32),
        labels=record.labels,
    )


def drawn(bank: Bank, labels: NDArray, *, same: bool, seed: int) -> NDArray:
    """int32 [N]: a donor for matches against opponents `labels` [N], drawn evenly.

    `same`: from matches against the same opponent, else from those against any other.
    """
    rng = np.random.default_rng([seed, int(same)])
    donors = np.empty(len(labels), np.int32)
    for label in np.unique(labels):
        fit = np.flatnonzero((bank.labels == label) == same)
        where = labels == label
        donors[where] = rng.choice(fit, int(where.sum()))
    return donors


def told(ops: Ops, params: Params, donors: Array, frame: Array) -> Array:
    """The latents [B, latent] of donors [B] at frames [B].

    A donor's match that was shorter is walked back and forth: every latent is then still one of
    that match, beside one that was its neighbour in time.
    """
    xp = ops.xp
    length = xp.asarray(params[_LENGTHS]).take(donors)
    lap = frame % (_TWO * length)
    place = xp.where(lap < length, lap, _TWO * length - _ONE - lap)
    return xp.asarray(params[_BANK]).take(xp.asarray(params[_STARTS]).take(donors) + place, axis=0)


@dataclass(frozen=True)
class Swapped:
    """A strategist as a `Network` whose LSTM hears its donor; memory: its own, donors, frame."""

    network: Strategist
    donors: NDArray = field(compare=False)
    """int32 [B]: one for each match, in their order. No part of the program, only of memory."""

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        """The strategist's."""
        return self.network.input_layers

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """The strategist's."""
        return self.network.init(rng, inputs, outputs)

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        """For exactly as many matches as there are donors."""
        if batch != len(self.donors):
            raise ValueError(f"{len(self.donors)} donors for {batch} matches")
        inner = self.network.memory(ops, batch, dtype)
        return inner, ops.xp.asarray(self.donors), ops.xp.zeros(batch, np.int32)

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """The strategist's, with the donor's latent."""
        inner, donors, frame = memory
        latent = told(ops, params, donors, frame)
        insight = self.network.step_insight(ops, params, obs, inner, latent)
        return insight.logits, insight.values, (insight.memory, donors, frame + _ONE)

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """Never: it is played, not trained."""
        raise NotImplementedError("a swapped latent is played, not trained")


def swapped(policy: Policy, network: Strategist, bank: Bank, donors: NDArray) -> Policy:
    """The policy with latents from the bank: `donors` int32 [B], one for each match."""
    # A spec names one of the networks that can be saved; this one only plays.
    spec = msgspec.structs.replace(policy.spec, network=cast(Any, Swapped(network, donors)))
    weights = dataclasses.replace(policy.weights, params={**policy.weights.params, **bank.params})
    return Policy(spec, weights, policy.version)
