"""Bars, histograms and points: values land where they should, and words say the same."""

from __future__ import annotations

import pytest

from understudy.screens.html.foreseen_chart import ForeseenPoint, foreseen_chart
from understudy.screens.html.histogram import HistogramBucket, HistogramMark, histogram
from understudy.screens.html.share_bars import BarShare, share_bars, stacked_bar

from .readings import HOSTILE, Outline


def outline(element: object) -> Outline:
    assert element is not None
    return Outline(str(element))


def test_the_parts_of_a_bar_fill_it_in_their_order() -> None:
    parts = [BarShare("a", 1, "1"), BarShare("b", 0, "0", "none"), BarShare("c", 3, "3")]
    seen = outline(stacked_bar(parts, title="Fates", explains="Of all."))
    first, last = seen.of("rect")
    assert (float(first["x"]), float(last["x"])) == (0.0, 150.0)
    assert float(first["width"]) + float(last["width"]) == 600.0
    assert "b 0, 0.0%" in seen.of("svg")[0]["aria-label"]
    assert "none" in seen.text and "75.0%" in seen.text


def test_a_part_that_is_there_is_seen_and_never_said_to_be_nothing() -> None:
    parts = [BarShare("a", 99_999, "99,999"), BarShare("b", 1, "1")]
    seen = outline(stacked_bar(parts, title="Fates", explains="Of all."))
    assert float(seen.of("rect")[1]["width"]) >= 1.0
    assert "<0.1%" in seen.text and ">99.9%" in seen.text


def test_bars_are_as_long_as_their_values() -> None:
    rows = [BarShare("a", 2, "2"), BarShare("b", 1, "1"), BarShare("c", 0, "0")]
    seen = outline(share_bars(rows, title="Sizes", explains="Of each."))
    bars = [float(one["width"]) for one in seen.of("rect", **{"class": "f1"})]
    assert bars == [600.0, 300.0, 0.0]
    halves = outline(share_bars(rows, title="Sizes", explains="Of each.", whole=4))
    assert float(halves.of("rect", **{"class": "f1"})[0]["width"]) == 300.0


def test_nothing_is_drawn_of_nothing() -> None:
    assert stacked_bar([BarShare("a", 0, "0")], title="", explains="") is None
    assert share_bars([], title="", explains="") is None
    assert histogram([HistogramBucket("a", 0)], title="", explains="", unit="x") is None
    assert foreseen_chart([], [], title="", explains="") is None


def test_a_histogram_has_bars_by_count_and_a_mark_at_its_place() -> None:
    buckets = [HistogramBucket("1 ms", 5), HistogramBucket("2 ms", 10), HistogramBucket("3 ms", 0)]
    marks = [HistogramMark(1.5, "median 1.5 ms")]
    seen = outline(
        histogram(buckets, title="Time", explains="Of all.", unit="answers", marks=marks)
    )
    low, high = seen.of("rect")
    assert float(high["height"]) == pytest.approx(2 * float(low["height"]))
    (line,) = seen.of("line", **{"class": "mark"})
    assert float(line["x1"]) == pytest.approx(float(high["x"]) + float(high["width"]) / 2, abs=0.1)
    label = seen.of("svg")[0]["aria-label"]
    assert "15 answers: median 1.5 ms; 1 ms 5; 2 ms 10" in label


def test_what_followed_as_foreseen_lies_on_the_line() -> None:
    points = [ForeseenPoint(x, x, x - 0.1, x + 0.1, 9, 0) for x in (-1.0, 0.0, 0.5)]
    seen = outline(foreseen_chart(points, ["SEND"], title="Gate", explains="Of it."))
    (same,) = seen.of("line", **{"class": "pause"})
    x1, x2, y1, y2 = (float(same[name]) for name in ("x1", "x2", "y1", "y2"))
    for one in seen.of("circle"):
        share = (float(one["cx"]) - x1) / (x2 - x1)
        assert float(one["cy"]) == pytest.approx(y1 + share * (y2 - y1), abs=0.2)


def test_names_from_outside_stay_text() -> None:
    rows = [BarShare(HOSTILE, 1, HOSTILE, HOSTILE)]
    for figure in (
        stacked_bar(rows, title="x", explains="x"),
        share_bars(rows, title="x", explains="x"),
        histogram([HistogramBucket(HOSTILE, 1)], title="x", explains="x", unit="x"),
    ):
        seen = outline(figure)
        assert not seen.of("script") and "<script>" in seen.text
