"""Text for a console of a known width: tables, labelled lines, and lines made of parts.

A width of None is no console but a pipe or a file: there nothing is dropped, wrapped or shortened.
No line is wider than the width, except that a single word (a path, say) is never broken by
`wrapped`: a broken path cannot be copied.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

Width: TypeAlias = int | None
"""Columns of a console; None: no console."""

_GAP = "  "
_ELLIPSIS = "..."
_NAME = 24
"""A column of text is shortened to so much before a column is dropped for lack of room…"""
_SHORT_NAME = 8
"""…and to so much where all that may be dropped are gone."""
_COMMAND = "understudy "
_WORD = re.compile(r"\s*\S+")


class Column(NamedTuple):
    """A column of a table."""

    heading: str
    text: bool = False
    """Text is aligned to the left and shortened where it must be; numbers are neither."""
    drop: int = 0
    """Where the table is too wide, empty columns go first, then all those with the highest number,
    and so on; 0: never."""
    wraps: bool = False
    """The text of this column, the last one, is continued on the next line instead of shortened."""


class Part(NamedTuple):
    """A part of a line."""

    text: str
    drop: int = 0
    """Where the line is too wide, parts with the highest number go first; 0: never."""


def cells(text: str) -> int:
    """The columns that a text takes on a console: two for each wide letter, none for a mark."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text in so many columns; `right` aligns it there."""
    space = " " * max(width - cells(text), 0)
    return space + text if right else text + space


def shortened(text: str, width: Width, *, keep_end: bool = False) -> str:
    """At most so many columns of the text, with `...` for the rest."""
    if width is None or cells(text) <= width:
        return text
    room = width - len(_ELLIPSIS)
    if room < 1:
        return _ELLIPSIS[: max(width, 0)]
    if keep_end:
        while cells(text) > room:
            text = text[1:]
        return _ELLIPSIS + text
    while cells(text) > room:
        text = text[:-1]
    return text.rstrip() + _ELLIPSIS


def wrapped(text: str, width: Width) -> list[str]:
    """Lines of whole words."""
    if width is None:
        return [text]
    lines: list[str] = []
    line = ""
    for word in _WORD.findall(text):
        if line and cells(line) + cells(word) > width:
            lines.append(line)
            line = word.lstrip()
        else:
            line += word
    return [*lines, line]


def labelled(
    label: str, text: str, *, label_width: int, width: Width, indent: int = 0
) -> list[str]:
    """A label and its text, which continues under itself; `indent` is that of all the text."""
    begin = f"{label:<{label_width}}" if len(label) < label_width else f"{label} "
    room = None if width is None else max(width - label_width - indent, 1)
    first_room = None if room is None else max(room - (len(begin) - label_width), 1)
    lines = wrapped(text, first_room)
    if room != first_room and len(lines) > 1:
        lines = [lines[0], *wrapped(" ".join(lines[1:]), room)]
    inner = " " * (label_width + indent)
    first, *rest = lines
    return [
        f"{begin}{' ' * indent}{first}".rstrip(),
        *(f"{inner}{line}".rstrip() for line in rest),
    ]


def hanging(text: str, *, width: Width, indent: int = 0, more: int = 2) -> list[str]:
    """A text whose first line is so far in, and the others `more` further."""
    lines = wrapped(text, None if width is None else max(width - indent - more, 1))
    return [f"{' ' * (indent + (more if index else 0))}{line}" for index, line in enumerate(lines)]


def hint(text: str, *, width: Width) -> list[str]:
    """A text that ends in a command; where it is too wide, the command has a line of its own, which
    is never broken, so that it can be copied."""
    words, colon, command = text.partition(f": {_COMMAND}")
    if not colon or width is None or cells(text) <= width:
        return hanging(text, width=width)
    return [*hanging(f"{words}:", width=width), f"  {_COMMAND}{command}"]


def fitted(parts: Sequence[Part], width: Width) -> str:
    """The parts in one line, without those that do not fit."""
    kept = [part for part in parts if part.text]
    for part in _by_drop(kept):
        if width is None or cells(_joined(kept)) <= width:
            break
        kept.remove(part)
    return shortened(_joined(kept), width)


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    width: Width,
    indent: int = 0,
) -> list[str]:
    """The heading and the rows, `rows` [R][C], each cell as text.

    Where they do not fit the width, text is shortened to 24 columns, then columns are dropped,
    empty ones and then the highest `drop` first, and then text is shortened to 8 columns. What is
    free afterwards goes back to the text, the first such column first.
    """
    room = None if width is None else max(width - indent, 1)
    widths = _widths(columns, rows, room)
    before = " " * indent
    lines = []
    for row in ([one.heading for one in columns], *rows):
        for cells_ in _row_lines(columns, row, widths):
            line = before + _GAP.join(cells_)
            lines.append(shortened(line.rstrip(), width))
    return lines


def kept_columns(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: Width
) -> list[str]:
    """The headings of the columns that are shown in this width."""
    return [columns[index].heading for index in _widths(columns, rows, width)]


def _joined(parts: Sequence[Part]) -> str:
    return _GAP.join(part.text for part in parts)


def _by_drop(parts: Sequence[Part]) -> list[Part]:
    """In the order in which they go: of two with the same number, the last one first."""
    return sorted((one for one in reversed(parts) if one.drop), key=lambda one: -one.drop)


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], room: Width
) -> dict[int, int]:
    """The width of each column that is kept, by its place."""
    natural = {
        place: max([cells(column.heading), *(cells(row[place]) for row in rows)])
        for place, column in enumerate(columns)
    }
    if room is None:
        return natural
    kept = dict(natural)
    for going in [*_going(columns, rows), ()]:
        least = _least(columns, kept, _NAME)
        if _total(least) <= room:
            return _grown(least, kept, room)
        for place in going:
            kept.pop(place, None)
    return _grown(_least(columns, kept, _SHORT_NAME), kept, room)


def _going(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[Sequence[int]]:
    """The places of the columns that may be dropped, in that order: one empty column after the
    other, then all columns with the highest number together."""
    droppable = [place for place, column in enumerate(columns) if column.drop]
    empty = [place for place in droppable if not any(row[place] for row in rows)]
    numbers = sorted({columns[place].drop for place in droppable}, reverse=True)
    groups = [[place for place in droppable if columns[place].drop == one] for one in numbers]
    return [*([place] for place in empty), *groups]


def _least(columns: Sequence[Column], natural: dict[int, int], most: int) -> dict[int, int]:
    return {
        place: min(width, max(most, cells(columns[place].heading)))
        if columns[place].text
        else width
        for place, width in natural.items()
    }


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(_GAP) * (len(widths) - 1)


def _grown(widths: dict[int, int], natural: dict[int, int], room: int) -> dict[int, int]:
    free = room - _total(widths)
    grown = {}
    for place, width in widths.items():
        more = max(min(natural[place] - width, free), 0)
        free -= more
        grown[place] = width + more
    return grown


def _row_lines(
    columns: Sequence[Column], row: Sequence[str], widths: dict[int, int]
) -> Iterator[list[str]]:
    """One line, or several where a cell wraps."""
    blocks = []
    for place, width in widths.items():
        column, cell = columns[place], row[place]
        lines = wrapped(cell, width) if column.wraps else [shortened(cell, width, keep_end=True)]
        blocks.append([padded(line, width, right=not column.text) for line in lines])
    for index in range(max(map(len, blocks))):
        yield [
            block[index] if index < len(block) else " " * width
            for block, width in zip(blocks, widths.values(), strict=True)
        ]
