"""Segments of play: who decides a stretch of one territory, by a recorded coin, and its score.

A territory is an endless match, so it is assigned piece by piece. A segment has one player: the
incumbent (the champion, or the rules), a canary, the version that practises, or the rules of the
holdout. It ends after `live.promotion_segment` decisions or `live.promotion_segment_s`. Its score
is the mean reward of its decisions on the declared scale, without those of the wash-out at its
beginning: the player before left the state in which they were made. No player can leave out what
went badly: a decision counts whether a gate or the load answered it, one that ends without a reward
counts as a reward of 0, and a territory that ends early is scored by what it had.

The coin is thrown elsewhere (`SegmentSource`), and its record is durable before the segment begins.
Until then the incumbent decides, and nothing is counted: no decision ever waits for the disk. One
thread at a time, without I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Closing
from understudy.policy.policy import Policy
from understudy.session.status import SegmentCounts
from understudy.session.territory import TerritoryState

SegmentEnding: TypeAlias = Literal["finished", "fault", "void"]
"""`fault`: the version failed, and the incumbent plays on. `void`: it counts for no arm."""
_USUAL_SHARE = 0.01
"""What one decision adds to how long a segment usually takes."""


class SegmentPlayer(NamedTuple):
    """Who decides."""

    role: str
    """`rules`, `champion`, `canary`, `practice`, `holdout` or `newest`"""
    version: int
    """0: the rules"""
    policy: Policy | None
    """None: the rules"""


class AssignedSegment(NamedTuple):
    """A coin that was thrown, and written down."""

    order: int
    """The number of its record"""
    player: SegmentPlayer


class SegmentSource(Protocol):
    """Where segments are assigned and resolved. No call waits for anything."""

    @property
    def incumbent(self) -> SegmentPlayer:
        """Who decides outside of segments."""

    def may_play(self, player: SegmentPlayer) -> bool:
        """Whether this player was not stopped since."""

    def ask(self, territory: str) -> None:
        """An assignment for the next segment of a territory, as soon as it is durable; asking
        again before it is there changes nothing."""

    def take(self, territory: str) -> AssignedSegment | None:
        """The assignment, once it is durable; None: not yet."""

    def cancel(self, territory: str) -> None:
        """The territory is gone: its assignment, if there is or will be one, is void."""

    def resolve(self, order: int, result: float, ending: SegmentEnding, words: str = "") -> None:
        """How a segment ended; the result lies in [0, 1]."""


@dataclass(slots=True)
class RewardSum:
    """Decisions of a part of a segment, and the rewards that came for them."""

    made: int = 0
    settled: int = 0
    total: float = 0.0


@dataclass(slots=True, eq=False)
class PlayerSegment:
    """A segment that is being played, or whose last rewards are awaited."""

    order: int
    player: SegmentPlayer
    began: float
    """Monotonic"""
    washed: RewardSum = field(default_factory=RewardSum)
    """The wash-out"""
    counted: RewardSum = field(default_factory=RewardSum)
    """The rest, which is scored"""
    waiting: dict[int, RewardSum] = field(default_factory=dict)
    """Decisions that have not ended, and the part that each belongs to"""
    over: bool = False

    @property
    def made(self) -> int:
        return self.washed.made + self.counted.made


class PlayerSegments:
    """The segments of all territories of one session."""

    def __init__(self, source: SegmentSource, config: LiveConfig) -> None:
        self._source = source
        self._most = config.promotion_segment
        self._most_s = config.promotion_segment_s
        self._least = config.least_settled
        self._wash_out = round(config.wash_out * self._most)
        self._wash_out_s = config.wash_out * self._most_s
        # At one decision every few seconds the time alone would wash out one decision.
        self._fewest_washed = round(config.wash_out * self._least)
        self._usual_s: float | None = None
        """How long the fewest decisions of a segment take, by recent decisions."""
        self._low, high = score_scale(config)
        self._width = high - self._low
        self._open: dict[str, PlayerSegment] = {}
        self._of_decision: dict[int, PlayerSegment] = {}
        """Decisions that have not ended."""
        self.decided_by: Counter[str] = Counter()
        """Decisions since this start, by the role of the player."""
        self._endings: Counter[SegmentEnding] = Counter()

    @property
    def source(self) -> SegmentSource:
        return self._source

    @property
    def counts(self) -> SegmentCounts:
        return SegmentCounts(*(self._endings[one] for one in ("finished", "fault", "void")))

    @property
    def playing(self) -> dict[str, int]:
        """Territories with an open segment, by the role of its player."""
        return dict(Counter(one.player.role for one in self._open.values()))

    def player(self, territory: TerritoryState, now: float) -> SegmentPlayer:
        """Who decides the next observation of a territory; a segment ends and begins here."""
        name, source = territory.name, self._source
        keeps_up = self._keeps_up(territory)
        segment = self._open.get(name)
        if segment is not None:
            if not source.may_play(segment.player):
                self._drop(name, segment, "void", "its player was stopped")
            elif self._is_full(segment, now):
                self._end(name, segment)
            else:
                return segment.player
        assigned = source.take(name)
        if assigned is None:
            if keeps_up:
                source.ask(name)
            return source.incumbent
        if not source.may_play(assigned.player):
            self._resolve(assigned.order, 0.0, "void", "its player was stopped")
            return source.incumbent
        self._open[name] = PlayerSegment(assigned.order, assigned.player, now)
        territory.forget()  # a policy's memory begins anew with a segment
        return assigned.player

    def decided(self, territory: str, decision: int, now: float) -> None:
        """A decision of this territory is in the ledger."""
        segment = self._open.get(territory)
        if segment is None:
            return
        part = segment.counted if self._is_washed_out(segment, now) else segment.washed
        part.made += 1
        segment.waiting[decision] = part
        self._of_decision[decision] = segment

    def closed(self, closings: Iterable[Closing]) -> None:
        """Decisions have ended, with a reward or without."""
        for closing in closings:
            segment = self._of_decision.pop(closing.id, None)
            if segment is None:
                continue
            part = segment.waiting.pop(closing.id)
            if closing.state == "settled":
                part.settled += 1
                part.total += closing.reward
            if segment.over and not segment.waiting:
                self._score(segment)

    def failed(self, territory: str, words: str) -> None:
        """The version failed in this territory: the segment counts 0, the incumbent plays on."""
        segment = self._open.get(territory)
        if segment is not None:
            self._drop(territory, segment, "fault", words)

    def gone(self, territory: str) -> None:
        """A territory has ended, or its client has left it."""
        self._source.cancel(territory)
        segment = self._open.get(territory)
        if segment is not None:
            self._end(territory, segment)

    def tick(self, now: float) -> None:
        """Ends segments that are full and get no further observation, so that they hold up no
        others: segments count in the order of their assignment."""
        full = [(name, one) for name, one in self._open.items() if self._is_full(one, now)]
        for name, segment in full:
            self._end(name, segment)

    def stop(self) -> None:
        """The server ends: open segments of all arms count for none."""
        waiting = {id(one): one for one in self._of_decision.values()}
        waiting.update((id(one), one) for one in self._open.values())
        self._open.clear()
        self._of_decision.clear()
        for segment in waiting.values():
            self._resolve(segment.order, 0.0, "void", "the server ended")

    def _keeps_up(self, territory: TerritoryState) -> bool:
        """Whether a segment of this territory ends about when those of others do. Segments count in
        the order of their assignment, so one that takes minutes would hold up every verdict."""
        if territory.pace_s is None:
            return False
        takes_s = (self._fewest_washed + self._least) * territory.pace_s
        usual_s = takes_s if self._usual_s is None else self._usual_s
        self._usual_s = usual_s + _USUAL_SHARE * (takes_s - usual_s)
        return takes_s <= 2.0 * max(self._most_s, usual_s)

    def _is_full(self, segment: PlayerSegment, now: float) -> bool:
        if segment.made >= self._most:
            return True
        return now - segment.began >= self._most_s and segment.counted.made >= self._least

    def _is_washed_out(self, segment: PlayerSegment, now: float) -> bool:
        if segment.made >= self._wash_out:
            return True
        is_long = now - segment.began >= self._wash_out_s
        return is_long and segment.made >= self._fewest_washed

    def _end(self, name: str, segment: PlayerSegment) -> None:
        """No further decision belongs to it; its last rewards may still come."""
        del self._open[name]
        segment.over = True
        if not segment.waiting:
            self._score(segment)

    def _score(self, segment: PlayerSegment) -> None:
        """The mean reward; whether a segment counts must not depend on how it went."""
        if not segment.made:
            self._resolve(segment.order, 0.0, "void", "it ended before its first decision")
            return
        parts = [segment.counted]
        if segment.counted.made < self._least:  # its territory ended early
            parts.append(segment.washed)
        if not any(one.settled for one in parts):
            self._resolve(segment.order, 0.0, "finished", "no decision has a reward")
            return
        mean = sum(one.total for one in parts) / sum(one.made for one in parts)
        share = (mean - self._low) / self._width
        self._resolve(segment.order, min(1.0, max(0.0, share)), "finished")

    def _drop(self, name: str, segment: PlayerSegment, ending: SegmentEnding, words: str) -> None:
        """Ends it at once: rewards that come later do not count."""
        del self._open[name]
        for decision in segment.waiting:
            del self._of_decision[decision]
        self._resolve(segment.order, 0.0, ending, words)

    def _resolve(self, order: int, result: float, ending: SegmentEnding, words: str = "") -> None:
        self._endings[ending] += 1
        self._source.resolve(order, result, ending, words)


def score_scale(config: LiveConfig) -> tuple[float, float]:
    """The lowest and the highest mean reward: as declared, else what rewards are clipped to."""
    if not config.score:
        return -config.reward_clip, config.reward_clip
    low, high = config.score
    return low, high


def grouped(
    players: Sequence[SegmentPlayer],
) -> list[tuple[SegmentPlayer, list[int]]]:
    """Places by role and version: one forward pass for each."""
    groups: dict[tuple[str, int], tuple[SegmentPlayer, list[int]]] = {}
    for place, player in enumerate(players):
        groups.setdefault((player.role, id(player.policy)), (player, []))[1].append(place)
    return list(groups.values())
