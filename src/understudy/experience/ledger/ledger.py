"""The decision ledger: every decision is written before its client gets the answer.

`open` and `close` write a whole batch, or raise OSError and change nothing. What they wrote
survives SIGKILL when they return, and a power cut `sync_ms` later.
"""

from __future__ import annotations

import errno
import math
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from understudy.core.clock import Clock
from understudy.core.errors import InputError
from understudy.core.locks import BoundedLock
from understudy.experience.episode import Episode
from understudy.experience.ledger.index import DecisionCounts, DecisionIndex
from understudy.experience.ledger.records import (
    Added,
    Closing,
    Cut,
    Opened,
    Result,
    Sealed,
    Spooled,
    check_added,
    check_closings,
    check_opened,
)
from understudy.experience.ledger.recovery import recover
from understudy.experience.ledger.spooler import Spooler, WaitingSegment, to_episode
from understudy.experience.ledger.store import Store
from understudy.experience.ledger.territory_log import Segment
from understudy.policy.spec import PolicySpec

ROTATE_BYTES = 8 * 2**20
_MOST_WAITING = 2_048
"""Segments that may wait for the spool; beyond that `open` raises."""
_PATIENCE_S = 10.0


class Ledger:
    """All decisions of one run, for any number of threads. The constructor recovers.

    A segment ends when it has `segment` decisions or spans `segment_s` seconds (`DecisionIndex`);
    if the policy of `spec` has memory, only `cut` ends it. Ended segments are passed to `put` as
    episodes. `background=False` is for tests and replays: only `sync` syncs, and segments are put
    before the call that ended them returns.
    """

    def __init__(
        self,
        folder: Path,
        spec: PolicySpec,
        *,
        segment: int,
        clock: Clock,
        put: Callable[[Episode], object],
        sync_ms: float,
        segment_s: float = math.inf,
        stagger: bool = False,
        tell: Callable[[str], None] | None = None,
        rotate_bytes: int = ROTATE_BYTES,
        background: bool = True,
    ) -> None:
        self.problems: deque[str] = deque(maxlen=100)
        """Messages about damage and failed writes, newest last."""
        self._spec, self._clock, self._put, self._tell = spec, clock, put, tell
        self._background = background
        self._lock = BoundedLock("the ledger")
        self._index = DecisionIndex(
            segment=segment, segment_s=segment_s, stagger=stagger, remembers=spec.remembers
        )
        self._store = Store(
            folder,
            spec,
            self._index,
            self._lock,
            rotate_bytes=rotate_bytes,
            unsealed=lambda: self._spooler.unsealed,
            tell=self._problem,
        )
        self._spooler = Spooler(
            seal=self._seal,
            put=self._put_episode,
            spooled=self._spooled,
            tell=self._problem,
            background=background,
        )
        if background:
            self._store.start(sync_ms / 1000)
        self._recover()

    # --- questions -----------------------------------------------------------------------------

    @property
    def counts(self) -> DecisionCounts:
        """Of all decisions, across restarts; `opened` is the sum of all others."""
        with self._lock:
            return self._index.counts

    @property
    def waiting(self) -> int:
        """Segments that the spool does not have yet."""
        return len(self._spooler)

    def opened(self, key: int) -> Opened | None:
        """The decision, if it is open."""
        with self._lock:
            return self._index.opened(key)

    def added(self, key: int) -> float | None:
        """The sum of rewards added to an open decision; None: there were none."""
        with self._lock:
            return self._index.added(key)

    def state_of(self, key: int) -> str:
        """`open`, how it ended, or `unknown`: never opened, or ended 100,000 decisions ago."""
        with self._lock:
            return "open" if self._index.opened(key) else self._index.state_of(key) or "unknown"

    def client_of(self, key: int) -> str | None:
        """The client of a decision; None: unknown, or no longer known."""
        with self._lock:
            return self._index.client_of(key)

    def open_of(self, territory: str) -> list[Opened]:
        """The open decisions of a territory, oldest first."""
        with self._lock:
            return self._index.open_of(territory)

    def last_of(self, territory: str) -> Opened | None:
        """The newest decision of a territory that is in no segment yet, open or not."""
        with self._lock:
            last = self._index.last_of(territory)
            return last.opened if last is not None else None

    def territories(self) -> dict[str, str]:
        """Territories with decisions in no segment yet -> their client.

        After a restart, these have to be cut unless their client returns.
        """
        with self._lock:
            return self._index.territories()

    def older_than(self, at: float) -> list[Opened]:
        """Open decisions from before `at`, by id."""
        with self._lock:
            return self._index.older_than(at)

    # --- changes -------------------------------------------------------------------------------

    def take_ids(self, count: int) -> range:
        """New ids, higher than all that this run gave out before."""
        with self._lock:
            return self._store.ids.take(count)

    def open(self, entries: Sequence[Opened]) -> None:
        """Writes decisions that are about to be answered.

        OSError: none of them counts, and their ids are used up. BlockingIOError, a kind of it: too
        many segments wait for a slow disk.
        """
        batch = list(entries)
        if not batch:
            return
        wrong = check_opened(batch, self._spec)
        with self._lock:
            if max(one.id for one in batch) >= self._store.ids.next:
                wrong = wrong or "id: expected one of `take_ids`"
            if wrong:
                raise InputError(wrong)
            self._index.check_opening(batch)
            if len(self._spooler) >= _MOST_WAITING:
                raise BlockingIOError(
                    errno.EAGAIN, f"{len(self._spooler)} segments wait for the spool", "ledger"
                )
            self._store.write(batch, [one.id for one in batch])
            self._end(self._index.open(batch))

    def add(self, parts: Sequence[Added]) -> None:
        """Adds parts of rewards to open decisions, for `added`.

        InputError if one of the decisions is not open; then nothing of the batch counts.
        """
        if not parts:
            return
        wrong = check_added(parts)
        with self._lock:
            for part in parts:
                if self._index.opened(part.id) is None:
                    wrong = wrong or f"id: no decision {part.id} is open"
            if wrong:
                raise InputError(wrong)
            self._store.write(parts)
            self._index.add(parts)

    def close(self, closings: Sequence[Closing]) -> None:
        """Ends decisions. One that ended before stays as it is.

        InputError if one is unknown; then nothing of the batch counts.
        """
        with self._lock:
            batch = self._index.new_of(closings)
            if not batch:
                return
            wrong = check_closings(batch)
            if wrong:
                raise InputError(wrong)
            self._store.write(batch)
            self._end(self._index.close(batch))

    def cut(
        self, territory: str, bootstrap_observation: bytes = b"", *, outcome: Result = ""
    ) -> None:
        """Ends the segment of a territory with its newest decision, once that is settled.

        `bootstrap_observation` is the next observation, float32 [F]; empty: there is none. With an
        `outcome` the territory itself ends there, as by a terminal closing. Does nothing if every
        decision is in a segment already, or if the newest one was cut before.
        """
        width = 4 * len(self._spec.features)
        if len(bootstrap_observation) not in (0, width):
            raise InputError(
                f"bootstrap_observation: {len(bootstrap_observation)} bytes, expected {width}"
            )
        with self._lock:
            last = self._index.last_of(territory)
            if last is None or last.cut is not None:
                return
            key = last.opened.id
            self._store.write([Cut(id=key, bootstrap=bootstrap_observation, outcome=outcome)])
            self._end(self._index.cut(last, bootstrap_observation, outcome))

    def sync(self) -> None:
        """Everything written so far survives a power cut when this returns."""
        self._store.sync()

    def flush(self, timeout_s: float = _PATIENCE_S) -> None:
        """Waits until the spool has every segment that ended; OSError if it does not take them."""
        self._spooler.flush(timeout_s)

    def stop(self) -> None:
        """Syncs and stops. Open decisions stay open for the next process."""
        if self._background:
            try:
                self._spooler.flush(_PATIENCE_S)
            except OSError as error:  # TimeoutError is one
                self._problem(f"segments stay in the ledger until the next start: {error}")
        self._spooler.stop(_PATIENCE_S)
        self._store.stop(_PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # --- inside --------------------------------------------------------------------------------

    def _recover(self) -> None:
        with self._lock:
            found = recover(self._store.files, self._spec, tell=self._problem)
            self._store.ids.at_least(found.next_id)
            entries = [found.entries[key] for key in sorted(found.entries)]
            segments = self._index.restore(entries, found.ended, found.totals)
            now = self._clock.time()
            sealed = [WaitingSegment(segment, at, sealed=True) for segment, at in found.segments()]
            self._spool(sealed + [WaitingSegment(segment, now) for segment in segments])

    def _end(self, segments: Sequence[Segment]) -> None:
        if segments:
            now = self._clock.time()
            self._spool([WaitingSegment(segment, now) for segment in segments])

    def _spool(self, waiting: Sequence[WaitingSegment]) -> None:
        self._spooler.enqueue(waiting)
        if not self._background:
            try:
                self._spooler.flush(_PATIENCE_S)
            except OSError as error:
                self._problem(f"segments cannot leave for the spool yet, and are kept: {error}")

    def _seal(self, batch: Sequence[WaitingSegment]) -> None:
        with self._lock:
            self._store.write(
                [
                    Sealed(
                        ids=waiting.segment.ids,
                        bootstrap=waiting.segment.bootstrap,
                        outcome=waiting.segment.outcome,
                        at=waiting.at,
                    )
                    for waiting in batch
                ]
            )
        self.sync()

    def _put_episode(self, waiting: WaitingSegment) -> None:
        self._put(to_episode(waiting.segment, self._spec, finished_at=waiting.at))

    def _spooled(self, batch: Sequence[WaitingSegment]) -> None:
        with self._lock:
            self._store.write([Spooled(firsts=tuple(waiting.segment.ids[0] for waiting in batch))])
            for waiting in batch:
                self._index.spooled(waiting.segment)

    def _problem(self, message: str) -> None:
        self.problems.append(message)
        if self._tell is not None:
            self._tell(message)
