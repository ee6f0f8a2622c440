"""A console for tests of what is drawn."""

from __future__ import annotations

import io


class EncodedConsole(io.StringIO):
    """A terminal with an encoding of its own that refuses what it does not have."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        text.encode(self._encoding)  # raises as a real console would
        return super().write(text)
