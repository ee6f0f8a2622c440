"""A forest plot: shares with their 95% intervals, one below the other, as a list of rows.

Each row is text and one small drawing, so that names stay readable at every width and a screen
reader reads rows, not a picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.core.statistics import wilson
from understudy.screens.html.elements import Element, tag

_WIDTH, _HEIGHT = 100.0, 20.0
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


class WinShare(NamedTuple):
    """So many wins of so many matches."""

    wins: int
    matches: int
    who: str = ""
    """Whose they are, where a row has several."""
    colour: int = 1


class WinRow(NamedTuple):
    """What is compared with the other rows."""

    name: str
    shares: Sequence[WinShare]


class WinGroup(NamedTuple):
    """Rows with a heading."""

    heading: str
    rows: Sequence[WinRow]


def interval_bars(groups: Iterable[WinGroup], *, label: str) -> Element:
    """All groups below one scale from 0 to 100%; `label` says what is compared. What has no match
    has no row."""
    bodies = []
    for group in groups:
        rows = [_row(one) for one in group.rows if any(share.matches for share in one.shares)]
        if rows:
            bodies.append(tag("h3", group.heading))
            bodies.append(tag("ul", *rows, aria__label=f"{label}: {group.heading}"))
    return tag("div", _scale(), *bodies, class_="interval-bars")


def _row(row: WinRow) -> Element:
    shares = [_share(one) for one in row.shares if one.matches]
    return tag("li", tag("span", row.name, class_="of"), tag("div", *shares, class_="shares"))


def _share(one: WinShare) -> Element:
    share = one.wins / one.matches
    low, high = wilson(one.wins, one.matches)
    who = [tag("span", one.who, class_="who")] if one.who else []
    return tag(
        "div",
        _bar(share, low, high),
        tag(
            "span",
            tag("strong", f"{share:.0%}"),
            " ",
            tag("span", f"{low:.0%} to {high:.0%} of {one.matches:,}", class_="under"),
            *who,
            class_="is",
        ),
        class_=f"i{one.colour}",
    )


def _bar(share: float, low: float, high: float) -> Element:
    middle = _HEIGHT / 2
    grid = [
        tag("line", x1=at * _WIDTH, x2=at * _WIDTH, y1=0.0, y2=_HEIGHT, class_="grid")
        for at in _TICKS
    ]
    x, width = low * _WIDTH, max((high - low) * _WIDTH, 0.4)
    return tag(
        "svg",
        *grid,
        tag("rect", x=x, y=middle - 2.5, width=width, height=5.0, class_="interval"),
        tag("rect", x=share * _WIDTH - 0.6, y=middle - 7, width=1.2, height=14.0, class_="at"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        aria__hidden="true",
    )


def _scale() -> Element:
    return tag(
        "div", *(tag("span", f"{at:.0%}") for at in _TICKS), class_="ends", aria__hidden="true"
    )
