"""What a panel holds: labelled rows, each with a tone and, where there is one, a trend.

A tone adds to what the words say; nothing is said by a tone alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from understudy.telemetry.trends import Trend

Tone: TypeAlias = Literal[
    "plain", "label", "muted", "title", "good", "warning", "problem", "trend", "chosen", "key"
]


class TonedText(NamedTuple):
    """Text in one tone."""

    text: str
    tone: Tone = "plain"
    action: str = ""
    """What a click does: the name of an action of the app; empty: nothing."""


Line: TypeAlias = tuple[TonedText, ...]


class Row(NamedTuple):
    """One fact."""

    label: str
    text: str
    tone: Tone = "plain"
    trend: Trend | None = None
    bounds: tuple[float, float] | None = None
    """Of the trend's scale."""
    values: int = 1
    """So many values of the trend are drawn as one: a single match says nothing of a win rate."""
    rank: int = 1
    """Rows of the highest rank are left out first where there is too little room; 0: never."""
    wraps: bool = False
    """Whether it goes on in the next line, rather than being cut."""
    new: str = ""
    """What came in the last seconds: `+2 new`."""
    bars: tuple[tuple[str, float], ...] = ()
    """Shares of 1, each with its words before it, drawn as bars behind the text."""


class Panel(NamedTuple):
    """Rows with a title."""

    title: str
    rows: tuple[Row, ...]
    tone: Tone = "title"
    side: Literal["left", "right"] = "left"
    """Where it stands on a wide screen."""


def plain_text(line: Line) -> str:
    """A line without its tones."""
    return "".join(span.text for span in line).rstrip()
