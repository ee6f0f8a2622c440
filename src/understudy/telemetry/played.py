"""Win rates by player, mode and tag, counted from the journal in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

import msgspec

from understudy.core.statistics import wilson
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry

_COUNTED = ("wins", "draws", "losses", "aborted")
_LOSSES, _ABORTED = 2, 3
_RESULTS = {"victory": 0, "tie": 1, "defeat": _LOSSES}
"""Places in `_COUNTED`."""
_ALL_MATCHES = ("", "")
"""In place of a tag and its value."""
_Key: TypeAlias = tuple[str, str, str, int]
"""Player, mode, tag and version."""
COLUMNS = (
    "player", "version", "mode", "tag", "matches", "wins", "draws", "losses", "aborted",
    "win_rate", "low", "high",
)  # fmt: skip
"""The columns of `win_rates.csv`."""


class PlayedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Matches of one player in one mode, all of them or those with one tag."""

    player: str
    """`rules` (`played_by_rules`), `practice` (all versions that practised
    together: another one plays every few matches), `untrained` or `version 12`."""
    version: int
    """0: the rules, practice, or the untrained policy."""
    mode: str
    tag: str = ""
    """`opponent=Zerg`; empty: all matches."""
    wins: int = 0
    draws: int = 0
    losses: int = 0
    aborted: int = 0

    @property
    def matches(self) -> int:
        """Those with a result."""
        return self.wins + self.draws + self.losses

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the win rate."""
        return wilson(self.wins, self.matches)

    @property
    def win_rate(self) -> float | None:
        return self.wins / self.matches if self.matches else None


def played_by_rules(e: ev.MatchFinished) -> bool:
    """Whether the rules played a match: it was theirs, whatever the policy decided in cameos. A
    match that was assigned to no player is theirs if they made most decisions."""
    if e.fault:
        return False
    if e.role in ("", "newest"):
        return 2 * e.fallback > e.decisions
    return e.role in ("rules", "holdout")


class PlayedFold:
    """Adds matches up. `limit` bounds how many records are kept: those with the most matches."""

    def __init__(self, *, limit: int | None = None, records: Iterable[PlayedRecord] = ()) -> None:
        self._limit = limit
        self._counts: dict[_Key, list[int]] = {
            (one.player, one.mode, one.tag, one.version): [getattr(one, name) for name in _COUNTED]
            for one in records
        }
        """Numbers of `_COUNTED`."""
        self._found: dict[tuple[str | int, str], _CountsByTag] = {}
        """The same numbers by player and mode, then by tag: a match has several tags, and a long
        journal is read faster without making the key of each."""

    def state(self) -> list[PlayedRecord]:
        """All that is kept, in its order; the constructor takes it back as `records`."""
        return [_record(key, counts) for key, counts in self._counts.items()]

    def add(self, e: ev.MatchFinished, *, mode: str) -> None:
        """One more match; `mode` is that of the bot, where the event does not say it.

        A match that a version gave to the rules by a fault is a loss of that version.
        """
        self.extend((e,), mode=mode)

    def extend(self, matches: Iterable[ev.MatchFinished], *, mode: str) -> None:
        """Several matches, each as `add` would."""
        for e in matches:
            player: str | int
            if e.fault:
                player = "practice" if e.role == "practice" else e.assigned
                result = _LOSSES
            else:
                rules = played_by_rules(e)
                player = "rules" if rules else "practice" if e.role == "practice" else e.version
                result = _RESULTS.get(e.outcome, _ABORTED)
            place = player, e.mode or mode
            theirs = self._found.get(place)
            if theirs is None:
                theirs = self._found[place] = _CountsByTag(self._counts, *place)
            theirs[_ALL_MATCHES][result] += 1
            for tag in e.tags.items():
                theirs[tag][result] += 1
            if self._limit is not None and len(self._counts) > 2 * self._limit:
                self._forget_least_played(self._limit)

    def _forget_least_played(self, limit: int) -> None:
        """Called when twice as many as the limit have gathered, so that a new player has time to
        get its matches."""
        kept = set(self._most_played(limit))
        self._counts = {key: one for key, one in self._counts.items() if key in kept}
        self._found.clear()

    def records(self, most: int | None = None) -> list[PlayedRecord]:
        """Players first, then players by tag; of both the most played."""
        return [_record(key, self._counts[key]) for key in self._most_played(most)]

    def _most_played(self, most: int | None) -> list[_Key]:
        whole: list[tuple[int, _Key]] = []
        tagged: list[tuple[int, _Key]] = []
        for key, (wins, draws, losses, _) in self._counts.items():
            (tagged if key[2] else whole).append((wins + draws + losses, key))
        for keys in (whole, tagged):
            keys.sort(key=itemgetter(0), reverse=True)
        if most is not None and len(self._counts) > most:
            del whole[most // 2 :]
            del tagged[most - len(whole) :]
        return [key for _, key in chain(whole, tagged)]


class _CountsByTag(dict[tuple[str, str], list[int]]):
    """The numbers of one player in one mode. A tag that is new is put into `counts` as well."""

    def __init__(self, counts: dict[_Key, list[int]], player: str | int, mode: str) -> None:
        super().__init__()
        self._counts = counts
        self._version = player if isinstance(player, int) else 0
        untrained = "untrained" if player == 0 else f"version {player}"
        self._player = player if isinstance(player, str) else untrained
        self._mode = mode

    def __missing__(self, tag: tuple[str, str]) -> list[int]:
        words = "" if tag is _ALL_MATCHES else "=".join(tag)
        key = self._player, self._mode, words, self._version
        self[tag] = found = self._counts.setdefault(key, [0] * len(_COUNTED))
        return found


def _record(key: _Key, counts: list[int]) -> PlayedRecord:
    player, mode, tag, version = key
    counted = dict(zip(_COUNTED, counts, strict=True))
    return PlayedRecord(player=player, version=version, mode=mode, tag=tag, **counted)


def played_rows(entries: Iterable[Entry]) -> Iterator[tuple[object, ...]]:
    """One row of `COLUMNS` for each player, mode and tag in a journal."""
    fold, mode = PlayedFold(), ""
    for entry in entries:
        match entry.e:
            case ev.BotStarted() as e:
                mode = e.mode
            case ev.MatchFinished() as e:
                fold.add(e, mode=mode)
    for one in fold.records():
        rate = "" if one.win_rate is None else f"{one.win_rate:.4f}"
        low, high = (f"{bound:.4f}" for bound in one.interval)
        yield (
            one.player, one.version, one.mode, one.tag, one.matches, one.wins, one.draws,
            one.losses, one.aborted, rate, low, high,
        )  # fmt: skip
