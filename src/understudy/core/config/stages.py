"""Settings of a curriculum: `[curriculum]` and its `[[curriculum.stages]]`.

A stage that could never be judged is an error before the first match.
"""

from __future__ import annotations

from understudy.core.config.section import Section, at_least_zero, check, positive, share
from understudy.core.errors import ConfigError, nearest

MEASURES = ("win_rate", "score")
"""What can be measured: wins over matches, or wins and half the draws over matches."""


class StageConfig(Section, frozen=True, kw_only=True):
    """One stage: whom it meets, what it rewards, when it is passed (`[[curriculum.stages]]`)."""

    name: str
    """How it is called, in the log and in curriculum.pin."""
    opponents: str = ""
    """Who is met how often, as in train.opponents; empty: just those."""
    measure: str = ""
    """win_rate or score (draws count half) against whom: win_rate:based, score:based+random (the
    mean of both), win_rate:self (all snapshots together)."""
    threshold: float = 0.0
    """What that must surely exceed, 0 to 1; 0: the stage has no end (the last one only)."""
    min_matches: int = 100
    """Matches in this stage against each opponent that is measured, before it is judged. More than
    train.games is wise: of matches that begin together, the short ones end first."""
    window: int = 200
    """The log shows the result of the newest so many matches against each of them."""
    confidence: float = 0.95
    """How much evidence it takes to pass (or, to step back): 500 / (1 - confidence), so 10,000. An
    agent exactly at the threshold passes by luck after that many matches on average, or later."""
    hold: float = 0.1
    """Passed stages are lost only where the measure surely lies this far below the threshold."""
    rewards: str = ""
    """The set of rewards of the stage; empty: rewards.set."""
    rewards_end: str = ""
    """The set that they turn into over the first anneal_steps of the stage; empty: they stay."""
    anneal_steps: int = 0
    """Steps that this takes."""

    @property
    def where(self) -> str:
        """How `--set` and errors call it."""
        return f"curriculum.stages.{self.name}"

    @property
    def evidence(self) -> float:
        """What the e-detector must reach: matches without a false alarm, on average."""
        return 500.0 / (1.0 - self.confidence)

    @property
    def measured(self) -> tuple[str, tuple[str, ...]]:
        """What is measured, and against whom."""
        what, _, whom = self.measure.partition(":")
        return what, tuple(name.strip() for name in whom.split("+"))


class CurriculumConfig(Section, frozen=True, kw_only=True):
    """Stages that training goes through by criteria (`[curriculum]`)."""

    stages: tuple[StageConfig, ...] = ()
    """In order, each a table [[curriculum.stages]]; none: one mix from beginning to end."""
    step_back: bool = True
    """Return to a passed stage when what it taught is lost."""
    pin: str = ""
    """The name of a stage to stay in, whatever the criteria say."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        for index, stage in enumerate(self.stages):
            if not stage.name or stage.name in names[:index]:
                raise ConfigError(
                    f"curriculum.stages[{index}].name: expected a name of its own, "
                    f"got {stage.name!r}"
                )
            _check_criterion(stage, last=index == len(names) - 1)
            _check_rewards(stage)
        if self.pin and self.pin not in names:
            expected = f"one of {', '.join(names)}" if names else "no name (there are no stages)"
            raise ConfigError(
                f"curriculum.pin: expected {expected}; got {self.pin!r}.{nearest(self.pin, names)}"
            )


def _check_criterion(stage: StageConfig, *, last: bool) -> None:
    where = stage.where
    positive(stage, where, "min_matches", "window")
    share(stage, where, "hold")
    check(stage, where, ["threshold"], "0 to below 1", lambda value: 0 <= value < 1)
    check(stage, where, ["confidence"], "0.5 to below 1", lambda value: 0.5 <= value < 1)
    if stage.window < stage.min_matches:
        raise ConfigError(
            f"{where}.window: {stage.window} matches are fewer than "
            f"min_matches = {stage.min_matches}"
        )
    if stage.measure:
        _check_measure(stage)
    if stage.threshold == 0:
        if not last:
            raise ConfigError(f"{where}.threshold: only the last stage may do without one")
        return
    if not stage.measure:
        raise ConfigError(f"{where}.measure: expected such as win_rate:based, for the threshold")


def _check_measure(stage: StageConfig) -> None:
    where, (what, whom) = stage.where, stage.measured
    if what not in MEASURES:
        raise ConfigError(
            f"{where}.measure: expected {' or '.join(MEASURES)} and whom, such as win_rate:based; "
            f"got {stage.measure!r}.{nearest(what, MEASURES)}"
        )
    if not all(whom) or len(set(whom)) < len(whom):
        raise ConfigError(
            f"{where}.measure: expected names of opponents, such as {what}:based+random; "
            f"got {stage.measure!r}"
        )
    met = [item.partition("=")[0].strip() for item in stage.opponents.split(",")]
    for name in whom:
        if stage.opponents and name not in met and "all" not in met:
            raise ConfigError(
                f"{where}.measure: {name} is not among the stage's opponents "
                f"({stage.opponents}), so it would never be measured.{nearest(name, met)}"
            )


def _check_rewards(stage: StageConfig) -> None:
    at_least_zero(stage, stage.where, "anneal_steps")
    if bool(stage.rewards_end) != bool(stage.anneal_steps):
        raise ConfigError(
            f"{stage.where}.anneal_steps: expected together with rewards_end; got "
            f"rewards_end = {stage.rewards_end!r}, anneal_steps = {stage.anneal_steps}"
        )
