"""How far the newest version decides as the rules do: one count for the bot and for its screens."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from understudy.telemetry.events import MatchFinished

_RECENT_DECISIONS = 500
_FEWEST_DECISIONS = 200
_PLAYED_BY_RULES = ("", "rules", "holdout")
"""Roles; empty: not said, in older journals."""


def compares_with_rules(match: MatchFinished) -> bool:
    """Whether the rules played a match while a trained version was asked as well. An untrained
    network agrees by chance, and tells of no version."""
    return bool(match.fallback and match.version) and match.role in _PLAYED_BY_RULES


class RulesAgreement:
    """How often the likeliest action of the newest version was that of the rules, in their recent
    matches. Threads may share it."""

    def __init__(self, matches: Iterable[tuple[int, int]] = ()) -> None:
        self._matches: deque[tuple[int, int]] = deque(matches)
        self._decisions = sum(decisions for _, decisions in self._matches)
        self._lock = threading.Lock()

    def state(self) -> list[tuple[int, int]]:
        """All that is kept; the constructor takes it back."""
        with self._lock:
            return list(self._matches)

    def add(self, agreed: int, decisions: int) -> None:
        """A match in which the rules made so many decisions, and the policy agreed with some."""
        self.extend([(agreed, decisions)])

    def extend(self, matches: Sequence[tuple[int, int]]) -> None:
        """Several matches: agreements and decisions of each."""
        with self._lock:
            self._matches += matches
            self._decisions += sum(decisions for _, decisions in matches)
            while self._matches and self._decisions - self._matches[0][1] >= _RECENT_DECISIONS:
                self._decisions -= self._matches.popleft()[1]

    @property
    def share(self) -> float | None:
        """None: too few decisions so far."""
        with self._lock:
            if self._decisions < _FEWEST_DECISIONS:
                return None
            return sum(agreed for agreed, _ in self._matches) / self._decisions
