"""The learner's side of a relay: matches come in, versions and pointers go out.

The learner itself knows nothing of it: matches lie in `buffer/` of its run folder, as if a bot
there had put them, under the names that they had on their machines. The order that loses nothing
and learns from nothing twice:

1. A bundle is fetched, and its matches are written to `buffer/`. It stays in the store.
2. The learner learns, commits a version that names the matches, and archives them.
3. That version is uploaded, under a name that no other process uses.
4. A commit is created that names the version, the pointers and the bundles that are done with.
5. Only now are these bundles deleted.

A kill at any point leaves the store as one of these steps left it, and the next start goes on from
there: bundles that the newest commit calls done are deleted, all others are fetched again, and
matches that are or were in the run folder are passed over.

Where evidence decides who plays, `judge.Judge` takes in what the machines' logs say, and the same
commits carry the log that is judged by.

The number of a commit can be created once. A process whose number is taken has been fenced off by
another learner, and ends: it has deleted nothing that its own commits do not cover.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from understudy.core.errors import Fenced, FileFormatError, RunFolderError
from understudy.experience.ledger.recovery import is_served
from understudy.registry.pointers import NAMES
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import MANIFEST, seal_of
from understudy.relay import bucket
from understudy.relay.bucket import BundleKey, Commit, DoneBundles, StoredPointer, StoredVersion
from understudy.relay.judge import Judge, Judged
from understudy.relay.local import LocalState
from understudy.relay.side import StoreSide
from understudy.relay.stores import ObjectStore, StoredObject
from understudy.telemetry.report_parts import waits

_LISTED = 1000
"""Bundles that are looked at together: the oldest."""
_FETCHES = 8
"""Bundles that are fetched at one time."""
_COMMITS = 20
"""The newest commits stay in the store, with the versions that they name: a machine that fetches a
version has so long for it."""
_ABANDONED_S = 86_400.0
"""Files of versions that no commit names are deleted after a day: another process may be about to
name them."""
_DAMAGED_S = 60.0
"""A bundle that cannot be read may be one that a shared folder shows before it is whole."""


class LearnerSide(StoreSide):
    """Fetches matches, judges them where evidence decides, and publishes versions."""

    def __init__(
        self,
        folder: RunFolder,
        store: ObjectStore,
        local: LocalState,
        *,
        problem: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        super().__init__(folder, store, local, problem=problem, note=note)
        self._token = secrets.token_hex(6)
        self._received: dict[BundleKey, frozenset[str]] = {}
        """Bundles whose matches were all put into the spool, and their names."""
        self._kept: list[Commit] = []
        """The newest commits in the store."""
        self._refusals: dict[BundleKey, float] = {}
        """Bundles that could not be read, and when that was first so, by the monotonic clock."""
        self._strange: set[str] = set()
        """Objects among the bundles that are none, and were told."""
        self._full = False
        self._judge: Judge | None = None
        if folder.by_evidence:
            self._judge = Judge(folder, store, token=self._token, problem=problem, note=note)

    @property
    def _last(self) -> Commit | None:
        return self._kept[-1] if self._kept else None

    def start(self) -> None:
        """Go on from the newest commit, of any learner, if this run folder descends from it.

        Raises:
            RunFolderError: It does not: the store has the versions of another learner.
        """
        numbers = bucket.commit_numbers(self._store)[-_COMMITS:]
        self._kept = [bucket.read_commit(self._store, number) for number in numbers]
        last = self._last
        if last is None:
            if self._judge is not None:
                self._judge.start(None)
            return
        candidate = last.pointers.get("candidate")
        number = candidate.version if candidate is not None else 0
        stored = last.version(number)
        if stored is not None:
            here = self._folder.versions.manifest_seal(number)
            if here is None and not self._folder.versions.numbers():
                self._take_over(last)
            elif here != stored.files.get(MANIFEST):
                raise RunFolderError(
                    f"{self._store.name}: another learner (on {last.host or 'another machine'}) "
                    f"has made version {number} there, and {self._folder.root} has learned "
                    "something else. One store is for one learner: let that one work, take another "
                    "address, or go on from its version in a new run folder"
                )
        if self._judge is not None:
            self._judge.start(last)
        self._delete_done(last)

    def cycle(self) -> bool:
        """Fetch matches, publish versions; True: more matches wait in the store."""
        more = self._receive()
        if self._judge is not None:
            self.counts.judged += self._judge.receive()
            self._judge.look()
        self._publish()
        return more

    def offline(self) -> None:
        """Nothing is bounded here that the learner does not bound."""
        self.counts.waiting = len(self._spool.pending())

    # --- matches ---------------------------------------------------------------------------------

    def _receive(self) -> bool:
        waiting = self._spool.pending()
        self.counts.waiting = len(waiting)
        if self._is_full(waiting):
            return False
        listed = self._store.list(bucket.EPISODES, most=_LISTED)
        keys = [key for one in listed if (key := self._readable(one)) is not None]
        last = self._last
        stale = [key for key in keys if last is not None and last.is_done(key)]
        self._store.delete(map(str, stale))  # sent again by a machine that missed our answer
        fresh = [key for key in keys if key not in self._received and key not in stale]
        room = self._config.waiting_matches - len(waiting)
        with ThreadPoolExecutor(_FETCHES) as pool:
            for begin in range(0, len(fresh), _FETCHES):
                some = fresh[begin : begin + _FETCHES]
                for key, data in zip(some, pool.map(self._get, some), strict=True):
                    if data is not None:
                        room -= self._take_in(key, data)
                if room <= 0:
                    break
        self.counts.waiting = len(self._spool.pending())
        return len(listed) == _LISTED and bool(fresh)

    def _readable(self, listed: StoredObject) -> BundleKey | None:
        """The name of a bundle; what is none, or larger than one can be, stays where it is."""
        key = BundleKey.parsed(listed.key)
        if key is not None and listed.bytes <= bucket.MAX_BUNDLE_BYTES:
            return key
        if listed.key not in self._strange:
            self._strange.add(listed.key)
            self._problem(
                f"{self._store.name}: {listed.key} ({listed.bytes:,} bytes) is no bundle of "
                "matches, and is left alone"
            )
        return None

    def _is_full(self, waiting: list[str]) -> bool:
        sizes = (self._spool.buffer / name for name in waiting)
        full = len(waiting) >= self._config.waiting_matches or (
            sum(path.stat().st_size for path in sizes if path.exists())
            >= self._config.waiting_bytes
        )
        if full and not self._full:
            self._problem(
                f"{waits(len(waiting), served=is_served(self._folder.root))} for the learner "
                "(relay.waiting_matches, relay.waiting_bytes): the others wait in the store; does "
                "a learner run?"
            )
        self._full = full
        return full

    def _get(self, key: BundleKey) -> bytes | None:
        try:
            return self._store.get(str(key))
        except FileNotFoundError:  # deleted since the listing, by a learner before us
            return None

    def _take_in(self, key: BundleKey, data: bytes) -> int:
        """Put the matches of a bundle into the spool; returns how many were new."""
        try:
            episodes = bucket.decode_bundle(data, what=str(key))
            new = sum(self._spool.put_copy(name, one) for name, one in episodes.items())
        except FileFormatError as error:
            self._refuse(key, data, str(error))
            return 0
        if self._judge is not None and new:
            self._judge.remember(episodes)
        self._received[key] = frozenset(episodes)
        self.counts.received += new
        self.counts.bundles += 1
        self.counts.bytes += len(data)
        return new

    def _refuse(self, key: BundleKey, data: bytes, reason: str) -> None:
        """Set a bundle aside that stays unreadable."""
        now = time.monotonic()
        if now - self._refusals.setdefault(key, now) < _DAMAGED_S:
            return
        self._store.create(str(key).replace(bucket.EPISODES, bucket.REFUSED, 1), data)
        self._received[key] = frozenset()
        self.counts.refused += 1
        self._problem(f"{reason}; it is kept as {bucket.REFUSED}")

    # --- versions --------------------------------------------------------------------------------

    def _publish(self) -> None:
        """Commit what the run folder says, if that is new, and delete what that covers."""
        self._drop_done()
        # The matches first, the pointers after: what has left the buffer by now is in a version
        # that the candidate pointer names, or in an earlier one.
        waiting = set(self._spool.pending())
        done = [key for key, names in self._received.items() if not names & waiting]
        pointers: dict[str, StoredPointer] = {}
        for name in NAMES:
            record = self._folder.pointers.read(name)
            if record is not None:
                pointers[name] = StoredPointer(record.version, record.pinned)
        last = self._last
        judged = Judged((), {}, frozenset()) if self._judge is None else self._judge.publish(last)
        before = ({}, (), {}) if last is None else (last.pointers, last.log, last.taken)
        if not done and (pointers, judged.log, judged.taken) == before:
            return
        named = {one.version for one in pointers.values() if one.version}
        numbers = sorted(named | judged.versions)
        try:
            versions = tuple(self._uploaded(number) for number in numbers)
        except FileNotFoundError:  # pruned by the learner: the pointers have moved on
            return
        self._commit(versions, pointers, done, judged)
        self._drop_done()
        if len(self._kept) > 2 * _COMMITS:
            self._tidy()

    def _drop_done(self) -> None:
        """Delete the bundles that the last commit covers."""
        last = self._last
        done = [key for key in self._received if last is not None and last.is_done(key)]
        self._store.delete(map(str, done))
        if self._judge is not None and last is not None:
            self._judge.drop_done(last)
        for key in done:
            del self._received[key]
            self._refusals.pop(key, None)

    def _uploaded(self, number: int) -> StoredVersion:
        """A version that the store has, uploaded now unless it has it already."""
        last = self._last
        known = None if last is None else last.version(number)
        if known is not None:
            return known
        contents = self._folder.versions.contents(number)
        stored = StoredVersion(
            number, self._token, {name: seal_of(data) for name, data in contents.items()}
        )
        for name, data in contents.items():
            # Taken means by this process: it was cut off on the way, and versions never change.
            self._store.create(stored.key(name), data)
        self.counts.versions += 1
        return stored

    def _commit(
        self,
        versions: tuple[StoredVersion, ...],
        pointers: dict[str, StoredPointer],
        done: Iterable[BundleKey],
        judged: Judged,
    ) -> None:
        last = self._last
        merged = {} if last is None else dict(last.done)
        for key in done:
            merged[key.machine] = merged.get(key.machine, DoneBundles()).plus(key.number)
        commit = Commit(
            sequence=1 if last is None else last.sequence + 1,
            at=self._folder.clock.time(),
            machine=self._local.machine,
            host=self._local.host,
            token=self._token,
            versions=versions,
            pointers=pointers,
            done=merged,
            log=judged.log,
            taken=judged.taken,
        )
        if not self._store.create(bucket.commit_key(commit.sequence), bucket.encode(commit)):
            commit = self._ours(commit.sequence)
        # A process that stalled may find a number free again that was used and deleted since.
        newest = bucket.commit_numbers(self._store)
        if newest and newest[-1] > commit.sequence:
            raise self._fenced(newest[-1])
        self._kept.append(commit)
        champion = commit.pointers.get("champion")
        self.counts.version = 0 if champion is None else champion.version

    def _ours(self, sequence: int) -> Commit:
        """The commit of this number, if this process made it and the answer was lost. What it says
        may be older than what was to be said: that follows with the next look."""
        try:
            there = bucket.read_commit(self._store, sequence)
        except (FileNotFoundError, FileFormatError):
            raise self._fenced(sequence) from None
        if there.token != self._token:
            raise self._fenced(sequence, there.host)
        return there

    def _fenced(self, sequence: int, host: str = "") -> Fenced:
        return Fenced(
            f"{self._store.name}: another learner{f' (on {host})' if host else ''} has taken over: "
            f"commit {sequence} is its own. This one ends; it has deleted nothing there that its "
            "own versions do not cover, and what it has fetched the other one learns from"
        )

    def _take_over(self, commit: Commit) -> None:
        """A new run folder goes on from the versions in the store."""
        for stored in commit.versions:
            contents = bucket.read_version(self._store, stored)
            self._folder.versions.copied(stored.number, contents)
        for name in NAMES:
            pointer = commit.pointers.get(name)
            if pointer is not None and pointer.pinned:
                self._folder.pointers.pin(name, pointer.version, by="rollback")
            elif pointer is not None:
                self._folder.pointers.move(name, pointer.version, by="latest")
        newest = max((one.number for one in commit.versions), default=0)
        self._note(f"this run folder was empty: it goes on from version {newest} of the store")

    def _delete_done(self, commit: Commit) -> None:
        """A process may have been killed between its commit and what follows from it."""
        keys = (
            BundleKey.parsed(one.key) for one in self._store.list(bucket.EPISODES, most=_LISTED)
        )
        self._store.delete(str(key) for key in keys if key is not None and commit.is_done(key))

    def _tidy(self) -> None:
        """Delete old commits, and versions and parts of the log that no commit names any more."""
        gone, self._kept = self._kept[:-_COMMITS], self._kept[-_COMMITS:]
        self._store.delete(bucket.commit_key(one.sequence) for one in gone)
        named = _named(self._kept)
        dropped = _named(gone) - named
        old = self._folder.clock.time() - _ABANDONED_S
        doomed = []
        for one in (*self._store.list(bucket.VERSIONS), *self._store.list(bucket.LOG)):
            what = one.key[: one.key.rfind("/") + 1]
            if what == bucket.LOG:
                what = one.key
            if what in dropped or (what not in named and one.modified_at < old):
                doomed.append(one.key)
        self._store.delete(doomed)


def _named(commits: Iterable[Commit]) -> set[str]:
    """The folders of versions and the parts of the log that these commits name."""
    return {
        name
        for commit in commits
        for name in (
            *(version.key("") for version in commit.versions),
            *(part.key for part in commit.log),
        )
    }
