"""Territories: whose they are, where each of them stands, and when one is forgotten.

A territory belongs to the client that named it first, by the client's id and not its connection, so
that whoever comes back goes on. Nothing here looks at all territories: the quiet ones are in front.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from understudy.core.ops import Tree
from understudy.experience.ledger import Opened
from understudy.live.limits import Quota
from understudy.live.protocol import Decision, Error
from understudy.live.translation import Sight


@dataclass(slots=True)
class Waiting:
    """A decision whose reward the next observation will tell."""

    opened: Opened
    sight: Sight


@dataclass(slots=True)
class Territory:
    """One endless match."""

    name: str
    client: str
    quiet_since: float
    """Monotonic: a wall clock that is set must neither forget a territory nor keep it"""
    tick: int | None = None
    """Of its last observation"""
    last: Decision | None = None
    """What that was answered with"""
    waiting: Waiting | None = None
    decisions: int = 0
    memory: Tree | None = None
    """What the policy carries, arrays without a batch axis; None: nothing yet"""
    version: int = -1
    """Whose memory that is"""
    remembered: int = 0
    """Decisions in that memory"""
    severed: bool = False
    """What the policy carries was emptied: the next decision is the first one of a segment"""
    bootstrap: bytes | None = None
    """float32 [F] that was seen and answered without the ledger: what came before ends there"""

    def forget(self) -> None:
        """Empty its memory."""
        self.memory, self.remembered, self.severed = None, 0, True


class Territories:
    """All of them, by name."""

    def __init__(self, *, per_client: int, in_all: int) -> None:
        self._by_name: OrderedDict[str, Territory] = OrderedDict()
        self._quota = Quota(each=per_client, total=in_all)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_name)

    def get(self, name: str) -> Territory | None:
        """The one of that name."""
        return self._by_name.get(name)

    def add(self, name: str, client: str, now: float) -> Territory | Error:
        """A new one, where there is room."""
        full = self._quota.take(client)
        if full is not None:
            whose = "this client has" if full == "each" else "the server has"
            return Error(
                code="too_many_territories",
                message=f"{whose} as many territories as it may; end some first",
            )
        self._by_name[name] = territory = Territory(name, client, now)
        return territory

    def touch(self, territory: Territory, now: float) -> None:
        """Something was heard of it."""
        territory.quiet_since = now
        self._by_name.move_to_end(territory.name)

    def remove(self, territory: Territory) -> None:
        """It is over."""
        del self._by_name[territory.name]
        self._quota.give_back(territory.client)

    def quiet_since(self, at: float) -> list[Territory]:
        """Those of which nothing was heard from `at` on; looks at no others."""
        found = []
        for territory in self._by_name.values():
            if territory.quiet_since >= at:
                break
            found.append(territory)
        return found
