"""Batching: messages that wait in one turn of the event loop share one call of the session.

Everything runs in the loop's thread, so there are no locks: connections put messages here, and one
callback a turn answers them. Each connection has its own line (a queue) and is answered in its
order. A batch takes one message of each line in turn, and at least one of every line: the message
at the head of a line is in the next batch, however long the other lines are, and messages of one
territory are rarely in one batch (they cannot be decided together).
A message beyond the queue of its connection, or one that has waited too long, gets a `degraded`
answer. A connection whose line is full waits in `room` and is not read meanwhile, so that the
peer's socket buffer fills up and not this process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

from understudy.session.inbox import Incoming
from understudy.session.session import Outgoing
from understudy.telemetry.latency import Latency
from understudy.web.refusal import Refusal

LATE_AFTER_S = 1.0
_MOST = 128
"""About how many messages a batch has: some ten milliseconds of work without reading sockets."""
_FULL = 2
"""A line of this many times `queue` is full; its older half is answered `degraded`."""
_RATE_PAUSE_S = 0.005
"""Until the next batch, where the rate of all clients allows no message now."""


class Receiver(Protocol):
    """The part of `session.Session` that answers."""

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in their order."""

    def allowance(self) -> int:
        """How many messages are within the rate of all clients now."""


class Asker(Protocol):
    """A connection or a request that waits for answers."""

    def tell(self, messages: Sequence[bytes]) -> None:
        """The answers to what it put, in that order; never blocks, never raises."""


class _Waiting(NamedTuple):
    incoming: Incoming
    asker: Asker
    since: float


class Batching:
    """The queue between connections and the session."""

    def __init__(
        self, session: Receiver, *, queue: int, problem: Callable[[str, Exception], None]
    ) -> None:
        self._session = session
        self._queue = queue
        self._problem = problem
        self._lines: OrderedDict[Asker, deque[_Waiting]] = OrderedDict()
        """In the order of their turns; none is empty."""
        self._full: dict[Asker, asyncio.Event] = {}
        """Connections that wait for room in their line."""
        self._due = False
        self.latency = Latency()
        self.batches = 0

    def put(self, client: str, data: bytes, asker: Asker, *, address: str | None = None) -> None:
        """Queue a message; `asker` gets the answer."""
        line = self._lines.get(asker)
        if line is None:
            line = self._lines[asker] = deque()
        line.append(_Waiting(Incoming(client, data, address), asker, perf_counter()))
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def waiting(self, asker: Asker) -> int:
        """How many messages are in its line."""
        return len(self._lines.get(asker, ()))

    async def room(self, asker: Asker) -> None:
        """Returns once its line is not full."""
        if self._is_full(asker):
            await self._full.setdefault(asker, asyncio.Event()).wait()

    def flush(self) -> None:
        """Answer one message of each line, and more up to the size of a batch."""
        self._due = False
        late, prompt = self._taken(perf_counter())
        # Late ones first: they are older than the others of their connection.
        for waiting, degraded in ((late, True), (prompt, False)):
            if waiting:
                self._answer(waiting, degraded=degraded)
        self._make_room()
        if not self._lines or self._due:
            return
        self._due = True
        loop = asyncio.get_running_loop()
        if late or prompt:
            # One turn of the loop later, so that what the sockets have now is in the next batch.
            loop.call_soon(loop.call_soon, self.flush)
        else:
            loop.call_later(_RATE_PAUSE_S, self.flush)

    def _taken(self, now: float) -> tuple[list[_Waiting], list[_Waiting]]:
        """The heads of the lines, in turn: those too late to be decided, and the others."""
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
        # Not later: then all lines would have more room in one turn, and be read at once.
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
        """The session's answers. If it raises, it is unknown which messages took effect; another
        try could apply some twice, so all get an error."""
        inbox = [one.incoming for one in waiting]
        self.batches += 1
        try:
            return [one.data for one in self._session.receive(inbox, degraded=degraded)]
        except Exception as error:  # noqa: BLE001  the connection boundary: the server goes on
            self._problem("messages could not be answered", error)
        refusal = Refusal("internal", "this could not be answered; it was noted").encoded()
        return [refusal] * len(waiting)
