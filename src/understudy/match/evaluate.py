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


def evaluate(
    game: Game,
    player: Player,
    seeds: NDArray,
    *,
    show: Callable[[float], None] = lambda share: None,
) -> Tally:
    """Plays one match of a one-player game for each seed, and counts the results.

        game = catalog.make("swarm")
        seeds = match_seeds(0, np.arange(200), purpose=EVALUATION)
        evaluate(game, BotPlayer(catalog.bots("swarm")["rules"]), seeds).win_rate    # 0 to 1

    All matches are played side by side under NumPy; nothing is learned. For games of two players
    use `judge`.

    Args:
        game: A game of one player, whose enemy is part of the rules.
        player: A policy (`PolicyPlayer`) or a scripted bot (`BotPlayer`).
        seeds: uint32 [B]. `match_seeds(..., purpose=EVALUATION)` gives seeds that no training
            uses. The same seeds give the same matches.
        show: Gets the share of the longest possible match that is over, 0 to 1, now and then.

    Returns:
        Wins, draws and losses, B together. A match that runs out of time is what the game's
        `score` says of it.

    Raises:
        ValueError: The inputs of a policy's network are not as many as the game's features.
    """
    end = play(Duel(game, player), seeds, np.zeros(len(seeds), np.bool_), show=show)
    return Tally.of(end.score)


def judge_alone(
    game: Game,
    player: Player,
    *,
    matches: int,
    seed: int,
    engine: Engine = plain,
    show: Callable[[float], None] = lambda share: None,
) -> EvaluationReport:
    """Plays `matches` of a game of one player, and reports on them; arguments as of `judge`."""
    measures = _measures(game)
    seeds = match_seeds(seed, np.arange(matches), purpose=EVALUATION)
    duel = Duel(game, player, measures=RewardSet.of(measures))
    end = play(duel, seeds, np.zeros(matches, np.bool_), engine=engine, few=matches, show=show)
    return EvaluationReport.of(end, tuple(measures))


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
    """Plays a player of a two-player game against each opponent, and reports on each.

        bots = {name: BotPlayer(bot) for name, bot in catalog.bots("brawl").items()}
        judge(catalog.make("brawl"), player, bots, matches=200, seed=0)["based"].tally.win_rate

    Every opponent is met on the same seeds, and every other match is played as the game's second
    player. The other opponents do not change a report, up to the rounding of a larger batch.

    Args:
        game: A game of two players.
        player: The player that is judged.
        opponents: By name. The members of a `PoolPlayer` share its matches equally: it plays a few
            more where `matches` is no multiple of their number.
        matches: Against each opponent.
        seed: Of the match seeds, which training never uses.
        engine: `plain` (NumPy) or `arena.compiling.compiled_duel` (JAX).
        show: Gets the share of the longest possible match that is over, 0 to 1, now and then.
        measures: Terms to sum over each match, from the player's side. None: those that the
            catalog has for the game.
        few: A batch of at most so many columns is not made smaller as matches end.

    Returns:
        By opponent: the tally, how many matches differ, and means over matches.

    Raises:
        ValueError: There are no opponents, or a policy's network does not fit the game.
    """
    if measures is None:
        measures = _measures(game)
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


def _measures(game: Game) -> Mapping[str, Term]:
    """Those that the catalog has for the game."""
    return catalog.measures(game.name) if catalog.known(game.name) else {}


def _even(matches: int, members: int) -> int:
    """The smallest multiple of `members` that is at least `matches`."""
    return -(-matches // members) * members
