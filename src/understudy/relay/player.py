"""The player's side of a relay: matches of bots or a server go out, versions come in.

A match leaves `buffer/` for `archive/` only after the store holds it. Before a bundle is sent its
name and its matches are noted (`local.OutgoingBundle`), so after a kill the same bundle is
finished: if the store has it already, or the learner is done with it, nothing is sent again.

A version is fetched whole, checked against the commit and against its own manifest, and committed
with the rename that a learner commits with; only then do the pointers move. A champion that a
person pinned on this machine stays.

Where matches are judged on the learner's machine (`promotion.judge`), `evidence` sends what this
machine's log says and copies the log that is judged by.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.core.arrays import read_bytes
from understudy.core.errors import FileFormatError, RunFolderError, StoreUnavailable
from understudy.experience.episode import MAX_BYTES
from understudy.experience.ledger.recovery import is_served
from understudy.experience.spool import Spool, saved_at
from understudy.registry.pointers import NAMES, RELAY, Name
from understudy.registry.retention import prune
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import MANIFEST
from understudy.relay import bucket
from understudy.relay.bucket import BundleKey, Commit, StoredPointer
from understudy.relay.evidence import LogCopy, ResultsSender
from understudy.relay.local import LocalState, OutgoingBundle
from understudy.relay.side import StoreSide
from understudy.relay.stores import ObjectStore
from understudy.telemetry.report_parts import learned_from

_BUNDLES = 20
"""Sent at most before the versions are looked at again."""
_PRUNE_EVERY_S = 60.0
_TIDY_EVERY = 10
"""Versions that come in from one pruning to the next."""


class PlayerSide(StoreSide):
    """Sends matches, and follows what the learner's side says."""

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
        self._commit: Commit | None = None
        self._followed = 0
        """The last commit whose versions and pointers are all here."""
        self._fetched = 0
        """Versions since the last pruning."""
        self._pruned_at = -float("inf")
        self._told: set[str] = set()
        self._judged_there = folder.config.promotion.judge == "learner"
        self._results = ResultsSender(folder, store, local.machine)
        self._log = LogCopy(folder, store)

    def start(self) -> None:
        """There is nothing to go on from: the store says everything at the first look."""

    def cycle(self) -> bool:
        """Send what waits, then follow the learner's side; True: there is more to send."""
        self._commit = commit = bucket.newest_commit(self._store, self._commit)
        more = self._send()
        if self._judged_there:
            self.counts.judged += self._results.send()
        if commit is not None and commit.sequence > self._followed and self._follow(commit):
            self._followed = commit.sequence
        return more

    def offline(self) -> None:
        """Keep the bounds of what waits, also while the store cannot be reached."""
        self._spool.adopt()
        names = self._spool.pending()
        self.counts.waiting = len(names)
        sizes = [_size(self._spool, name) for name in names]
        left, total = len(names), sum(sizes)
        dropped = 0
        for name, size in zip(names, sizes, strict=True):
            if left <= self._config.waiting_matches and total <= self._config.waiting_bytes:
                break
            if name in self._local.outgoing.names:  # the store may have it
                continue
            self._spool.archive(name)
            left, total, dropped = left - 1, total - size, dropped + 1
        if dropped:
            self.counts.not_sent += dropped
            self._problem(
                f"the oldest {learned_from(dropped, served=is_served(self._folder.root))} went to "
                "the archive without being sent: more wait than "
                f"relay.waiting_matches = {self._config.waiting_matches:,} or "
                f"relay.waiting_bytes = {self._config.waiting_bytes:,}"
            )
        self._prune()

    def _prune(self) -> None:
        """Bound `archive/`, as a learner does beside a bot; now and then, since it looks at every
        file there."""
        now = self._folder.clock.monotonic()
        if now - self._pruned_at >= _PRUNE_EVERY_S:
            self._pruned_at = now
            self._spool.prune(self._folder.config.spool, keep=())

    # --- matches ---------------------------------------------------------------------------------

    def _send(self) -> bool:
        if self._local.outgoing.names:
            self._finish(self._local.outgoing, resumed=True)
        waiting = self._waiting()
        for _ in range(_BUNDLES):
            if not waiting:
                break
            names = self._next_bundle(waiting)
            if names:
                self._finish(self._noted(names), resumed=False)
            waiting = waiting[max(len(names), 1) :]
        self.counts.waiting = len(waiting)
        return bool(waiting)

    def _waiting(self) -> list[str]:
        self._spool.adopt()
        return self._spool.pending()

    def _next_bundle(self, waiting: list[str]) -> list[str]:
        """The oldest that fit into one bundle; a file that no episode can be is set aside."""
        names: list[str] = []
        total = 0
        for name in waiting[: self._config.bundle_matches]:
            size = _size(self._spool, name)
            if size > MAX_BYTES:
                if not names:
                    self._spool.quarantine(name, f"larger than {MAX_BYTES} bytes")
                break
            if names and total + size > self._config.bundle_bytes:
                break
            names.append(name)
            total += size
        return names

    def _noted(self, names: list[str]) -> OutgoingBundle:
        number = self._local.outgoing.number + 1
        since = saved_at(names[0]) or self._folder.clock.time()
        key = BundleKey(int(since * 1e9), self._local.machine, number)
        self._local.note(OutgoingBundle(number=number, key=str(key), names=tuple(names)))
        return self._local.outgoing

    def _finish(self, outgoing: OutgoingBundle, *, resumed: bool) -> None:
        """Send a bundle and archive its matches. `resumed`: it may have been sent before."""
        key = BundleKey.parsed(outgoing.key)
        if key is None:
            raise FileFormatError(f"relay/outgoing.json: no name of a bundle: {outgoing.key!r}")
        if not (resumed and self._was_sent(key, outgoing)):
            self._put(key, outgoing)
        for name in outgoing.names:
            self._spool.archive(name)
        ours = key.machine == self._local.machine  # else the folder is a copy, and counts anew
        self._local.note(OutgoingBundle(number=key.number if ours else 0))

    def _was_sent(self, key: BundleKey, outgoing: OutgoingBundle) -> bool:
        if self._commit is not None and self._commit.is_done(key):
            return True
        return any((self._spool.archived / name).exists() for name in outgoing.names)

    def _put(self, key: BundleKey, outgoing: OutgoingBundle) -> None:
        episodes: dict[str, bytes] = {}
        for name in outgoing.names:
            try:
                episodes[name] = read_bytes(self._spool.buffer / name, limit=MAX_BYTES)
            except FileNotFoundError:  # removed by hand
                continue
        data = bucket.encode_bundle(episodes)
        if not self._store.create(str(key), data) and not self._has(key, episodes):
            raise RunFolderError(
                f"{self._store.name}: {key} holds other matches than this run folder sends under "
                f"that name; if it is a copy, remove {self._folder.root / 'relay'}"
            )
        self.counts.sent += len(episodes)
        self.counts.bundles += 1
        self.counts.bytes += len(data)

    def _has(self, key: BundleKey, episodes: dict[str, bytes]) -> bool:
        """Whether the store holds these matches in this bundle: an answer may have been lost."""
        try:
            stored = bucket.decode_bundle(self._store.get(str(key)), what=str(key))
        except FileNotFoundError:  # and the learner is done with it
            return True
        return all(stored.get(name) == data for name, data in episodes.items())

    # --- versions --------------------------------------------------------------------------------

    def _follow(self, commit: Commit) -> bool:
        """Fetch the versions that the pointers name, then move the pointers; False: look again."""
        complete = True
        if self._judged_there:
            # The log comes after the versions that it names: a canary that cannot be loaded loses.
            if not all(self._fetch(commit, one.number) for one in commit.versions):
                return False
            self._log.follow(commit)
        # In mode `shadow` the rules play, and the newest version is measured beside them.
        here = self._folder.by_evidence and not self._judged_there
        for name in NAMES[:1] if here else NAMES:
            pointer = commit.pointers.get(name)
            if pointer is None:
                continue
            if pointer.version and not self._fetch(commit, pointer.version):
                complete = False
                continue
            self._point(name, pointer)
            if name == "champion":
                self.counts.version = pointer.version
        if self._fetched >= _TIDY_EVERY:  # once the pointers keep what has come
            self._fetched = 0
            prune(self._folder)
        return complete

    def _point(self, name: Name, pointer: StoredPointer) -> None:
        """Move a pointer. In mode `auto` a champion that is pinned on the learner's machine plays
        every match here too; what a person pinned here stays."""
        pointers = self._folder.pointers
        now = pointers.read(name)
        if self._judged_there and now is not None and (now.pinned, now.by) == (True, RELAY):
            if (pointer.version, pointer.pinned) == (now.version, True):
                return
            pointers.release(name)
        if pointers.move(name, pointer.version, by=RELAY) and pointer.pinned and self._judged_there:
            pointers.pin(name, pointer.version, by=RELAY)

    def _fetch(self, commit: Commit, number: int) -> bool:
        """Whether a version is here, now."""
        stored = commit.version(number)
        if stored is None:
            self._once(f"version {number} is named by commit {commit.sequence} and not in it")
            return False
        here = self._folder.versions.manifest_seal(number)
        if here is not None:
            if here == stored.files.get(MANIFEST):
                return True
            raise RunFolderError(
                f"{self._folder.root}: version {number} here is another one than in "
                f"{self._store.name}: this run folder has learned by itself. Start the learner's "
                "side with a copy of it, or play on in a new run folder"
            )
        try:
            contents = bucket.read_version(self._store, stored)
            manifest = self._folder.versions.copied(number, contents)
        except FileNotFoundError as error:  # newer versions have replaced it in the store
            raise StoreUnavailable(
                f"{self._store.name}: version {number} is gone from the store; looking again"
            ) from error
        except FileFormatError as error:
            self._once(f"{error}; the version before it plays on")
            return False
        if manifest.spec != self._folder.spec:
            self._once(f"version {number} was made for another run")
            return False
        self._fetched += 1
        self.counts.versions += 1
        return True

    def _once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._problem(message)


def _size(spool: Spool, name: str) -> int:
    try:
        return (spool.buffer / name).stat().st_size
    except FileNotFoundError:
        return 0
