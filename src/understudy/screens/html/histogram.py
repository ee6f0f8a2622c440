"""Histograms as SVG: counts in named buckets, with the count above each bar instead of an axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.screens.html.elements import Element, tag

_WIDTH, _HEIGHT = 520.0, 220.0
_SIDE, _TOP, _BOTTOM = 10.0, 34.0, 30.0
_LETTER = 7.6
"""Width of an average letter."""
_LEAST = 1.5


class HistogramBucket(NamedTuple):
    """So many values up to a bound."""

    name: str
    """Such as `2 ms` or `under 1 min`."""
    holds: int
    tone: str = "f1"
    """A class of colour."""


class HistogramMark(NamedTuple):
    """A value that is marked by a line."""

    at: float
    """In buckets from the left: 2.5 is the middle of the third."""
    name: str


def histogram(
    buckets: Sequence[HistogramBucket],
    *,
    title: str,
    explains: str,
    unit: str,
    marks: Sequence[HistogramMark] = (),
) -> Element | None:
    """A figure with its heading and its explanation; None where all buckets are empty.

    Args:
        unit: What is counted, in the plural: `answers`.
        marks: At most a few, such as the median.
    """
    total = sum(one.holds for one in buckets)
    if not total:
        return None
    most = max(one.holds for one in buckets)
    drawing = tag(
        "svg",
        *_bars(buckets, most, total, unit),
        *_names(buckets),
        *_marks(marks, len(buckets)),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        role="img",
        aria__label=f"Histogram. {title}, {total:,} {unit}: {_in_words(buckets, marks)}.",
    )
    return tag("figure", tag("h3", title), tag("figcaption", explains), drawing, class_="histogram")


def _bars(
    buckets: Sequence[HistogramBucket], most: int, total: int, unit: str
) -> Iterable[Element]:
    wide = (_WIDTH - 2 * _SIDE) / len(buckets)
    bottom = _HEIGHT - _BOTTOM
    yield tag("line", x1=_SIDE, x2=_WIDTH - _SIDE, y1=bottom, y2=bottom, class_="grid")
    for index, one in enumerate(buckets):
        if not one.holds:
            continue
        height = max((bottom - _TOP) * one.holds / most, _LEAST)
        told = f"{one.name}: {one.holds:,} {unit}, {one.holds / total:.1%}"
        yield tag(
            "rect", tag("title", told), x=round(_SIDE + index * wide + 1, 2),
            y=round(bottom - height, 2), width=round(wide - 2, 2), height=round(height, 2), rx=2,
            class_=one.tone,
        )  # fmt: skip
        words = _short(one.holds)
        if _LETTER * len(words) + 6 <= wide:
            yield tag(
                "text", words, x=round(_SIDE + (index + 0.5) * wide, 2),
                y=round(bottom - height - 5, 2), text__anchor="middle",
            )  # fmt: skip


def _names(buckets: Sequence[HistogramBucket]) -> Iterable[Element]:
    wide = (_WIDTH - 2 * _SIDE) / len(buckets)
    longest = max(len(one.name) for one in buckets)
    every = max(1, -(-int(_LETTER * longest + 8) // int(wide)))
    for index in range(0, len(buckets), every):
        x = round(_SIDE + (index + 0.5) * wide, 2)
        room = _LETTER * len(buckets[index].name) / 2
        anchor = "start" if x < room else "end" if x > _WIDTH - room else "middle"
        edge = 0.0 if anchor == "start" else _WIDTH if anchor == "end" else x
        yield tag("text", buckets[index].name, x=edge, y=_HEIGHT - 10, text__anchor=anchor)


def _marks(marks: Sequence[HistogramMark], count: int) -> Iterable[Element]:
    wide = (_WIDTH - 2 * _SIDE) / count
    for index, one in enumerate(marks):
        x = round(_SIDE + min(max(one.at, 0.0), count) * wide, 2)
        y = 12.0 + 15.0 * (index % 2)
        anchor = "end" if x > 0.6 * _WIDTH else "start"
        yield tag("line", x1=x, x2=x, y1=y - 8, y2=_HEIGHT - _BOTTOM, class_="mark")
        yield tag(
            "text", one.name, x=x + (-5 if anchor == "end" else 5), y=y + 2, text__anchor=anchor,
            class_="mark",
        )  # fmt: skip


def _in_words(buckets: Sequence[HistogramBucket], marks: Sequence[HistogramMark]) -> str:
    counts = [f"{one.name} {one.holds:,}" for one in buckets if one.holds]
    return "; ".join([*(one.name for one in marks), *counts])


def _short(count: int) -> str:
    for scale, letter in ((10**9, "B"), (10**6, "M"), (10**4, "k")):
        if count >= scale:
            return f"{count / (1000 if letter == 'k' else scale):.3g}{letter}"
    return f"{count:,}"
