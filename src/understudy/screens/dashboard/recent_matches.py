"""The newest matches of a bot by opponent and tag, from the end of its journals.

The summaries of a journal hold neither curves by tag nor all small counts: they would grow with
every opponent, and a bot decodes summaries beside its game. So a page reads the newest matches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

from understudy.screens.dashboard.page import RunReading
from understudy.telemetry import events as ev
from understudy.telemetry.journal import SUFFIX, Entry, Reader
from understudy.telemetry.played import played_by_rules
from understudy.telemetry.trends import Trend, Trends

OPPONENT = "opponent"
"""The tag whose values have curves."""
Player: TypeAlias = Literal["policy", "rules"]
Won: TypeAlias = tuple[int, int]
"""Wins, and matches with a result."""
_BYTES = 4 * 2**20
"""Of journals that are read at first: some ten thousand matches."""
_VALUES, _TAGS = 64, 32
"""Of a tag: one with more, such as a seed, tells nothing apart. Tags: names are a bot's words."""
_WON = {"victory": 1, "tie": 0, "defeat": 0}


class RecentMatches:
    """Results of policy and rules, read as journals grow. One thread."""

    def __init__(self, journals: Path, *, newest_bytes: int = _BYTES) -> None:
        self._reader = Reader(journals, _beginnings(journals, newest_bytes))
        self.all: dict[Player, Won] = {}
        self._tags: dict[str, dict[str, dict[Player, Won]]] = {}
        self._trends: Trends = defaultdict(Trend)

    def read_on(self) -> RecentMatches:
        """Add what is new."""
        self._add(self._reader.stream())
        return self

    @property
    def matches(self) -> int:
        """With a result, of both."""
        return sum(matches for _, matches in self.all.values())

    def tags(self) -> dict[str, dict[str, dict[Player, Won]]]:
        """Results by tag and value; a tag with very many values is left out."""
        return {tag: values for tag, values in self._tags.items() if len(values) <= _VALUES}

    def by_opponent(self) -> Trends:
        """Win rates of the policy over time, the opponent that it met most first."""
        trends = self._trends
        ordered = sorted(trends, key=lambda name: (-trends[name].weight, name))
        return {name: trends[name] for name in ordered}

    def _add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            e = entry.e
            if not isinstance(e, ev.MatchFinished) or e.outcome not in _WON:
                continue
            who: Player = "rules" if played_by_rules(e) else "policy"
            won = 0 if e.fault else _WON[e.outcome]
            _count(self.all, who, won)
            for tag, value in e.tags.items():
                values = self._tags.get(tag)
                if values is None:
                    if len(self._tags) >= _TAGS:
                        continue
                    values = self._tags[tag] = {}
                if value in values or len(values) <= _VALUES:
                    _count(values.setdefault(value, {}), who, won)
            name = e.tags.get(OPPONENT)
            if who == "policy" and name in self._tags.get(OPPONENT, {}):
                self._trends[name].add(entry.t, float(won), e.version)


def recent_matches(reading: RunReading) -> RecentMatches | None:
    """Of a bot's run; None: of another, where results are known by opponent."""
    if reading.kind != "ring":
        return None
    journals = reading.folder.journal
    recent = reading.cache.read("recent matches", journals, lambda: RecentMatches(journals))
    return reading.cache.read("read matches", reading.folds.entries, recent.read_on)


def _count(results: dict[Player, Won], who: Player, won: int) -> None:
    wins, matches = results.get(who, (0, 0))
    results[who] = wins + won, matches + 1


def _beginnings(journals: Path, newest_bytes: int) -> dict[str, int]:
    """Where to begin in each journal, so that the newest bytes are read. It may be within a line:
    what is left of that is no entry, and is passed over."""
    stats = [(path.name, path.stat()) for path in journals.glob(f"*{SUFFIX}")]
    offsets, left = {}, newest_bytes
    for name, stat in sorted(stats, key=lambda one: -one[1].st_mtime):
        offsets[name] = max(stat.st_size - left, 0)
        left = max(left - stat.st_size, 0)
    return offsets
