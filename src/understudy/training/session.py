"""Sessions of training: what is asked, how far it is, and the summary.

`TrainSession`, `TrainProgress` and `TrainSummary` are those of one agent in the arena. Populations
and environments derive theirs from the same classes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from understudy.core.clock import Clock
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.opponents import kind_of
from understudy.core.user_code import CodeSource
from understudy.games import catalog
from understudy.league.ratings import Rating
from understudy.match.tally import Tally
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.supervise.sessions import S, SessionProgress, SessionSummary
from understudy.telemetry import events
from understudy.telemetry.journal import Entry

if TYPE_CHECKING:
    from understudy.arena.results import Iteration

_RECENT = 200
"""Win rates while training are over this many of the last matches against each opponent."""


@dataclass(frozen=True, kw_only=True)
class TrainSession:
    """What to train in the arena, for how long, and where."""

    game: str
    game_options: Mapping[str, str]
    run: Path
    network: AnyNetwork
    config: Config
    budget: Budget
    resume: bool = False
    devices: int | Literal["all"] = 1
    """Devices of this host that share the games, or the agents of a population. No setting of the
    run: another session may have another number."""

    def __post_init__(self) -> None:
        train = self.config.train
        rollout = train.games * train.segment
        if self.budget.steps is not None and self.budget.steps < rollout:
            raise ConfigError(
                f"--steps: one rollout alone is {rollout:,} steps (train.games {train.games} x "
                f"train.segment {train.segment}); {self.budget.steps:,} would train nothing"
            )

    def open_folder(self, root: Path, config: Config | None, clock: Clock) -> RunFolder:
        """Open the run folder of this session or of one of its agents; `config` is stored in it,
        None leaves the stored settings."""
        game, code = catalog.make(self.game, **self.game_options), catalog.code_of(self.game)
        added = catalog.added_bots(self.game)
        return RunFolder.open(
            root,
            spec=PolicySpec(game.features, game.actions, self.network),
            config=config,
            clock=clock,
            game=f"{game.name} {game.version}",
            game_options=self.game_options,
            game_code=None if code is None else CodeSource.of(code[0], root, name=code[1]),
            bot_code=tuple(CodeSource.of(one.code, root) for one in added),
        )


@dataclass
class TrainingProgress(SessionProgress[S]):
    """How far any session of training is."""

    steps: int = 0
    """Decisions of the whole run (in a population, of each agent)."""
    earlier: int = 0
    """The steps of earlier sessions, which are part of `steps`."""
    matches: int = 0
    updates: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)
    """Lines for the screen, which empties the list."""

    @property
    def done(self) -> int:
        """Steps of the whole run."""
        return self.steps

    @property
    def share(self) -> float:
        """How much of the session is over, 0 to 1. Minutes pass only after the first update, so
        there is time for one, however short the budget is."""
        timed = self.session.budget.minutes is not None
        return 0.0 if timed and not self.updates else super().share

    @property
    def steps_s(self) -> float:
        """Steps a second, learning included."""
        return (self.steps - self.earlier) / max(self.elapsed_s, 1e-9)

    @property
    def per_second(self) -> float:
        """Steps a second."""
        return self.steps_s


@dataclass
class LeagueProgress(TrainingProgress[S]):
    """How far a session is in which opponents are met."""

    stage: str = ""
    rating: Rating | None = None
    _met: dict[str, deque[Tally]] = field(default_factory=dict)
    """Recent results by opponent."""

    def win_rates(self) -> dict[str, Tally]:
        """Of the last matches against each opponent."""
        return {name: sum(recent, Tally(0, 0, 0)) for name, recent in self._met.items()}

    def meet(self, iteration: Iteration) -> int:
        """Add the results of an iteration; how many matches ended."""
        ended = 0
        for name, tally in _by_kind(iteration).items():
            recent = self._met.setdefault(name, deque())
            ended += tally.matches
            if tally.matches:
                recent.append(tally)
            while recent and sum(one.matches for one in recent) - recent[0].matches >= _RECENT:
                recent.popleft()
        return ended

    def hear(self, entry: Entry) -> None:
        """Turn an entry of the journal into news, where a person who watches should know it."""
        match entry.e:
            case events.StageChanged() as e:
                came = f"{e.before} -> " if e.before else ""
                self.news.append(f"stage {came}{e.after}: {e.reason}")
            case events.Note() as e:
                self.news.append(e.message)
            case events.Problem() as e:
                self.news.append(f"{e.where}: {e.message}")
            case events.SnapshotTaken() as e if e.pool == 1 and e.kept:
                self.news.append(f"first snapshot: {e.name}")
            case events.CheckpointJudged() as e:
                rates = (
                    f"{name} {one.wins / max(one.wins + one.draws + one.losses, 1):.0%}"
                    for name, one in e.opponents.items()
                )
                self.news.append(f"frozen matches after {e.steps:,} steps: {'  '.join(rates)}")
            case _:
                pass


@dataclass
class TrainProgress(LeagueProgress[TrainSession]):
    """How far a session in the arena is; matches and updates are those of this session."""

    compiled_s: float = 0.0
    """The time of the first iteration, which is nearly all compilation."""

    @property
    def steps_s(self) -> float:
        """Steps a second, without the first iteration."""
        if self.updates < 2:
            return 0.0
        rest = (self.updates - 1) / self.updates
        return (self.steps - self.earlier) * rest / max(self.elapsed_s - self.compiled_s, 1e-9)

    def count(self, steps: int) -> None:
        """Add one iteration of `steps`."""
        self.updates += 1
        self.steps += steps
        if self.updates == 1:
            self.compiled_s = self.elapsed_s

    def note(self, iteration: Iteration, steps: int) -> None:
        """Add one iteration."""
        self.count(steps)
        self.metrics = iteration.metrics
        self.matches += self.meet(iteration)


def _by_kind(iteration: Iteration) -> dict[str, Tally]:
    """Results by bot, and of all snapshots together."""
    kinds: dict[str, Tally] = {}
    for name, result in iteration.results.items():
        kind = kind_of(name)
        kinds[kind] = kinds.get(kind, Tally(0, 0, 0)) + Tally(*result.counts)
    return kinds


@dataclass(frozen=True, kw_only=True)
class TrainingSummary(SessionSummary):
    """The result of any session of training."""

    run: str
    version: int
    steps: int
    """Of the whole run (in a population, of each agent)."""
    matches: int
    steps_s: float


@dataclass(frozen=True, kw_only=True)
class ArenaSummary(TrainingSummary):
    """The result of a session in the arena; matches are those of this session."""

    seconds: float
    compiled_s: float

    @classmethod
    def of(cls, progress: TrainProgress, *, code: int, version: int, **own: Any) -> Self:
        """The summary of a session in this state; `own` are the fields of the subclass."""
        return cls(
            code=code,
            run=str(progress.session.run),
            version=version,
            steps=progress.steps,
            matches=progress.matches,
            steps_s=progress.steps_s,
            seconds=progress.elapsed_s,
            compiled_s=progress.compiled_s,
            **own,
        )

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "run": self.run,
            "steps": self.steps,
            "seconds": round(self.seconds, 2),
            "steps_s": round(self.steps_s, 1),
            "compiled_s": round(self.compiled_s, 2),
            "matches": self.matches,
            "version": self.version,
            "interrupted": self.interrupted,
        }


@dataclass(frozen=True, kw_only=True)
class TrainSummary(ArenaSummary):
    """The result of a session of one agent."""

    game: str
    win_rates: dict[str, Tally]
    metrics: Mapping[str, float]
    stage: str = ""
    rating: Rating | None = None
    snapshots: int = 0
    exploits: str = ""
    """The agent that was exploited, if one was."""
    exploited: Tally | None = None
    """Frozen matches against it."""
    champion: int | None = None
    """By evidence; 0: no version yet. None: the newest version is the champion."""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            **super().as_dict(),
            "opponents": {name: tally.as_dict() for name, tally in self.win_rates.items()},
            "metrics": self.metrics,
            "stage": self.stage,
            "rating": self.rating.as_dict() if self.rating else None,
            "snapshots": self.snapshots,
            "exploits": self.exploits,
            "exploited": self.exploited.as_dict() if self.exploited else None,
            "champion": self.version if self.champion is None else self.champion,
        }
