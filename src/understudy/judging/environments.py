"""Frozen matches in environments of two sides: players by name, evaluations and round robins.

A player is `random`, a scripted bot (`--bots`, those that the run was trained with, those that the
environment brings), a version of a run (`runs/x`, `runs/x@12`), a snapshot of its league
(`runs/x@step-65536`) or an exported file (`agent.py`). The environment has the options of the first
run or file that is named, but for those that are given.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.factory import bots_of, for_two, maker, resolved
from understudy.adapters.environments.matches import EnvironmentMatches, FrozenMatch
from understudy.adapters.environments.sides import RANDOM, SidePlayer
from understudy.agents.exported import is_file, load_exported
from understudy.agents.loading import playing_version, split_name
from understudy.agents.players import fitting_file
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, RunFolderError, nearest
from understudy.core.spaces import ActionSpace
from understudy.core.toml import value_of
from understudy.judging.players import ALL, LEAGUE, SNAPSHOTS, NamedEntry, check_game, split
from understudy.league import snapshots
from understudy.league.payoffs import Payoffs
from understudy.match.live_match import EVALUATION
from understudy.match.tally import EvaluationReport, Tally
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.workers.pool import worker_pool
from understudy.workers.pooled_series import PooledSeries
from understudy.workers.series import HereSeries, Series, SeriesPlan, SeriesPlayers, SideSource

_SIDE_BY_SIDE = 16
"""Environments that a series plays at a time."""


NamedSide: TypeAlias = NamedEntry[tuple[SideSource, ...]]
"""Of an environment: one player, or the members of a league, which share its matches."""


class EnvironmentResolver:
    """The players of one environment, by name; every name that does not fit is a clear error."""

    def __init__(
        self,
        environment: str,
        *,
        leads: Sequence[tuple[str, str]],
        options: Mapping[str, str] | None = None,
        bots: Sequence[str] = (),
        sampled: bool = True,
        seed: int = 0,
    ) -> None:
        """`leads` are (flag, name) of all: the first that is a run or a file decides options, and
        the first that is a run bots, but for those that are given."""
        self.name = environment
        self.sampled = sampled
        self.seed = seed
        lead = _first_run(leads)
        kept = {**_first_options(leads), **(options or {})}
        given = {key: value_of(text) for key, text in kept.items()}
        self.options = resolved(environment, for_two(environment, given))
        sources = tuple(bots)
        if lead is not None and not sources:
            sources = tuple(one.find(lead.root) for one in lead.identity.bot_code)
        brought = (one for one in bots_of(environment, self.options) if one not in sources)
        self._sources = (*brought, *sources)
        self._bots = load_bots(self._sources)
        self.make: Callable[[], Any] = maker(environment, **self.options)
        with contextlib.closing(EnvironmentMatches(self.make, range(_SIDE_BY_SIDE))) as matches:
            self.agents, self.spaces, self._rows = matches.agents, matches.spaces, matches.rows
        self._series: SeriesPlayers = HereSeries(self.make)
        if len(self.agents) != 2:
            raise ConfigError(
                f"players are compared in matches of two agents; {environment} has "
                f"{len(self.agents)} ({', '.join(self.agents)})"
            )

    @property
    def features(self) -> tuple[str, ...]:
        """Of both sides."""
        return self.spaces.features

    @property
    def actions(self) -> ActionSpace:
        """Of both sides."""
        return self.spaces.actions

    @property
    def bots(self) -> tuple[str, ...]:
        """Scripted players."""
        return (RANDOM, *self._bots)

    def resolve(self, flag: str, name: str) -> NamedSide:
        """The player of that name."""
        if name == RANDOM:
            return NamedSide(name, (SideSource.random(self._seed(1)),))
        if name in self._bots:
            return NamedSide(name, (SideSource.bot(name, self._seed(2)),))
        if is_file(name):
            return self._file(flag, name)
        folder, which = self._run(flag, name)
        if isinstance(which, str):
            policy = snapshots.named(folder, which, flag=flag)
            return NamedSide(name, (self.side(policy),), None, "snapshot")
        if which is None:
            which, _ = playing_version(folder, flag, name)
        return NamedSide(name, (self.side(folder.versions.policy(which)),), which, "version")

    def resolve_all(
        self, flag: str, names: str, *, agent: str = "", most: int = SNAPSHOTS
    ) -> list[NamedSide]:
        """A comma list of players, `all` and `league`: that of the run `agent`, by at most so many
        snapshots."""
        listed: list[NamedSide] = []
        for name in split(names):
            if name == LEAGUE:
                listed += self._league(flag, agent, most)
            else:
                each = self.bots if name == ALL else (name,)
                listed += [self.resolve(flag, one) for one in each]
        called = [one.name for one in listed]
        double = next((name for name in called if called.count(name) > 1), None)
        if not listed or double is not None:
            what = f"{double!r} is named twice" if double else f"expected names of players, {ALL}"
            raise ConfigError(f"{flag}: {what}")
        return listed

    def side(self, policy: Policy) -> SideSource:
        """A policy as a player."""
        return SideSource.of_policy(policy, seed=self._seed(3), sampled=self.sampled)

    def player(self, side: NamedSide) -> SidePlayer:
        """A new player of a side, here."""
        return side.player[0].player(self.spaces, rows=self._rows, bots=self._bots)

    @contextlib.contextmanager
    def with_workers(
        self, workers: int, *, ray: str = "", note: Callable[[str], None]
    ) -> Iterator[None]:
        """Lets workers play the matches of the block, where there are any; the results are the
        same. `note` is told when one dies."""
        if not workers:
            yield
            return
        here = self._series
        with worker_pool(workers, ray=ray, problem=note) as pool:
            self._series = PooledSeries(pool)
            try:
                yield
            finally:
                self._series = here

    def meet(
        self,
        pairs: Sequence[tuple[NamedSide, NamedSide]],
        matches: int,
        *,
        show: Callable[[float], None] = lambda share: None,
    ) -> list[EvaluationReport]:
        """So many matches of each pair of players, half from each side; those of a league are
        shared by it. The result of a pair does not depend on the others."""
        series = [
            (index, self._planned(judged.player[0], player, -(-matches // len(other.player))))
            for index, (judged, other) in enumerate(pairs)
            for player in other.player
        ]
        played: list[list[FrozenMatch]] = [[] for _ in pairs]
        found = self._series.play([one for _, one in series], show=show)
        for (index, _), some in zip(series, found, strict=True):
            played[index] += some
        return [report_of(some) for some in played]

    def round_robin(
        self,
        players: Sequence[NamedSide],
        matches: int,
        *,
        show: Callable[[float], None] = lambda share: None,
    ) -> Payoffs:
        """All pairs of players."""
        pairs = list(combinations(players, 2))
        results, distinct = {}, {}
        reports = self.meet(pairs, matches, show=show)
        for (one, two), report in zip(pairs, reports, strict=True):
            tally = report.tally
            results[one.name, two.name] = (tally.wins, tally.draws, tally.losses)
            distinct[one.name, two.name] = report.distinct
        return Payoffs.of(tuple(one.name for one in players), results, distinct)

    def _planned(self, judged: SideSource, other: SideSource, matches: int) -> Series:
        plan = SeriesPlan(
            environment=self.name,
            options=self.options,
            bots=self._sources,
            environments=min(_SIDE_BY_SIDE, matches),
            matches=matches,
            seed=self.seed,
        )
        return Series(plan, judged, other)

    def _league(self, flag: str, agent: str, most: int) -> list[NamedSide]:
        """The pool as one opponent, then its first and its last snapshot."""
        if agent in (*self.bots, ""):
            raise ConfigError(f"{flag} {LEAGUE}: expected a run as the agent, {agent!r} is none")
        folder = self._run(flag, agent)[0]
        met, count = snapshots.spread(folder, most)
        if not met:
            raise RunFolderError(
                f"{flag} {LEAGUE}: {folder.root} has no snapshots; training keeps some where "
                "`self` is among its opponents"
            )
        names, sides = tuple(met), tuple(self.side(policy) for policy in met.values())
        ends = {names[0]: (sides[0], "first"), names[-1]: (sides[-1], "last")}
        return [
            NamedSide(LEAGUE, sides, None, "league", f"{len(met)} of {count}", names),
            *(
                NamedSide(name, (side,), None, "snapshot", note)
                for name, (side, note) in ends.items()
            ),
        ]

    def _file(self, flag: str, name: str) -> NamedSide:
        exported = fitting_file(flag, name, self)
        side = self.side(exported.policy)
        return NamedSide(name, (side,), exported.about.version, "file")

    def _run(self, flag: str, name: str) -> tuple[RunFolder, int | str | None]:
        """The run folder, and the version or the snapshot where one was named."""
        path, which = split_name(flag, name)
        if not path.is_dir():
            raise ConfigError(
                f"{flag}: there is no bot or run folder {name!r}; {self.name} has the bots "
                f"{', '.join(self.bots)} (--bots adds others).{nearest(name, self.bots)}"
            )
        folder = RunFolder.load(path, SystemClock())
        check_game(flag, folder, self.name)
        if folder.spec.features != self.spaces.features:
            raise RunFolderError(f"{flag} {folder.root}: its features are not those of {self.name}")
        return folder, which

    def _seed(self, purpose: int) -> int:
        return (self.seed * 1_000_003 + EVALUATION) * 16 + purpose


def report_of(played: Sequence[FrozenMatch]) -> EvaluationReport:
    """What a series came to."""
    return EvaluationReport(
        tally=Tally.of(np.array([one.score for one in played])),
        distinct=len({one.path for one in played}),
        mean_frames=float(np.mean([one.finished.steps for one in played])),
        mean_return=float(np.mean([one.finished.sides[one.side] for one in played])),
    )


def _first_run(leads: Sequence[tuple[str, str]]) -> RunFolder | None:
    """The first of the names that is a run folder; None where none is."""
    for flag, name in leads:
        path, _ = split_name(flag, name)
        if holds_run(path):
            return RunFolder.load(path, SystemClock())
    return None


def _first_options(leads: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The options of the first of the names that is a run folder or an exported file."""
    for flag, name in leads:
        if is_file(name):
            return dict(load_exported(Path(name)).about.game_options)
        path, _ = split_name(flag, name)
        if holds_run(path):
            return dict(RunFolder.load(path, SystemClock()).identity.game_options)
    return {}
