"""The spooler: segments on their way to the spool, off the path of decisions.

A segment is written down as sealed and synced before the spool gets it, and as spooled after. So a
crash at any point leads to the same episode again or to none, never to another one.

Segments as episodes: settled decisions of an endless match in the form that the learner reads.

The id is that of the first decision, so the same segment made twice is the same episode twice,
and the learner sets the second one aside.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode, Meta
from understudy.experience.ledger.records import (
    ENDINGS,
    OUTCOMES,
    Added,
    Closing,
    Opened,
    unpack_legal,
)
from understudy.experience.ledger.territory_log import Segment
from understudy.policy.spec import PolicySpec

_TOGETHER = 64
_AGAIN_S = 1.0
_IDLE_S = 5.0
_PUTS = 4
"""Files that are synced at once. Measured with segments of 32 on a disk that syncs in 3 ms: 127
episodes a second one by one, 437 by four threads; 5,000 decisions a second make 156."""


@dataclass(eq=False)
class WaitingSegment:
    """A segment, the time that its episode bears, and how far it got."""

    segment: Segment
    at: float
    sealed: bool = False
    """It is written down, and safe from a power cut"""
    put: bool = False
    """The spool has it"""


class Spooler:
    """A queue and, unless it is to work only when asked, a thread that empties it."""

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
            # Daemons, unlike those of an executor: a disk that hangs must not keep the process.
            for _ in range(_PUTS):
                threading.Thread(target=self._put_on, name="ledger-put", daemon=True).start()
            self._thread = threading.Thread(target=self._run, name="ledger-spool", daemon=True)
            self._thread.start()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def unsealed(self) -> bool:
        """Whether a segment is not written down yet: only the memory of this process knows it."""
        with self._change:
            return bool(self._queue) and not self._queue[-1].sealed

    def hand(self, segments: Sequence[WaitingSegment]) -> None:
        """They are taken care of from here on."""
        if not segments:
            return
        with self._change:
            self._queue.extend(segments)
            self._change.notify_all()

    def flush(self, timeout_s: float) -> None:
        """Wait until the spool has everything; raises what the disk said, or TimeoutError."""
        if self._thread is None:
            while self._queue:
                self._work()
            return
        with self._change:
            if not self._stopping:  # what failed before may have been mended
                self._failed = None
            self._change.wait_for(lambda: self._idle or self._failed is not None, timeout_s)
            if isinstance(self._failed, OSError):
                raise self._failed
            if self._failed is not None:
                raise OSError(str(self._failed)) from self._failed
            if not self._idle:
                raise TimeoutError(f"{len(self._queue)} segments still wait for the spool")

    def stop(self, timeout_s: float) -> None:
        """End the thread; what it did not get to is in the ledger's files."""
        with self._change:
            self._stopping = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        for _ in range(_PUTS):
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
            except Exception as error:  # noqa: BLE001  nobody watches this thread: it tells, goes on
                self._failed = error
                self._tell(f"segments cannot leave for the spool yet, and are kept: {error}")
            with self._change:
                self._busy = False
                self._change.notify_all()
                if self._failed is not None:
                    self._change.wait_for(lambda: self._stopping, _AGAIN_S)

    def _work(self) -> None:
        """The oldest few, each step for all of them; whatever fails is tried again from there."""
        batch = list(islice(self._queue, _TOGETHER))
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
        """To the spool, several at once; returns one of the failures."""
        if self._thread is None:
            outcomes = [self._try(waiting) for waiting in batch]
        else:
            for waiting in batch:
                self._todo.put(waiting)
            outcomes = [self._done.get() for _ in batch]
        return next((error for error in outcomes if error is not None), None)

    def _put_on(self) -> None:
        """One of the threads that put."""
        while (waiting := self._todo.get()) is not None:
            self._done.put(self._try(waiting))

    def _try(self, waiting: WaitingSegment) -> Exception | None:
        try:
            self._put(waiting)
        except Exception as error:  # noqa: BLE001  whoever asked raises it again
            return error
        waiting.put = True
        return None


def to_episode(segment: Segment, spec: PolicySpec, *, finished_at: float) -> Episode:
    """One episode of T decisions, proposed actions and all."""
    opened = [entry.opened for entry in segment.entries]
    closings = [entry.closing for entry in segment.entries if entry.closing is not None]
    options = spec.actions.options
    settled = np.array([closing.state == "settled" for closing in closings], np.bool_)
    legal = None
    if any(one.legal for one in opened):
        legal = np.stack([unpack_legal(one.legal, options) for one in opened])
    first = opened[0]
    return Episode(
        meta=Meta(
            id=f"live-{first.id}",
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
        sent=np.array([one.sent for one in opened], np.bool_),
        explored=np.array([one.explored for one in opened], np.bool_),
        expected=_column([one.expected for one in opened]),
        settled=None if settled.all() else settled,
    )


def _column(numbers: list[float]) -> NDArray:
    return np.array(numbers, np.float32)


def _floats(data: bytes) -> NDArray:
    """float32 in the machine's own byte order."""
    return np.frombuffer(data, "<f4").astype(np.float32)


def check_opened(entries: list[Opened], spec: PolicySpec) -> str:
    """What is wrong with them, naming the field; empty: nothing is.

    What is wrong here would be found by the learner weeks later, as a file in quarantine.
    """
    width, bits = 4 * len(spec.features), (spec.actions.options + 7) // 8
    parts = spec.actions.parts
    for one in entries:
        if len(one.observation) != width:
            return f"observation: {len(one.observation)} bytes, expected {width}"
        if one.legal and len(one.legal) != bits:
            return f"legal: {len(one.legal)} bytes, expected {bits} or none"
        if len(one.action) != len(parts):
            return f"action: {len(one.action)} parts, expected {len(parts)}"
        for choice, size in zip(one.action, parts, strict=True):
            if not 0 <= choice < size:
                return f"action: {one.action} is outside the {parts} options of this run"
    numbers = [number for one in entries for number in (one.log_prob, one.value)]
    # nan: the gate had nothing to say.
    numbers += [one.expected for one in entries if not math.isnan(one.expected)]
    for name, values in (
        ("observation", np.frombuffer(b"".join(one.observation for one in entries), "<f4")),
        ("log_prob, value or expected", _column(numbers)),
    ):
        if not np.isfinite(values).all():
            return f"{name}: holds a number that is not finite"
    return ""


def check_added(parts: Sequence[Added]) -> str:
    """What is wrong with them, naming the field; empty: nothing is."""
    finite = all(math.isfinite(part.reward) for part in parts)  # float32 is what closes it
    return "" if finite else "reward: not finite"


def check_closings(closings: list[Closing]) -> str:
    """What is wrong with them, naming the field; empty: nothing is."""
    if not np.isfinite(_column([closing.reward for closing in closings])).all():
        return "reward: not finite as float32"
    for closing in closings:
        if closing.state not in ENDINGS:
            return f"state: expected one of {', '.join(ENDINGS)}, got {closing.state!r}"
        if closing.outcome not in OUTCOMES:
            return f"outcome: expected one of {OUTCOMES}, got {closing.outcome!r}"
        if closing.terminal and closing.state != "settled":
            return f"terminal: decision {closing.id} ends {closing.state}, expected settled"
    return ""
