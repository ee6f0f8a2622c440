"""A tournament: bots, runs and snapshots by name, everyone against everyone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from understudy.adapters.environments.factory import is_environment
from understudy.core.errors import ConfigError
from understudy.judging.players import PlayerResolver
from understudy.league.anchors import known_anchors
from understudy.league.payoffs import Cycle, Payoffs, Standing, standings
from understudy.league.ratings import ORIGIN
from understudy.league.round_robin import round_robin
from understudy.match.series import Engine

PLAYERS = "PLAYERS"
"""What the names are called in errors."""


@dataclass(frozen=True)
class TournamentResult:
    """What a tournament found."""

    game: str
    """The game's own name."""
    versions: dict[str, int | None]
    """Which version played under each name that is a run."""
    places: list[Standing]
    payoffs: Payoffs
    cycles: list[Cycle]

    def as_dict(self) -> dict[str, object]:
        """For JSON: standings, payoffs by player and opponent, cycles."""
        return {"versions": self.versions, **found_as_dict(self.payoffs, self.places, self.cycles)}


def tournament(
    game: str,
    names: Sequence[str],
    *,
    matches: int,
    seed: int,
    sampled: bool,
    delay: int | None,
    options: Mapping[str, str] | None = None,
    bots: Sequence[str] = (),
    engine: Engine,
    workers: int = 0,
    ray: str = "",
    note: Callable[[str], None],
    show: Callable[[float], None],
) -> TournamentResult:
    """`matches` of each pair; `note` is told what a person should know beside the result. In an
    environment `workers` play them, where there are any."""
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise ConfigError(f"{PLAYERS}: {double!r} is named twice")
    if len(names) < 2:
        raise ConfigError(f"{PLAYERS}: expected two or more bots and runs, got {len(names)}")
    leads = [(PLAYERS, name) for name in names]
    if is_environment(game):
        from understudy.adapters.environments.sides import RANDOM
        from understudy.judging.environments import EnvironmentResolver

        here = EnvironmentResolver(
            game, leads=leads, options=options, bots=bots, sampled=sampled, seed=seed
        )
        sides = [here.resolve(PLAYERS, name) for name in names]
        with here.with_workers(workers, ray=ray, note=note):
            payoffs = here.round_robin(sides, matches, show=show)
        places = standings(payoffs, {RANDOM: ORIGIN} if RANDOM in names else {})
        by_name = {one.name: one.version for one in sides}
        return TournamentResult(game, by_name, places, payoffs, payoffs.cycles())
    resolver = PlayerResolver(
        game,
        leads=leads,
        delay=delay,
        sampled=sampled,
        options=options,
        bots=bots,
    )
    field = [resolver.resolve(PLAYERS, name) for name in names]
    for told in resolver.notes:
        note(told)
    players = {one.name: one.player for one in field}
    payoffs = round_robin(
        resolver.game, players, matches=matches, seed=seed, engine=engine, show=show
    )
    places = standings(payoffs, known_anchors(resolver.name, resolver.options) or {})
    versions = {one.name: one.version for one in field}
    return TournamentResult(resolver.name, versions, places, payoffs, payoffs.cycles())


def found_as_dict(
    payoffs: Payoffs, places: Sequence[Standing], cycles: Sequence[Cycle]
) -> dict[str, object]:
    """A round robin, for JSON."""
    count = range(len(payoffs.names))
    return {
        "standings": [one.as_dict() for one in places],
        "payoffs": {
            payoffs.names[i]: {
                payoffs.names[j]: {
                    **payoffs.tally(i, j).as_dict(),
                    "distinct": int(payoffs.distinct[i, j]),
                }
                for j in count
                if i != j
            }
            for i in count
        },
        "cycles": [
            {"players": list(cycle.names), "surety": round(cycle.surety, 4)} for cycle in cycles
        ],
    }
