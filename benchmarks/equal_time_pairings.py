"""The matches of `equal_time.py`: each of ours against each peer, and what that adds up to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games import catalog
from understudy.games.base import Game
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, Player

MODES = {"likeliest": False, "sampled": True}
RESAMPLES = 10_000
Maker = Callable[[bool], Player]
"""A trained player by whether its actions are sampled."""


def meet(
    ours: Sequence[Maker], theirs: Sequence[Maker], *,
    matches: int, bot_matches: int, seed: int, game: Game | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Every one of ours against every peer, and all against the bots, by both kinds of actions.

    `pairings[mode][i][j]` is the report of our seed i against the peer's seed j.
    """
    game = game or catalog.make("brawl")
    bots: dict[str, Player] = {name: BotPlayer(bot) for name, bot in catalog.bots("brawl").items()}
    met: dict[str, Any] = {"pairings": {}, "summary": {}, "ours_v_bots": {}, "peer_v_bots": {}}

    def reports(player: Player, against: Mapping[str, Player], count: int) -> dict[str, Any]:
        judged = judge(game, player, against, matches=count, seed=seed)
        return {name: report.as_dict() for name, report in judged.items()}

    for mode, sampled in MODES.items():
        against = {str(index): make(sampled) for index, make in enumerate(theirs)}
        rows = []
        for index, make in enumerate(ours):
            print(
                f"{mode}: ours {index + 1} of {len(ours)} meets {len(theirs)} peers, {matches} "
                "matches each ...",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            rows.append(list(reports(make(sampled), against, matches).values()))
        met["pairings"][mode] = rows
        met["summary"][mode] = summary(rows)
        if bot_matches:
            met["ours_v_bots"][mode] = [reports(one(sampled), bots, bot_matches) for one in ours]
            met["peer_v_bots"][mode] = [reports(one(sampled), bots, bot_matches) for one in theirs]
    return met


def summary(pairings: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The mean of all pairings with its interval, and the pairing that is worst for ours."""
    wins = np.array([[one["wins"] for one in row] for row in pairings])
    matches = np.array([[one["matches"] for one in row] for row in pairings])
    rates = wins / matches
    low, high = mean_interval(wins, matches)
    row, column = (int(one) for one in np.unravel_index(rates.argmin(), rates.shape))
    return {
        "mean": round(float(rates.mean()), 4),
        "interval": [round(low, 4), round(high, 4)],
        "worst": {"ours": row, "peer": column, **pairings[row][column]},
    }


def mean_interval(wins: NDArray, matches: NDArray) -> tuple[float, float]:
    """95% of the mean win rate, wins and matches int [N, M]: of other seeds on both sides, too.

    Trainings are resampled on either side, since the matches of one training share its luck; each
    pairing's rate is drawn from what its matches leave open (Jeffreys' prior). With three seeds a
    side the interval is rough.
    """
    rng = np.random.default_rng(0)
    n, m = wins.shape
    rates = rng.beta(wins + 0.5, matches - wins + 0.5, (RESAMPLES, n, m))
    rows = rng.integers(0, n, (RESAMPLES, n, 1))
    columns = rng.integers(0, m, (RESAMPLES, 1, m))
    means = rates[np.arange(RESAMPLES)[:, None, None], rows, columns].mean((1, 2))
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
