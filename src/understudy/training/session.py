"""A session of training in the arena: what is asked, how it goes and what came of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.opponents import kind_of
from understudy.league.ratings import Rating
from understudy.match.tally import Tally
from understudy.policy.spec import AnyNetwork
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Entry

if TYPE_CHECKING:
    from understudy.arena.results import Iteration

_RECENT = 200
"""Win rates while training are over this many of the last matches against each opponent."""


@dataclass(frozen=True, kw_only=True)
class TrainSession:
    """What to train, for how long, and where."""

    game: str
    game_options: Mapping[str, str]
    run: Path
    network: AnyNetwork
    config: Config
    budget: Budget
    resume: bool = False

    def __post_init__(self) -> None:
        train = self.config.train
        rollout = train.games * train.segment
        if self.budget.steps is not None and self.budget.steps < rollout:
            raise ConfigError(
                f"--steps: one rollout alone is {rollout:,} steps (train.games {train.games} x "
                f"train.segment {train.segment}); {self.budget.steps:,} would train nothing"
            )


@dataclass
class TrainProgress:
    """How a session goes, for whoever shows it."""

    session: TrainSession
    earlier: int = 0
    """Steps that this run has from earlier sessions."""
    steps: int = 0
    iterations: int = 0
    matches: int = 0
    version: int = 0
    metrics: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    compiled_s: float = 0.0
    """How long the first iteration took: nearly all of that is compilation."""
    stage: str = ""
    rating: Rating | None = None
    news: list[str] = field(default_factory=list)
    """What happened since somebody last looked, in words; whoever shows it empties it."""
    _recent: dict[str, deque[Tally]] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        """Since the session began, compilation included."""
        return time.monotonic() - self.began

    @property
    def share(self) -> float:
        """How much of the session is over, 0 to 1."""
        return self.session.budget.share(
            steps=self.earlier + self.steps, elapsed_s=self.elapsed_s, updates=self.iterations
        )

    @property
    def steps_s(self) -> float:
        """Steps a second, without the first iteration."""
        if self.iterations < 2:
            return 0.0
        rest = (self.iterations - 1) / self.iterations
        return self.steps * rest / max(self.elapsed_s - self.compiled_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until the end."""
        return self.session.budget.left_s(
            steps=self.earlier + self.steps, elapsed_s=self.elapsed_s, steps_s=self.steps_s
        )

    def win_rates(self) -> dict[str, Tally]:
        """Of the last matches against each opponent."""
        return {
            name: Tally(
                wins=sum(one.wins for one in recent),
                draws=sum(one.draws for one in recent),
                losses=sum(one.losses for one in recent),
            )
            for name, recent in self._recent.items()
        }

    def hear(self, entry: Entry) -> None:
        """One more entry of the journal: what a person who watches should know."""
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

    def count(self, steps: int) -> None:
        """One iteration more, of so many steps; the first one is compiled."""
        self.iterations += 1
        self.steps += steps
        if self.iterations == 1:
            self.compiled_s = self.elapsed_s

    def note(self, iteration: Iteration, steps: int) -> None:
        """One iteration more."""
        self.count(steps)
        self.metrics = iteration.metrics
        for name, tally in _by_kind(iteration).items():
            recent = self._recent.setdefault(name, deque())
            self.matches += tally.matches
            if tally.matches:
                recent.append(tally)
            while recent and sum(one.matches for one in recent) - recent[0].matches >= _RECENT:
                recent.popleft()


def _by_kind(iteration: Iteration) -> dict[str, Tally]:
    """Results by bot, and of all snapshots together."""
    kinds: dict[str, Tally] = {}
    for name, result in iteration.results.items():
        kind = kind_of(name)
        known = kinds.get(kind, Tally(0, 0, 0))
        kinds[kind] = Tally(
            known.wins + result.wins, known.draws + result.draws, known.losses + result.losses
        )
    return kinds


@dataclass(frozen=True)
class ArenaSummary:
    """What came of any session in the arena."""

    run: str
    steps: int
    """of the whole run (in a population, of each agent)"""
    seconds: float
    steps_s: float
    compiled_s: float
    matches: int
    """in this session"""
    version: int
    code: int
    """How the process should end: 0, 130 after Ctrl-C, 143 after SIGTERM"""

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return self.code != 0

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


@dataclass(frozen=True)
class TrainSummary(ArenaSummary):
    """What came of a session of one agent."""

    win_rates: dict[str, Tally]
    metrics: dict[str, float]
    stage: str = ""
    rating: Rating | None = None
    snapshots: int = 0
    exploits: str = ""
    """The agent that was exploited, if one was."""
    exploited: Tally | None = None
    """Frozen matches against it."""

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
        }
