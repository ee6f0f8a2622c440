"""The ledger: a book of decisions that is on disk before anybody is answered.

`open` and `close` write a whole batch in one go, or raise OSError and change nothing. What they
wrote survives SIGKILL when they return, and a power cut `sync_ms` later.
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
)
from understudy.experience.ledger.spooler import (
    Spooler,
    WaitingSegment,
    check_added,
    check_closings,
    check_opened,
    to_episode,
)
from understudy.experience.ledger.store import Store
from understudy.experience.ledger.territory_log import Segment
from understudy.policy.spec import PolicySpec

ROTATE_BYTES = 8 * 2**20
_MOST_WAITING = 2_048
"""Segments that may wait for the spool; beyond that no decision is opened."""
_PATIENCE_S = 10.0


class Ledger:
    """All decisions of one run, for any number of threads. The constructor recovers.

    A segment ends when it has `segment` decisions, or spans `segment_s` seconds (`Book`); where the
    policy of `spec` has memory, only where `cut` says so.
    `background=False` is for tests and replays: nothing is synced but by `sync`, and segments are
    put to the spool before the call that ended them returns.
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
        """What had to be left out or could not be written, newest last."""
        self._spec, self._clock, self._put, self._tell = spec, clock, put, tell
        self._background = background
        self._lock = BoundedLock("the ledger")
        self._book = DecisionIndex(
            segment=segment, segment_s=segment_s, stagger=stagger, remembers=spec.remembers
        )
        self._store = Store(
            folder,
            spec,
            self._book,
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
        """Of all decisions, across restarts: opened is the sum of all others."""
        with self._lock:
            return self._book.counts

    @property
    def waiting(self) -> int:
        """Segments that the spool does not have yet."""
        return len(self._spooler)

    def opened(self, key: int) -> Opened | None:
        """A decision that is still open, else None."""
        with self._lock:
            return self._book.opened(key)

    def added(self, key: int) -> float | None:
        """What was added to the reward of an open decision so far; None: nothing was."""
        with self._lock:
            return self._book.added(key)

    def state_of(self, key: int) -> str:
        """`open`, how it ended, or `unknown`: never opened, or closed 100,000 closings ago."""
        with self._lock:
            return "open" if self._book.opened(key) else self._book.state_of(key) or "unknown"

    def client_of(self, key: int) -> str | None:
        """Whose decision it is or was; None: that is not known, or not any more."""
        with self._lock:
            return self._book.client_of(key)

    def open_of(self, territory: str) -> list[Opened]:
        """The open decisions of a territory, oldest first."""
        with self._lock:
            return self._book.open_of(territory)

    def last_of(self, territory: str) -> Opened | None:
        """The newest decision of a territory that did not leave yet, open or not."""
        with self._lock:
            last = self._book.last_of(territory)
            return last.opened if last is not None else None

    def territories(self) -> dict[str, str]:
        """Those with decisions that did not leave yet, and whose they are: after a restart, what
        has to be cut if nobody comes back for it."""
        with self._lock:
            return self._book.territories()

    def older_than(self, at: float) -> list[Opened]:
        """Open decisions whose `at` is before this, by id."""
        with self._lock:
            return self._book.older_than(at)

    # --- changes -------------------------------------------------------------------------------

    def take_ids(self, count: int) -> range:
        """New ids, higher than any that this run ever gave out."""
        with self._lock:
            return self._store.ids.take(count)

    def open(self, entries: Sequence[Opened]) -> None:
        """Decisions that are about to be answered.

        OSError: none of them counts, and their ids are used up. BlockingIOError is one of these: so
        many segments wait for a slow disk that taking more would fill the memory.
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
            self._book.check_opening(batch)
            if len(self._spooler) >= _MOST_WAITING:
                raise BlockingIOError(
                    errno.EAGAIN, f"{len(self._spooler)} segments wait for the spool", "ledger"
                )
            self._store.write(batch, [one.id for one in batch])
            self._leave(self._book.open(batch))

    def add(self, parts: Sequence[Added]) -> None:
        """Parts of rewards that whoever closes these decisions will take into account; an
        InputError where one of them is not open, and then nothing of the batch counts."""
        if not parts:
            return
        wrong = check_added(parts)
        with self._lock:
            for part in parts:
                if self._book.opened(part.id) is None:
                    wrong = wrong or f"id: no decision {part.id} is open"
            if wrong:
                raise InputError(wrong)
            self._store.write(parts)
            self._book.add(parts)

    def close(self, closings: Sequence[Closing]) -> None:
        """Decisions end. One that has ended before stays as it is; one that is unknown is an
        InputError, and then nothing of the batch counts."""
        with self._lock:
            batch = self._book.new_of(closings)
            if not batch:
                return
            wrong = check_closings(batch)
            if wrong:
                raise InputError(wrong)
            self._store.write(batch)
            self._leave(self._book.close(batch))

    def cut(
        self, territory: str, bootstrap_observation: bytes = b"", *, outcome: Result = ""
    ) -> None:
        """The running segment of a territory ends with its newest decision, once that is settled.

        `bootstrap_observation` is what was seen next, float32 [F]; empty: nothing was, and nothing
        will be. With an `outcome` the territory itself ends there, as by a terminal closing. Where
        no decision waits for company nothing happens; the first cut holds.
        """
        width = 4 * len(self._spec.features)
        if len(bootstrap_observation) not in (0, width):
            raise InputError(
                f"bootstrap_observation: {len(bootstrap_observation)} bytes, expected {width}"
            )
        with self._lock:
            last = self._book.last_of(territory)
            if last is None or last.cut is not None:
                return
            key = last.opened.id
            self._store.write([Cut(id=key, bootstrap=bootstrap_observation, outcome=outcome)])
            self._leave(self._book.cut(last, bootstrap_observation, outcome))

    def sync(self) -> None:
        """Everything so far survives a power cut from here on."""
        self._store.sync()

    def flush(self, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until the spool has every segment that ended; OSError if it does not take them."""
        self._spooler.flush(timeout_s)

    def stop(self) -> None:
        """Sync and stop. What is open stays open for the next process."""
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
            found = self._store.recover()
            entries = [found.entries[key] for key in sorted(found.entries)]
            segments = self._book.restore(entries, found.ended, found.totals)
            now = self._clock.time()
            sealed = [WaitingSegment(segment, at, sealed=True) for segment, at in found.segments()]
            self._hand(sealed + [WaitingSegment(segment, now) for segment in segments])

    def _leave(self, segments: Sequence[Segment]) -> None:
        if segments:
            now = self._clock.time()
            self._hand([WaitingSegment(segment, now) for segment in segments])

    def _hand(self, waiting: Sequence[WaitingSegment]) -> None:
        self._spooler.hand(waiting)
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
                self._book.spooled(waiting.segment)

    def _problem(self, message: str) -> None:
        self.problems.append(message)
        if self._tell is not None:
            self._tell(message)
