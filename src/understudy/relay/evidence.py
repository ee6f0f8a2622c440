"""Evidence on the player's side of a relay: this machine's records go out, the log comes in.

Sent are the longest prefix of this machine's own log in which every match is over, each match as
one with its result. The name of an object has the first and the last number in it, and a log never
changes, so that nothing has to be noted here: after a kill the store says how far this machine was.
What is sent twice the learner's side takes once.

The log by which versions are judged is copied record by record, under the numbers that it has on
the learner's machine. It comes after the versions that it names: a bot that reads of a canary can
load it.
"""

from __future__ import annotations

import itertools

from understudy.core.errors import FileFormatError, RunFolderError, StoreUnavailable
from understudy.gates.promotion.records import Assigned, Declared, Resolved
from understudy.promotion.log import OWN, PromotionLog
from understudy.registry.run_folder import RunFolder
from understudy.relay import bucket
from understudy.relay.bucket import Commit, ResultsKey, SentRecord, SentRecords
from understudy.relay.stores import ObjectStore

_MOST = 500
"""Records of one object."""


class ResultsSender:
    """Sends what this machine's log has new, in its order."""

    def __init__(self, folder: RunFolder, store: ObjectStore, machine: str) -> None:
        self._store = store
        self._machine = machine
        self._log = PromotionLog(folder.promotion / OWN)
        self._waiting: dict[int, SentRecord] = {}
        """By number, in order: what was not sent yet. A match without a result holds up the rest.
        """
        self._sent: int | None = None
        """The last number that the store has or had; None: not known yet."""

    def send(self) -> int:
        """Send what is over; returns how many matches."""
        if self._sent is None:
            self._sent = self._known_to_the_store()
        self._read()
        matches = 0
        while ready := self._ready():
            key = ResultsKey(self._machine, ready[0].number, ready[-1].number)
            # Taken means by us: this name stands for these records.
            self._store.create(str(key), bucket.encode(SentRecords(records=tuple(ready))))
            self._sent = key.last
            for one in ready:
                del self._waiting[one.number]
            matches += sum(one.result is not None for one in ready)
        return matches

    def _known_to_the_store(self) -> int:
        # The commit after the list: what is deleted in between is in the commit.
        keys = (ResultsKey.parsed(one.key) for one in self._store.list(bucket.RESULTS))
        there = [key.last for key in keys if key is not None and key.machine == self._machine]
        commit = bucket.newest_commit(self._store)
        taken = 0 if commit is None else commit.taken.get(self._machine, 0)
        return max(taken, *there, 0)

    def _read(self) -> None:
        for number, record in self._log.new():
            match record:
                case Declared() | Assigned():
                    if number > (self._sent or 0):
                        self._waiting[number] = SentRecord(number, record)
                case Resolved():
                    one = self._waiting.get(record.order)
                    if one is not None and one.result is None:  # else a later one: not counted
                        self._waiting[record.order] = SentRecord(one.number, one.record, record)

    def _ready(self) -> list[SentRecord]:
        over = itertools.takewhile(
            lambda one: one.result is not None or isinstance(one.record, Declared),
            self._waiting.values(),
        )
        return list(itertools.islice(over, _MOST))


class LogCopy:
    """The log of the learner's machine, copied into a run folder that has a part of it, or none.
    `may_be_ahead`: the log here may have more, as that of the learner's own machine."""

    def __init__(
        self, folder: RunFolder, store: ObjectStore, *, may_be_ahead: bool = False
    ) -> None:
        self._may_be_ahead = may_be_ahead
        self._folder = folder
        self._store = store
        self._log: PromotionLog | None = None

    def follow(self, commit: Commit) -> None:
        """Copy what is new.

        Raises:
            RunFolderError: The log here is another one.
        """
        if self._log is None:
            self._log = self._checked(commit)
        for stored in commit.log:
            if stored.last > self._log.read:
                for body in self._part(stored)[self._log.read + 1 - stored.first :]:
                    self._log.copy(body)

    def _checked(self, commit: Commit) -> PromotionLog:
        """The log here, read to its end. Where it and the log of the commit have both records, the
        last such part must be the same in both."""
        log = PromotionLog(self._folder.promotion)
        here = log.new_bodies()
        same = self._may_be_ahead or log.read <= commit.log_end
        common = [stored for stored in commit.log if stored.first <= log.read]
        if same and common:
            ours = here[common[-1].first - 1 : common[-1].last]
            same = self._part(common[-1])[: len(ours)] == ours
        if not same:
            raise RunFolderError(
                f"{self._folder.root}: its promotion log is not the one in {self._store.name}: "
                "matches were judged here. Play on in a new run folder, or start the learner's "
                "side with a copy of this one"
            )
        return log

    def _part(self, stored: bucket.StoredRecords) -> list[bytes]:
        try:
            return bucket.read_log_part(self._store, stored)
        except FileNotFoundError as error:
            raise StoreUnavailable(
                f"{self._store.name}: {stored.key} is gone from the store; looking again"
            ) from error
        except FileFormatError as error:
            raise StoreUnavailable(f"{error}; looking again") from error
