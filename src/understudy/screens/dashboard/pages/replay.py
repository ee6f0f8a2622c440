"""Recorded matches of a run: the list of them, and the place where one is shown.

The viewer itself is `static/replay.js`, which reads the stream that `data-replay-url` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from understudy.screens.dashboard.layout import run_path
from understudy.screens.dashboard.page import (
    PagePart,
    RecordedMatchRow,
    RunReading,
    part,
)
from understudy.screens.html.elements import Element, tag
from understudy.telemetry.text import stamp

_TONES = {
    "won": "good",
    "victory": "good",
    "lost": "problem",
    "defeat": "problem",
    "drawn": "note",
    "tie": "note",
}
_COLUMNS = (
    ("Replay", ""),
    ("Opponent", ""),
    ("Outcome", ""),
    ("Length", "number"),
    ("Version", "number"),
    ("When", ""),
)


_LISTED = 20
_HOW = {
    "ring": "`understudy play` keeps the matches of built-in games; those of a custom bot have no "
    "seed to replay them from.",
    "training": "Training records matches where it is told to: --set train.record=20 keeps one of "
    "twenty.",
    "server": "A served game is played by its client: the server sees features, not the states "
    "that a picture is made from, so its matches cannot be replayed.",
}
_NO_STATES = "Matches of Gymnasium and PettingZoo environments cannot be recorded."


def parts(reading: RunReading) -> Iterator[PagePart]:
    """The list of matches. None is chosen: the newest would change while it is watched."""
    return _parts(reading, "")


def of_match(reading: RunReading, match: str) -> Iterator[PagePart]:
    """One match, and the list of all."""
    return _parts(reading, match)


def _parts(reading: RunReading, match: str) -> Iterator[PagePart]:
    found = reading.recorded(_LISTED)
    base = run_path(reading.name, "replay")
    if match:
        stream = f"{run_path(reading.name)}/matches/{quote(match, safe='')}.jsonl"
        # Nothing here may change while the match is watched: a new part would start it again.
        yield part("viewer", f"Match {match}", viewer(match, stream))
    listed = match_list(
        found.rows,
        address=lambda one: f"{base}?match={quote(one, safe='')}",
        chosen=match,
        more=found.more,
        how=_NO_STATES if reading.status.reward is not None else _HOW[reading.kind],
    )
    yield part("matches", "Recorded matches", listed)


def match_list(
    rows: Sequence[RecordedMatchRow],
    *,
    address: Callable[[str], str],
    frame_s: float = 0.0,
    chosen: str = "",
    more: int = 0,
    how: str = "",
) -> Element:
    """The recorded matches, newest first, each with a link to watch it or why it cannot be.

    Args:
        rows: As many as the page shows.
        address: From the id of a match to the page that shows it.
        frame_s: The time of the game that a frame takes; 0: lengths are in frames.
        chosen: The id of the match that is shown at present.
        more: How many matches there are beside `rows`.
        how: How matches are recorded, for a run that has none.
    """
    if not rows:
        return tag("p", f"No match of this run is recorded. {how}".strip(), class_="empty")
    head = tag(
        "tr", *(tag("th", name, class_=kind or None, scope="col") for name, kind in _COLUMNS)
    )
    problems = {row.problem for row in rows}
    shared = problems.pop() if len(problems) == 1 else ""
    body = [
        _row(row, address, frame_s=frame_s, chosen=row.id == chosen, says_why=not shared)
        for row in rows
    ]
    table = tag("table", tag("thead", head), tag("tbody", *body))
    listed = [tag("div", table, class_="table", tabindex=0, role="group", aria__label=_LABEL)]
    if shared:
        listed.insert(0, tag("p", f"None of these can be replayed, each for one reason: {shared}."))
    if more:
        listed.append(tag("p", f"{more:,} older matches are recorded, too.", class_="soft"))
    return tag("div", *listed, class_="matches")


_LABEL = "Recorded matches"


def viewer(match_id: str, url: str) -> Element:
    """The place where `replay.js` shows a match; `url` is that of its stream of JSON lines."""
    return tag(
        "div",
        tag("p", "Replaying the match: a few seconds\u2026", class_="replay-loading"),
        tag("noscript", tag("p", "A replay needs JavaScript: it is painted in the browser.")),
        class_="replay",
        role="region",
        aria__label=f"Replay of match {match_id}",
        **{"data-replay-url": url},
    )


def _row(
    row: RecordedMatchRow,
    address: Callable[[str], str],
    *,
    frame_s: float,
    chosen: bool,
    says_why: bool = True,
) -> Element:
    opponent = [tag("span", row.opponent)]
    if row.problem:
        watch = tag("td", "\u2013")
        if says_why:
            opponent.append(tag("p", f"It cannot be replayed: {row.problem}", class_="soft"))
    elif chosen:
        watch = tag("td", tag("strong", "shown"))
    else:
        name = f"Watch the match against {row.opponent or 'its opponent'} of {stamp(row.at)}"
        watch = tag("td", tag("a", "Watch", href=address(row.id), aria__label=name))
    return tag(
        "tr",
        watch,
        tag("td", *opponent),
        tag("td", *_outcome(row.outcome)),
        tag("td", _length(row.frames, frame_s), class_="number"),
        tag("td", "" if row.version is None else f"{row.version}", class_="number"),
        tag("td", stamp(row.at) if row.at else "", class_="line"),
        aria__current="true" if chosen else None,
    )


def _outcome(outcome: str) -> list[Element]:
    if not outcome:
        return []
    return [tag("span", outcome, class_=f"badge {_TONES.get(outcome, 'note')}")]


def _length(frames: int, frame_s: float) -> str:
    if not frames:
        return ""
    if not frame_s:
        return f"{frames:,} frames"
    seconds = round(frames * frame_s)
    return f"{seconds // 60}:{seconds % 60:02d}"
