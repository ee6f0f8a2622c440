"""Lines on stdout: their width, tables, and colour where the console has it.

Words never become markup, and no encoding is an error: rich only turns a style into escape codes,
and `say` prints. In a pipe there is no style, and every column is printed.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TextIO

from understudy.screens.console import escapes, supports_cursor
from understudy.telemetry.layout import Column, Width, cells, hanging, labelled, table_lines
from understudy.telemetry.text import say

_LABEL = 16


class StyledLine(NamedTuple):
    """A line with a style of rich (`bold`, `red`); what it means is in the words as well."""

    text: str
    style: str


def width_of(stream: TextIO | None) -> Width:
    """The columns of a console; None where there is no console."""
    if stream is None or stream.closed or not stream.isatty():
        return None
    return max(shutil.get_terminal_size().columns, 20)


def out_width() -> Width:
    """The columns of stdout; None where it is no console."""
    return width_of(sys.stdout)


def emit(lines: Iterable[str | StyledLine]) -> None:
    """Print lines, in their styles where stdout shows any."""
    if sys.stdout is None or not _coloured(sys.stdout):
        say("\n".join(_words(line) for line in lines))
        return
    with escapes(sys.stdout) as able:
        say("\n".join(_escaped(line) if able else _words(line) for line in lines))


def emit_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0
) -> None:
    """Print a table in the width of stdout."""
    emit(table(columns, rows, indent=indent))


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0
) -> list[str | StyledLine]:
    """The lines of a table in the width of stdout, for `emit`."""
    heading, *rest = table_lines(columns, rows, width=out_width(), indent=indent)
    return [StyledLine(heading, "bold"), *rest]


def emit_text(text: str, *, indent: int = 0, more: int = 0) -> None:
    """Print a paragraph, broken at the width of stdout; a line after the first is `more` in."""
    emit(hanging(text, width=out_width(), indent=indent, more=more))


def emit_labelled(rows: Iterable[tuple[str, str]], *, label_width: int = 12) -> None:
    """Print labels with their texts, which continue under themselves."""
    width = out_width()
    emit(
        line
        for label, text in rows
        for line in labelled(label, text, label_width=label_width, width=width)
    )


def summary_row(label: str, text: str, width: Width) -> list[str]:
    """A row of the summary that a session ends with."""
    return labelled(label, text, label_width=_LABEL, width=width)


def commands(label: str, lines: Iterable[str], width: Width) -> list[str]:
    """Commands that can be typed next, in one line or each in its own; none is ever broken."""
    lines = list(lines)
    together = f"{label}: {'   '.join(lines)}"
    if width is None or cells(together) <= width:
        return [together]
    return [f"{label}:", *(f"  {line}" for line in lines)]


def _coloured(stream: TextIO) -> bool:
    return not stream.closed and supports_cursor(stream) and not os.environ.get("NO_COLOR")


def _words(line: str | StyledLine) -> str:
    return line.text if isinstance(line, StyledLine) else line


def _escaped(line: str | StyledLine) -> str:
    if not isinstance(line, StyledLine):
        return line
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", legacy_windows=False,
        highlight=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(Text(line.text, style=line.style), soft_wrap=True, end="")
    return captured.get()
