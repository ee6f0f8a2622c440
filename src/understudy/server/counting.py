"""What a server did since it was last asked, as one event for the journal.

Its counts are in memory and begin at 0 with each start. A screen that reads the run folder alone,
also of a server that has ended, gets them from these events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from understudy.session.status import LiveStatus
from understudy.telemetry.events import ServerCounted

EVERY_S = 10.0
"""An event of about 300 bytes: less than a tenth of what the learner behind a server tells."""


class ServerCounts(NamedTuple):
    """All that a server has counted since its start."""

    live: LiveStatus
    answers: tuple[int, ...]
    """By duration (`telemetry.latency`)."""
    connections: int
    refusals: Mapping[str, int]
    """Of the server itself, by code."""

    @property
    def errors(self) -> Counter[str]:
        """Refused messages and connections, by code."""
        return Counter(self.live.errors) + Counter(self.refusals)


def counted(before: ServerCounts | None, now: ServerCounts, *, seconds: float) -> ServerCounted:
    """What came between two readings; `before` None: since the start."""
    live, old = now.live, None if before is None else before.live
    answers = now.answers
    if before is not None:
        answers = tuple(new - one for new, one in zip(answers, before.answers, strict=True))
    return ServerCounted(
        seconds=seconds,
        gate=live.gate,
        clients=live.clients,
        connections=now.connections,
        territories=live.territories,
        decisions=live.decisions - (old.decisions if old else 0),
        sent=live.sent - (old.sent if old else 0),
        waited=live.waited - (old.waited if old else 0),
        explored=live.explored - (old.explored if old else 0),
        degraded=live.degraded - (old.degraded if old else 0),
        gate_misses=live.gate_misses - (old.gate_misses if old else 0),
        answers=_without_empty_end(answers),
        errors=_more(now.errors, before.errors if before else {}),
        safe_actions=_more(live.safe_actions, old.safe_actions if old else {}),
        decided_by=_more(live.decided_by, old.decided_by if old else {}),
    )


def worth_telling(event: ServerCounted, last: ServerCounted | None) -> bool:
    """Whether anything happened: an idle server writes nothing."""
    if event.decisions or event.answers or event.errors:
        return True
    return _there(event) != ((0, 0, 0) if last is None else _there(last))


def _there(event: ServerCounted) -> tuple[int, int, int]:
    return event.clients, event.connections, event.territories


def _more(now: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    grown = {name: count - before.get(name, 0) for name, count in now.items()}
    return {name: count for name, count in grown.items() if count > 0}


def _without_empty_end(counts: Sequence[int]) -> tuple[int, ...]:
    end = len(counts)
    while end and not counts[end - 1]:
        end -= 1
    return tuple(counts[:end])
