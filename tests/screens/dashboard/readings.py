"""Readings of real run folders, and what the pages made of them hold."""

from __future__ import annotations

import html.parser
from collections.abc import Callable, Iterable
from pathlib import Path

from understudy.run.dashboard import ExaminationPace, WatchedRun
from understudy.screens.dashboard.page import PagePart, RunReading

HOSTILE = "</p><script>alert('x')</script>\" onload=\"'&\u202e\x00<!--"


def reading_of(run: Path) -> RunReading:
    return WatchedRun(run.name, run, ExaminationPace()).read()


class Outline(html.parser.HTMLParser):
    """The tags of some HTML with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((name, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, name: str, **attributes: str) -> list[dict[str, str]]:
        """The attributes of all tags of this name that have those."""
        return [
            given
            for tag, given in self.tags
            if tag == name and all(given.get(key) == value for key, value in attributes.items())
        ]


def outlines(
    page: Callable[[RunReading], Iterable[PagePart]], reading: RunReading
) -> dict[str, Outline]:
    """The parts of a page by key."""
    return {one.key: Outline(str(one.body)) for one in page(reading)}


def actions_of(part: Outline) -> dict[str, dict[str, str]]:
    """The buttons of a part by action, each with all that a person is asked."""
    found = {one["data-action"]: one for one in part.of("button") if "data-action" in one}
    for one in found.values():
        assert one["type"] == "button"
        assert one["data-title"].endswith("?")
        assert one["data-confirm"].endswith(".")
        assert one["data-yes"]
    return found
