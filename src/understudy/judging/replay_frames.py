"""A recorded match as data: what a page needs to show it, as a stream of JSON lines.

    {"kind": "header", ...}    the match, its players, its actions, the shapes that never change
    {"kind": "frames", ...}    some frames each: shapes, words, and what the policy thought
    {"kind": "end", ...}       the result

A match that cannot be replayed is one line, `{"kind": "problem", "words": ...}`. The match is
replayed whole and compared before the first line; scenes and thoughts are then computed as the
lines are asked for, so the first frame can be shown before the last one is computed.

Compact, since a match has thousands of frames. Places and sizes are whole numbers of `unit`s from
the left bottom corner of the view. A shape is a list: its kind (0 box, 1 hollow box, 2 disc,
3 line, 4 label), the number of its colour, then its numbers in the order of `games.shapes`; of a
label the size and the number of its text. Colours and texts are numbered in the order in which
`palette` and `texts` list them, in the header and in later lines. The shapes of a frame are a list
in which `[first, count]` stands for so many shapes of the frame before, from that place on. What
else did not change is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, zip_longest

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import UnderstudyError
from understudy.core.spaces import ActionSpace, Discrete, MultiBinary
from understudy.games.shapes import Box, Disc, Line, Paint, Panel, Scene, Shape
from understudy.judging.replays import ReplayedMatch, replay_match
from understudy.judging.thoughts import Mind, MissingPart, Thought
from understudy.judging.watching import check_drawn, drawing_of, drawn_players
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.text import plain

SCHEMA = 1
CHUNK = 60
"""Frames of a line."""
_STEPS = 2000
"""Places across the longer side of a view."""
_MOST_OPTIONS = 24
"""Of a part: one with more lists its likeliest `_TOP` alone."""
_TOP = 8
_PARTS_PER_UNIT = 1000
"""Probabilities are whole thousandths."""
_LEVELS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of attention: a letter for each frame of the window, relative to the largest weight."""
_MOST_TEXT = 200


class ReplayPlayer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A player by the order of the panels."""

    name: str
    paint: int
    learner: bool = False


class ActionPart(msgspec.Struct, frozen=True):
    """A choice of every decision."""

    name: str
    options: list[str]


class ReplayHeader(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="header"):
    """What is known before the first frame."""

    schema: int = SCHEMA
    game: str
    match: str
    seed: int
    frames: int
    """Decisions; there is one scene more."""
    frames_per_s: float
    """The pace in which it is shown."""
    frame_s: float
    """The time of the game that a frame takes."""
    players: list[ReplayPlayer]
    opponent: str
    outcome: str
    recorded_at: float
    compared: str
    """How the replay was compared with the recording."""
    parts: list[ActionPart]
    opponents: list[str]
    """Whom the belief is about; empty: there is none."""
    window: int
    """Frames that attention is over; 0: there is none."""
    versions: list[int]
    """All that decided."""
    note: str
    missing: list[MissingPart]
    view: tuple[float, float, float, float]
    unit: float
    background: int
    palette: list[str]
    texts: list[str]
    fixed: list[list[int]]


class ReplayPanel(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is written of one player."""

    notes: str = ""
    value: str = ""
    value_paint: int = 0
    lives: tuple[int, int] | None = None


class ReplayThought(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision; fields that are not known are left out."""

    did: list[int]
    """The option that was executed, of each part."""
    theirs: list[int] | None = None
    """The same of the other player, in a game of two."""
    rules: bool = False
    """The rules decided, not the policy."""
    version: int | None = None
    """Where it is another than in the frame before."""
    odds: list[list[int] | list[list[int]]] | None = None
    """Of each part: the probability of every option, or pairs (option, probability) of the
    likeliest, in thousandths."""
    chosen: int | None = None
    """The probability of all that was executed, in thousandths."""
    value: float | None = None
    belief: list[int] | None = None
    attention: str | None = None
    """The share of each frame of the window, the oldest first: `0` nothing, `Z` the most."""
    most: int | None = None
    """The largest weight of attention, in thousandths."""


class ReplayFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scene, as far as it is not as in the frame before."""

    shapes: list[list[int]]
    """All but the fixed ones, in the order of painting."""
    panels: list[ReplayPanel] | None = None
    clock: str | None = None
    headline: str | None = None
    view: tuple[float, float, float, float] | None = None
    thought: ReplayThought | None = None
    """Of the decision in this state; the last scene has none."""


class ReplayedEvent(msgspec.Struct, frozen=True):
    """What happened at a frame."""

    frame: int
    time_s: float
    words: str


class ReplayChunk(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="frames"
):
    """Frames that follow each other."""

    first: int
    frames: list[ReplayFrame]
    palette: list[str] = []
    """Colours that are new."""
    texts: list[str] = []
    events: list[ReplayedEvent] = []


class ReplayEnd(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="end"):
    """After the last frame."""

    result: str
    """In words."""
    reward: float
    deviation: float | None = None
    """The largest difference between a recorded log-probability and the one that was computed now;
    None where none was recorded."""


class ReplayProblem(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="problem"):
    """Why a match cannot be shown."""

    words: str


ReplayRecord = ReplayHeader | ReplayChunk | ReplayEnd | ReplayProblem


def replay_lines(folder: RunFolder, which: str) -> Iterator[bytes]:
    """The stream of one match; an error of the recording or of the game is its last line."""
    encoder = msgspec.json.Encoder()
    try:
        folder.load_code()
        check_drawn(folder.identity.game_name)
        for record in _records(folder, replay_match(folder, which)):
            yield encoder.encode(record) + b"\n"
    except UnderstudyError as error:
        yield problem_line(error)


def problem_line(error: UnderstudyError) -> bytes:
    """A stream of one line, which says why there is no more."""
    return msgspec.json.encode(ReplayProblem(words=plain(str(error), limit=1000))) + b"\n"


def _records(folder: RunFolder, match: ReplayedMatch) -> Iterator[ReplayRecord]:
    drawing = drawing_of(match, run=folder.root.name)
    mind = Mind(folder, match)
    scenes = map(drawing.scene, match.states)
    first = next(scenes)
    stream = _FrameEncoder(first, folder.spec.actions)
    learner = drawn_players(match).index(match.side)
    yield ReplayHeader(
        game=match.game,
        match=match.id,
        seed=match.seed,
        frames=match.frames,
        frames_per_s=drawing.frames_per_s,
        frame_s=drawing.frame_s,
        players=[
            ReplayPlayer(_text(panel.name), stream.colour(panel.paint), place == learner)
            for place, panel in enumerate(first.panels)
        ],
        opponent=_text(match.opponent),
        outcome=match.outcome,
        recorded_at=match.at,
        compared=match.compared,
        parts=action_parts(folder.spec.actions),
        opponents=[_text(name) for name in mind.opponents],
        window=mind.window,
        versions=mind.versions,
        note=mind.note,
        missing=mind.missing,
        view=first.view,
        unit=stream.unit,
        background=stream.colour(first.background),
        fixed=[stream.shape(shape) for shape in first.shapes[: first.fixed]],
        palette=stream.new_colours(),
        texts=stream.new_texts(),
    )
    told = 0
    every = zip_longest(chain([first], scenes), mind.thoughts())
    for start in range(0, match.frames + 1, CHUNK):
        frames = [
            stream.frame(scene, stream.thought(thought, match.actions[number], match.side))
            if thought is not None
            else stream.frame(scene, None)
            for number, (scene, thought) in enumerate(islice(every, CHUNK), start)
        ]
        events = drawing.events[told:]
        told = len(drawing.events)
        yield ReplayChunk(
            first=start,
            frames=frames,
            palette=stream.new_colours(),
            texts=stream.new_texts(),
            events=[ReplayedEvent(one.frame, one.time_s, _text(str(one))) for one in events],
        )
    result = str(drawing.events[-1]) if drawing.over else "the match was not over"
    yield ReplayEnd(result=_text(result), reward=round(match.reward, 4), deviation=mind.deviation)


def action_parts(space: ActionSpace) -> list[ActionPart]:
    """The parts of an action and their options, by name."""
    if isinstance(space, Discrete):
        return [ActionPart("action", [_text(name) for name in space.names])]
    if isinstance(space, MultiBinary):
        return [ActionPart(_text(name), ["off", "on"]) for name in space.names]
    return [
        ActionPart(f"part {number}", [str(option) for option in range(size)])
        for number, size in enumerate(space.parts, 1)
    ]


class _FrameEncoder:
    """Turns scenes into frames; remembers the frame before, and all colours and texts so far."""

    def __init__(self, first: Scene, space: ActionSpace) -> None:
        self._view = first.view
        self._sizes = space.parts
        self.unit = max(first.view.width, first.view.height) / _STEPS
        self._colours: dict[tuple[int, int, int], int] = {}
        self._texts: dict[str, int] = {}
        self._sent = [0, 0]
        """Colours and texts that earlier lines had."""
        self._before: list[list[int]] = []
        self._panels: list[ReplayPanel] = []
        self._words = ("", "")
        self._version: int | None = None

    def colour(self, paint: Paint) -> int:
        """Its number."""
        return self._colours.setdefault(paint.rgb, len(self._colours))

    def new_colours(self) -> list[str]:
        """Those that no line before has, as `#rrggbb`."""
        new = list(self._colours)[self._sent[0] :]
        self._sent[0] = len(self._colours)
        return ["#{:02x}{:02x}{:02x}".format(*rgb) for rgb in new]

    def new_texts(self) -> list[str]:
        new = list(self._texts)[self._sent[1] :]
        self._sent[1] = len(self._texts)
        return new

    def shape(self, shape: Shape) -> list[int]:
        """As numbers."""
        x, y, size, paint = self._x, self._y, self._size, self.colour(shape.paint)
        if isinstance(shape, Box):
            kind = 1 if shape.hollow else 0
            edges = x(shape.left), y(shape.bottom), x(shape.right), y(shape.top)
            return [kind, paint, *edges]
        if isinstance(shape, Disc):
            return [2, paint, x(shape.x), y(shape.y), size(shape.radius)]
        if isinstance(shape, Line):
            ends = x(shape.x0), y(shape.y0), x(shape.x1), y(shape.y1)
            return [3, paint, *ends, size(shape.width)]
        text = self._texts.setdefault(_text(shape.text), len(self._texts))
        return [4, paint, x(shape.x), y(shape.y), size(shape.size), text]

    def frame(self, scene: Scene, thought: ReplayThought | None) -> ReplayFrame:
        """As far as it is not as the frame before."""
        view = None
        if scene.view != self._view:
            self._view = view = scene.view
        shapes = [self.shape(shape) for shape in scene.shapes[scene.fixed :]]
        changed = _changes(self._before, shapes)
        self._before = shapes
        panels = [self._panel(panel) for panel in scene.panels]
        words = _text(scene.clock), _text(scene.headline)
        frame = ReplayFrame(
            shapes=changed,
            panels=None if panels == self._panels else panels,
            clock=None if words[0] == self._words[0] else words[0],
            headline=None if words[1] == self._words[1] else words[1],
            view=view,
            thought=thought,
        )
        self._panels, self._words = panels, words
        return frame

    def thought(self, thought: Thought, actions: NDArray, side: int) -> ReplayThought:
        """A decision; `actions` [players, parts] are what all sides did."""
        version = None if thought.version == self._version else thought.version
        self._version = thought.version
        attention, most = None, None
        if thought.attention is not None:
            largest = max(float(thought.attention.max()), 1e-9)
            levels = np.rint(thought.attention / largest * (len(_LEVELS) - 1)).astype(int)
            attention = "".join(_LEVELS[level] for level in levels)
            most = _share(largest)
        return ReplayThought(
            did=actions[side].tolist(),
            theirs=actions[1 - side].tolist() if len(actions) == 2 else None,
            rules=thought.rules,
            version=version,
            odds=None if thought.odds is None else self._odds(thought.odds),
            chosen=None if thought.chosen is None else _share(thought.chosen),
            value=None if thought.value is None else round(thought.value, 4),
            belief=None if thought.belief is None else [_share(one) for one in thought.belief],
            attention=attention,
            most=most,
        )

    def _odds(self, odds: NDArray) -> list[list[int] | list[list[int]]]:
        found: list[list[int] | list[list[int]]] = []
        for piece in np.split(odds, np.cumsum(self._sizes)[:-1]):
            if len(piece) <= _MOST_OPTIONS:
                found.append([_share(one) for one in piece])
                continue
            likeliest = np.argsort(-piece, kind="stable")[:_TOP]
            found.append([[int(option), _share(piece[option])] for option in likeliest])
        return found

    def _panel(self, panel: Panel) -> ReplayPanel:
        return ReplayPanel(
            notes=_text(panel.notes),
            value=panel.value.strip(),
            value_paint=self.colour(panel.value_paint) if panel.value else 0,
            lives=panel.lives,
        )

    def _x(self, x: float) -> int:
        return round((x - self._view.left) / self.unit)

    def _y(self, y: float) -> int:
        return round((y - self._view.bottom) / self.unit)

    def _size(self, size: float) -> int:
        return max(1, round(size / self.unit))


def _changes(before: Sequence[list[int]], now: Sequence[list[int]]) -> list[list[int]]:
    """`now` as runs `[first, count]` of `before`, and shapes that are not in it."""
    places = {tuple(shape): place for place, shape in enumerate(before)}
    found: list[list[int]] = []
    following = -1
    """The place in `before` that would lengthen the last run."""
    for shape in now:
        if 0 <= following < len(before) and before[following] == shape:
            found[-1][1] += 1
            following += 1
            continue
        place = places.get(tuple(shape), -1)
        found.append(shape if place < 0 else [place, 1])
        following = place + 1 if place >= 0 else -1
    return found


def _share(share: float) -> int:
    return round(float(share) * _PARTS_PER_UNIT)


def _text(words: str) -> str:
    """On one line, with all that cannot be seen written out."""
    return plain(words, limit=_MOST_TEXT)
