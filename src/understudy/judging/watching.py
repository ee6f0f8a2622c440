"""One match of brawl to look at, played now or recorded: scene by scene, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.base import State
from understudy.games.brawl.drawing.match import Event, MatchDrawing
from understudy.games.brawl.drawing.scene import FRAMES_PER_S, Scene
from understudy.judging.players import NamedPlayer, PlayerResolver
from understudy.judging.replays import replay_here
from understudy.match.duel import Duel, witnessed
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.recordings import RecordedMatch, RecordingMeta

_MOMENTS = 6
_APART = FRAMES_PER_S
_WEIGHT = {"won": 0, "drawn": 0, "knocked_out": 1, "combo": 2, "equipped": 3, "dropped": 4}


class WatchedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    match: str = ""
    """`RUN:ID` of a recorded match."""
    recorded: RecordingMeta | None = None
    """What is known of it."""


class Showing:
    """One match; left really starts on the left."""

    def __init__(
        self, states: Iterator[State], drawing: MatchDrawing, result: WatchedResult
    ) -> None:
        """`result`: all that is known before the match."""
        self._states = states
        self._result = result
        self._last: Scene | None = None
        self.drawing = drawing

    @classmethod
    def frozen(
        cls, resolver: PlayerResolver, left: NamedPlayer, right: NamedPlayer, *, seed: int
    ) -> Showing:
        """A match of frozen players, played as it is watched."""
        check_drawn(resolver.game.name)
        duel = Duel(resolver.game, left.player, ((right.player, 1),))
        seeds = match_seeds(seed, np.arange(1), purpose=EVALUATION)
        players = _players(resolver.game.start(NUMPY, seeds))
        second = np.array([players == (1, 0)])
        drawing = MatchDrawing((left.name, right.name), players)
        return cls(
            witnessed(duel, seeds, second), drawing, _unplayed(resolver.game.name, drawing, seed)
        )

    @classmethod
    def recorded(cls, match: RecordedMatch, *, run: str, name: str) -> Showing:
        """A recorded match, `name`d RUN:ID: replayed whole and compared before anything of it is
        shown; one that is not what was played is an error."""
        meta = match.meta
        check_drawn(meta.game)
        states = replay_here(match, what=name)
        players = (run, meta.opponent) if meta.side == 0 else (meta.opponent, run)
        left, right = _players(states[0])
        drawing = MatchDrawing((players[left], players[right]), (left, right))
        unplayed = _unplayed(meta.game, drawing, meta.seed)
        result = msgspec.structs.replace(unplayed, match=name, recorded=meta)
        return cls(iter(states), drawing, result)

    def scenes(self) -> Iterator[Scene]:
        """The match, once."""
        for state in self._states:
            self._last = self.drawing.scene(state)
            yield self._last

    def outcome(self) -> WatchedResult:
        """After the last scene."""
        if self._last is None:
            raise ValueError("the match has not been played")
        end = self.drawing.events[-1]
        one, two = self._last.panels
        return msgspec.structs.replace(
            self._result,
            winner=end.who if end.event == "won" else None,
            frames=self._last.frame,
            time_s=round(self._last.frame / FRAMES_PER_S, 2),
            stocks=(one.stocks, two.stocks),
            events=self.drawing.events,
        )


def check_drawn(game: str) -> None:
    """A game that cannot be drawn is an error."""
    drawn = catalog.drawn()
    if game not in drawn:
        raise ConfigError(f"watch: {', '.join(drawn)} can be drawn, {game} cannot")


def _players(start: State) -> tuple[int, int]:
    """The players that start on the left and on the right."""
    places = start.x[:, 0]
    return (1, 0) if places[0] > places[1] else (0, 1)


def _unplayed(game: str, drawing: MatchDrawing, seed: int) -> WatchedResult:
    left, right = drawing.names
    return WatchedResult(
        game=game,
        left=left,
        right=right,
        seed=seed,
        winner=None,
        frames=0,
        time_s=0.0,
        stocks=(0, 0),
        events=[],
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
