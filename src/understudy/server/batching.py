"""Batching: messages that wait in one turn of the event loop share one call of the session.

All of it happens in the loop's thread, so there is nothing to lock: connections put messages here,
and one callback a turn answers what came. Each connection has a line of its own and is answered in
its order. The lines take turns, one message each, and a batch has at least one message of every
line: a message at the head of its line is in the next batch, however much the others queue, and
messages of one territory are rarely in one batch (they could not be decided together).
What is beyond the queue of its connection, or has waited too long, gets a `degraded` answer.
A line that is full is not added to: its connection waits in `room` and is not read meanwhile, so
that the peer's own socket fills up and not this process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

from understudy.server.metrics import Latency
from understudy.server.refusal import Refusal
from understudy.session.session import Incoming, Outgoing

LATE_AFTER_S = 1.0
_MOST = 128
"""Messages of a batch, about: some ten milliseconds of work, in which the sockets are not read."""
_FULL = 2
"""A line of so many times `queue` is full: the older half is answered `degraded`."""
_RATE_PAUSE_S = 0.005
"""Until the next batch, where the rate of all clients allows none now."""


class Receiver(Protocol):
    """What answers: `live.session.Session`."""

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in their order."""

    def allowance(self) -> int:
        """How many messages are within the rate of all clients now."""


class Asker(Protocol):
    """What waits for answers: a connection, or a request."""

    def tell(self, messages: Sequence[bytes]) -> None:
        """The answers to what it put, in that order; never blocks, never raises."""


class _Waiting(NamedTuple):
    incoming: Incoming
    asker: Asker
    since: float


class Batching:
    """Between connections and the session."""

    def __init__(
        self, session: Receiver, *, queue: int, problem: Callable[[str, Exception], None]
    ) -> None:
        self._session = session
        self._queue = queue
        self._problem = problem
        self._lines: OrderedDict[Asker, deque[_Waiting]] = OrderedDict()
        """In the order of their turns; none of them is empty."""
        self._full: dict[Asker, asyncio.Event] = {}
        """Connections that wait for room in their line."""
        self._due = False
        self.latency = Latency()
        self.batches = 0

    def put(self, client: str, data: bytes, asker: Asker, *, address: str | None = None) -> None:
        """A message that will be answered soon."""
        line = self._lines.get(asker)
        if line is None:
            line = self._lines[asker] = deque()
        line.append(_Waiting(Incoming(client, data, address), asker, perf_counter()))
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def waiting(self, asker: Asker) -> int:
        """Messages in its line."""
        return len(self._lines.get(asker, ()))

    async def room(self, asker: Asker) -> None:
        """Returns once its line is not full."""
        if self._is_full(asker):
            await self._full.setdefault(asker, asyncio.Event()).wait()

    def flush(self) -> None:
        """Answer one message of each line, and more where that takes little time."""
        self._due = False
        late, prompt = self._taken(perf_counter())
        # The late ones first: they are the older ones of their connections.
        for waiting, degraded in ((late, True), (prompt, False)):
            if waiting:
                self._answer(waiting, degraded=degraded)
        self._make_room()
        if not self._lines or self._due:
            return
        self._due = True
        loop = asyncio.get_running_loop()
        if late or prompt:
            # A turn of the loop later: what the sockets have now is put before the next batch.
            loop.call_soon(loop.call_soon, self.flush)
        else:
            loop.call_later(_RATE_PAUSE_S, self.flush)

    def _taken(self, now: float) -> tuple[list[_Waiting], list[_Waiting]]:
        """The heads of lines, in turns: those that are too late to be decided, and the others."""
        late: list[_Waiting] = []
        prompt: list[_Waiting] = []
        most = min(max(_MOST, len(self._lines)), self._session.allowance())
        while self._lines and len(late) + len(prompt) < most:
            asker, line = next(iter(self._lines.items()))
            is_late = len(line) > self._queue or now - line[0].since > LATE_AFTER_S
            (late if is_late else prompt).append(line.popleft())
            if line:
                self._lines.move_to_end(asker)
            else:
                del self._lines[asker]
        return late, prompt

    def _is_full(self, asker: Asker) -> bool:
        return self.waiting(asker) >= _FULL * self._queue

    def _make_room(self) -> None:
        # Not later, when more could be read at once: all lines would have that room in one turn.
        for asker in [one for one in self._full if not self._is_full(one)]:
            self._full.pop(asker).set()

    def _answer(self, waiting: list[_Waiting], *, degraded: bool) -> None:
        answers = self._received(waiting, degraded=degraded)
        by_asker: dict[Asker, list[bytes]] = {}
        for one, data in zip(waiting, answers, strict=True):
            by_asker.setdefault(one.asker, []).append(data)
        for asker, messages in by_asker.items():
            asker.tell(messages)
        now = perf_counter()
        for one in waiting:
            self.latency.add(now - one.since)

    def _received(self, waiting: list[_Waiting], *, degraded: bool) -> list[bytes]:
        """The session's answers. It refuses what it fails on by itself; where it fails as a whole,
        what took effect is not known, and asking again could do it twice."""
        inbox = [one.incoming for one in waiting]
        self.batches += 1
        try:
            return [one.data for one in self._session.receive(inbox, degraded=degraded)]
        except Exception as error:  # noqa: BLE001  the connection boundary: the server goes on
            self._problem("messages could not be answered", error)
        refusal = Refusal("internal", "this could not be answered; it was noted").encoded()
        return [refusal] * len(waiting)
