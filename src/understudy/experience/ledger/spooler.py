"""The spooler: puts ended segments into the spool as episodes, in threads of its own.

A segment is recorded as sealed and synced before its episode is put, and recorded as spooled
afterwards. After a crash at any point the same episode is put again or not at all: its id comes
from the first decision, and the learner ignores an episode whose id it knows.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode, Meta
from understudy.experience.ledger.records import Opened, unpack_legal
from understudy.experience.ledger.territory_log import Segment
from understudy.policy.spec import PolicySpec

_BATCH = 64
_RETRY_S = 1.0
_IDLE_S = 5.0
_PUT_THREADS = 4
"""Measured with segments of 32 on a disk that syncs in 3 ms: one thread puts 127 episodes a second,
four put 437. 5,000 decisions a second make 156."""


@dataclass(eq=False)
class WaitingSegment:
    """A segment on its way to the spool."""

    segment: Segment
    at: float
    """`finished_at` of its episode"""
    sealed: bool = False
    """Its `Sealed` record is synced"""
    put: bool = False
    """The spool has it"""


class Spooler:
    """A queue of segments; with `background` threads empty it, else `flush` does."""

    def __init__(
        self,
        *,
        seal: Callable[[Sequence[WaitingSegment]], None],
        put: Callable[[WaitingSegment], None],
        spooled: Callable[[Sequence[WaitingSegment]], None],
        tell: Callable[[str], None],
        background: bool,
    ) -> None:
        self._seal, self._put, self._spooled, self._tell = seal, put, spooled, tell
        self._queue: deque[WaitingSegment] = deque()
        self._change = threading.Condition()
        self._busy = False
        self._stopping = False
        self._failed: Exception | None = None
        self._todo: SimpleQueue[WaitingSegment | None] = SimpleQueue()
        self._done: SimpleQueue[Exception | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        if background:
            # Daemons, unlike threads of an executor: a disk that hangs must not keep the process.
            for _ in range(_PUT_THREADS):
                threading.Thread(target=self._put_forever, name="ledger-put", daemon=True).start()
            self._thread = threading.Thread(target=self._run, name="ledger-spool", daemon=True)
            self._thread.start()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def unsealed(self) -> bool:
        """Whether a segment has no `Sealed` record yet, and would be lost with this process."""
        with self._change:
            return bool(self._queue) and not self._queue[-1].sealed

    def enqueue(self, segments: Sequence[WaitingSegment]) -> None:
        if not segments:
            return
        with self._change:
            self._queue.extend(segments)
            self._change.notify_all()

    def flush(self, timeout_s: float) -> None:
        """Waits until the spool has every segment.

        Raises the error of the last failed put, or TimeoutError.
        """
        if self._thread is None:
            while self._queue:
                self._work()
            return
        with self._change:
            if not self._stopping:  # an earlier failure may be repaired by now
                self._failed = None
            self._change.wait_for(lambda: self._idle or self._failed is not None, timeout_s)
            if isinstance(self._failed, OSError):
                raise self._failed
            if self._failed is not None:
                raise OSError(str(self._failed)) from self._failed
            if not self._idle:
                raise TimeoutError(f"{len(self._queue)} segments still wait for the spool")

    def stop(self, timeout_s: float) -> None:
        """Ends the threads. Segments that still wait stay in the ledger's files."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        for _ in range(_PUT_THREADS):
            self._todo.put(None)

    @property
    def _idle(self) -> bool:
        return not self._queue and not self._busy

    def _run(self) -> None:
        while not self._stopping:
            with self._change:
                self._change.wait_for(lambda: self._queue or self._stopping, _IDLE_S)
                if self._stopping or not self._queue:
                    continue
                self._busy, self._failed = True, None
            try:
                self._work()
            except Exception as error:  # noqa: BLE001  a thread without supervisor
                self._failed = error
                self._tell(f"segments cannot leave for the spool yet, and are kept: {error}")
            with self._change:
                self._busy = False
                self._change.notify_all()
                if self._failed is not None:
                    self._change.wait_for(lambda: self._stopping, _RETRY_S)

    def _work(self) -> None:
        """Seals, puts and records the oldest segments. A segment that fails is retried later."""
        batch = list(islice(self._queue, _BATCH))
        fresh = [waiting for waiting in batch if not waiting.sealed]
        if fresh:
            self._seal(fresh)
            for waiting in fresh:
                waiting.sealed = True
        failure = self._put_all([waiting for waiting in batch if not waiting.put])
        done = [waiting for waiting in batch if waiting.put]
        if done:
            self._spooled(done)
        with self._change:
            for _ in batch:
                self._queue.popleft()
            self._queue.extendleft(waiting for waiting in reversed(batch) if not waiting.put)
        if failure is not None:
            raise failure

    def _put_all(self, batch: Sequence[WaitingSegment]) -> Exception | None:
        """Puts all of them, several at once; returns the first failure."""
        if self._thread is None:
            outcomes = [self._try(waiting) for waiting in batch]
        else:
            for waiting in batch:
                self._todo.put(waiting)
            outcomes = [self._done.get() for _ in batch]
        return next((error for error in outcomes if error is not None), None)

    def _put_forever(self) -> None:
        while (waiting := self._todo.get()) is not None:
            self._done.put(self._try(waiting))

    def _try(self, waiting: WaitingSegment) -> Exception | None:
        try:
            self._put(waiting)
        except Exception as error:  # noqa: BLE001  `_work` raises it again
            return error
        waiting.put = True
        return None


def to_episode(segment: Segment, spec: PolicySpec, *, finished_at: float) -> Episode:
    """The episode of a segment of T decisions, with the proposed actions.

    No gate judges the rules: of their decisions there is neither `sent` nor `explored` nor
    `expected`, as in an episode of a bot's rules.
    """
    opened = [entry.opened for entry in segment.entries]
    closings = [entry.closing for entry in segment.entries if entry.closing is not None]
    options = spec.actions.options
    settled = np.array([closing.state == "settled" for closing in closings], np.bool_)
    legal = None
    if any(one.legal for one in opened):
        legal = np.stack([unpack_legal(one.legal, options) for one in opened])
    first = opened[0]
    judged = not all(one.rules for one in opened)
    return Episode(
        meta=Meta(
            id=_segment_id(first),
            outcome=segment.outcome,
            finished_at=finished_at,
            tags={"territory": first.territory, "client": first.client},
        ),
        observations=_floats(b"".join(one.observation for one in opened)).reshape(len(opened), -1),
        actions=np.array([one.action for one in opened], np.int32),
        log_probs=_column([one.log_prob for one in opened]),
        values=_column([one.value for one in opened]),
        rewards=_column([closing.reward for closing in closings]),
        sampled=np.array([one.sampled for one in opened], np.bool_),
        versions=np.array([one.version for one in opened], np.int64),
        legal=legal,
        bootstrap=_floats(segment.bootstrap) if segment.bootstrap else None,
        sent=np.array([one.sent for one in opened], np.bool_) if judged else None,
        explored=np.array([one.explored for one in opened], np.bool_) if judged else None,
        expected=_column([one.expected for one in opened]) if judged else None,
        settled=None if settled.all() else settled,
    )


def _segment_id(first: Opened) -> str:
    """By its first decision, so that it is the same when a kill lets it be put twice. Servers of
    one game number their decisions alike and may have one learner: the territory and the time tell
    them apart."""
    where = f"{first.territory}\n{first.at!r}".encode("utf-8", "surrogatepass")
    return f"live-{first.id}-{hashlib.sha256(where).hexdigest()[:12]}"


def _column(numbers: list[float]) -> NDArray:
    return np.array(numbers, np.float32)


def _floats(data: bytes) -> NDArray:
    """float32 in native byte order."""
    return np.frombuffer(data, "<f4").astype(np.float32)
