"""How much one client may ask for, and all of them together: counts and rates, without a clock.

Nothing here grows with time: a client that went quiet is forgotten as soon as that makes no
difference to it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Literal, NamedTuple

_SWEPT = 2
"""Old entries looked at for every new one: enough to keep up, and never a pause."""


class _Bucket(NamedTuple):
    """What was left of an allowance, and when."""

    left: float
    at: float


class Rate:
    """At most `per_s` messages a second from one sender, and as many at once after a silence."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._full = max(per_s, 1.0)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def allow(self, sender: str, now: float) -> bool:
        """Whether this message is within the rate; a refused one costs nothing."""
        bucket = self._buckets.get(sender)
        if bucket is None:
            self._sweep(now)
            left = self._full
        else:
            # A clock that was set back must not take anything away.
            left = min(self._full, bucket.left + max(0.0, now - bucket.at) * self._per_s)
        allowed = left >= 1.0
        self._buckets[sender] = _Bucket(left - allowed, now)
        self._buckets.move_to_end(sender)
        return allowed

    def __len__(self) -> int:
        """How many senders are remembered."""
        return len(self._buckets)

    def _sweep(self, now: float) -> None:
        """Forget senders whose allowance is full again: they are as good as new."""
        for _ in range(min(_SWEPT, len(self._buckets))):
            sender, bucket = next(iter(self._buckets.items()))
            if now - bucket.at < self._full / self._per_s:
                return
            del self._buckets[sender]


class Rates:
    """At most `each` messages a second from one sender, and `total` from all of them together."""

    def __init__(self, *, each: float, total: float) -> None:
        self._each, self._total = Rate(each), Rate(total)

    def take(self, sender: str, now: float) -> Literal["each", "total"] | None:
        """One more message; or, where it is too much, which limit stands in the way.

        What is refused to one sender takes nothing from the others.
        """
        if not self._each.allow(sender, now):
            return "each"
        return None if self._total.allow("", now) else "total"


class Quota:
    """At most `each` things of one owner, and `total` of all owners together."""

    def __init__(self, *, each: int, total: int) -> None:
        self._each = each
        self._total = total
        self._held: Counter[str] = Counter()
        self._all = 0

    def take(self, owner: str) -> Literal["each", "total"] | None:
        """One more; or, where there can be none, which limit stands in the way."""
        if self._held[owner] >= self._each:
            return "each"
        if self._all >= self._total:
            return "total"
        self._held[owner] += 1
        self._all += 1
        return None

    def give_back(self, owner: str) -> None:
        """One less."""
        self._held[owner] -= 1
        self._all -= 1
        if not self._held[owner]:
            del self._held[owner]

    @property
    def owners(self) -> int:
        """How many have anything."""
        return len(self._held)
