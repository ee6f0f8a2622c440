"""One match of brawl to look at: who plays on which side, scene by scene, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl.drawing.match import Event, MatchDrawing
from understudy.games.brawl.drawing.scene import FRAMES_PER_S, Scene
from understudy.judging.players import NamedPlayer, PlayerResolver
from understudy.match.duel import Duel, witnessed
from understudy.match.live_match import EVALUATION, match_seeds

_MOMENTS = 6
_APART = FRAMES_PER_S
_WEIGHT = {"won": 0, "drawn": 0, "knocked_out": 1, "combo": 2, "equipped": 3, "dropped": 4}


class WatchedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a match; the names are those that the drawing uses."""

    game: str
    left: str
    right: str
    seed: int
    winner: str | None
    frames: int
    time_s: float
    stocks: tuple[int, int]
    """Left and right."""
    events: list[Event]


class Showing:
    """One match, frozen; left really starts on the left."""

    def __init__(
        self, resolver: PlayerResolver, left: NamedPlayer, right: NamedPlayer, *, seed: int
    ) -> None:
        drawn = catalog.drawn()
        if resolver.game.name not in drawn:
            raise ConfigError(
                f"watch: {', '.join(drawn)} can be drawn, {resolver.game.name} cannot"
            )
        self._duel = Duel(resolver.game, left.player, ((right.player, 1),))
        self._seeds = match_seeds(seed, np.arange(1), purpose=EVALUATION)
        places = resolver.game.start(NUMPY, self._seeds).x[:, 0]
        self._second = np.array([places[0] > places[1]])
        slots = (1, 0) if self._second[0] else (0, 1)
        self._seed = seed
        self._last: Scene | None = None
        self.drawing = MatchDrawing((left.name, right.name), slots)

    def scenes(self) -> Iterator[Scene]:
        """The match, once, as it is played."""
        for state in witnessed(self._duel, self._seeds, self._second):
            self._last = self.drawing.scene(state)
            yield self._last

    def outcome(self) -> WatchedResult:
        """After the last scene."""
        if self._last is None:
            raise ValueError("the match has not been played")
        left, right = self.drawing.names
        end = self.drawing.events[-1]
        one, two = self._last.panels
        return WatchedResult(
            game=self._duel.game.name,
            left=left,
            right=right,
            seed=self._seed,
            winner=end.who if end.event == "won" else None,
            frames=self._last.frame,
            time_s=round(self._last.frame / FRAMES_PER_S, 2),
            stocks=(one.stocks, two.stocks),
            events=self.drawing.events,
        )


def moments(scenes: Sequence[Scene], events: Sequence[Event]) -> list[tuple[str, Scene]]:
    """At most six scenes that tell the match, with captions, in order: what mattered first."""
    chosen: dict[int, str] = {}
    for event in sorted(events, key=lambda one: _WEIGHT[one.event]):
        ends = _WEIGHT[event.event] == 0
        apart = all(abs(event.frame - frame) >= _APART for frame in chosen)
        if len(chosen) < _MOMENTS and (ends or apart):
            chosen[event.frame] = str(event)
    for share in (0.0, 0.5, 0.25, 0.75):  # a match in which little happened
        frame = int(share * (len(scenes) - 1))
        if len(chosen) < 4 and all(abs(frame - one) >= _APART for one in chosen):
            chosen[frame] = "the start" if frame == 0 else "still fighting"
    return [
        (f"{frame / FRAMES_PER_S:.1f} s: {words}", scenes[min(frame + 2, len(scenes) - 1)])
        for frame, words in sorted(chosen.items())
    ]
