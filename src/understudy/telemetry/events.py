"""Everything that a run tells about itself, one small struct each.

An event is a fact in the past tense. Fields may be added with a default; none is ever renamed.
"""

# ruff: noqa: PLC0414  an alias to the same name is how a type checker learns of a re-export

from __future__ import annotations

from typing import TypeAlias

import msgspec

from understudy.telemetry.arena_events import AgentReplaced as AgentReplaced
from understudy.telemetry.arena_events import CheckpointJudged as CheckpointJudged
from understudy.telemetry.arena_events import LearnerRated as LearnerRated
from understudy.telemetry.arena_events import MatchesTrained as MatchesTrained
from understudy.telemetry.arena_events import SnapshotTaken as SnapshotTaken
from understudy.telemetry.arena_events import StageChanged as StageChanged
from understudy.telemetry.arena_events import StrategyMeasured as StrategyMeasured
from understudy.telemetry.arena_events import Tally as Tally
from understudy.telemetry.continuous_events import ContinuousTrained as ContinuousTrained
from understudy.telemetry.continuous_events import RolledBack as RolledBack


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    pass


class BotStarted(_Event, frozen=True, kw_only=True):
    """A bot opened the run folder."""

    pid: int
    mode: str
    learner: str
    version: int


class BotStopped(_Event, frozen=True, kw_only=True):
    """A bot closed the run folder."""

    matches: int
    unsaved: int = 0


class MatchFinished(_Event, frozen=True, kw_only=True):
    """A match ended and its episode is durable (or could not be saved, and says so)."""

    id: str
    outcome: str
    decisions: int
    reward: float
    version: int
    seconds: float
    """From `mind.match` to `finish`."""
    saved: bool
    tags: dict[str, str] = {}
    fallback: int = 0
    """Decisions that the rules made."""
    agreed: int = 0
    """Of those, how many the policy would have made as well."""
    decision_us: tuple[float, float] = (0.0, 0.0)
    """p50 and p99 of `decide` in this match, in microseconds."""
    not_finite: dict[str, int] = {}
    """Features that were not finite, and at how many decisions: the fallback made those."""


class EpisodesImported(_Event, frozen=True, kw_only=True):
    """Matches of an older bot were put into the buffer."""

    count: int


class VersionAdopted(_Event, frozen=True, kw_only=True):
    """A bot swapped in another version."""

    version: int
    previous: int


class ConstantFeatures(_Event, frozen=True, kw_only=True):
    """Features that have not changed over many decisions: probably a bug in the bot."""

    names: tuple[str, ...]
    decisions: int


class LearnerStarted(_Event, frozen=True, kw_only=True):
    """A learner took the run folder."""

    pid: int
    version: int
    pending: int
    total_matches: int = 0
    """Episodes that all versions so far have ingested; 0: not said."""


class LearnerStopped(_Event, frozen=True, kw_only=True):
    """A learner let the run folder go."""

    reason: str
    pending: int
    cpu_s: float = 0.0
    wall_s: float = 0.0


class LearnerPaused(_Event, frozen=True, kw_only=True):
    """A learner follows `learner pause`: it has published what it had learned, and waits."""

    version: int
    pending: int


class LearnerResumed(_Event, frozen=True, kw_only=True):
    """A learner goes on after `learner resume`."""

    pending: int


class LearnerDied(_Event, frozen=True, kw_only=True):
    """The learner's process ended by itself; it is started again unless `restart_in_s` is None."""

    code: int
    restart_in_s: float | None


class BatchTrained(_Event, frozen=True, kw_only=True):
    """One batch of matches was learned from."""

    matches: int
    """New matches in the batch."""
    replayed: int
    """Earlier matches beside them."""
    steps: int
    seconds: float
    loss: float
    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    explained_variance: float
    clip_share: float
    gradient_norm: float
    learning_rate: float
    samples_per_insert: float
    version_lag: dict[str, int] = {}
    """Histogram of how many versions old the decisions were."""
    gradient_steps: float = 0.0
    opponent_loss: float = 0.0
    """Cross-entropy of the opponent's next action; 0 where nothing is foretold."""
    recognition_loss: float = 0.0
    """Cross-entropy of who the opponent is; 0 where nobody is named."""
    behaviour_kl: float | None = None
    """How far the trained policy is from the one that played, before the first gradient step: the
    mean of (r - 1) - log r over the sampled decisions of the first minibatch, where r is the ratio
    of their probabilities; 0 where what is trained is what played. None: not measured."""
    behaviour_kl_max: float | None = None
    """The largest of them."""
    step_share: float | None = None
    """How large the learner's steps are, as a share of full ones; None: they do not settle."""


class VersionPublished(_Event, frozen=True, kw_only=True):
    """A version is durable."""

    version: int
    parent: int | None
    matches: int
    promoted: bool
    total_matches: int = 0
    """Episodes that all versions up to this one have ingested; 0: not said."""


class EpisodesArchived(_Event, frozen=True, kw_only=True):
    """Episodes left the buffer: learned from, or too old to learn from."""

    count: int
    too_old: int = 0


class EpisodeQuarantined(_Event, frozen=True, kw_only=True):
    """A file was set aside."""

    name: str
    reason: str


class WaitingForExperience(_Event, frozen=True, kw_only=True):
    """Nothing may be sampled until new matches arrive."""

    samples_per_insert: float


class Problem(_Event, frozen=True, kw_only=True):
    """Something went wrong and play went on."""

    where: str
    message: str


class Evaluated(_Event, frozen=True, kw_only=True):
    """Frozen matches were played to measure a version."""

    version: int
    matches: int
    wins: int
    draws: int
    losses: int
    opponent: str


class Note(_Event, frozen=True, kw_only=True):
    """Nothing wrong, and yet worth a line in the log."""

    where: str
    message: str


Event: TypeAlias = (
    BotStarted
    | BotStopped
    | MatchFinished
    | EpisodesImported
    | VersionAdopted
    | ConstantFeatures
    | LearnerStarted
    | LearnerStopped
    | LearnerPaused
    | LearnerResumed
    | LearnerDied
    | BatchTrained
    | MatchesTrained
    | ContinuousTrained
    | RolledBack
    | VersionPublished
    | EpisodesArchived
    | EpisodeQuarantined
    | WaitingForExperience
    | Problem
    | Evaluated
    | StrategyMeasured
    | StageChanged
    | SnapshotTaken
    | CheckpointJudged
    | LearnerRated
    | AgentReplaced
    | Note
)
