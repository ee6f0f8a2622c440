"""Bars of shares: one bar in parts, and bars below each other. Text is HTML, so it stays readable
at every width; only the bars are SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from understudy.screens.html.elements import Element, HtmlNode, tag

_WIDTH = 600.0
_HIGH, _LOW = 28.0, 8.0
"""Heights of a bar in parts, and of one among others."""
_LEAST = 1.5
"""Width of what is there at all: it must be seen."""


class BarShare(NamedTuple):
    """A part of a whole."""

    name: str
    value: float
    text: str
    """The value as people read it."""
    means: str = ""
    """A few words that say what it is."""
    tone: str = ""
    """A class of colour: `f1` to `f6`, `good`, `warning`, `problem` or `soft`; empty: by place."""


def stacked_bar(parts: Sequence[BarShare], *, title: str, explains: str) -> Element | None:
    """A figure: one bar in parts, and a key with each value, its share and its meaning.

    None where there is nothing. Parts of 0 are in the key alone.
    """
    total = sum(one.value for one in parts)
    if total <= 0:
        return None
    marks: list[HtmlNode] = []
    x = 0.0
    for one, tone in zip(parts, _tones(parts), strict=True):
        width = _WIDTH * one.value / total
        if one.value > 0:
            marks.append(
                tag(
                    "rect", tag("title", f"{one.name}: {one.text}"), x=round(x, 2), y=0,
                    width=round(max(width, _LEAST), 2), height=_HIGH, class_=tone,
                )
            )  # fmt: skip
        x += width
    words = "; ".join(f"{one.name} {one.text}, {one.value / total:.1%}" for one in parts)
    rows = [
        tag(
            "div",
            tag("dt", tag("span", "", class_=f"swatch {tone}"), one.name),
            tag("dd", one.text, class_="value"),
            tag("dd", _share(one.value / total), class_="share"),
            tag("dd", one.means, class_="means"),
        )
        for one, tone in zip(parts, _tones(parts), strict=True)
    ]
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        tag(
            "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {_HIGH:g}", preserveAspectRatio="none",
            role="img", aria__label=f"Bar in parts. {title}: {words}.", class_="stacked",
        ),
        tag("dl", *rows, class_="bar-key"),
        class_="share-bars wide",
    )  # fmt: skip


def share_bars(
    rows: Sequence[BarShare], *, title: str, explains: str, whole: float | None = None
) -> Element | None:
    """A figure: a bar for each row, the length of its value.

    `whole` is the value of a full bar; None: the largest. None is returned where there is no row.
    """
    if not rows:
        return None
    full = whole or max(one.value for one in rows) or 1.0
    items = [
        tag(
            "div",
            tag("dt", one.name, *([tag("span", one.means, class_="means")] if one.means else [])),
            tag(
                "dd",
                tag(
                    "svg",
                    tag("rect", x=0, y=0, width=_WIDTH, height=_LOW, rx=2, class_="trough"),
                    tag(
                        "rect", x=0, y=0, width=round(_length(one.value, full), 2), height=_LOW,
                        rx=2, class_=one.tone or "f1",
                    ),
                    viewBox=f"0 0 {_WIDTH:g} {_LOW:g}",
                    preserveAspectRatio="none",
                    aria__hidden="true",
                ),
            ),
            tag("dd", one.text, class_="value"),
        )
        for one in rows
    ]  # fmt: skip
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        tag("dl", *items, class_="bar-rows"),
        class_="share-bars",
    )


def _tones(parts: Sequence[BarShare]) -> list[str]:
    return [one.tone or f"f{index % 6 + 1}" for index, one in enumerate(parts)]


def _length(value: float, full: float) -> float:
    return min(max(_WIDTH * value / full, _LEAST if value > 0 else 0.0), _WIDTH)


def _share(share: float) -> str:
    """Never 0% of what is there, nor 100% of what is not all."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001:
        return "<0.1%"
    return ">99.9%" if share > 0.999 else f"{share:.1%}"
