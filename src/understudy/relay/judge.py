"""Evidence on the learner's side of a relay: records of all machines come into one log, and that
log is judged and sent to all.

Each match comes with its result, so it is resolved when it is appended: a machine that is silent
holds up no other, and what comes late counts in the order of its own machine, for the test it was
assigned to if that is still open, else for none. Every record keeps its origin, the machine and its
number there. So after a kill, in the middle of a match too, the log itself says what it has.

1. Records are appended to the log of this run folder, which judges them (`gates.promotion.roles`).
2. The log is uploaded in parts, under names that no other process uses.
3. A commit is created that names the parts, the versions that may play, and what was taken.
4. Only now are the objects that it covers deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience import episode as episodes
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import RULES, Assigned, Declared, Resolved
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.policy.policy import Policy
from understudy.promotion.candidates import CandidateSearch
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion, role_changed
from understudy.promotion.served import HARM_SPREAD, LEAST_LEAD, judges_segments
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import seal_of
from understudy.relay import bucket
from understudy.relay.bucket import Commit, ResultsKey, SentRecord, StoredRecords
from understudy.relay.evidence import LogCopy
from understudy.relay.stores import ObjectStore
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import in_units
from understudy.telemetry.verdicts import verdict_line

_PART = 1000
"""Records of the largest part. Smaller ones are put together, so a commit names few."""
_REMEMBERED = 4
"""Matches of a bundle by which candidates are looked at: the newest."""
_DAMAGED_S = 60.0
"""An object that cannot be read may be one that a shared folder shows before it is whole."""


class Judged(NamedTuple):
    """What a commit says of promotion."""

    log: tuple[StoredRecords, ...]
    taken: dict[str, int]
    versions: frozenset[int]
    """Those that may play by that log, beside those that the pointers name."""


class Judge:
    """Takes records in, nominates, and uploads the log; `start` first."""

    def __init__(
        self,
        folder: RunFolder,
        store: ObjectStore,
        *,
        token: str,
        problem: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._store = store
        self._token = token
        self._problem = problem
        self._journal = Journal(folder.journal, "relay", folder.clock)
        self._note = note
        self._served = served = judges_segments(folder)
        # Segments are judged here as beside their server: each of these belongs to the nomination
        # or to the judging machine, and none of them to the machine that plays.
        self._promotion = Promotion(
            folder,
            tell=self._tell,
            problem=problem,
            lost="void" if served else "vanished",
            harm_spread=HARM_SPREAD if served else 0.0,
        )
        self._candidates = CandidateSearch(
            folder,
            self._promotion,
            refused=self._refused_version,
            least_lead=LEAST_LEAD if served else 0.0,
        )
        self._newest: Policy | None = None
        self._log = PromotionLog(folder.promotion)
        self._taken: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        """Matches whose assignment is in the log and whose result is not, by origin: a process was
        killed in between."""
        self._matches: set[str] = set()
        """All that are in the log: a copied run folder sends those that it has once more."""
        self._damaged: dict[ResultsKey, float] = {}
        """Objects that could not be read, and when that was first so, by the monotonic clock."""
        self._listed: list[ResultsKey] = []
        """What the store had when it was looked at last."""

    def start(self, commit: Commit | None) -> None:
        """Go on from what the log says; what it lacks of the store's is copied first. May be
        repeated.

        Raises:
            RunFolderError: The store has the log of another learner.
        """
        if commit is not None:
            for machine, number in commit.taken.items():
                self._taken[machine] = max(number, self._taken.get(machine, 0))
            LogCopy(self._folder, self._store, may_be_ahead=True).follow(commit)
        for number, record in self._log.new():
            if isinstance(record, Assigned):
                self._matches.add(record.match)
            if not record.origin:
                continue
            machine, _, place = record.origin.rpartition("/")
            if isinstance(record, Assigned):
                self._begun[record.origin] = number
            else:
                self._begun.pop(record.origin, None)
                self._taken[machine] = max(int(place), self._taken.get(machine, 0))

    def remember(self, bundle: dict[str, bytes]) -> None:
        """Keep some of the matches that arrived: candidates are compared on them."""
        for name in sorted(bundle)[-_REMEMBERED:]:
            try:
                one = episodes.decode(bundle[name], self._folder.spec, what=name)
            except FileFormatError:  # the learner sets it aside, and says so
                continue
            self._candidates.remember(one)

    # --- records ---------------------------------------------------------------------------------

    def receive(self) -> int:
        """Append what machines have sent; returns how many matches are new."""
        keys = (ResultsKey.parsed(one.key) for one in self._store.list(bucket.RESULTS))
        self._listed = sorted(key for key in keys if key is not None)
        matches, held = 0, set[str]()
        for key in self._listed:
            if key.last <= self._taken.get(key.machine, 0) or key.machine in held:
                continue
            records = self._read(key)
            if records is None:
                held.add(key.machine)
                continue
            for one in records:
                matches += self._take(key.machine, one)
            self._taken[key.machine] = max(key.last, self._taken.get(key.machine, 0))
        return matches

    def _read(self, key: ResultsKey) -> tuple[SentRecord, ...] | None:
        """The records of an object; None: look again. One that stays unreadable is set aside: its
        matches count for nothing."""
        try:
            data = self._store.get(str(key))
        except FileNotFoundError:  # deleted since the listing, by a learner before us
            return None
        try:
            return bucket.decode_sent(data, what=str(key)).records
        except FileFormatError as error:
            now = time.monotonic()
            if now - self._damaged.setdefault(key, now) < _DAMAGED_S:
                return None
            self._store.create(str(key).replace(bucket.RESULTS, bucket.REFUSED, 1), data)
            self._problem(f"{error}; it is kept as {bucket.REFUSED}, and counts for nothing")
            return ()

    def _take(self, machine: str, sent: SentRecord) -> bool:
        """Append a record, once; whether it was a new match."""
        if sent.number <= self._taken.get(machine, 0):
            return False
        origin = f"{machine}/{sent.number}"
        new = False
        if isinstance(sent.record, Declared):
            self._promotion.bring(msgspec.structs.replace(sent.record, origin=origin))
        elif sent.result is not None:
            new = self._take_match(origin, sent.record, sent.result)
        self._taken[machine] = sent.number
        return new

    def _take_match(self, origin: str, assigned: Assigned, result: Resolved) -> bool:
        order = self._begun.get(origin)
        if order is None:
            if assigned.match in self._matches:
                return False
            order = self._promotion.bring(msgspec.structs.replace(assigned, origin=origin))
            self._begun[origin] = order
            self._matches.add(assigned.match)
        if assigned.seen < self._promotion.state.changed:
            words = "the rules or the scale of scores had changed when it was assigned"
            result = msgspec.structs.replace(result, result=0.0, ending="void", words=words)
        self._promotion.bring(msgspec.structs.replace(result, order=order, origin=origin))
        del self._begun[origin]
        return True

    # --- candidates ------------------------------------------------------------------------------

    def look(self) -> None:
        """Follow the log, and nominate the newest version if it is time to try it."""
        # Of matches that were assigned in this folder, before it was the learner's or by a bot
        # that plays in it: one that is lost would hold up those of all machines.
        self._promotion.note_lost()
        state = self._promotion.follow()
        candidate = self._folder.pointers.read("candidate")
        # Until a match was assigned no bot plays by evidence: it may be a run of mode `shadow`.
        if candidate is None or not candidate.version or not self._matches:
            return
        if roles.nomination_refused(state, candidate.version):
            return
        if self._newest is None or self._newest.version != candidate.version:
            try:
                self._newest = self._folder.versions.policy(candidate.version)
            except (FileFormatError, RunFolderError, OSError):  # pruned: there is a newer one
                return
        self._candidates.look(self._newest)

    def _tell(self, verdict: PromotionVerdict) -> None:
        self._journal.write(role_changed(verdict))
        if verdict.kind != "refused":
            self._note(in_units(verdict_line(verdict, self._folder.root), served=self._served))

    def _refused_version(self, version: int, words: str) -> None:
        self._note(f"version {version} is not tried: {words}")
        self._journal.write(events.RoleChanged(version=version, kind="refused", words=words))

    # --- the log ---------------------------------------------------------------------------------

    def publish(self, last: Commit | None) -> Judged:
        """Upload what is new of the log; what the next commit says of it."""
        state = self._promotion.follow()
        tested = set() if state.test is None else {state.test.version}
        return Judged(
            self._uploaded([] if last is None else list(last.log), state.sequence),
            dict(self._taken),
            frozenset({state.incumbent, *tested} - {RULES}),
        )

    def _uploaded(self, parts: list[StoredRecords], end: int) -> tuple[StoredRecords, ...]:
        first = parts[-1].last + 1 if parts else 1
        if end < first:
            return tuple(parts)
        # A part is put together with what follows once that is as long: each record is uploaded
        # ten times at most, and there are ten parts below the largest size.
        while parts and end - parts[-1].first < min(2 * (end + 1 - first), _PART):
            first = parts.pop().first
        bodies = PromotionLog(self._folder.promotion, after=first - 1).new_bodies()
        bodies = bodies[: end + 1 - first]
        for begin in range(0, len(bodies), _PART):
            some = bodies[begin : begin + _PART]
            data = bucket.encode_log_part(some)
            at = first + begin
            stored = StoredRecords(at, at + len(some) - 1, self._token, seal_of(data))
            # Taken means by this process: it was cut off on the way, and records never change.
            self._store.create(stored.key, data)
            parts.append(stored)
        return tuple(parts)

    def drop_done(self, commit: Commit) -> None:
        """Delete the objects that a commit covers."""
        done = [key for key in self._listed if key.last <= commit.taken.get(key.machine, 0)]
        self._store.delete(map(str, done))
        self._listed = [key for key in self._listed if key not in done]
