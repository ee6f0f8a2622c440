"""A curriculum: which stage an agent is in, and what moves it to another. Pure.

    curriculum = Curriculum(config.curriculum)
    state = curriculum.start()
    while training:
        stage = curriculum.stage(state)               # whom to meet, what to reward
        share = curriculum.blend(state, steps)        # how far stage.rewards became rewards_end
        ...
        state, change = curriculum.note(state, results, steps=steps)
        if change: log(change.reason)

The state is a value: kept as JSON with a version, it brings a resume back to the same match of the
same stage. Evidence starts anew with each stage. A passed stage is lost only at a lower bar than it
was passed at (`hold`), so that an agent between the two stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from understudy.core.config import CurriculumConfig, StageConfig
from understudy.core.errors import ConfigError, nearest
from understudy.league.stage_evidence import (
    Counts,
    StageTrial,
    by_opponent,
    followed,
    newest,
    percent,
    shown,
)


def blend(stage_steps: int, anneal_steps: int) -> float:
    """The share of the last set after so many steps in the stage: 0 at its start, 1 from
    `anneal_steps` on, a straight line between; always 0 where nothing is annealed."""
    if anneal_steps <= 0:
        return 0.0
    return min(max(stage_steps / anneal_steps, 0.0), 1.0)


class CurriculumState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a curriculum stands."""

    stage: str
    """The name of the stage."""
    entered: int = 0
    """The steps of the run at which it began."""
    windows: dict[str, tuple[Counts, ...]] = msgspec.field(default_factory=dict)
    """Results in this stage by opponent, oldest first: as many as the longest window needs."""
    trials: dict[str, StageTrial] = msgspec.field(default_factory=dict)
    """By stage: the evidence that this one is passed, and that earlier ones are lost."""


class StageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A move from one stage to another."""

    kind: Literal["advance", "step_back", "pin"]
    before: str
    after: str
    steps: int
    reason: str
    """The evidence in words."""


@dataclass(frozen=True)
class Curriculum:
    """The rules: stages with criteria. Nothing in it changes."""

    config: CurriculumConfig

    def __post_init__(self) -> None:
        if not self.config.stages:
            raise ConfigError("curriculum.stages: expected at least one [[curriculum.stages]]")

    def start(self, *, steps: int = 0) -> CurriculumState:
        """In the first stage, or in the one that is pinned."""
        return CurriculumState(self.config.pin or self.config.stages[0].name, steps)

    def resumed(
        self, state: CurriculumState, *, steps: int
    ) -> tuple[CurriculumState, StageChange | None]:
        """A state that was kept; where another stage is pinned by now, in that one."""
        names = [stage.name for stage in self.config.stages]
        if state.stage not in names:
            raise ConfigError(
                f"curriculum.stages: the run was in stage {state.stage!r}, which is not among "
                f"{', '.join(names)}.{nearest(state.stage, names)}"
            )
        pin = self.config.pin
        if pin in ("", state.stage):
            return state, None
        return _moved(state, "pin", pin, steps, "curriculum.pin")

    def index(self, state: CurriculumState) -> int:
        """The place of the stage, from 0."""
        return [stage.name for stage in self.config.stages].index(state.stage)

    def stage(self, state: CurriculumState) -> StageConfig:
        """Its opponents, rewards and criterion."""
        return self.config.stages[self.index(state)]

    def blend(self, state: CurriculumState, steps: int) -> float:
        """How far the stage's rewards have turned into its `rewards_end`, 0 to 1."""
        return blend(steps - state.entered, self.stage(state).anneal_steps)

    def note(
        self, state: CurriculumState, results: Mapping[str, Counts], *, steps: int
    ) -> tuple[CurriculumState, StageChange | None]:
        """The state after matches that ended: wins, draws and losses by opponent (bots by name,
        snapshots `step-N`), `steps` of the run being played by then."""
        folded = by_opponent(results)
        state = msgspec.structs.replace(
            state,
            windows=self._extended(state.windows, folded),
            trials=self._followed(state, folded),
        )
        if self.config.pin:
            return state, None
        lost = self._lost(state)
        if lost:
            return _moved(state, "step_back", lost[0].name, steps, lost[1])
        won = self._won(state)
        if won:
            after = self.config.stages[self.index(state) + 1].name
            return _moved(state, "advance", after, steps, won)
        return state, None

    def _won(self, state: CurriculumState) -> str:
        """Why the stage is passed; nothing where it is not, or no stage follows."""
        stage = self.stage(state)
        if self.index(state) == len(self.config.stages) - 1:
            return ""
        return _proof(state, stage, f"more than {percent(stage.threshold)}")

    def _lost(self, state: CurriculumState) -> tuple[StageConfig, str] | None:
        """The first of the passed stages whose skill is surely lost, and why."""
        for stage in self._passed(state):
            kept = f"{percent(stage.threshold)} less {percent(stage.hold)}"
            proof = _proof(
                state, stage, f"less than {percent(_floor(stage))} ({kept} is to be held)"
            )
            if proof:
                return stage, proof
        return None

    def _passed(self, state: CurriculumState) -> tuple[StageConfig, ...]:
        """The earlier stages, which are lost below a floor."""
        return self.config.stages[: self.index(state)] if self.config.step_back else ()

    def _followed(
        self, state: CurriculumState, results: Mapping[str, Counts]
    ) -> dict[str, StageTrial]:
        """Evidence for another bound than today's (a setting was changed) begins anew."""
        own = self.stage(state)
        wanted = [(stage, _floor(stage), True) for stage in self._passed(state)]
        wanted += [(own, own.threshold, False)]
        trials = {}
        for stage, bound, below in wanted:
            if stage.measure and 0.0 < bound < 1.0:
                known = state.trials.get(stage.name)
                trial = known if known and known.bound == bound else StageTrial(bound)
                trials[stage.name] = followed(trial, stage, results, below=below)
        return trials

    def _extended(
        self, windows: Mapping[str, tuple[Counts, ...]], results: Mapping[str, Counts]
    ) -> dict[str, tuple[Counts, ...]]:
        """Only opponents that some stage measures are kept, and no more of them than it takes."""
        known = dict(windows)
        for name, counts in results.items():
            sizes = [stage.window for stage in self.config.stages if name in stage.measured[1]]
            if sizes:
                known[name] = tuple(newest((*known.get(name, ()), counts), max(sizes)))
        return known


def _floor(stage: StageConfig) -> float:
    """Below this, what a passed stage taught is lost."""
    return stage.threshold - stage.hold


def _proof(state: CurriculumState, stage: StageConfig, what: str) -> str:
    """The evidence in words; nothing while it is too little, or there are too few matches."""
    trial, words = state.trials.get(stage.name), shown(stage, state.windows)
    if not words or trial is None or trial.reached < stage.evidence:
        return ""
    return f"{words}; evidence of {what}: {trial.reached:,.0f}, {stage.evidence:,.0f} wanted"


def _moved(
    state: CurriculumState,
    kind: Literal["advance", "step_back", "pin"],
    after: str,
    steps: int,
    reason: str,
) -> tuple[CurriculumState, StageChange]:
    change = StageChange(kind=kind, before=state.stage, after=after, steps=steps, reason=reason)
    return CurriculumState(after, steps), change
