"""Players by the names that users give them, and the engine of their matches.

A player is a scripted bot (`based`), a version of a run (`runs/x`, `runs/x@12`), a snapshot of its
league (`runs/x@step-65536`) or an exported file (`agent.py`). The game has the options of the first
run or file that is named; `PlayerResolver.notes` says which others were trained under other ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from understudy.agents.exported import is_file, load_exported
from understudy.agents.loading import playing_version, split_name
from understudy.agents.players import file_player
from understudy.core.clock import SystemClock
from understudy.core.dependencies import install_line, not_installed
from understudy.core.errors import ConfigError, MissingDependency, RunFolderError, nearest
from understudy.games import catalog, custom
from understudy.games.base import Game
from understudy.league import snapshots
from understudy.match.players import BotPlayer, Player, PolicyPlayer, PoolPlayer
from understudy.match.series import Engine, plain
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RUNS, RunFolder, holds_run, latest_of

ALL, HELD_OUT, LEAGUE = "all", "heldout", "league"
"""Opponents by the group: every scripted bot, those that no training meets, the agent's league."""
SNAPSHOTS = 20
ENGINES = ("auto", "numpy", "jax")


PlayerT = TypeVar("PlayerT")


@dataclass(frozen=True)
class NamedEntry(Generic[PlayerT]):
    """A player with its name, and the version that it is; None for a script or a snapshot."""

    name: str
    player: PlayerT
    version: int | None = None
    kind: str = "bot"
    """bot, held-out, version, snapshot, file or league."""
    note: str = ""
    """What to say beside the name."""
    members: tuple[str, ...] = ()
    """The snapshots that a league is, oldest to newest."""

    @property
    def label(self) -> str:
        """For tables: `league (20 of 153)`."""
        return f"{self.name} ({self.note})" if self.note else self.name


NamedPlayer: TypeAlias = NamedEntry[Player]
"""Of a game over `ops`."""


class PlayerResolver:
    """The players of one game, by name; every name that does not fit is a clear error."""

    def __init__(
        self,
        game: str,
        *,
        leads: Sequence[tuple[str, str]],
        delay: int | None,
        sampled: bool,
        options: Mapping[str, str] | None = None,
        bots: Sequence[str] = (),
        alone: bool = False,
    ) -> None:
        """`leads` are (flag, name) of all: the first that is a run decides the game's options, but
        for those that are given. `game` may be a custom game, `bots` are modules with more bots;
        `alone` accepts a game of one player.
        """
        self.notes: list[str] = []
        """What a person should know beside the result."""
        lead = _first_run(leads)
        given = dict(options or {}) | ({} if delay is None else {"delay": str(delay)})
        game = self._loaded(game, lead, given, bots)
        self._game = game
        self._sampled = sampled
        self._bots, self._strangers = catalog.bots(game), catalog.held_out(game)
        if catalog.make(game, **given).players != 2 and not alone:
            raise ConfigError(
                f"{game} is a game of one player, whose enemy is part of the rules: "
                f"`understudy eval {game}` judges an agent"
            )
        learned: dict[str, str] = {}
        for flag, name in leads:
            if is_file(name):
                learned = dict(load_exported(Path(name)).about.game_options)
                break
            if name not in (*self._bots, *self._strangers, ALL, HELD_OUT, LEAGUE):
                folder = self._folder(flag, name)[0]
                check_game(flag, folder, self._game)
                learned = dict(folder.identity.game_options)
                break
        options = learned | given
        self.options = options
        self.game: Game = catalog.make(game, **options)
        self._bots = catalog.bots(game, **options)
        self._strangers = catalog.held_out(game, **options)

    @property
    def name(self) -> str:
        """The game's own name."""
        return self._game

    def _loaded(
        self, game: str, lead: RunFolder | None, given: Mapping[str, str], bots: Sequence[str]
    ) -> str:
        """The name in the catalog of a game, with the code that the command line and the first run
        name."""
        if custom.is_custom(game):
            kept = dict(lead.identity.game_options) if lead is not None else {}
            game = custom.load_game(game, kept | dict(given))
        if lead is not None and lead.identity.game_name == game:
            self.notes += lead.load_code()
        catalog.defaults(game)  # an unknown game is an error before its bots are
        for source in bots:
            custom.add_bots(game, source)
        return game

    def resolve(self, flag: str, name: str) -> NamedPlayer:
        """The player of that name."""
        if name in self._bots:
            return NamedPlayer(name, BotPlayer(self._bots[name]), None)
        if name in self._strangers:
            stranger = BotPlayer(self._strangers[name])
            return NamedPlayer(name, stranger, None, "held-out", "held out")
        if is_file(name):
            return self._file(flag, name)
        folder, which = self._folder(flag, name)
        self._check_fit(flag, folder)
        self._compare(name, folder.identity.game, folder.identity.game_options)
        if isinstance(which, str):
            snapshot = self._policy_player(snapshots.named(folder, which, flag=flag))
            return NamedPlayer(name, snapshot, None, "snapshot")
        if which is None:
            which, note = playing_version(folder, flag, name)
            self.notes += [note] if note else []
        return NamedPlayer(
            name, self._policy_player(folder.versions.policy(which)), which, "version"
        )

    def resolve_all(
        self, flag: str, names: str, *, agent: str = "", most: int = SNAPSHOTS
    ) -> list[NamedPlayer]:
        """A comma list of players, `all`, `heldout` and `league`: that of the run `agent`, by at
        most so many snapshots."""
        listed: list[NamedPlayer] = []
        for name in split(names):
            if name == LEAGUE:
                listed += self._league(flag, agent, most)
            elif name in (ALL, HELD_OUT):
                group = self._bots if name == ALL else self._strangers
                if not group:
                    raise ConfigError(f"{flag} {name}: {self._game} has no such bots")
                listed += [self.resolve(flag, each) for each in group]
            else:
                listed.append(self.resolve(flag, name))
        called = [one.name for one in listed]
        if not listed:
            raise ConfigError(
                f"{flag}: expected `{ALL}`, `{HELD_OUT}`, `{LEAGUE}`, or names of bots and runs "
                "with commas"
            )
        double = next((name for name in called if called.count(name) > 1), None)
        if double is not None:
            raise ConfigError(f"{flag}: {double!r} is named twice")
        return listed

    def _league(self, flag: str, agent: str, most: int) -> list[NamedPlayer]:
        """The pool as one opponent, then its first and its last snapshot."""
        if agent in (*self._bots, *self._strangers, ""):
            raise ConfigError(f"{flag} {LEAGUE}: expected a run as the agent, {agent!r} is none")
        folder = self._folder(flag, agent)[0]
        self._check_fit(flag, folder)
        met, count = snapshots.spread(folder, most)
        if not met:
            raise RunFolderError(
                f"{flag} {LEAGUE}: {folder.root} has no snapshots; training keeps some where "
                "`self` is among its opponents"
            )
        names, policies = tuple(met), tuple(met.values())
        together = NamedPlayer(
            LEAGUE,
            PoolPlayer(policies, sampled=self._sampled),
            None,
            "league",
            f"{len(met)} of {count}",
            names,
        )
        ends = {names[0]: (policies[0], "first"), names[-1]: (policies[-1], "last")}
        return [
            together,
            *(
                NamedPlayer(name, self._policy_player(policy), None, "snapshot", note)
                for name, (policy, note) in ends.items()
            ),
        ]

    def _file(self, flag: str, name: str) -> NamedPlayer:
        player = file_player(flag, name, self.game, sampled=self._sampled)
        about = player.exported.about
        self._compare(name, about.game, about.game_options)
        return NamedPlayer(name, player, about.version, "file")

    def _policy_player(self, policy: Policy) -> Player:
        return PolicyPlayer(policy, sampled=self._sampled)

    def _compare(self, name: str, game: str, options: Mapping[str, str]) -> None:
        """Note other rules, or other options, than those that an agent learned under."""
        rules = f"{self.game.name} {self.game.version}"
        if game != rules:
            self.notes.append(f"{name} learned under {game}; this is {rules}")
        learned, here = (
            catalog.defaults(self._game) | dict(given) for given in (options, self.options)
        )
        if learned != here:
            under, now = _odds(learned, here), _odds(here, learned)
            self.notes.append(f"{name} learned under {under}; this is {now}")

    def _folder(self, flag: str, name: str) -> tuple[RunFolder, int | str | None]:
        """The run folder, and the version or the snapshot where one was named."""
        path, which = split_name(flag, name)
        if not path.is_dir():
            runs = [one.as_posix() for one in sorted(RUNS.iterdir())] if RUNS.is_dir() else []
            runs = [run for run in runs if holds_run(Path(run))]
            known = [*self._bots, *self._strangers, *runs]
            raise ConfigError(
                f"{flag}: there is no bot or run folder {name!r}; {self._game} has the bots "
                f"{', '.join(self._bots)}.{nearest(name, known)}"
            )
        return RunFolder.load(path, SystemClock()), which

    def _check_fit(self, flag: str, folder: RunFolder) -> None:
        check_game(flag, folder, self._game)
        options = dict(folder.identity.game_options)
        for what, kept, ours in (
            ("features", folder.spec.features, self.game.features),
            ("actions", folder.spec.actions, self.game.actions),
        ):
            if kept != ours:
                under = f" (it was trained under {options})" if options else ""
                raise RunFolderError(
                    f"{flag} {folder.root}: its {what} are not those of {self._game} here{under}"
                )


def _first_run(leads: Sequence[tuple[str, str]]) -> RunFolder | None:
    """The first of the names that is a run folder, whatever its game; None where none is."""
    for _, name in leads:
        for path in (Path(name), Path(name.rpartition("@")[0] or name)):
            if path.is_dir() and holds_run(path):
                return RunFolder.load(path, SystemClock())
    return None


def check_game(flag: str, folder: RunFolder, game: str) -> None:
    """Raises RunFolderError if the run was made for another game."""
    if folder.identity.game_name != game:
        what = folder.identity.game or "a bot of one's own"
        raise RunFolderError(f"{flag} {folder.root}: this run was made for {what}, not for {game}")


def split(names: str) -> list[str]:
    """A comma list."""
    return [name.strip() for name in names.split(",") if name.strip()]


def _odds(mine: Mapping[str, str], others: Mapping[str, str]) -> str:
    """Those options that are not the others', as `delay=6`."""
    return ", ".join(
        f"{option}={value}" for option, value in mine.items() if others.get(option) != value
    )


def latest_run(flag: str, game: str) -> str:
    """The run of this game that was written to last, where none is named."""
    try:
        return latest_of(game).as_posix()
    except RunFolderError as error:
        raise ConfigError(f"{flag}: name a run folder or a bot; {error}") from error


def engine_for(name: str, players: Sequence[NamedPlayer]) -> Engine:
    """`engine_named`, or NumPy where a player is an exported file, which has nothing else."""
    return (
        plain
        if name == "auto" and any(one.kind == "file" for one in players)
        else engine_named(name)
    )


def engine_named(name: str) -> Engine:
    """What carries matches on: NumPy, or JAX where it is installed."""
    if name not in ENGINES:
        raise ConfigError(
            f"--engine: expected one of {', '.join(ENGINES)}, got {name!r}.{nearest(name, ENGINES)}"
        )
    installed = not not_installed("jax")
    if name == "jax" and not installed:
        raise MissingDependency(f"--engine jax needs JAX: {install_line('learn')}")
    if name == "numpy" or not installed:
        return plain
    from understudy.supervise.compile_cache import keep_compiled

    keep_compiled()
    from understudy.arena.compiling import compiled_duel

    return compiled_duel
