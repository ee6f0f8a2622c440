"""Frozen evaluation: many matches side by side, nothing learned, everything counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.base import Game
from understudy.match.duel import Duel
from understudy.match.players import Player
from understudy.match.series import Engine, plain, play
from understudy.match.stage import EVALUATION, match_seeds
from understudy.match.tally import Report, Tally


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
) -> dict[str, Report]:
    """`matches` against each opponent, on the same seeds, every other one from the second slot.

    Who else is judged changes nothing, up to the rounding of a batch of another size.
    """
    one = match_seeds(seed, np.arange(matches), purpose=EVALUATION)
    seeds = np.tile(one, len(opponents))
    second = np.tile(np.arange(matches) % 2 == 1, len(opponents))
    duel = Duel(game, player, tuple((opponent, matches) for opponent in opponents.values()))
    end = play(duel, seeds, second, engine=engine, show=show)
    score, frames, path = (
        np.asarray(field).reshape(len(opponents), matches)
        for field in (end.score, end.frames, end.path)
    )
    return {
        name: Report(
            tally=Tally.of(score[index]),
            distinct=len(np.unique(path[index])),
            mean_frames=float(frames[index].mean()),
        )
        for index, name in enumerate(opponents)
    }
