"""Rate limits (token buckets) per client, per address and in total, without a clock.

Memory is bounded: a sender is forgotten once its bucket is full again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, NamedTuple, TypeAlias

Beyond: TypeAlias = Literal["each", "address", "total"]
"""The limit that was reached"""
_SWEPT = 2
"""Old entries visited for each new one: enough to keep up, without a pause."""


class _Bucket(NamedTuple):
    """Messages left, and when that was."""

    left: float
    at: float


class Rate:
    """At most `per_s` messages a second from one sender, and as many at once after a pause."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._full = max(per_s, 1.0)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def left(self, sender: str, now: float) -> float:
        """How many messages of this sender are within the rate now."""
        bucket = self._buckets.get(sender)
        if bucket is None:
            return self._full
        # A clock that goes back must not reduce what is left.
        return min(self._full, bucket.left + max(0.0, now - bucket.at) * self._per_s)

    def wait_s(self, sender: str, count: int, now: float) -> float:
        """Seconds until so many messages of this sender are within the rate; 0: they are."""
        return max(0.0, (count - self.left(sender, now)) / self._per_s)

    def allow(self, sender: str, now: float) -> bool:
        """Whether this message is within the rate; a refused one costs nothing."""
        left = self.left(sender, now)
        if sender not in self._buckets:
            self._sweep(now)
        allowed = left >= 1.0
        self._buckets[sender] = _Bucket(left - allowed, now)
        self._buckets.move_to_end(sender)
        return allowed

    def __len__(self) -> int:
        """How many senders are remembered."""
        return len(self._buckets)

    def _sweep(self, now: float) -> None:
        """Forget the oldest senders whose bucket is full again."""
        for _ in range(min(_SWEPT, len(self._buckets))):
            sender, bucket = next(iter(self._buckets.items()))
            if now - bucket.at < self._full / self._per_s:
                return
            del self._buckets[sender]


class Rates:
    """At most `each` messages a second from one sender, `address` from one address, and `total`
    from all of them together."""

    def __init__(self, *, each: float, address: float, total: float) -> None:
        self._each, self._address, self._total = Rate(each), Rate(address), Rate(total)

    def take(self, sender: str, address: str | None, now: float) -> Beyond | None:
        """Count one message; the limit that it exceeds, if any.

        A message that is refused to one sender takes nothing from the others. An unknown address
        (None) has no limit.
        """
        if not self._each.allow(sender, now):
            return "each"
        if address is not None and not self._address.allow(address, now):
            return "address"
        return None if self._total.allow("", now) else "total"

    def allowance(self, now: float) -> int:
        """Messages of all senders together that are within the rate now."""
        return int(self._total.left("", now))

    def wait_s(self, sender: str, count: int, now: float) -> float:
        """Seconds until so many messages are within the rate of this sender."""
        return self._each.wait_s(sender, count, now)
