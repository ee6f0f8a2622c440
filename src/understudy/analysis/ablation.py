"""The ablation of the strategy latent: the same matches, played with latents of other matches.

Matches on the same seeds are played in three ways: **own**, with the agent's own latents; **same**,
with those of another match against the same opponent; **other**, with those of a match against
another opponent. Own less other is all that the latent is worth, own less same is the worth of
reading *this* match, and same less other is the worth of knowing the opponent.

Other latents come from a bank of recorded matches, the donors. Each column has one donor, and takes
its latents frame by frame. The bank is part of the parameters and the donors are part of the
memory, so one compiled program plays any bank, and a column keeps its donor when others end before
it. Many matches share a donor, so the confidence also depends on the number of donors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import numpy as np

from understudy.analysis.encoding import Encoder, latents, plain, strategist_of
from understudy.analysis.paired import Effect, SharedMatches, effect
from understudy.analysis.recording import MatchRecording, Show, no_progress, portion, record
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.games.base import Game
from understudy.match import series
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import Player, PolicyPlayer
from understudy.policy.layers import Params
from understudy.policy.network import Reads
from understudy.policy.policy import Policy
from understudy.policy.strategist import Strategist

WAYS = ("own", "same", "other")
CONTRASTS = (("own", "other"), ("own", "same"), ("same", "other"))
DONORS_FROM, PLAYED_FROM = 1 << 20, 2 << 20
"""Numbers of the first match of the bank, and of the first that is played with it."""
_BANK_BYTES, _PLAY_BYTES = 96 * 2**20, 2**30
_DONORS = 16
_BANK, _STARTS, _LENGTHS = "bank.latents", "bank.starts", "bank.lengths"
_ONE, _TWO = np.int32(1), np.int32(2)


@dataclass(frozen=True)
class Bank:
    """The latents of D matches, one after the other."""

    latents: NDArray
    """float32 [frames of all, latent]"""
    starts: NDArray
    """int32 [D]: the first row of each match in `latents`"""
    lengths: NDArray
    """int32 [D], each above 0"""
    labels: NDArray
    """int32 [D]: the opponents"""

    @property
    def params(self) -> Params:
        """Parameters that the network gets beside its own."""
        return {_BANK: self.latents, _STARTS: self.starts, _LENGTHS: self.lengths}


def bank_of(policy: Policy, record: MatchRecording, *, encoder: Encoder = plain) -> Bank:
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


def draw_donors(bank: Bank, labels: NDArray, *, same: bool, seed: int) -> NDArray:
    """int32 [N]: a donor for each match against opponents `labels` [N], drawn uniformly.

    `same`: among matches against the same opponent, else among those against the others.
    """
    rng = np.random.default_rng([seed, int(same)])
    donors = np.empty(len(labels), np.int32)
    for label in np.unique(labels):
        fit = np.flatnonzero((bank.labels == label) == same)
        where = labels == label
        donors[where] = rng.choice(fit, int(where.sum()))
    return donors


def donor_latents(ops: Ops, params: Params, donors: Array, frame: Array) -> Array:
    """The latents [B, latent] of donors [B] at frames [B].

    A shorter match of a donor is read back and forth, so that consecutive frames always get
    neighbouring latents of one match.
    """
    xp = ops.xp
    length = xp.asarray(params[_LENGTHS]).take(donors)
    lap = frame % (_TWO * length)
    place = xp.where(lap < length, lap, _TWO * length - _ONE - lap)
    return xp.asarray(params[_BANK]).take(xp.asarray(params[_STARTS]).take(donors) + place, axis=0)


@dataclass(frozen=True)
class SwappedLatents:
    """A strategist as a `Network` whose LSTM gets latents of donors.

    Memory: that of the strategist, donors [B], frames [B].
    """

    network: Strategist
    donors: NDArray = field(compare=False)
    """int32 [B], one for each match. Part of the memory, not of the compiled program."""

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        return self.network.input_layers

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        return self.network.init(rng, inputs, outputs)

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        """`batch` must be the number of donors."""
        if batch != len(self.donors):
            raise ValueError(f"{len(self.donors)} donors for {batch} matches")
        inner = self.network.memory(ops, batch, dtype)
        return inner, ops.xp.asarray(self.donors), ops.xp.zeros(batch, np.int32)

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        inner, donors, frame = memory
        latent = donor_latents(ops, params, donors, frame)
        insight = self.network.step_insight(ops, params, obs, inner, latent)
        return insight.logits, insight.values, (insight.memory, donors, frame + _ONE)

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        raise NotImplementedError("a swapped latent is played, not trained")


def swapped(policy: Policy, network: Strategist, bank: Bank, donors: NDArray) -> Policy:
    """The policy with latents from the bank: `donors` int32 [B], one for each match."""
    # The networks of a spec can be saved; this one only plays.
    spec = msgspec.structs.replace(policy.spec, network=cast(Any, SwappedLatents(network, donors)))
    weights = dataclasses.replace(policy.weights, params={**policy.weights.params, **bank.params})
    return Policy(spec, weights, policy.version)


@dataclass(frozen=True)
class Ablation:
    """Scores float32 [N] of each way, +1, 0 or -1; column i is the same match in all of them."""

    opponents: tuple[str, ...]
    labels: NDArray
    """int32 [N]"""
    scores: Mapping[str, NDArray]
    donors: Mapping[str, NDArray]
    """int32 [N] of the ways `same` and `other`: the donors"""


class AblationWorth(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two ways: of the win rate, and of the score, where a draw counts half."""

    wins: Effect
    score: Effect


def play_all(
    game: Game,
    player: PolicyPlayer,
    opponents: Mapping[str, Player],
    *,
    matches: int,
    seed: int,
    engine: series.Engine = series.plain,
    encoder: Encoder = plain,
    show: Show = no_progress,
) -> Ablation:
    """Plays at least `matches` in all, as many against each opponent and from each slot."""
    network = strategist_of(player.policy, who="agent")
    each = 2 * -(-matches // (2 * len(opponents)))
    donated = record(
        game, player, opponents,
        matches=_DONORS, frames=game.max_frames, seed=seed, skip=DONORS_FROM,
        engine=engine, show=portion(show, 0.0, 0.1),
    )  # fmt: skip
    fit = _donors_that_fit(donated, _BANK_BYTES // (4 * network.latent))
    bank = bank_of(player.policy, donated.only(donated.columns(each=fit)), encoder=encoder)
    size = _matches_at_once(network.memory(NUMPY, 1), opponents=len(opponents))
    rest = portion(show, 0.1, 1.0)
    parts = [
        _play_block(
            game, player, opponents, bank,
            numbers=np.arange(start, min(start + size, each)), seed=seed, engine=engine,
            show=portion(rest, start / each, min(start + size, each) / each),
        )
        for start in range(0, each, size)
    ]  # fmt: skip
    scores, donors = zip(*parts, strict=True)
    return Ablation(
        opponents=tuple(opponents),
        labels=np.repeat(np.arange(len(opponents), dtype=np.int32), each),
        scores=_joined(scores),
        donors=_joined(donors),
    )


def worth(
    ablation: Ablation, better: str, worse: str, *, label: int | None = None
) -> AblationWorth:
    """Paired differences over all matches, or over those against one opponent."""
    where = slice(None) if label is None else ablation.labels == label
    ours, theirs = ablation.scores[better][where], ablation.scores[worse][where]
    donors = [ablation.donors[way][where] for way in (better, worse) if way in ablation.donors]
    shared = SharedMatches(np.stack(donors), ablation.labels[where])
    return AblationWorth(
        wins=effect(ours > 0, theirs > 0, shared),
        score=effect((ours + 1) / 2, (theirs + 1) / 2, shared),
    )


def _play_block(
    game: Game,
    player: PolicyPlayer,
    opponents: Mapping[str, Player],
    bank: Bank,
    *,
    numbers: NDArray,
    seed: int,
    engine: series.Engine,
    show: Show,
) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Scores [O, n] of each way in matches of these numbers [n], and the donors [O, n]."""
    seeds = match_seeds(seed, PLAYED_FROM + numbers, purpose=EVALUATION)
    second, count = numbers % 2 == 1, len(opponents)
    labels = np.repeat(np.arange(count, dtype=np.int32), len(numbers))
    network = strategist_of(player.policy, who="agent")
    donors = {
        way: draw_donors(bank, labels, same=same, seed=seed + int(numbers[0])).reshape(count, -1)
        for way, same in (("same", True), ("other", False))
    }
    # Both swapped ways in one duel: of one opponent, first `same`, then `other`.
    both_ways = np.concatenate(list(donors.values()), axis=1).reshape(-1)
    with_donors = swapped(player.policy, network, bank, both_ways)

    def played(one: PolicyPlayer, copies: int, shown: Show) -> NDArray:
        duel = Duel(
            game, one, tuple((other, copies * len(numbers)) for other in opponents.values())
        )
        end = series.play(
            duel, np.tile(seeds, copies * count), np.tile(second, copies * count),
            engine=engine, show=shown,
        )  # fmt: skip
        return np.asarray(end.score).reshape(count, copies, len(numbers))

    own = played(player, 1, portion(show, 0.0, 1 / 3))
    both = played(PolicyPlayer(with_donors, sampled=player.sampled), 2, portion(show, 1 / 3, 1.0))
    return {"own": own[:, 0], "same": both[:, 0], "other": both[:, 1]}, donors


def _joined(parts: Sequence[Mapping[str, NDArray]]) -> dict[str, NDArray]:
    """Joins blocks [O, n] to [O * each], ordered by opponent."""
    return {
        way: np.concatenate([part[way] for part in parts], axis=1).reshape(-1) for way in parts[0]
    }


def _donors_that_fit(donated: MatchRecording, frames: int) -> int:
    """The most donors of each opponent with at most `frames` frames in all; at least 2."""
    most = len(donated.numbers) // len(donated.opponents)
    sizes = [donated.lengths[donated.columns(each=n)].sum() for n in range(1, most + 1)]
    return max(2, int((np.array(sizes) <= frames).sum()))


def _matches_at_once(memory: Tree, *, opponents: int) -> int:
    """Matches of each opponent whose memories fit, in both swapped ways; even, at least 2."""
    size = sum(int(leaf.nbytes) for leaf in memory)
    return max(2, _PLAY_BYTES // (2 * opponents * 3 * size) // 2 * 2)
