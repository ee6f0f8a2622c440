"""An animated GIF, written frame by frame: only what changed, in the order in which it comes.

Pillow's own writer keeps every frame of an animation until the end: half a gigabyte for a match of
ninety seconds. This one keeps the frame before and the bytes that are done.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

TRANSPARENT = 63
"""The number of the colour that stands for "as before": pages may use those below it."""


class Animation:
    """Pages in mode P that share one palette of at most `TRANSPARENT` colours; loops for ever."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._before: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = None

    def add(self, page: Image, *, duration_ms: int) -> None:
        """The next page, and how long it is shown."""
        pixels = np.asarray(page, np.uint8)
        if self._before is None:
            self._parts.append(_opening(page, duration_ms))
        else:
            self._parts += _difference(self._before, pixels, duration_ms)
        self._before = pixels

    def finished(self) -> bytes:
        """The file."""
        return b"".join([*self._parts, b";"])


def _opening(page: Image, duration_ms: int) -> bytes:
    """Header, palette and the first page, without the mark of the end."""
    colours = page.getpalette() or []
    page.putpalette((colours + 3 * (TRANSPARENT + 1) * [0])[: 3 * (TRANSPARENT + 1)])
    buffer = io.BytesIO()
    page.save(buffer, format="GIF", loop=0, duration=duration_ms, optimize=False)
    return buffer.getvalue()[:-1]


def _difference(
    before: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    now: np.ndarray[tuple[int, ...], np.dtype[np.uint8]],
    duration_ms: int,
) -> list[bytes]:
    """What changed, as a smaller page at its place; one pixel where nothing did."""
    from PIL import GifImagePlugin, Image

    changed = before != now
    rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
    top, bottom = (int(rows[0]), int(rows[-1])) if len(rows) else (0, 0)
    left, right = (int(columns[0]), int(columns[-1])) if len(columns) else (0, 0)
    cut = (slice(top, bottom + 1), slice(left, right + 1))
    page = Image.fromarray(np.where(changed[cut], now[cut], np.uint8(TRANSPARENT)), "P")
    return GifImagePlugin.getdata(
        page, (left, top), duration=duration_ms, transparency=TRANSPARENT, disposal=1
    )
