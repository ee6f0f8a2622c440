"""The league of a run, read back: what training recorded, and frozen matches within the league.

Reads the newest version; trains nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.adapters.environments.factory import is_environment
from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError
from understudy.games import catalog
from understudy.judging.players import PlayerResolver
from understudy.judging.tournament import found_as_dict
from understudy.league import state as league_files
from understudy.league.payoffs import Cycle, Payoffs, Standing, standings
from understudy.league.round_robin import round_robin
from understudy.league.sampling import expected_win_rate
from understudy.league.snapshots import league_of, spread
from understudy.league.state import LEARNER, LeagueState, OpponentResults
from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.match.series import Engine
from understudy.match.tally import Tally
from understudy.registry.run_folder import RunFolder

CHAMPION = "champion"


@dataclass(frozen=True)
class LeagueHistory:
    """What the newest version of a run knows of its league."""

    folder: RunFolder
    version: int
    steps: int
    state: LeagueState

    @property
    def game(self) -> str:
        """The name of the game."""
        return self.folder.identity.game_name

    def names(self) -> list[str]:
        """Everyone who is rated beside the learner: bots, then others, snapshots by age."""
        pool = [snapshot.name for snapshot in self.state.pool]
        left = set(self.state.left) | set(pool)
        others = [name for name in self.state.ratings if name not in left]
        return [*self.state.anchors, *others, *pool]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        state = self.state
        return {
            "run": self.folder.root.as_posix(),
            "version": self.version,
            "steps": self.steps,
            LEARNER: state.learner.as_dict(),
            "opponents": {name: self._opponent(name) for name in self.names()},
            "gone": Tally(*state.gone.counts).as_dict(),
        }

    def _opponent(self, name: str) -> dict[str, object]:
        state, record = self.state, self.state.records.get(name, OpponentResults())
        fixed = name in state.anchors
        return {
            "rating": (state.anchors if fixed else state.ratings)[name].as_dict(),
            "fixed": fixed,
            **Tally(*record.counts).as_dict(),
            "recent_win_rate": round(
                expected_win_rate(record.recent_wins, record.recent_matches), 4
            ),
        }


def read_league_history(run: Path) -> LeagueHistory:
    """The league of the newest version of a run."""
    folder = RunFolder.load(run, SystemClock())
    number = folder.versions.head()
    if number is None:
        raise RunFolderError(f"--run {run}: this run has no version yet")
    manifest = folder.versions.manifest(number)
    state = league_of(folder, manifest)
    if state is None:
        raise RunFolderError(
            f"--run {run}: version {number} has no {league_files.FILE}; a league comes of "
            "training a game of two (`understudy train brawl`), or against opponents in an "
            "environment (`--opponents`)"
        )
    return LeagueHistory(folder, number, manifest.counters.get("steps", 0), state)


@dataclass(frozen=True)
class FrozenLeague:
    """What frozen matches within a league found."""

    payoffs: Payoffs
    places: list[Standing]
    cycles: list[Cycle]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return found_as_dict(self.payoffs, self.places, self.cycles)


def play_league(
    history: LeagueHistory,
    *,
    snapshots: int,
    matches: int,
    seed: int,
    sampled: bool,
    engine: Engine,
    note: Callable[[str], None],
    show: Callable[[float], None],
) -> FrozenLeague:
    """Bots, the champion and some snapshots, everyone against everyone, nothing learned."""
    run = str(history.folder.root)
    if is_environment(history.game):
        return _play_environment_league(
            history,
            run,
            snapshots=snapshots,
            matches=matches,
            seed=seed,
            sampled=sampled,
            show=show,
        )
    resolver = PlayerResolver(history.game, leads=[("--run", run)], delay=None, sampled=sampled)
    bots = catalog.bots(history.game, **resolver.options)
    players: dict[str, Player] = {name: BotPlayer(bot) for name, bot in bots.items()}
    for name, snapshot in spread(history.folder, snapshots)[0].items():
        players[name] = PolicyPlayer(snapshot, sampled=sampled)
    players[CHAMPION] = resolver.resolve("--run", run).player
    for told in resolver.notes:
        note(told)
    payoffs = round_robin(
        resolver.game, players, matches=matches, seed=seed, engine=engine, show=show
    )
    return FrozenLeague(payoffs, standings(payoffs, history.state.anchors), payoffs.cycles())


def _play_environment_league(
    history: LeagueHistory,
    run: str,
    *,
    snapshots: int,
    matches: int,
    seed: int,
    sampled: bool,
    show: Callable[[float], None],
) -> FrozenLeague:
    """The same in an environment."""
    from understudy.judging.environments import EnvironmentResolver, NamedSide

    here = EnvironmentResolver(history.game, leads=[("--run", run)], sampled=sampled, seed=seed)
    champion = replace(here.resolve("--run", run), name=CHAMPION)
    met = spread(history.folder, snapshots)[0]
    players = [
        *(here.resolve("--run", name) for name in here.bots),
        *(NamedSide(name, (here.side(policy),)) for name, policy in met.items()),
        champion,
    ]
    payoffs = here.round_robin(players, matches, show=show)
    return FrozenLeague(payoffs, standings(payoffs, history.state.anchors), payoffs.cycles())
