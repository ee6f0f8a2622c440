"""The theatre: a terminal in which one frame follows the other, and which is left as it was."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Self, TextIO

from understudy.screens.scene import Scene
from understudy.screens.terminal import Style, text


class Theatre:
    """Hides the cursor and takes a screen of its own; both come back, whatever happens.

    Only for a stream that takes escape codes (`console.escapes`).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        self._write("\x1b[?1049h\x1b[?25l\x1b[2J")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._write("\x1b[0m\x1b[?25h\x1b[?1049l")

    def show(self, scene: Scene) -> None:
        """Draw over the frame before, in the size that the terminal has now."""
        lines = "\x1b[K\r\n".join(text(scene, Style.of(self._stream)))
        self._write(f"\x1b[H{lines}\x1b[J")

    def _write(self, words: str) -> None:
        encoding = self._stream.encoding or "ascii"
        self._stream.write(words.encode(encoding, "replace").decode(encoding))
        self._stream.flush()
