"""Frozen evaluation: many matches side by side, nothing learned, everything counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games import catalog
from understudy.games.base import Game
from understudy.games.moments import RewardSet, Term
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import Player, members
from understudy.match.series import FEW, Engine, Results, plain, play
from understudy.match.tally import EvaluationReport, Tally


def evaluate(game: Game, player: Player, seeds: NDArray) -> Tally:
    """Play one match of a one-sided game for each seed, uint32 [B]."""
    end = play(Duel(game, player), seeds, np.zeros(len(seeds), np.bool_))
    return Tally.of(end.score)


def judge(
    game: Game,
    player: Player,
    opponents: Mapping[str, Player],
    *,
    matches: int,
    seed: int,
    engine: Engine = plain,
    show: Callable[[float], None] = lambda share: None,
    measures: Mapping[str, Term] | None = None,
    few: int = FEW,
) -> dict[str, EvaluationReport]:
    """`matches` against each opponent, on the same seeds, every other one from the second slot.

    A pool of opponents shares them out; where they do not come out even, it plays a few more.
    Without `measures`, a game of the catalog is measured by its own. Who else is judged changes
    nothing, up to the rounding of a batch of another size.
    """
    if measures is None:
        measures = catalog.measures(game.name) if game.name in catalog.names() else {}
    counts = [_even(matches, members(opponent)) for opponent in opponents.values()]
    numbers = np.concatenate([np.arange(count) for count in counts])
    seeds = match_seeds(seed, numbers, purpose=EVALUATION)
    duel = Duel(
        game,
        player,
        tuple(zip(opponents.values(), counts, strict=True)),
        RewardSet.of(measures),
    )
    end = play(duel, seeds, numbers % 2 == 1, engine=engine, few=few, show=show)
    cuts = np.cumsum(counts)[:-1]
    parts = zip(*(np.split(field, cuts, axis=-1) for field in end), strict=True)
    return {
        name: EvaluationReport.of(Results(*part), tuple(measures))
        for name, part in zip(opponents, parts, strict=True)
    }


def _even(matches: int, members: int) -> int:
    """At least so many matches, as many for each member."""
    return -(-matches // members) * members
