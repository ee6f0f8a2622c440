"""What versions and features did wrong in a bot: each is printed once, and kept for the journal.

`decide` calls `failed` and `not_finite`, so nothing here waits for a disk: `finish` writes what
`take_new` returns.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from understudy.policy.policy import Policy
from understudy.telemetry.text import complain


class BotFaults:
    """The versions that failed, and the features that were not finite. Threads may share it."""

    def __init__(self) -> None:
        self._versions: dict[int, str] = {}
        """Versions that failed, with how, the first time."""
        self._new: list[int] = []
        self._features: set[str] = set()
        self._lock = threading.Lock()

    def failed(self, version: int, words: str) -> None:
        """A version lost a match to the rules by what it did."""
        with self._lock:
            known = version in self._versions
            if not known:
                self._versions[version] = words
                self._new.append(version)
        if not known:
            complain(f"version {version} failed, and the rules play on: {words}")

    def not_finite(self, broken: Mapping[str, float], decision: int) -> None:
        """Features without a finite value. Not for the journal: the match counts them."""
        for name in sorted(broken.keys() - self._features):
            self._features.add(name)
            complain(
                f"feature {name!r} is {broken[name]} at decision {decision}: the fallback decides, "
                "here and wherever it is not finite again (`understudy status` counts those)"
            )

    def may_decide(self, policy: Policy) -> bool:
        """Whether a policy may decide to learn, in a cameo or in practice: it is trained, and never
        failed in this bot."""
        return policy.version != 0 and policy.version not in self._versions

    def take_new(self) -> list[str]:
        """What the journal does not have yet, in words."""
        with self._lock:
            new, self._new = self._new, []
            return [f"version {version} failed: {self._versions[version]}" for version in new]
