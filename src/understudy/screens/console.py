"""The console behind a stream: whether its cursor can be moved, whether anything reads it, and
leaving it as it was.

Older consoles of Windows take escape codes only when they are asked to, for as long as it is asked.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Protocol, TextIO

_ESCAPES = 0x0004
"""ENABLE_VIRTUAL_TERMINAL_PROCESSING of Windows."""


class Console(Protocol):
    """What Windows knows of a console."""

    def mode(self) -> int | None:
        """Its flags; None where it is no console."""

    def change(self, mode: int) -> bool:
        """Set all flags; False where it has none such."""


def supports_cursor(stream: TextIO) -> bool:
    """A terminal that says it has a cursor to move; a person says `TERM=dumb` if it has none."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def reader_left(stream: TextIO) -> bool:
    """Whether a pipe is known to have lost its reader, without writing to it. Windows tells this
    only of a line that is written."""
    if sys.platform == "win32":  # pragma: no cover
        return False
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # no file of the system is behind it
        return False
    poll = select.poll()
    poll.register(number, 0)  # errors alone
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def console_of(stream: TextIO) -> Console | None:
    """The console that must allow escape codes before they are written; None where none must."""
    if sys.platform == "win32":  # pragma: no cover
        return _windows_console(stream)
    return None


@contextlib.contextmanager
def escapes(stream: TextIO) -> Iterator[bool]:
    """Whether escape codes may be written meanwhile; the console's flags come back afterwards."""
    console = console_of(stream) if supports_cursor(stream) else None
    if console is None:
        yield supports_cursor(stream)
        return
    before = console.mode()
    able = before is not None and (bool(before & _ESCAPES) or console.change(before | _ESCAPES))
    try:
        yield able
    finally:
        if before is not None:
            console.change(before)


if sys.platform == "win32":  # pragma: no cover

    class _Handle:
        def __init__(self, handle: int) -> None:
            import ctypes
            from ctypes import wintypes

            kernel = ctypes.WinDLL("kernel32")
            self._get, self._set = kernel.GetConsoleMode, kernel.SetConsoleMode
            self._get.argtypes = (wintypes.HANDLE, wintypes.LPDWORD)
            self._set.argtypes = (wintypes.HANDLE, wintypes.DWORD)
            self._handle = handle
            self._flags = wintypes.DWORD()

        def mode(self) -> int | None:
            import ctypes

            found = self._get(self._handle, ctypes.byref(self._flags))
            return int(self._flags.value) if found else None

        def change(self, mode: int) -> bool:
            return bool(self._set(self._handle, mode))

    def _windows_console(stream: TextIO) -> Console | None:
        import msvcrt

        try:
            return _Handle(msvcrt.get_osfhandle(stream.fileno()))
        except (OSError, ValueError):  # a stream of a program's own: no console behind it
            return None
