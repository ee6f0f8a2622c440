"""A page as one outline: its parts, charts in words, and text."""

from __future__ import annotations

from collections.abc import Iterable

from screens.dashboard.readings import Outline
from understudy.screens.dashboard.page import PagePart


class PageOutline(Outline):
    """All parts of a page; their keys must differ."""

    def __init__(self, parts: Iterable[PagePart]) -> None:
        made = list(parts)
        self.keys = [one.key for one in made]
        assert len(set(self.keys)) == len(self.keys)
        super().__init__(" ".join(str(one.body) for one in made))
        self.text = " ".join(self.text.split())

    def handle_data(self, data: str) -> None:
        super().handle_data(f"{data} ")

    @property
    def charts(self) -> list[str]:
        """What each chart says of itself in words."""
        return [have["aria-label"] for _, have in self.tags if have.get("role") == "img"]

    def chart(self, title: str) -> str:
        """The words of the chart with this title."""
        (found,) = [one for one in self.charts if one.split(". ", 1)[1].startswith(title)]
        return found
