"""A match as it is watched: what every game's drawing offers, and that of games with `draw`.

A drawing takes the states of a match in their order, and gives the scene of each; `events` is what
has happened. Brawl has its own (`brawl.drawing.match`); `ShapesDrawing` is for any game whose rules
have `draw(state, index)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.core.user_code import USER_ERRORS, explained
from understudy.games.base import Game, State
from understudy.games.delay import Delayed, undelayed
from understudy.games.shapes import FIRST, SECOND, Box, Disc, Drawing, Label, Line, Panel, Scene

FRAMES_PER_S = 2.0
"""Of a game that has no `frames_per_s`."""
HAPPENED = "happened"
"""The event of what a game tells; its detail has the words."""
_HEADLINE_S = 1.5
"""How long what happened stays in the headline."""
_SHAPES = (Box, Disc, Line, Label)


class MatchEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened."""

    frame: int
    time_s: float
    event: str
    role: str = ""
    """What `who` was in it: victim, winner, actor or attacker."""
    who: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """In words."""
        words = {
            "won": f"{self.who} wins",
            "lost": f"{self.who} loses",
            "drawn": "a draw",
            HAPPENED: self.detail,
        }
        return words[self.event]


class MatchDrawing(Protocol):
    """The scenes of one match."""

    names: tuple[str, ...]
    over: bool

    @property
    def events(self) -> Sequence[MatchEvent]:
        """What has happened so far."""

    @property
    def frames_per_s(self) -> float:
        """The pace in which it is shown."""

    @property
    def frame_s(self) -> float:
        """The time of the game that one frame takes."""

    def scene(self, state: State) -> Scene:
        """The scene of the next state; only the first match of a batch is drawn."""


def told_apart(names: Sequence[str]) -> tuple[str, ...]:
    """The names of the sides; two that are the same say which is which."""
    if len(names) == 2 and names[0] == names[1]:
        return f"{names[0]} (left)", f"{names[1]} (right)"
    return tuple(names)


def frames_per_s(game: Game) -> float:
    """The pace in which matches of a game are shown: its `frames_per_s`, where it has one."""
    return float(getattr(game, "frames_per_s", FRAMES_PER_S))


class ShapesDrawing:
    """A match of a game that draws itself; the first player is the left one."""

    def __init__(self, game: Game, names: Sequence[str]) -> None:
        inner = game.game if isinstance(game, Delayed) else game
        self._game: Any = inner
        self.names = told_apart(names)
        self.over = False
        self.events: list[MatchEvent] = []
        self.frames_per_s = frames_per_s(inner)
        self.frame_s = float(getattr(inner, "seconds_per_frame", 1.0 / self.frames_per_s))
        self._tell = getattr(inner, "tell", None)
        self._frame = -1
        self._before: State | None = None
        module = sys.modules.get(type(inner).__module__)
        self._file = Path(getattr(module, "__file__", None) or "")

    def scene(self, state: State) -> Scene:
        """The scene of the next state."""
        state, self._frame = undelayed(state), self._frame + 1
        drawing = self._drawn(state)
        self._note(state)
        return Scene(
            frame=self._frame,
            shapes=tuple(drawing.shapes),
            panels=self._panels(drawing),
            view=drawing.view,
            clock=drawing.clock or f"{self._frame}",
            headline=self._headline(),
            background=drawing.background,
            fixed=drawing.fixed,
        )

    def _panels(self, drawing: Drawing) -> tuple[Panel, ...]:
        names = [*self.names, drawing.opponent] if drawing.opponent else self.names
        notes = [*drawing.notes, "", ""]
        return tuple(
            Panel(name, paint, note)
            for name, paint, note in zip(names, (FIRST, SECOND), notes, strict=False)
        )

    def _headline(self) -> str:
        if not self.events:
            return ""
        last = self.events[-1]
        recent = self._frame - last.frame < _HEADLINE_S * self.frames_per_s
        return str(last) if self.over or recent else ""

    def _note(self, state: State) -> None:
        """Adds what happened in this frame to the events."""
        if self.over:
            return
        if self._tell is not None and self._before is not None:
            self.events += [
                MatchEvent(self._frame, self._time_s, HAPPENED, detail=words)
                for words in self._checked("tell", self._tell, self._before, state, 0)
            ]
        self._before = state
        if bool(self._game.over(NUMPY, state)[0]):
            self.over = True
            self.events.append(self._end(state))

    def _drawn(self, state: State) -> Drawing:
        where = f"{self._game.name}: draw"
        drawing = self._checked("draw", self._game.draw, state, 0)
        if not isinstance(drawing, Drawing):
            raise ConfigError(f"{where}: expected a Drawing, got {type(drawing).__name__}")
        if not (drawing.view.width > 0 and drawing.view.height > 0):
            raise ConfigError(f"{where}: view: expected left < right and bottom < top")
        wrong = next((one for one in drawing.shapes if not isinstance(one, _SHAPES)), None)
        if wrong is not None:
            kinds = ", ".join(kind.__name__ for kind in _SHAPES)
            raise ConfigError(f"{where}: shapes: expected some of {kinds}, got {wrong!r}")
        return drawing

    def _checked(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What a function of the game returns; its own errors say where they are from."""
        try:
            return function(*arguments)
        except USER_ERRORS as error:
            words = explained(error, file=self._file)
            raise ConfigError(
                f"{self._game.name}: {name}: fails in frame {self._frame} ({words})"
            ) from error

    @property
    def _time_s(self) -> float:
        return round(self._frame * self.frame_s, 2)

    def _end(self, state: State) -> MatchEvent:
        score = self._game.score(NUMPY, state)[:, 0]
        frame, time_s = self._frame, self._time_s
        if not score.any():
            return MatchEvent(frame, time_s, "drawn")
        if len(self.names) == 1 and score[0] < 0:
            return MatchEvent(frame, time_s, "lost", "loser", self.names[0])
        return MatchEvent(frame, time_s, "won", "winner", self.names[int(score.argmax())])
