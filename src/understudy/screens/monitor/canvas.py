"""A widget that shows lines with tones, and redraws only the lines that changed."""

from __future__ import annotations

from functools import cache

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from understudy.screens.monitor.rows import Line, Tone, TonedText

# The terminal's own sixteen colours: they fit its background, and go over any connection. Words
# and bold text carry the meaning where there is no colour.
_STYLES: dict[Tone, Style] = {
    "plain": Style(),
    "label": Style(color="cyan"),
    "muted": Style(dim=True),
    "title": Style(bold=True),
    "good": Style(color="green"),
    "warning": Style(color="yellow", bold=True),
    "problem": Style(color="red", bold=True),
    "trend": Style(color="blue"),
    "chosen": Style(reverse=True, bold=True),
    "key": Style(bold=True, color="cyan"),
}


class Canvas(Widget):
    """Exactly the lines that it was given last."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; }"

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def show(self, lines: list[Line]) -> int:
        """Put these lines there; returns how many were redrawn."""
        width, before = self.size.width, self.lines
        self.lines = lines
        longest = max(len(before), len(lines))
        changed = [
            y
            for y in range(longest)
            if y >= len(before) or y >= len(lines) or before[y] != lines[y]
        ]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))
        return len(changed)

    def render_line(self, y: int) -> Strip:
        line = self.lines[y] if y < len(self.lines) else ()
        strip = Strip([Segment(span.text, _style(span)) for span in line])
        return strip.adjust_cell_length(self.size.width)


def _style(span: TonedText) -> Style:
    return _clickable(span.tone, span.action) if span.action else _STYLES[span.tone]


@cache
def _clickable(tone: Tone, action: str) -> Style:
    return _STYLES[tone] + Style.from_meta({"@click": f"app.{action}"})
