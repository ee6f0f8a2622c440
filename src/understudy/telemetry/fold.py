"""The fold that makes a status from journal entries and the files of the spool.

Each entry is added once, in the order of time. What is kept does not grow with the run: medians of
millions of numbers are estimated, and results of matches are kept in bins. `state()` is all of it
as plain data, and the constructor goes on from there: a summary of the journal holds it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress, zip_longest

import msgspec
from msgspec.structs import force_setattr

from understudy.core.pause import Pause
from understudy.telemetry import events as ev
from understudy.telemetry.agreement import RulesAgreement, compares_with_rules
from understudy.telemetry.events import ENVIRONMENT
from understudy.telemetry.journal import Entry
from understudy.telemetry.played import PlayedFold, PlayedRecord, played_by_rules
from understudy.telemetry.status import (
    Folder,
    Folders,
    LearnerState,
    Patience,
    Percentiles,
    ServerTotals,
    Status,
    Trouble,
    WinRecord,
    learning_of,
)

_STEP = math.log(1.05)


class Spread:
    """Weights by logarithmic bucket, 5 % wide."""

    def __init__(self, weights: Mapping[int, int] | None = None) -> None:
        self._weights = dict(weights or {})

    def state(self) -> dict[int, int]:
        """The weights; the constructor takes them back."""
        return dict(self._weights)

    def add(self, value: float, weight: int) -> None:
        """One value; what is not positive was not measured."""
        if weight > 0 and 0.0 < value < math.inf:
            bounded = value if 1e-3 < value < 1e12 else min(max(value, 1e-3), 1e12)
            bucket = round(math.log(bounded) / _STEP)
            self._weights[bucket] = self._weights.get(bucket, 0) + weight

    def extend(self, values: Iterable[float], weights: Iterable[int]) -> None:
        """Several values."""
        known, log = self._weights, math.log
        for value, weight in zip(values, weights, strict=True):
            if 1e-3 < value < 1e12 and weight > 0:
                bucket = round(log(value) / _STEP)
                known[bucket] = known.get(bucket, 0) + weight
            else:
                self.add(value, weight)

    def median(self) -> float | None:
        """The value with half of the weight at or below it."""
        left = sum(self._weights.values()) / 2
        for bucket, weight in sorted(self._weights.items()):
            left -= weight
            if left <= 0:
                return math.exp(bucket * _STEP)
        return None


_NO_LEARNER = {"", "off"}
_ALIVE = {"training", "idle", "waiting for experience"}
_KEPT_PROBLEMS = 5
_LAST_MATCHES = 20
_TRAINING_FOR_S = 10.0
_MAX_MESSAGE = 500
_KEPT_PLAYED = 200
_SHOWN_PLAYED = 60
_MOST_BINS = 8192
_RECENT = 100
"""Matches of an environment that a mean reward is of, or a few more."""
_RESULTS = {"victory": "wins", "defeat": "defeats", "tie": "ties"}
_FROM_LEARNER = {
    ev.LearnerStarted,
    ev.LearnerStopped,
    ev.LearnerPaused,
    ev.LearnerResumed,
    ev.BatchTrained,
    ev.MatchesTrained,
    ev.ContinuousTrained,
    ev.RolledBack,
    ev.VersionPublished,
    ev.EpisodesArchived,
    ev.EpisodeQuarantined,
    ev.WaitingForExperience,
}
_COUNTED = _FROM_LEARNER | {
    ev.EpisodesImported,
    ev.JournalsDeleted,
    ev.LearnerDied,
    ev.BotStarted,
    ev.BotStopped,
    ev.ServerCounted,
    ev.VersionAdopted,
    ev.ConstantFeatures,
    ev.Evaluated,
    ev.Problem,
    ev.StageChanged,
    ev.LearnerRated,
    ev.SnapshotTaken,
    ev.CheckpointJudged,
    ev.Note,
}
"""Kinds of events, beside matches, that a status tells of."""
_OF_MATCHES = (ev.BotStarted, ev.MatchesTrained)
"""Events that say the mode of matches, or count the same as they do."""
_AT_WORK = {
    ev.LearnerStarted,
    ev.BatchTrained,
    ev.ContinuousTrained,
    ev.RolledBack,
    ev.WaitingForExperience,
}


def recent_agreement(entries: Iterable[Entry]) -> float | None:
    """Share of the rules' decisions that the newest version agreed with, in their last matches;
    None: too few decisions."""
    told = RulesAgreement()
    for one in entries:
        if isinstance(one.e, ev.MatchFinished) and compares_with_rules(one.e):
            told.add(one.e.agreed, one.e.fallback)
    return told.share


def _agreement(matches: Collection[tuple[int, int]]) -> float | None:
    """Of decisions of the rules and those agreed with, by match; None: there are none."""
    decisions = sum(count for count, _ in matches)
    return sum(agreed for _, agreed in matches) / decisions if decisions else None


class ResultBins(msgspec.Struct):
    """Results in their order, as wins in bins of equally many results.

    Exact up to `_MOST_BINS` results. Then neighbours are joined, and a bin that is cut counts in
    proportion: a share of a fifth of all results is off by 0.1 points at most.
    """

    wins: list[int] = []
    width: int = 1
    count: int = 0

    def add(self, won: bool, times: int = 1) -> None:
        """One more result, or equally many of them."""
        if times == 1 and len(self.wins) * self.width > self.count:  # one of a match, mostly
            self.wins[-1] += won
            self.count += 1
            return
        while times > 0:
            room = len(self.wins) * self.width - self.count
            if not room:
                if len(self.wins) == _MOST_BINS:
                    pairs = zip(self.wins[::2], self.wins[1::2], strict=True)
                    self.wins = [one + other for one, other in pairs]
                    self.width *= 2
                self.wins.append(0)
                room = self.width
            taken = min(room, times)
            self.wins[-1] += taken * won
            self.count += taken
            times -= taken

    def extend(self, won: Sequence[bool]) -> None:
        """Several results in their order."""
        place = 0
        while place < len(won):
            room = len(self.wins) * self.width - self.count
            if room:
                some = won[place : place + room]
                self.wins[-1] += sum(some)
                self.count += len(some)
                place += len(some)
            else:
                self.add(won[place])
                place += 1

    def share(self, start: int, end: int) -> float | None:
        """Of wins among the results from `start` to before `end`; None: there are none."""
        return (self._before(end) - self._before(start)) / (end - start) if end > start else None

    def _before(self, place: int) -> float:
        whole, rest = divmod(place, self.width)
        wins = float(sum(self.wins[:whole]))
        if rest:
            wins += self.wins[whole] * rest / min(self.width, self.count - whole * self.width)
        return wins


class RewardedIteration(msgspec.Struct, frozen=True, array_like=True):
    """Matches of an environment in one iteration, and their mean rewards."""

    matches: int
    reward: float
    sides: dict[str, float]


class StatusState(msgspec.Struct, kw_only=True):
    """Everything that a `StatusFold` knows, as plain data."""

    now: Status = Status()
    on_since: float | None = None
    """When the learner that should run now began to; None: none should."""
    uncommitted: int = 0
    results: ResultBins = msgspec.field(default_factory=ResultBins)
    """Whether the policy won, of each finished match that it played."""
    agreement: list[tuple[int, int]] = []
    """Decisions of the rules and agreements, of the last matches that have any."""
    p50_us: dict[int, int] = {}
    p99_us: dict[int, int] = {}
    rewards: list[RewardedIteration] = []
    problems: list[Trouble] = []
    played: list[PlayedRecord] = []


class StatusFold:
    """Adds entries up. Give it every entry once, in the order of time.

    `state` is what another fold knew when it gave it away; this one goes on from there, and owns
    it. `_now` is changed in place: making a new struct for each event took most of the time of
    opening a run. `status` hands out copies.
    """

    def __init__(
        self,
        run: str = "",
        patience: Patience | None = None,
        *,
        state: StatusState | None = None,
    ) -> None:
        state = state or StatusState()
        self._now = msgspec.structs.replace(_copied(state.now), run=run)
        self._patience = patience or Patience()
        self._on_since = state.on_since
        self._uncommitted = state.uncommitted
        self._results = state.results
        self._agreement = deque(state.agreement, maxlen=_LAST_MATCHES)
        self._p50_us, self._p99_us = Spread(state.p50_us), Spread(state.p99_us)
        self._rewards = deque(state.rewards)
        self._problems = deque(state.problems, maxlen=_KEPT_PROBLEMS)
        self._played = PlayedFold(limit=_KEPT_PLAYED, records=state.played)

    @property
    def mode(self) -> str:
        """Of the bot that started last; empty: not known."""
        return self._now.mode

    @property
    def matches(self) -> int:
        return self._now.matches

    @property
    def learner_told(self) -> bool:
        """Whether a learner told that it began, and not that it ended."""
        return self._now.learner_pid is not None

    def state(self) -> StatusState:
        """All that was added, apart from this fold: it can go on meanwhile."""
        results = self._results
        return StatusState(
            now=_copied(self._now),
            on_since=self._on_since,
            uncommitted=self._uncommitted,
            results=ResultBins(list(results.wins), results.width, results.count),
            agreement=list(self._agreement),
            p50_us=self._p50_us.state(),
            p99_us=self._p99_us.state(),
            rewards=list(self._rewards),
            problems=list(self._problems),
            played=self._played.state(),
        )

    def extend(self, entries: Iterable[Entry]) -> None:
        """Some more entries, as `add` of each. Matches, which are most of a long journal, are added
        together, up to an event that their counts depend on."""
        matches: list[ev.MatchFinished] = []
        for entry in entries:
            event = entry.e
            if isinstance(event, ev.MatchFinished):
                matches.append(event)
            else:
                if isinstance(event, _OF_MATCHES):
                    self._matches(matches)
                    matches = []
                self.add(entry)
        self._matches(matches)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        if isinstance(entry.e, ev.MatchFinished):
            self._matches([entry.e])
            return
        kind = type(entry.e)
        if kind not in _COUNTED:
            return
        match entry.e:  # the most frequent kinds first
            case ev.BatchTrained() as e:
                self._batch(e, entry.t)
            case ev.VersionPublished() as e:
                self._published(e, entry.t)
            case ev.EpisodesArchived() as e:
                self._count_episodes(archived=e.count)
                self._grow(files_skipped_old=e.too_old)
            case ev.VersionAdopted() as e:
                self._set(playing=e.version)
            case ev.MatchesTrained() as e:
                self._matches_trained(e)
            case ev.ContinuousTrained() as e:
                self._continuous(e, entry.t)
            case ev.LearnerStarted() as e:
                self._learner_started(e)
            case ev.LearnerStopped() as e:
                self._on_since = None
                share = e.cpu_s / e.wall_s if e.wall_s > 0 else self._now.learner_cpu_share
                self._set(learner="stopped", learner_pid=None, learner_cpu_share=share)
            case ev.LearnerDied() as e:
                self._set(learner="dead", learner_pid=None)
                self._grow(learner_deaths=1)
                self._trouble(entry.t, "learner", _obituary(e))
            case ev.WaitingForExperience():
                self._set(learner="waiting for experience", waiting=True)
            case ev.EpisodeQuarantined() as e:
                self._count_episodes(quarantined=1)
                self._trouble(entry.t, "quarantine", f"{e.name}: {e.reason}")
            case ev.BotStarted() as e:
                self._bot_started(e, entry.t)
            case ev.BotStopped():  # its matches and what it could not save were told one by one
                self._on_since = None  # a learner of its own is heard of again
                self._all_left()
            case ev.ServerCounted() as e:
                self._set(server=_counted(self._now.server or ServerTotals(), e, entry.t))
            case ev.Problem() as e:
                self._trouble(entry.t, e.where, e.message)
            case _:
                self._rare(entry.e)
        if kind in _FROM_LEARNER:
            force_setattr(self._now, "learner_heard", entry.t)
        if kind in _AT_WORK and self._on_since is None:
            self._on_since = entry.t

    def _rare(self, event: ev.Event) -> None:
        match event:
            case ev.EpisodesImported() as e:
                self._count_episodes(written=e.count)
            case ev.JournalsDeleted() as e:
                self._grow(journals_deleted=e.files, journal_bytes_deleted=e.bytes)
                self._set(journals_deleted_until=e.until)
            case ev.RolledBack() as e:
                self._grow(rollbacks=1, fruitless=int(e.reason == "not finite"))
                if self._now.learner == "waiting for experience":  # it has found some since
                    self._set(learner="training", waiting=False)
            case ev.ConstantFeatures() as e:
                self._set(constant_features=e.names)
            case ev.Evaluated() as e:
                self._set(last_evaluation=e)
            case ev.StageChanged() as e:
                self._set(stage=e.after, stage_since=e.steps)
            case ev.LearnerRated() as e:
                self._set(rating=e)
            case ev.SnapshotTaken() as e:
                newest = e.name if e.kept else self._now.last_snapshot
                self._set(snapshots=e.pool, last_snapshot=newest)
            case ev.CheckpointJudged() as e:
                self._set(last_benchmark=e)
            case ev.Note() as e:
                self._set(last_note=f"{e.where}: {e.message}"[:_MAX_MESSAGE])

    def status(
        self,
        folders: Folders,
        now: float = 0.0,
        pause: Pause | None = None,
        *,
        learner_runs: bool | None = None,
    ) -> Status:
        """All that was added, beside what lies in the folders at this moment.

        `learner_runs`: whether a learner holds the lock of the run folder; None: not known.
        """
        pause = pause or Pause()
        state = _state(self._now, folders.buffer.files, now, paused=pause.paused)
        # Killed together with its bot: neither could report the end.
        alive = state in _ALIVE or state == "paused"
        killed = learner_runs is False and self._now.learner_pid is not None and alive
        if killed:
            state = "dead"
        told = self._now.learner  # before anything is concluded from what lies in the buffer
        results, fifth = self._results.count, self._results.count // 5
        finished = self._now.wins + self._now.defeats + self._now.ties
        status = msgspec.structs.replace(
            _copied(self._now),
            at=now,
            experience_waits_s=self._waits_s(folders.buffer, now, pause),
            paused_since=pause.at if pause.paused else None,
            learner=state,
            learner_pid=None if killed else self._now.learner_pid,
            active_workers=int(state == "training"),
            files_processed=self._now.episodes.ingested + self._uncommitted,
            buffer_file_count=folders.buffer.files,
            archive_file_count=folders.archive.files,
            quarantine_file_count=folders.quarantine.files,
            buffer_bytes=folders.buffer.bytes,
            archive_bytes=folders.archive.bytes,
            quarantine_bytes=folders.quarantine.bytes,
            aborted_share=self._now.aborted / self._now.matches if self._now.matches else None,
            win_rate=self._now.wins / finished if finished else None,
            win_rate_first=self._results.share(0, fifth),
            win_rate_last=self._results.share(results - fifth, results),
            agreement_last=_agreement(self._agreement),
            agreement_last_matches=len(self._agreement),
            decision_ms=self._decision_ms(),
            problems=tuple(self._problems),
            played=tuple(self._played.records(_SHOWN_PLAYED)),
        )
        if self._on_since is None or killed:
            return status
        waiting = told == "waiting for experience"
        learning = learning_of(status, waiting=waiting, patience=self._patience)
        return msgspec.structs.replace(status, learning=learning)

    def _waits_s(self, buffer: Folder, now: float, pause: Pause) -> float:
        """Since it came, a learner was there for it, and the last version did not have it."""
        if buffer.oldest is None or self._on_since is None or pause.paused:
            return 0.0
        since = max(buffer.oldest, self._on_since, self._now.last_version_time or 0.0, pause.at)
        return max(now - since, 0.0)

    def _matches(self, matches: Sequence[ev.MatchFinished]) -> None:
        if not matches:
            return
        now = self._now
        self._played.extend(matches, mode=now.mode)
        decisions = [e.decisions for e in matches]
        rules = [played_by_rules(e) for e in matches]
        outcomes = Counter([e.outcome for e in matches])
        theirs = Counter(compress([e.outcome for e in matches], rules))
        self._grow(
            matches=len(matches),
            decisions=sum(decisions),
            unsaved=sum([e.recorded and not e.saved for e in matches]),
            fallback=sum([e.fallback for e in matches]),
            agreed=sum([e.agreed for e in matches if e.fallback]),
            rules_matches=sum(theirs[outcome] for outcome in _RESULTS),
            rules_wins=theirs["victory"],
        )
        for outcome, count in outcomes.items():
            self._grow(**{_RESULTS.get(outcome, "aborted"): count})
        self._results.extend(
            [
                e.outcome == "victory" and not e.fault  # the rules finished what a version has lost
                for e, one in zip(matches, rules, strict=True)
                if e.fault or (not one and e.outcome in _RESULTS)
            ]
        )
        self._agreement += [(e.fallback, e.agreed) for e in matches if compares_with_rules(e)]
        self._count_episodes(written=sum([e.saved for e in matches]))
        for one in [e.not_finite for e in matches if e.not_finite]:
            for name, count in one.items():
                now.not_finite[name] = now.not_finite.get(name, 0) + count
        self._p50_us.extend([e.decision_us[0] for e in matches], decisions)
        self._p99_us.extend([e.decision_us[1] for e in matches], decisions)

    def _batch(self, e: ev.BatchTrained, t: float) -> None:
        self._uncommitted += e.matches
        self._grow(batches_trained=1, total_samples=e.steps, total_processing_time=e.seconds)
        mean = self._now.avg_loss
        mean += (e.loss - mean) / self._now.batches_trained
        self._set(avg_loss=mean, last_loss=e.loss, last_batch=e, last_batch_time=t)
        self._set(learner="training", waiting=False)

    def _continuous(self, e: ev.ContinuousTrained, t: float) -> None:
        self._uncommitted += e.episodes
        self._grow(batches_trained=e.batches, total_samples=e.steps)
        self._grow(total_processing_time=e.seconds)
        mean = self._now.avg_loss
        mean += (e.loss - mean) * e.batches / max(self._now.batches_trained, 1)
        self._set(avg_loss=mean, last_loss=e.loss, continuous=e, last_batch_time=t)
        self._set(learner="training", waiting=False)

    def _all_left(self) -> None:
        """The server, if it was one, has stopped: no client is connected."""
        if self._now.server is not None:
            none = {"clients": 0, "connections": 0, "territories": 0}
            self._set(server=msgspec.structs.replace(self._now.server, **none))

    def _matches_trained(self, e: ev.MatchesTrained) -> None:
        for name, (_, wins, draws, losses) in e.results.items():
            before = self._now.opponents.get(name, WinRecord())
            self._now.opponents[name] = WinRecord(
                before.wins + wins, before.draws + draws, before.losses + losses
            )
            self._grow(matches=wins + draws + losses, wins=wins, ties=draws, defeats=losses)
            self._results.add(True, wins)
            self._results.add(False, draws + losses)
        self._grow(matches=e.matches)
        self._set(steps=e.steps)
        if e.total_matches:  # exact, also where a session was killed or its journal is older
            self._set(matches=e.total_matches)
        if e.matches > e.alike:
            self._set(matches_differ=True)
        if ENVIRONMENT in e.returns:
            self._rewarded(RewardedIteration(e.matches, e.returns[ENVIRONMENT], e.sides))

    def _rewarded(self, newest: RewardedIteration) -> None:
        """The mean over the newest iterations that together have enough matches."""
        self._rewards.append(newest)
        count = sum(one.matches for one in self._rewards)
        while count - self._rewards[0].matches >= _RECENT:
            count -= self._rewards.popleft().matches
        self._set(
            reward=sum(one.matches * one.reward for one in self._rewards) / count,
            sides={
                agent: sum(one.matches * one.sides.get(agent, 0.0) for one in self._rewards) / count
                for agent in newest.sides
            },
            reward_matches=count,
        )

    def _published(self, e: ev.VersionPublished, t: float) -> None:
        self._uncommitted = 0
        self._ingested_at_least(max(self._now.episodes.ingested + e.matches, e.total_matches))
        self._grow(versions=1)
        self._set(version=max(self._now.version, e.version), last_version_time=t, fruitless=0)

    def _bot_started(self, e: ev.BotStarted, t: float) -> None:
        self._set(playing=e.version, mode=e.mode)
        self._on_since = None if e.learner in _NO_LEARNER else t
        resting = self._now.learner in {"not started", "stopped", "dead"}
        # A bot's own process cannot be the one heard of before: that one is gone.
        if e.learner == "process" or (resting and e.learner not in _NO_LEARNER):
            self._set(learner="starting", learner_pid=None)

    def _learner_started(self, e: ev.LearnerStarted) -> None:
        self._uncommitted = 0  # what a dead learner did not commit, this one trains again
        self._ingested_at_least(e.total_matches)
        if e.version > self._now.version:  # its learner was killed between commit and journal
            self._grow(versions=1)
            self._set(version=e.version)
        self._set(learner="idle", learner_pid=e.pid, waiting=False)

    def _ingested_at_least(self, count: int) -> None:
        kept = self._now.episodes
        force_setattr(kept, "ingested", max(kept.ingested, count))

    def _count_episodes(self, **by: int) -> None:
        for name, more in by.items():
            force_setattr(self._now.episodes, name, getattr(self._now.episodes, name) + more)

    def _trouble(self, t: float, where: str, message: str) -> None:
        self._problems.append(Trouble(t, where, message[:_MAX_MESSAGE]))
        self._grow(errors=1)

    def _grow(self, **by: float) -> None:
        for name, more in by.items():
            force_setattr(self._now, name, getattr(self._now, name) + more)

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            force_setattr(self._now, name, value)

    def _decision_ms(self) -> Percentiles | None:
        p50, p99 = self._p50_us.median(), self._p99_us.median()
        return None if p50 is None or p99 is None else Percentiles(p50 / 1e3, p99 / 1e3)


def _copied(now: Status) -> Status:
    """Another struct, with others for all that a fold changes in place."""
    return msgspec.structs.replace(
        now,
        episodes=msgspec.structs.replace(now.episodes),
        opponents=dict(now.opponents),
        not_finite=dict(now.not_finite),
    )


def _counted(before: ServerTotals, e: ev.ServerCounted, t: float) -> ServerTotals:
    """With what a server answered since."""
    pairs = zip_longest(before.answers, e.answers, fillvalue=0)
    return ServerTotals(
        decisions=before.decisions + e.decisions,
        sent=before.sent + e.sent,
        waited=before.waited + e.waited,
        explored=before.explored + e.explored,
        degraded=before.degraded + e.degraded,
        gate_misses=before.gate_misses + e.gate_misses,
        answers=tuple(one + more for one, more in pairs),
        safe_actions=_summed(before.safe_actions, e.safe_actions),
        errors=_summed(before.errors, e.errors),
        decided_by=_summed(before.decided_by, e.decided_by),
        gate=e.gate,
        clients=e.clients,
        connections=e.connections,
        territories=e.territories,
        at=t,
    )


def _summed(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return dict(Counter(counts) + Counter(more))


def _obituary(e: ev.LearnerDied) -> str:
    if e.restart_in_s is None:
        return f"died with exit code {e.code} and is not started again"
    return f"died with exit code {e.code}, starts again in {e.restart_in_s:g} s"


def _state(status: Status, pending: int, now: float, *, paused: bool) -> LearnerState:
    """What a learner that lives does: it says when it waits, never when it has nothing to do."""
    if status.learner not in _ALIVE:
        return status.learner
    if paused:
        return "paused"
    if pending:
        return "training"
    silent_s = now - (status.last_batch_time or 0.0)
    if status.learner == "training" and silent_s > _TRAINING_FOR_S:
        return "idle"
    return status.learner
