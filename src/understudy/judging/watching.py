"""One match to look at, played now or recorded: scene by scene, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.base import Game, State
from understudy.games.brawl.drawing.match import MatchDrawing as BrawlDrawing
from understudy.games.match_drawing import HAPPENED, MatchDrawing, MatchEvent, ShapesDrawing
from understudy.games.shapes import Scene
from understudy.judging.players import NamedPlayer, PlayerResolver
from understudy.judging.replays import ReplayedMatch
from understudy.match.duel import Duel, witnessed
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.recordings import RecordingMeta

_MOMENTS = 6
_BRAWL = "brawl"
_WEIGHT = {
    "won": 0,
    "lost": 0,
    "drawn": 0,
    "knocked_out": 1,
    "combo": 2,
    HAPPENED: 2,
    "equipped": 3,
    "dropped": 4,
}


class WatchedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of a match; the names are those that the drawing uses."""

    game: str
    left: str
    right: str = ""
    """Empty in a game of one player."""
    seed: int
    winner: str | None
    frames: int
    time_s: float
    stocks: tuple[int, int] | None = None
    """Left and right, in brawl."""
    events: list[MatchEvent]
    match: str = ""
    """`RUN:ID` of a recorded match."""
    recorded: RecordingMeta | None = None
    """What is known of one of a training."""
    opponent: str = ""
    """Of a recorded match, as are outcome and reward: those of the learner."""
    outcome: str = ""
    reward: float | None = None
    states: str = ""
    """How a replay was compared with the recording."""


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
        cls, resolver: PlayerResolver, left: NamedPlayer, right: NamedPlayer | None, *, seed: int
    ) -> Showing:
        """A match of frozen players, played as it is watched; `right` is None in a game of one."""
        game = resolver.game
        check_drawn(resolver.name)
        opponents = () if right is None else ((right.player, 1),)
        names = (left.name,) if right is None else (left.name, right.name)
        seeds = match_seeds(seed, np.arange(1), purpose=EVALUATION)
        players = _players(game, game.start(NUMPY, seeds))
        drawing = _drawing(game, names, players)
        states = witnessed(Duel(game, left.player, opponents), seeds, np.array([players == (1, 0)]))
        return cls(states, drawing, _unplayed(resolver.name, drawing, seed))

    @classmethod
    def recorded(cls, match: ReplayedMatch, *, run: str, name: str) -> Showing:
        """A recorded match, `name`d RUN:ID, which was replayed whole and compared before anything
        of it is shown."""
        check_drawn(match.game)
        drawing = drawing_of(match, run=run)
        unplayed = _unplayed(match.game, drawing, match.seed)
        result = msgspec.structs.replace(
            unplayed,
            match=name,
            recorded=match.meta,
            opponent=match.opponent,
            outcome=match.outcome,
            reward=round(match.reward, 4),
            states=match.compared,
        )
        return cls(iter(match.states), drawing, result)

    def scenes(self) -> Iterator[Scene]:
        """The match, once."""
        for state in self._states:
            self._last = self.drawing.scene(state)
            yield self._last

    def outcome(self) -> WatchedResult:
        """After the last scene."""
        if self._last is None:
            raise ValueError("the match has not been played")
        end = self.drawing.events[-1] if self.drawing.over else None
        lives = [panel.lives[0] for panel in self._last.panels if panel.lives is not None]
        return msgspec.structs.replace(
            self._result,
            winner=end.who if end is not None and end.event == "won" else None,
            frames=self._last.frame,
            time_s=round(self._last.frame * self.drawing.frame_s, 2),
            stocks=(lives[0], lives[1]) if len(lives) == 2 else None,
            events=list(self.drawing.events),
        )


def check_drawn(game: str) -> None:
    """A game that cannot be drawn is an error."""
    drawn = catalog.drawn()
    if game not in drawn:
        code = catalog.code_of(game)
        hint = "" if code is None else f"; give {code[1]} a function draw(state, index)"
        raise ConfigError(f"watch: {', '.join(drawn)} can be drawn, {game} cannot{hint}")


def drawing_of(match: ReplayedMatch, *, run: str) -> MatchDrawing:
    """What draws a replayed match in which the learner is called `run`."""
    game = catalog.make(match.game, **match.options)
    players = (run, match.opponent) if match.side == 0 else (match.opponent, run)
    order = drawn_players(match)
    return _drawing(game, tuple(players[player] for player in order), order)


def drawn_players(match: ReplayedMatch) -> tuple[int, ...]:
    """The players on the left and on the right of a replayed match, by their numbers."""
    return _players(catalog.make(match.game, **match.options), match.states[0])


def _drawing(game: Game, names: tuple[str, ...], players: tuple[int, ...]) -> MatchDrawing:
    if game.name == _BRAWL:
        return BrawlDrawing((names[0], names[1]), (players[0], players[1]))
    return ShapesDrawing(game, names)


def _players(game: Game, start: State) -> tuple[int, ...]:
    """The players on the left and on the right; of brawl, those that start there."""
    if game.name != _BRAWL:
        return tuple(range(game.players))
    places = start.x[:, 0]
    return (1, 0) if places[0] > places[1] else (0, 1)


def _unplayed(game: str, drawing: MatchDrawing, seed: int) -> WatchedResult:
    return WatchedResult(
        game=game,
        left=drawing.names[0],
        right=drawing.names[1] if len(drawing.names) > 1 else "",
        seed=seed,
        winner=None,
        frames=0,
        time_s=0.0,
        events=[],
    )


def moments(
    scenes: Sequence[Scene],
    events: Sequence[MatchEvent],
    *,
    frames_per_s: float,
    frame_s: float,
) -> list[tuple[str, Scene]]:
    """At most six scenes that tell the match, with captions, in order: what mattered first."""
    apart_frames = max(1, round(min(frames_per_s, len(scenes) / _MOMENTS)))
    chosen: dict[int, str] = {}
    for event in sorted(events, key=lambda one: _WEIGHT[one.event]):
        ends = _WEIGHT[event.event] == 0
        apart = all(abs(event.frame - frame) >= apart_frames for frame in chosen)
        if len(chosen) < _MOMENTS and (ends or apart):
            chosen[event.frame] = str(event)
    for share in (0.0, 0.5, 0.25, 0.75):  # a match in which little happened
        frame = int(share * (len(scenes) - 1))
        if len(chosen) < 4 and all(abs(frame - one) >= apart_frames for one in chosen):
            chosen[frame] = "the start" if frame == 0 else "under way"
    after = round(frames_per_s / 15)  # what a blow does is seen a moment later
    return [
        (f"{frame * frame_s:.1f} s: {words}", scenes[min(frame + after, len(scenes) - 1)])
        for frame, words in sorted(chosen.items())
    ]
