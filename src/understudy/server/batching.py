"""Batching: messages that wait in one turn of the event loop share one call of the session.

All of it happens in the loop's thread, so there is nothing to lock: whoever reads a message puts it
here, and one callback a turn answers what came. Each connection has a line of its own and is
answered in its order; a batch takes from all lines in turn, so that whoever sends much delays
nobody, and messages of one territory are rarely in one batch (they could not be decided together).
What is beyond the queue of its connection, or has waited too long, gets a `degraded` answer at
once: nothing is ever left without one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

from understudy.live.session import Incoming, Outgoing
from understudy.server.latency import Latency
from understudy.server.refusal import Refusal

LATE_AFTER_S = 1.0
_MOST = 256
"""Messages of a batch, about: some tens of milliseconds of work, in which nobody else is heard."""
_MOST_LATE = 1024
"""The same for safe actions, which take less."""


class Receiver(Protocol):
    """What answers: `live.session.Session`."""

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in their order."""


class Asker(Protocol):
    """Whoever waits for answers: a connection, or a request."""

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
        self._lines: dict[Asker, deque[_Waiting]] = {}
        self._due = False
        self.latency = Latency()
        self.batches = 0

    def put(self, client: str, data: bytes, asker: Asker, *, address: str | None = None) -> None:
        """A message that will be answered soon."""
        line = self._lines.get(asker)
        if line is None:
            line = self._lines[asker] = deque()
        line.append(_Waiting(Incoming(client, data, address), asker, perf_counter()))
        self._soon()

    def flush(self) -> None:
        """Answer what waits: all of it, or as much as one turn of the loop should take."""
        self._due = False
        late = self._late(perf_counter())
        prompt = self._prompt() if len(late) < _MOST_LATE else []
        self._lines = {asker: line for asker, line in self._lines.items() if line}
        # The late ones first: they are the older ones of their connections.
        for waiting, degraded in ((late, True), (prompt, False)):
            if waiting:
                self._answer(waiting, degraded=degraded)
        if self._lines:
            self._soon()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def _late(self, now: float) -> list[_Waiting]:
        """The heads of lines that are too long or waited too long."""
        late: list[_Waiting] = []
        for line in self._lines.values():
            while line and (len(line) > self._queue or now - line[0].since > LATE_AFTER_S):
                late.append(line.popleft())
            if len(late) >= _MOST_LATE:
                break
        return late

    def _prompt(self) -> list[_Waiting]:
        """One of each line, then another of each, until there are enough."""
        prompt: list[_Waiting] = []
        lines = list(self._lines.values())
        while lines and len(prompt) < _MOST:
            lines = [line for line in lines if line]
            prompt += [line.popleft() for line in lines]
        return prompt

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
        nobody knows what took effect, and asking again could do it twice."""
        inbox = [one.incoming for one in waiting]
        self.batches += 1
        try:
            return [one.data for one in self._session.receive(inbox, degraded=degraded)]
        except Exception as error:  # noqa: BLE001  the connection boundary: the server goes on
            self._problem("messages could not be answered", error)
        refusal = Refusal("internal", "this could not be answered; it was noted").encoded()
        return [refusal] * len(waiting)
