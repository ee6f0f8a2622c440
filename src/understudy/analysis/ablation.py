"""What recognition is worth: the same matches, played with latents that were found elsewhere.

Three ways on the same seeds: **own**, as it is; **same**, told the latents of another match
against the same opponent; **other**, told those of a match against some other opponent. Own less
other is all that the latent gives; own less same is what it gives by knowing *this* match; same
less other is what it gives by knowing *whom* it faces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from understudy.analysis.encoding import Encoder, plain, strategist_of
from understudy.analysis.paired import Effect, effect
from understudy.analysis.recording import Show, nobody, portion, record
from understudy.analysis.swapping import Bank, bank_of, drawn, swapped
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Tree
from understudy.games.base import Game
from understudy.match import series
from understudy.match.duel import Duel
from understudy.match.players import Player, PolicyPlayer
from understudy.match.stage import EVALUATION, match_seeds

WAYS = ("own", "same", "other")
CONTRASTS = (("own", "other"), ("own", "same"), ("same", "other"))
DONORS_FROM, PLAYED_FROM = 1 << 20, 2 << 20
"""Numbers of the matches that fill the bank, and of those that are played with it."""
_BANK_BYTES, _PLAY_BYTES = 96 * 2**20, 2**30
_DONORS = 16


@dataclass(frozen=True)
class Ablation:
    """Scores float32 [N] of each way, +1, 0 or -1; column i is the same match in all of them."""

    opponents: tuple[str, ...]
    labels: NDArray
    """int32 [N]"""
    scores: Mapping[str, NDArray]


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """One way less another: of the win rate, and of the score in which a draw counts half."""

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
    show: Show = nobody,
) -> Ablation:
    """At least `matches` in all, alike many against each opponent and from each slot."""
    network = strategist_of(player.policy, who="agent")
    each = 2 * -(-matches // (2 * len(opponents)))
    most = _BANK_BYTES // (4 * network.latent * game.max_frames * len(opponents))
    donated = record(
        game, player, opponents,
        matches=min(max(most, 2), _DONORS), frames=game.max_frames, seed=seed, skip=DONORS_FROM,
        engine=engine, show=portion(show, 0.0, 0.1),
    )  # fmt: skip
    bank = bank_of(player.policy, donated, encoder=encoder)
    size = _matches_at_once(network.memory(NUMPY, 1), opponents=len(opponents))
    rest = portion(show, 0.1, 1.0)
    parts = [
        _some(
            game, player, opponents, bank,
            numbers=np.arange(start, min(start + size, each)), seed=seed, engine=engine,
            show=portion(rest, start / each, min(start + size, each) / each),
        )
        for start in range(0, each, size)
    ]  # fmt: skip
    # Of one opponent, the parts follow one another.
    labels = np.repeat(np.arange(len(opponents), dtype=np.int32), each)
    return Ablation(
        opponents=tuple(opponents),
        labels=labels,
        scores={
            way: np.concatenate([part[way] for part in parts], axis=1).reshape(-1) for way in WAYS
        },
    )


def worth(ablation: Ablation, better: str, worse: str, *, label: int | None = None) -> Worth:
    """Paired differences over all matches, or over those against one opponent."""
    where = slice(None) if label is None else ablation.labels == label
    ours, theirs = ablation.scores[better][where], ablation.scores[worse][where]
    return Worth(wins=effect(ours > 0, theirs > 0), score=effect((ours + 1) / 2, (theirs + 1) / 2))


def _some(
    game: Game,
    player: PolicyPlayer,
    opponents: Mapping[str, Player],
    bank: Bank,
    *,
    numbers: NDArray,
    seed: int,
    engine: series.Engine,
    show: Show,
) -> dict[str, NDArray]:
    """Scores [O, n] of each way in matches of these numbers [n]."""
    seeds = match_seeds(seed, PLAYED_FROM + numbers, purpose=EVALUATION)
    second, count = numbers % 2 == 1, len(opponents)
    labels = np.repeat(np.arange(count, dtype=np.int32), len(numbers))
    network = strategist_of(player.policy, who="agent")
    donors = [
        drawn(bank, labels, same=same, seed=seed + int(numbers[0])).reshape(count, -1)
        for same in (True, False)
    ]
    # Both swapped ways in one duel: of one opponent, first `same`, then `other`.
    told = swapped(player.policy, network, bank, np.concatenate(donors, axis=1).reshape(-1))

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
    both = played(PolicyPlayer(told, sampled=player.sampled), 2, portion(show, 1 / 3, 1.0))
    return {"own": own[:, 0], "same": both[:, 0], "other": both[:, 1]}


def _matches_at_once(memory: Tree, *, opponents: int) -> int:
    """Matches of each opponent whose memories, in both swapped ways, fit; even, at least 2."""
    size = sum(int(leaf.nbytes) for leaf in memory)
    return max(2, _PLAY_BYTES // (2 * opponents * 3 * size) // 2 * 2)
