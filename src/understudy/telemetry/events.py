"""The events of a run: one small struct for each kind of thing that happens.

An event is a fact in the past tense, with its class name as its tag in the journal. Fields may be
added with a default; none is ever renamed. The order here is by writer: bots, learners, training,
servers.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

ENVIRONMENT = "environment"
"""The name of a Gymnasium or PettingZoo environment among `returns`."""


class _Event(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True, gc=False
):  # no cycles: a million of them are read without a look of the garbage collector
    pass


# A bot and its matches.


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
    role: str = ""
    """Who was given the match: `rules`, `practice`, `canary`, `champion`, `holdout` or
    `newest`."""
    recorded: bool = True
    """False: mode `play`, which keeps no episodes."""
    mode: str = ""
    """Of the bot; empty: not said."""
    assigned: int = 0
    """The version that was given the match; 0: the rules, or not said."""
    fault: str = ""
    """What that version did, so that the rules finished the match and it counts as its loss."""


class EpisodesImported(_Event, frozen=True, kw_only=True):
    """Matches of an older bot were put into the buffer."""

    count: int


class VersionAdopted(_Event, frozen=True, kw_only=True):
    """A bot swapped in another version."""

    version: int
    previous: int


class RoleChanged(_Event, frozen=True, kw_only=True):
    """The promotion gate decided about a version, or a person did."""

    version: int
    kind: str
    """`promoted`, `harmful`, `undecided`, `alarm`, `rolled back`, …"""
    words: str
    test: int = 0
    """The number of its test in the promotion log; 0: none."""


class ConstantFeatures(_Event, frozen=True, kw_only=True):
    """Features that have not changed over many decisions: probably a bug in the bot."""

    names: tuple[str, ...]
    decisions: int


# A learner: its process, its batches and the episodes that it learned from.


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
    """Cross-entropy of who the opponent is; 0 where the network names none."""
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
    memory_mb: float = 0.0
    """Resident memory of the learner then, in MiB; 0: not known."""


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


# Training in the arena and in environments. Each event has `steps`, the decisions that the run has
# trained on, so that a session that resumes can drop what it repeats.


class MatchesTrained(_Event, frozen=True, kw_only=True):
    """An iteration of the arena: what its matches came to, by opponent."""

    steps: int
    """Decisions trained on in this run so far."""
    results: dict[str, tuple[int, int, int, int]]
    """started, wins, draws and losses of the iteration"""
    returns: dict[str, float] = {}
    """mean return of the matches that ended"""
    matches: int = 0
    """How many ended without a winner or loser, as matches of such environments do."""
    total_matches: int = 0
    """Matches of such an environment in the whole run so far; 0: not said."""
    sides: dict[str, float] = {}
    """The mean return of each agent of such an environment, where it has several."""
    alike: int = 0
    """How many of those a time limit ended with the rewards of the session's first match."""
    terms: dict[str, dict[str, float]] = {}
    """opponent -> reward term -> its weighted sum over the matches that ended"""
    measures: dict[str, dict[str, float]] = {}
    """opponent -> measure of the game (damage_dealt, knockouts…) -> its sum over those matches"""
    ended: list[tuple[str, int, int, float]] = []
    """opponent, score (+1, 0, -1), frames and return of each match that ended"""
    stage: str = ""
    """Of the curriculum, if there is one."""
    residual: float = 0.0
    """Returns less the sums of their terms: 0, unless weights are too large for exact sums."""


class StrategyMeasured(_Event, frozen=True, kw_only=True):
    """What the strategy encoder made of the opponents of one iteration."""

    steps: int
    latent_mean: float
    """Mean over all numbers of all latents."""
    latent_spread: float
    """How far latents lie from their mean (root of the mean square, a number of them)."""
    attention_entropy: float
    """Of the shares that frames have in a latent, in nats: 0: one frame; ln N: N frames alike."""
    drift: float
    """How far the mean latent against an opponent moved since the last time, on average."""
    by_opponent: dict[str, tuple[float, ...]] = {}
    """The mean latent against each opponent, or the first few numbers of it."""


class StageChanged(_Event, frozen=True, kw_only=True):
    """The curriculum went on to a stage, or back to one."""

    steps: int
    before: str
    """"" at the start of a run."""
    after: str
    reason: str


class SnapshotTaken(_Event, frozen=True, kw_only=True):
    """The learner's weights were offered to the pool of snapshots."""

    steps: int
    name: str
    """step-N, as a person names it."""
    kept: bool
    reason: str
    """Why it was kept or not, and what it displaced."""
    pool: int
    """How many snapshots the pool holds now."""


class OpponentTally(msgspec.Struct, frozen=True, array_like=True):
    """What judged matches against one opponent came to; sums, but for the mean return."""

    wins: int
    draws: int
    losses: int
    mean_return: float = 0.0
    damage_dealt: float = 0.0
    damage_taken: float = 0.0
    knockouts: float = 0.0
    falls: float = 0.0

    @property
    def measures(self) -> dict[str, float]:
        """The sums of a game's measures: brawl's, which the file format has fields for."""
        return {name: getattr(self, name) for name in OPPONENT_MEASURES}


OPPONENT_MEASURES = OpponentTally.__struct_fields__[4:]


class CheckpointJudged(_Event, frozen=True, kw_only=True):
    """A version under training met opponents in frozen matches."""

    steps: int
    version: int
    seconds: float
    opponents: dict[str, OpponentTally]
    matches: int = 0
    """Of an environment: matches in which the version played every side."""
    reward: float = 0.0
    """The mean reward of those."""
    sides: dict[str, float] = {}
    """The same of each agent, where there are several."""


class LearnerRated(_Event, frozen=True, kw_only=True):
    """The learner's rating after an iteration."""

    steps: int
    mu: float
    sigma: float
    """Standard deviation of the belief: mu - 3 sigma is a number to boast of."""


class AgentReplaced(_Event, frozen=True, kw_only=True):
    """An agent of a population gave way to a mutated copy of another."""

    steps: int
    agent: int
    parent: int
    fitness: float
    parent_fitness: float
    settings: dict[str, float] = {}
    """The copy's hyper-parameters."""


# A server, and the learner behind it.


class ContinuousTrained(_Event, frozen=True, kw_only=True):
    """Some batches of items were learned from, since the last of these events."""

    batches: int
    episodes: int
    """That came in."""
    items: int
    """In the batches, together."""
    steps: int
    """Decisions that taught something."""
    skipped: int
    """Decisions that did not, since the gate judges otherwise today or blocked them."""
    seconds: float
    """Spent on the batches."""
    utilisation: float
    """Share of the time that was spent on batches."""
    buffer: int
    """Items held."""
    samples_per_insert: float
    """Over the whole run."""
    agreement: float | None
    """How often the gate judges as it did when it was asked first; falls where things drift. None:
    no gate looked again."""
    entropy_share: float
    """Entropy over the largest possible, of the last batch."""
    loss: float
    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    explained_variance: float
    clip_share: float
    gradient_norm: float
    learning_rate: float
    gradient_steps: float = 0.0
    """A batch."""
    behaviour_kl: float | None = None
    """How far the trained policy is from the one that played, before the first gradient step: the
    mean of (r - 1) - log r over the sampled decisions of the first minibatch, where r is the ratio
    of their probabilities; 0 where what is trained is what played. None: not measured."""
    behaviour_kl_max: float | None = None
    """The largest of them."""
    step_share: float | None = None
    """How large the learner's steps are, as a share of full ones; None: not said."""


class ServerCounted(_Event, frozen=True, kw_only=True):
    """What a server answered since its last of these events, about every 10 s; an idle one tells
    nothing."""

    seconds: float
    """Since the last of these events, or since the server started."""
    decisions: int
    """Answers to new observations."""
    sent: int
    """Of these: to be executed, the explored ones among them."""
    waited: int
    explored: int = 0
    """The gate said WAIT, and they were sent all the same."""
    degraded: int = 0
    """Answered with the safe action."""
    safe_actions: dict[str, int] = {}
    """Those, by cause."""
    decided_by: dict[str, int] = {}
    """Decisions by the role of the player, where evidence decides who plays."""
    answers: tuple[int, ...] = ()
    """All answers by how long they took: the buckets of `telemetry.latency`, without empty ones at
    the end."""
    errors: dict[str, int] = {}
    """Refused messages and connections, by code."""
    gate_misses: int = 0
    """Deadlines that a custom gate missed."""
    gate: str = ""
    clients: int = 0
    """Connected at the end of this time, as the two below."""
    connections: int = 0
    territories: int = 0


class RolledBack(_Event, frozen=True, kw_only=True):
    """The learner gave up what it had learned, and goes on from an earlier version."""

    reason: str
    """`not finite` or `collapse`"""
    version: int
    """Whose learning was given up; 0: before the first"""
    to: int
    """The version that is learned on from; 0: a fresh start"""
    published: int = 0
    """Where versions had been published since: the number under which that one plays again"""


# Any process.


class Evaluated(_Event, frozen=True, kw_only=True):
    """Frozen matches were played to measure a version."""

    version: int
    matches: int
    wins: int
    draws: int
    losses: int
    opponent: str


class Problem(_Event, frozen=True, kw_only=True):
    """Something went wrong and play went on."""

    where: str
    message: str


class JournalsDeleted(_Event, frozen=True, kw_only=True):
    """Old journals went, by `retention.journal_days` or `retention.journal_bytes`. A summary holds
    what they told."""

    files: int
    bytes: int
    until: float
    """When the newest of them was last written to, in seconds since 1970."""


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
    | RoleChanged
    | ConstantFeatures
    | LearnerStarted
    | LearnerStopped
    | LearnerPaused
    | LearnerResumed
    | LearnerDied
    | BatchTrained
    | MatchesTrained
    | ContinuousTrained
    | ServerCounted
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
    | JournalsDeleted
    | Note
)
