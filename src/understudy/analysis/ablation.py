"""What recognition is worth: the same matches, played with latents that were found elsewhere.

Three ways on the same seeds: **own**, as it is; **same**, told the latents of another match
against the same opponent; **other**, told those of a match against some other opponent. Own less
other is all that the latent gives; own less same is what it gives by knowing *this* match; same
less other is what it gives by knowing *whom* it faces.

The latents told are those of a few recorded matches, the donors, each of which many matches are
told: how sure a difference is depends on how many donors there were, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from understudy.analysis.encoding import Encoder, plain, strategist_of
from understudy.analysis.paired import Effect, Shared, effect
from understudy.analysis.recording import Record, Show, nobody, portion, record
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
    donors: Mapping[str, NDArray]
    """int32 [N] of each way that is told other latents than its own: which recorded match's."""


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
        _some(
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


def worth(ablation: Ablation, better: str, worse: str, *, label: int | None = None) -> Worth:
    """Paired differences over all matches, or over those against one opponent."""
    where = slice(None) if label is None else ablation.labels == label
    ours, theirs = ablation.scores[better][where], ablation.scores[worse][where]
    donors = [ablation.donors[way][where] for way in (better, worse) if way in ablation.donors]
    shared = Shared(np.stack(donors), ablation.labels[where])
    return Worth(
        wins=effect(ours > 0, theirs > 0, shared),
        score=effect((ours + 1) / 2, (theirs + 1) / 2, shared),
    )


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
) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
    """Scores [O, n] of each way in matches of these numbers [n], and the donors that were heard."""
    seeds = match_seeds(seed, PLAYED_FROM + numbers, purpose=EVALUATION)
    second, count = numbers % 2 == 1, len(opponents)
    labels = np.repeat(np.arange(count, dtype=np.int32), len(numbers))
    network = strategist_of(player.policy, who="agent")
    donors = {
        way: drawn(bank, labels, same=same, seed=seed + int(numbers[0])).reshape(count, -1)
        for way, same in (("same", True), ("other", False))
    }
    # Both swapped ways in one duel: of one opponent, first `same`, then `other`.
    heard = np.concatenate(list(donors.values()), axis=1).reshape(-1)
    told = swapped(player.policy, network, bank, heard)

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
    return {"own": own[:, 0], "same": both[:, 0], "other": both[:, 1]}, donors


def _joined(parts: Sequence[Mapping[str, NDArray]]) -> dict[str, NDArray]:
    """Parts [O, n] as one [O * each]: of one opponent, they follow one another."""
    return {
        way: np.concatenate([part[way] for part in parts], axis=1).reshape(-1) for way in parts[0]
    }


def _donors_that_fit(donated: Record, frames: int) -> int:
    """How many matches against each opponent have so many frames together; at least 2."""
    most = len(donated.numbers) // len(donated.opponents)
    sizes = [donated.lengths[donated.columns(each=n)].sum() for n in range(1, most + 1)]
    return max(2, int((np.array(sizes) <= frames).sum()))


def _matches_at_once(memory: Tree, *, opponents: int) -> int:
    """Matches of each opponent whose memories, in both swapped ways, fit; even, at least 2."""
    size = sum(int(leaf.nbytes) for leaf in memory)
    return max(2, _PLAY_BYTES // (2 * opponents * 3 * size) // 2 * 2)
