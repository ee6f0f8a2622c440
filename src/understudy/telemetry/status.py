"""The status of a run: everything that a screen may show, as one plain struct.

It also says whether learning goes on (`learning_of`): experience that waits while no version comes
is a stall. That is judged by the files in the buffer and the time of the last version, not by the
learner's own words, so a learner that hangs, one that dies again and again and one that rejects
every batch look the same.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from understudy.core.config import Config
from understudy.telemetry import events as ev
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.text import duration, many

LearnerState: TypeAlias = Literal[
    "not started",
    "starting",
    "training",
    "idle",
    "waiting for experience",
    "paused",
    "stopped",
    "dead",
]
Learning: TypeAlias = Literal["off", "on", "waiting for experience", "paused", "stalled"]

_STALLED_S = 60.0
_INTERVALS = 5.0


class Folder(msgspec.Struct, frozen=True):
    """The episodes in one folder of the spool."""

    files: int = 0
    bytes: int = 0
    oldest: float | None = None
    """When the oldest came, in seconds since 1970, where that was looked at."""


class Folders(msgspec.Struct, frozen=True):
    """The spool as it lies on disk."""

    buffer: Folder = Folder()
    archive: Folder = Folder()
    quarantine: Folder = Folder()


class Episodes(msgspec.Struct, frozen=True):
    """What became of the experience of a run."""

    written: int = 0
    """Matches whose episode was saved, and imported ones. One too few per bot killed between
    saving and saying so."""
    ingested: int = 0
    """Recorded in the manifests of versions. Counted from published versions, not from batches:
    a batch whose learner was killed before the commit is trained again and would count twice."""
    archived: int = 0
    """Moved out of the buffer, learned from or too old."""
    quarantined: int = 0


class LedgerCounts(msgspec.Struct, frozen=True):
    """Decisions of a server, by how they ended: opened is the sum of all others."""

    opened: int = 0
    settled: int = 0
    expired: int = 0
    superseded: int = 0
    orphaned: int = 0
    open: int = 0


class ServerTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers of a run answered, since they journal it (`events.ServerCounted`)."""

    decisions: int = 0
    sent: int = 0
    """The explored ones among them."""
    waited: int = 0
    explored: int = 0
    degraded: int = 0
    gate_misses: int = 0
    answers: tuple[int, ...] = ()
    """By how long they took: the buckets of `telemetry.latency`."""
    safe_actions: dict[str, int] = {}
    errors: dict[str, int] = {}
    decided_by: dict[str, int] = {}
    gate: str = ""
    clients: int = 0
    """When the server told last, as the two below; 0 once it has stopped."""
    connections: int = 0
    territories: int = 0
    at: float = 0.0
    """When that was, in seconds since 1970."""


class Percentiles(msgspec.Struct, frozen=True):
    """How long `decide` took, in milliseconds; the median over matches (weighted by decisions) of
    each match's own percentile, within 2.5 %. So p99 is that of a usual match, not of the worst."""

    p50: float
    p99: float


class Trouble(msgspec.Struct, frozen=True):
    """One thing that went wrong."""

    t: float
    where: str
    message: str


class WinRecord(msgspec.Struct, frozen=True):
    """Matches against one kind of opponent."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @property
    def matches(self) -> int:
        """How many ended."""
        return self.wins + self.draws + self.losses


class Estimate(msgspec.Struct, frozen=True):
    """A mean and its 95% interval."""

    mean: float
    low: float
    high: float


class VersionReward(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of the versions `first` to `last` together."""

    first: int
    last: int
    count: int
    """Segments of a server, or matches."""
    reward: Estimate


class RewardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The reward, and what it is measured against (docs/serving.md)."""

    per: Literal["decision", "match"]
    now: VersionReward | None = None
    """Of the newest versions with enough results; None: there are too few."""
    start: VersionReward | None = None
    """Of the first ones; from version 2 on, earlier ones are not known."""
    counted: int = 0
    """Results of the newest versions that are not enough yet."""
    needed: int = 0
    """How many are enough."""
    decisions: int = 0
    """Behind a server: the last decisions, which the estimates below are over."""
    policy: Estimate | None = None
    """What the policy earned there."""
    random: Estimate | None = None
    """What one random action in place of each would have earned; None: it cannot be told."""
    random_segments: float = 0.0
    """Of how many equal segments that tells as much."""
    fixed: Estimate | None = None
    """The same of the best fixed action; None: it cannot be told."""
    fixed_action: str = ""
    fixed_known: int = 0
    """Of so many fixed actions is it the best; the others cannot be told."""
    fixed_compared: int = 0
    """How many were compared: all, or none where they are too many."""
    actions: int = 0
    """How many there are."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Everything there is to know at one moment. Plain data: `msgspec.json.encode` writes it."""

    run: str = ""
    """The run folder."""
    at: float = 0.0
    """When this was read, in seconds since 1970."""

    files_processed: int = 0
    """Episodes learned from; unlike `episodes.ingested` with those not yet part of a version."""
    batches_trained: int = 0
    """Batches, with those that had to be trained again after a crash."""
    total_samples: int = 0
    """Decisions in all batches."""
    avg_loss: float = 0.0
    """Mean over batches; 0 before the first (as the old statistics had it)."""
    last_loss: float = 0.0
    total_processing_time: float = 0.0
    """Seconds spent in batches."""
    errors: int = 0
    """Problems, deaths of the learner and quarantined files."""
    active_workers: int = 0
    max_workers: int = 1
    buffer_file_count: int = 0
    archive_file_count: int = 0
    quarantine_file_count: int = 0
    buffer_bytes: int = 0
    archive_bytes: int = 0
    quarantine_bytes: int = 0
    files_skipped_old: int = 0
    last_batch_time: float | None = None
    """When the last batch was done, in seconds since 1970."""
    last_batch: ev.BatchTrained | None = None
    """Entropy, KL, explained variance, learning rate, version lag… of the last batch."""

    ledger: LedgerCounts | None = None
    """Of a run that is served, where this status was made with its ledger."""
    server: ServerTotals | None = None
    """Of a run that is served, by a server that journals what it answers."""
    continuous: ev.ContinuousTrained | None = None
    """What the learner behind a server told last: buffer, gate agreement, utilisation…"""
    waiting: bool = False
    """Whether that learner holds back until new experience comes."""
    rollbacks: int = 0
    """How often a learner gave up what it had learned."""
    fruitless: int = 0
    """Of those, how often since the newest version, because training failed."""
    learning: Learning = "off"
    """`off`: no learner runs; `stalled`: experience waits and no version comes."""
    paused_since: float | None = None
    """When a person paused the learner, in seconds since 1970; None: it is not paused."""
    experience_waits_s: float = 0.0
    """Seconds for which experience has waited for a learner that runs, and no version came."""

    matches: int = 0
    wins: int = 0
    defeats: int = 0
    ties: int = 0
    aborted: int = 0
    """Matches without a result; they are in `matches` and in no win rate."""
    aborted_share: float | None = None
    """Of all matches; None before the first."""
    unsaved: int = 0
    """Matches whose episode could not be saved."""
    win_rate: float | None = None
    """Of all finished matches, whether the policy or the rules played them."""
    win_rate_first: float | None = None
    """Of the first fifth of the finished matches that the policy played; None before there are
    five."""
    win_rate_last: float | None = None
    """Of the last fifth of those."""
    rules_matches: int = 0
    """Finished matches that the rules played: in which they made most decisions."""
    rules_wins: int = 0
    """Of those."""
    decisions: int = 0
    fallback: int = 0
    """Decisions that the rules made."""
    agreed: int = 0
    """Of those, how many the policy would have made as well."""
    agreement_last: float | None = None
    """The share that a trained version would have made as well, in the last matches that the rules
    played beside one; None: no such match."""
    agreement_last_matches: int = 0
    """How many those are: 20, or fewer."""
    decision_ms: Percentiles | None = None
    mode: str = ""
    """How the bot that started last plays; `serve`: it is a server."""

    played: tuple[PlayedRecord, ...] = ()
    """Win rates by player and mode, then the same by tag; of each the most played."""
    promotion: PromotionStatus | None = None
    """Where this status was made with the promotion log of the run."""

    version_rewards: RewardStatus | None = None
    """Where this status was made with the versions of the run."""

    steps: int = 0
    """Decisions that `train` has trained on."""
    reward: float | None = None
    """Mean reward of the last matches of a Gymnasium or PettingZoo environment, over its agents."""
    reward_matches: int = 0
    """How many matches that is of."""
    sides: dict[str, float] = {}
    """The same of each agent, where there are several."""
    matches_differ: bool = False
    """Whether a match of an environment ended otherwise than by a time limit with the same rewards
    as the first one: something can be learned."""
    opponents: dict[str, WinRecord] = {}
    """Whom `train` met, and how that went, over the whole run."""
    stage: str = ""
    """Of the curriculum that `train` is in."""
    stage_since: int = 0
    """The steps at which it came there."""
    rating: ev.LearnerRated | None = None
    snapshots: int = 0
    """In the pool of the league."""
    last_snapshot: str = ""
    """The newest one that was kept."""
    last_benchmark: ev.CheckpointJudged | None = None
    last_note: str = ""
    """What `train` thought worth a line in the log."""
    relay_to: str = ""
    """The store to which a relay sends what is recorded here; empty: it is learned from here."""

    versions: int = 0
    """How many were published."""
    version: int = 0
    """The highest one published."""
    last_version_time: float | None = None
    """When that was, in seconds since 1970."""
    playing: int | None = None
    """The one that the bot adopted last."""
    champion: int | None = None
    """The one that should play, where this status was made with the run's pointers."""
    pinned: bool = False
    """Whether a person pinned the champion: no rule moves it."""
    episodes: Episodes = Episodes()
    learner: LearnerState = "not started"
    learner_pid: int | None = None
    learner_deaths: int = 0
    learner_heard: float | None = None
    """When the learner last said anything."""
    learner_cpu_share: float | None = None
    """CPU seconds a second of the learner that stopped last: at most 1 if it has one thread."""
    constant_features: tuple[str, ...] = ()
    not_finite: dict[str, int] = {}
    """Features that were not finite, and at how many decisions: the fallback made those."""
    problems: tuple[Trouble, ...] = ()
    """The last few, oldest first."""
    last_evaluation: ev.Evaluated | None = None
    journals_deleted: int = 0
    """Old journals that retention deleted; their entries are counted here all the same."""
    journal_bytes_deleted: int = 0
    journals_deleted_until: float | None = None
    """When the newest of those was last written to, in seconds since 1970."""

    @property
    def served(self) -> bool:
        """Whether a server decides in this run, rather than a bot or `train`."""
        return self.mode == "serve"


class Patience(NamedTuple):
    """When waiting is a stall."""

    stalled_s: float = _STALLED_S
    """Experience that has waited for so long without a version."""
    batch: int = 1
    """Episodes that always make a batch; with fewer, a learner may say that it waits for more."""


def patience(config: Config) -> Patience:
    """A minute, or several intervals of publishing; so many episodes as can be too few to learn."""
    learner, continuous = config.learner, config.continuous
    passes = max(1.0, learner.epochs / continuous.samples_per_insert)
    return Patience(
        max(_STALLED_S, _INTERVALS * learner.publish_interval_s),
        math.ceil(continuous.min_batch * passes),
    )


def learning_of(status: Status, *, waiting: bool, patience: Patience) -> Learning:
    """Of a learner that should run; `waiting`: it has said that it has too little to learn from."""
    if status.paused_since is not None:
        return "paused"
    if waiting and status.buffer_file_count < patience.batch:
        return "waiting for experience"
    return "stalled" if status.experience_waits_s > patience.stalled_s else "on"


def stalled(status: Status) -> str:
    """What to tell of a stall; empty where there is none."""
    if status.learning != "stalled":
        return ""
    count = status.buffer_file_count
    since = f"since version {status.version}" if status.versions else "yet"
    words = (
        f"no version {since}, though experience has waited {duration(status.experience_waits_s)} "
        f"({many(count, 'episode', 'episodes')})"
    )
    if status.fruitless:
        times = "once" if status.fruitless == 1 else f"{status.fruitless:,} times"
        words += f"; training failed and was rolled back {times}"
    return f"{words}; the learner: {status.learner}"
