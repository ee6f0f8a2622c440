"""Words on a console: made harmless, readable, and printed without ever crashing on an encoding."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import sys
import unicodedata
from datetime import datetime
from typing import TextIO, TypeAlias

import msgspec

Lines: TypeAlias = list[tuple[str, str]]
"""Lines with a label; it is empty where a line continues the subject of the line above it."""

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of what moves the cursor, turns the direction of text, or cannot be seen."""

_MARKUP = re.compile(r"(\\*)(\[[a-z#/@][^[]*?\])")
_READER_GONE = {errno.EPIPE, errno.ESHUTDOWN}


def plain(text: str, *, limit: int = 200, markup: bool = False) -> str:
    """Text from outside (a tag, a reason, a file name) as one line that can only be read.

    Control characters, ANSI escapes, bidi controls and lone surrogates become `\\x1b`, `\\u202e`…;
    `markup` escapes what rich would take for a tag as well (a plain console would show those
    backslashes, so it is off by default). What is longer than `limit` ends in `...`.
    """
    if len(text) > limit:
        text = text[: max(limit - 3, 0)] + "..."
    if not (text.isascii() and text.isprintable()):  # most text is: no look at each character
        text = "".join(_visible(char) for char in text)
    return _without_markup(text) if markup else text


def say(text: str, file: TextIO | None = None) -> bool:
    """Print a line and flush it; what the console cannot show is written as `\\u2713`.

    A console that is not there or whose reader has gone is no error: False is returned.
    Every other failure (a full disk behind a redirect, say) is raised.
    """
    stream: TextIO | None = sys.stdout if file is None else file
    if stream is None or stream.closed:  # pythonw.exe has no stdout at all
        return False
    line = text + "\n"
    try:
        try:
            stream.write(line)
        except UnicodeEncodeError:  # raised before any of the line is buffered
            encoding = stream.encoding or "ascii"
            stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        if not _reader_gone(error):
            raise
        _hush(stream)
        return False
    return True


def say_json(value: object) -> None:
    """Print plain data as one line of JSON, in ASCII: no console can make it anything else."""
    say(json.dumps(msgspec.to_builtins(value)))


def complain(text: str) -> None:
    """Tell of trouble on stderr, and never raise."""
    # The trouble may be a full disk that stderr is redirected to; the game goes on all the same.
    with contextlib.suppress(OSError, ValueError):
        say(f"understudy: {text}", file=sys.stderr)


def many(count: int, one: str, several: str) -> str:
    """`1 match`, `1,234 matches`"""
    return f"{count:,} {one if count == 1 else several}"


def duration(seconds: float) -> str:
    """`0.4s`, `42s`, `5m 22s`, `3h 7m`, `2d 4h`; never negative, since clocks are set back."""
    if not 0.0 <= seconds < float("inf"):
        return "0s"
    if seconds < 10:
        return f"{int(seconds * 10) / 10:g}s"
    whole = int(seconds)
    for long, short, divisor in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if whole >= divisor:
            rest = whole % divisor * {"h": 24, "m": 60, "s": 60}[short] // divisor
            return f"{whole // divisor}{long} {rest}{short}"
    return f"{whole}s"


def stamp(t: float) -> str:
    """`2026-01-25 14:32:05`: seconds since 1970 in the reader's time zone."""
    try:
        return datetime.fromtimestamp(t).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # a damaged journal can say any number
        return "at an unknown time"


def size(count: int) -> str:
    """`512 B`, `156.2 KB`, `1.5 GB`, in steps of 1024."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KB", "MB", "GB"):
        value /= 1024
        if round(value, 1) < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TB"


def _visible(char: str) -> str:
    if unicodedata.category(char) in _HIDDEN:
        return char.encode("ascii", "backslashreplace").decode() if ord(char) > 127 else _code(char)
    return char


def _code(char: str) -> str:
    return {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(char, f"\\x{ord(char):02x}")


def _without_markup(text: str) -> str:
    """What `rich.markup.escape` does, in a room that does not have rich."""
    text = _MARKUP.sub(r"\1\1\\\2", text)
    alone = text.endswith("\\") and not text.endswith("\\\\")
    return text + "\\" if alone else text


def _reader_gone(error: OSError) -> bool:
    # Windows reports a pipe that its reader closed as EINVAL.
    return error.errno in _READER_GONE or (os.name == "nt" and error.errno == errno.EINVAL)


def _hush(stream: TextIO) -> None:
    """Send the rest of a dead pipe nowhere, or Python fails once more when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def evidence_text(value: float) -> str:
    """Evidence, which may be any number above 0: two digits below 1."""
    if value >= 1000.0:
        return "over 1000" if value < math.inf else "any"
    return f"{value:.0f}" if value >= 100.0 else f"{value:.1f}" if value >= 1.0 else f"{value:.2f}"
