"""Anchors: ratings of scripted bots, from matches among them, frozen for ever.

For the games of the package they are written here, with the results that they came from, so that
ratings of two runs, on two machines and a year apart, are on one scale and no run waits for them.
For other games and other options they are played once, and the league keeps them from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.league.ratings import ORIGIN, Counts, Rating, rated_table
from understudy.league.round_robin import round_robin
from understudy.match.players import BotPlayer
from understudy.match.series import Engine, plain

MATCHES = 40
"""Of each pair, where they are played: brawl's 840 take 5 s of one core, compiling included."""
SEED = 0

KNOWN: Mapping[tuple[str, int], Mapping[tuple[str, str], Counts]] = {
    ("brawl", 1): {
        ("constant", "random"): (199, 0, 1),
        ("constant", "based"): (0, 0, 200),
        ("constant", "aggressive"): (0, 0, 200),
        ("constant", "defensive"): (0, 0, 200),
        ("constant", "kiting"): (0, 0, 200),
        ("constant", "clockwork"): (0, 2, 198),
        ("random", "based"): (0, 0, 200),
        ("random", "aggressive"): (0, 0, 200),
        ("random", "defensive"): (0, 0, 200),
        ("random", "kiting"): (1, 0, 199),
        ("random", "clockwork"): (0, 0, 200),
        ("based", "aggressive"): (68, 3, 129),
        ("based", "defensive"): (107, 15, 78),
        ("based", "kiting"): (88, 5, 107),
        ("based", "clockwork"): (191, 0, 9),
        ("aggressive", "defensive"): (69, 5, 126),
        ("aggressive", "kiting"): (140, 0, 60),
        ("aggressive", "clockwork"): (195, 0, 5),
        ("defensive", "kiting"): (138, 9, 53),
        ("defensive", "clockwork"): (197, 0, 3),
        ("kiting", "clockwork"): (187, 0, 13),
    }
}
"""By game and version of its rules, under default options: what `round_robin` counts with 200
matches of each pair and `SEED`."""

FROZEN: Mapping[tuple[str, int], Mapping[str, Rating]] = {
    ("brawl", 1): {
        "constant": Rating(1.2881926194871192, 1.9616411829776061),
        "random": Rating(-21.64530338701031, 2.5893133313512138),
        "based": Rating(39.17439614357684, 1.0263235466759795),
        "aggressive": Rating(41.3442660822557, 1.035917491749845),
        "defensive": Rating(41.851463226805414, 1.0421663217504433),
        "kiting": Rating(37.65752917694418, 1.0333947317887247),
        "clockwork": Rating(21.089537463583028, 1.5000049306278673),
    }
}
"""The scale of every run of these rules so far, to the last bit. The ratings came of `KNOWN` one
match after the other (ADR 0019): the five strong bots are where all results together put them, the
two weak ones stand too near to them."""


def known_anchors(game: str, options: Mapping[str, str]) -> dict[str, Rating] | None:
    """The ratings of a game's bots, where they are kept here."""
    if catalog.defaults(game) | dict(options) != catalog.defaults(game):
        return None
    frozen = FROZEN.get((game, catalog.make(game).version))
    return None if frozen is None else dict(frozen)


def anchors_of(
    game: str,
    options: Mapping[str, str],
    *,
    engine: Engine = plain,
    show: Callable[[float], None] = lambda share: None,
) -> dict[str, Rating]:
    """The ratings of a built-in game's bots: known, or played now."""
    known = known_anchors(game, options)
    if known is not None:
        return known
    made = catalog.make(game, **options)
    return measured(made, catalog.bots(game, **options), engine=engine, show=show)


def measured(
    game: Game,
    bots: Mapping[str, Bot],
    *,
    matches: int = MATCHES,
    seed: int = SEED,
    engine: Engine = plain,
    show: Callable[[float], None] = lambda share: None,
) -> dict[str, Rating]:
    """The ratings of scripted bots, by playing; one alone is where its scale begins."""
    if game.players != 2:
        raise ConfigError(f"{game.name} is a game of one player, and has no ratings")
    if len(bots) < 2:
        return dict.fromkeys(bots, ORIGIN)
    players = {name: BotPlayer(bot) for name, bot in bots.items()}
    met = round_robin(game, players, matches=matches, seed=seed, engine=engine, show=show)
    return rated_table(met.pairs(), fixed={})
