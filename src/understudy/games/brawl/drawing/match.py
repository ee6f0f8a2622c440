"""A match of brawl as it is watched: the scene of each frame, and a list of what happened.

`MatchDrawing.scene` takes the states of a match in their order. Trails, flashes and headlines come
from the states before.
"""

from __future__ import annotations

import math
from collections import deque

from understudy.core.ops import NUMPY
from understudy.games.brawl import tables
from understudy.games.brawl.drawing import fighter as fighters
from understudy.games.brawl.drawing.scene import (
    HIGH,
    LOW,
    STAGE,
    STOCKS,
    VIEW,
    WIDE,
    Palette,
    clock,
    heat,
    lying,
    platform,
)
from understudy.games.brawl.state import State, events, is_over, scores
from understudy.games.match_drawing import MatchEvent, told_apart
from understudy.games.shapes import Line, Paint, Panel, Scene, Shape

_ROLES = {
    "knocked_out": "victim",
    "won": "winner",
    "equipped": "actor",
    "dropped": "actor",
    "combo": "attacker",
}
_TRAIL_FRAMES, _TRAIL_EVERY = 16, 2
_FLASH_FRAMES, _BURST_FRAMES, _HEADLINE_FRAMES = 3, 10, 45
_PAINTS = (Palette.LEFT, Palette.RIGHT)
_RAYS = (
    (-0.75, 0.8, False), (-0.45, 1.1, True), (-0.2, 1.3, False), (0.0, 1.5, True),
    (0.2, 1.3, False), (0.45, 1.1, True), (0.75, 0.8, False),
)  # fmt: skip
"""Of a burst: angle from its middle, length, and whether it is white."""


class Event(MatchEvent, frozen=True, omit_defaults=True):
    """One thing that happened."""

    def __str__(self) -> str:
        """In words."""
        words = {
            "knocked_out": f"{self.who} is knocked out{self.detail and ', ' + self.detail}",
            "won": f"{self.who} wins",
            "drawn": "a draw",
            "equipped": f"{self.who} picks up a {self.detail}",
            "dropped": f"{self.who} throws the weapon away",
            "combo": f"{self.who} lands a combo",
        }
        return words[self.event]


class MatchDrawing:
    """One match. `slots` are the player numbers of the left and of the right fighter."""

    frames_per_s = float(tables.FRAMES_PER_S)
    frame_s = 1.0 / tables.FRAMES_PER_S

    def __init__(self, names: tuple[str, str], slots: tuple[int, int] = (0, 1)) -> None:
        self.names = told_apart(names)
        self.events: list[Event] = []
        self.over = False
        self._slots = slots
        self._trails: tuple[deque[tuple[float, float]], ...] = (
            deque(maxlen=_TRAIL_FRAMES),
            deque(maxlen=_TRAIL_FRAMES),
        )
        self._flash = [-_FLASH_FRAMES] * 2
        self._bursts: list[tuple[int, float, float, Paint]] = []
        self._hits: list[tuple[int, float, float]] = []
        self._headline: tuple[int, str] = (-_HEADLINE_FRAMES, "")

    def scene(self, state: State) -> Scene:
        """The scene of the next state; only the first match of a batch is drawn."""
        frame = int(state.frame[0])
        pair = [fighters.fighter(state, slot) for slot in self._slots]
        self._note(state, frame, pair)
        shapes: list[Shape] = [*STAGE, platform(*map(float, state.platform[:, 0]))]
        kind = tables.WEAPONS[int(state.item[0])]
        shapes += lying(kind, float(state.item_x[0]))
        for side in (0, 1):
            one, trail = pair[side], self._trails[side]
            shapes += fighters.drawn(
                one,
                side,
                flash=frame - self._flash[side] < _FLASH_FRAMES,
                trail=list(trail)[::_TRAIL_EVERY],
            )
            if one.out <= 0 and one.stocks:
                trail.append((one.x, one.y))
        shapes += self._sparks(frame)
        said, words = self._headline
        return Scene(
            frame=frame,
            shapes=tuple(shapes),
            panels=(self._panel(pair[0], 0), self._panel(pair[1], 1)),
            view=VIEW,
            clock=clock(max(0, tables.MAX_FRAMES - frame) / tables.FRAMES_PER_S),
            headline=words if self.over or frame - said < _HEADLINE_FRAMES else "",
            background=Palette.SKY,
            fixed=len(STAGE),
        )

    def _panel(self, one: fighters.Fighter, side: int) -> Panel:
        held = "" if one.weapon == tables.WEAPONS[0] else one.weapon
        damage = round(one.damage)
        return Panel(
            name=self.names[side],
            paint=_PAINTS[side],
            notes="  ".join(word for word in (held, one.doing) if word),
            lives=(one.stocks, STOCKS),
            value=f"{damage:>3}%",
            value_paint=heat(damage),
        )

    def _note(self, state: State, frame: int, pair: list[fighters.Fighter]) -> None:
        """Adds what happened in this frame to events, flashes and bursts."""
        flags = events(NUMPY, state)
        for side, slot in enumerate(self._slots):
            one, trail = pair[side], self._trails[side]
            if float(state.dealt[self._slots[1 - side], 0]) > 0:
                self._flash[side] = frame
                self._hits.append((frame, one.x, one.y + 0.5))
            if flags.knocked_out[slot, 0]:
                x, y = trail[-1] if trail else (one.x, one.y)
                trail.clear()
                self._bursts.append((frame, x, y, _PAINTS[side]))
            for name, role in _ROLES.items():
                if name != "won" and getattr(flags, name)[slot, 0]:
                    self._tell(frame, name, side, role, _detail(name, one))
        if bool(is_over(NUMPY, state)[0]) and not self.over:
            self.over = True
            score = scores(NUMPY, state)[:, 0]
            winner = next((side for side, slot in enumerate(self._slots) if score[slot] > 0), None)
            if winner is None:
                self._tell(frame, "drawn", None, "", "")
            else:
                self._tell(frame, "won", winner, _ROLES["won"], "")

    def _tell(self, frame: int, name: str, side: int | None, role: str, detail: str) -> None:
        who = "" if side is None else self.names[side]
        time_s = round(frame / tables.FRAMES_PER_S, 2)
        event = Event(frame, time_s, name, role, who, detail)
        self.events.append(event)
        if name in ("knocked_out", "won", "drawn"):
            self._headline = (frame, str(event).partition(",")[0])

    def _sparks(self, frame: int) -> list[Shape]:
        """Where a blow landed, and where a fighter left the stage."""
        shapes: list[Shape] = []
        self._hits = [hit for hit in self._hits if frame - hit[0] < _FLASH_FRAMES + 2]
        for at, x, y in self._hits:
            reach = 0.35 + 0.12 * (frame - at)
            shapes += [
                Line(x + 0.5 * reach * dx, y + 0.5 * reach * dy, x + 1.6 * reach * dx,
                     y + 1.6 * reach * dy, 0.09, Palette.STRIKE, fine=True)
                for dx, dy in ((0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7), (0, 1), (1, 0),
                               (-1, 0))
            ]  # fmt: skip
        self._bursts = [burst for burst in self._bursts if frame - burst[0] < _BURST_FRAMES]
        for at, x, y, paint in self._bursts:
            shapes += _burst(x, y, paint, (frame - at) / _BURST_FRAMES)
        return shapes


def _detail(name: str, one: fighters.Fighter) -> str:
    if name == "knocked_out":
        return f"{one.stocks} left"
    return one.weapon if name == "equipped" else ""


def _burst(x: float, y: float, paint: Paint, age: float) -> list[Shape]:
    """Rays inwards from the edge where a fighter left; they thin out as the burst ages."""
    edge_x, edge_y = min(max(x, -WIDE), WIDE), min(max(y, LOW), HIGH - 1.6)
    if abs(x) >= WIDE:
        inwards = math.pi if x > 0 else 0.0
    else:
        inwards = math.pi / 2 if y < 0 else -math.pi / 2
    shapes: list[Shape] = []
    for angle, length, light in _RAYS:
        turn = inwards + angle
        near, far = 3.0 * age * length, (1.2 + 2.8 * age) * length
        shapes.append(
            Line(
                edge_x + near * math.cos(turn),
                edge_y + near * math.sin(turn),
                edge_x + far * math.cos(turn),
                edge_y + far * math.sin(turn),
                0.42 * (1.0 - 0.8 * age),
                Palette.FLASH if light else paint,
            )
        )
    return shapes
