"""The spooler: segments on their way to the spool, off the path of decisions.

A segment is written down as sealed and synced before the spool gets it, and as spooled after. So a
crash at any point leads to the same episode again or to none, never to another one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from queue import SimpleQueue

from understudy.experience.ledger.track import Segment

_TOGETHER = 64
_AGAIN_S = 1.0
_IDLE_S = 5.0
_PUTS = 4
"""Files that are synced at once. Measured with segments of 32 on a disk that syncs in 3 ms: 127
episodes a second one by one, 437 by four threads; 5,000 decisions a second make 156."""


@dataclass(eq=False)
class Waiting:
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
        seal: Callable[[Sequence[Waiting]], None],
        put: Callable[[Waiting], None],
        spooled: Callable[[Sequence[Waiting]], None],
        tell: Callable[[str], None],
        background: bool,
    ) -> None:
        self._seal, self._put, self._spooled, self._tell = seal, put, spooled, tell
        self._queue: deque[Waiting] = deque()
        self._change = threading.Condition()
        self._busy = False
        self._stopping = False
        self._failed: Exception | None = None
        self._todo: SimpleQueue[Waiting | None] = SimpleQueue()
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

    def hand(self, segments: Sequence[Waiting]) -> None:
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

    def _put_all(self, batch: Sequence[Waiting]) -> Exception | None:
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

    def _try(self, waiting: Waiting) -> Exception | None:
        try:
            self._put(waiting)
        except Exception as error:  # noqa: BLE001  whoever asked raises it again
            return error
        waiting.put = True
        return None
