"""Which version came from which, as SVG: a line for each line of learning, a branch at a rollback.

Versions stand side by side in their order, so that hundreds fit; a dashed piece is of versions that
are no longer kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.figure import chart_figure

_WIDTH, _SIDE, _ROW, _LABEL = 1040.0, 28.0, 30.0, 19.0
_LETTER = 8.2
_WIDEST = 44.0
"""Between two versions."""


class TreeVersion(NamedTuple):
    """A version that is kept."""

    number: int
    parent: int | None
    """It may be kept no longer."""
    roles: tuple[str, ...] = ()
    note: str = ""
    """What is told of it when it is pointed at."""


class TreePlace(NamedTuple):
    """Where a version is drawn."""

    row: int
    """From 0, the row of the first line."""
    origin: int | None
    """The kept version that it is joined to; None: it begins a line."""
    skipped: bool
    """Whether versions between both are no longer kept."""


def arranged(versions: Sequence[TreeVersion]) -> dict[int, TreePlace]:
    """The place of each version by number; versions come in the order of their numbers.

    A version goes on in the line of the one that it came from. If another one has gone on there
    already, it was a rollback: a new line begins. Lines that do not overlap share a row.
    """
    numbers = [one.number for one in versions]
    origins: dict[int, int | None] = {}
    line_of: dict[int, int] = {}
    lines: list[list[int]] = []
    for one in versions:
        at = 0 if one.parent is None else bisect_right(numbers, min(one.parent, one.number - 1))
        origin = origins[one.number] = numbers[at - 1] if at else None
        if origin is not None and lines[line_of[origin]][-1] == origin:
            line_of[one.number] = line_of[origin]
        else:
            line_of[one.number] = len(lines)
            lines.append([])
        lines[line_of[one.number]].append(one.number)
    rows: list[int] = []
    """Where each row ends."""
    row_of = []
    for line in lines:
        begin = origins[line[0]] or line[0]
        row = next((at for at, end in enumerate(rows) if end < begin), len(rows))
        rows[row:] = [line[-1], *rows[row + 1 :]]
        row_of.append(row)
    return {
        one.number: TreePlace(
            row_of[line_of[one.number]],
            origins[one.number],
            origins[one.number] not in (None, one.parent),
        )
        for one in versions
    }


def version_tree(versions: Sequence[TreeVersion], *, title: str, explains: str) -> Element | None:
    """A figure with its heading and its explanation; None without versions."""
    if not versions:
        return None
    places = arranged(versions)
    step = min(_WIDEST, (_WIDTH - 2 * _SIDE) / max(len(versions) - 1, 1))
    across = {one.number: _SIDE + index * step for index, one in enumerate(versions)}
    named, levels = _labels(versions, across)
    top = 8 + levels * _LABEL + 14
    rows = 1 + max(one.row for one in places.values())
    height = top + _ROW * rows + 22

    def y(number: int) -> float:
        return top + _ROW * (places[number].row + 0.5)

    line = _line(versions[-1].number, places)
    marks: list[HtmlNode] = []
    for one in versions:
        origin = places[one.number].origin
        if origin is not None:
            kind = "now" if one.number in line else "left"
            dashed = " skipped" if places[one.number].skipped else ""
            marks.append(
                tag(
                    "path", d=_link(across[origin], y(origin), across[one.number], y(one.number)),
                    class_=f"link {kind}{dashed}",
                )
            )  # fmt: skip
    size = min(max(step / 3, 2.2), 6.0)
    for one in versions:
        kind = "now" if one.number in line else "left"
        words = "; ".join(each for each in (f"version {one.number}", *one.roles, one.note) if each)
        marks.append(
            tag(
                "circle", tag("title", words), cx=round(across[one.number], 1), cy=y(one.number),
                r=size + 2.5 if one.roles else size, class_=f"{kind}{' role' if one.roles else ''}",
            )
        )  # fmt: skip
    for number, (text, x, level) in named.items():
        at = 8 + _LABEL * (level + 1)
        marks += [
            tag(
                "line", x1=across[number], x2=across[number], y1=at + 5,
                y2=y(number) - size - 4, class_="lead",
            ),
            tag("text", text, x=x, y=at, text__anchor="middle", class_="role"),
        ]  # fmt: skip
    marks.extend(_numbers(versions, across, height, step))
    width = max(across.values()) + _SIDE if len(versions) > 12 else _WIDTH
    drawing = tag(
        "svg", *marks, viewBox=f"0 0 {max(width, 520.0):g} {height:g}", role="img",
        aria__label=f"Lineage. {title}: {_in_words(versions, places)}",
    )  # fmt: skip
    scrolled = tag("div", drawing, class_="scroll", tabindex="0")
    return chart_figure(scrolled, title=title, explains=explains, kind="wide version-tree")


def _line(newest: int, places: Mapping[int, TreePlace]) -> set[int]:
    """The newest version and those that it came from."""
    found: set[int] = set()
    at: int | None = newest
    while at is not None:
        found.add(at)
        at = places[at].origin
    return found


def _link(x1: float, y1: float, x2: float, y2: float) -> str:
    if y1 == y2:
        return f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
    bend = min(x1 + 14, x2)
    return (
        f"M{x1:.1f} {y1:.1f}C{bend:.1f} {y1:.1f} {x1:.1f} {y2:.1f} {bend:.1f} {y2:.1f}"
        f"L{x2:.1f} {y2:.1f}"
    )


def _labels(
    versions: Sequence[TreeVersion], across: Mapping[int, float]
) -> tuple[dict[int, tuple[str, float, int]], int]:
    """Words, their middle and their level above the tree, so that none touches another; and how
    many levels there are."""
    named: dict[int, tuple[str, float, int]] = {}
    taken: list[float] = []
    """Where the text of each level ends."""
    for one in versions:
        if not one.roles:
            continue
        text = f"{one.number}: {', '.join(one.roles)}"
        half = _LETTER * len(text) / 2
        x = max(half + 2, min(across[one.number], _WIDTH - half - 2))
        level = next((at for at, end in enumerate(taken) if x - half > end + 8), len(taken))
        taken[level:] = [x + half, *taken[level + 1 :]]
        named[one.number] = text, x, level
    return named, len(taken)


def _numbers(
    versions: Sequence[TreeVersion], across: Mapping[int, float], height: float, step: float
) -> Iterable[Element]:
    wide = _LETTER * len(str(versions[-1].number)) + 10
    every = max(1, -int(-wide // step)) if step else 1
    for one in versions[::-1][::every]:
        x = across[one.number]
        yield tag("text", str(one.number), x=x, y=height - 6, text__anchor="middle")


def _in_words(versions: Sequence[TreeVersion], places: Mapping[int, TreePlace]) -> str:
    rows = 1 + max(one.row for one in places.values())
    span = f"{len(versions)} versions are kept, {versions[0].number} to {versions[-1].number}"
    lines = f", in {rows} lines of learning" if rows > 1 else ", in one line of learning"
    roles = "; ".join(
        f"version {one.number}: {', '.join(one.roles)}" for one in versions if one.roles
    )
    return f"{span}{lines}{'; ' if roles else ''}{roles}."
