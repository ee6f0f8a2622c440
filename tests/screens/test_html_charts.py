"""Charts: values land where they should, and a script can read them off the lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.statistics import wilson
from understudy.screens.html.axis import number_text
from understudy.screens.html.elements import Element
from understudy.screens.html.interval_bars import (
    WinGroup,
    WinRow,
    WinShare,
    interval_bars,
)
from understudy.screens.html.line_chart import ChartLine, line_chart
from understudy.screens.html.plot import AxisMark, ChartAxis, ChartLevel, Scale
from understudy.screens.html.stacked_areas import AreaLayer, stacked_areas
from understudy.telemetry.trends import Trend


def elements(root: Element, name: str) -> list[dict[str, str]]:
    """Attributes of all elements with a tag, in order."""
    found = [dict(root.attributes)] if root.name == name else []
    for child in root.children:
        if isinstance(child, Element):
            found += elements(child, name)
    return found


def points(path: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y))
        for x, y in (one.split(" ") for one in re.sub("[MZ]", "", path).split("L"))
    ]


def read_off(chart: Element, y: float) -> float:
    """The value at a height, as the script of the dashboard reads it."""
    (svg,) = elements(chart, "svg")
    _, _, top, bottom = (float(one) for one in svg["data-plot"].split(" "))
    low, high, share = (
        float(svg["data-low"]),
        float(svg["data-high"]),
        (bottom - y) / (bottom - top),
    )
    if "data-log" in svg:
        return float(low * (high / low) ** share)
    return low + share * (high - low)


def trend_of(values: Sequence[float]) -> Trend:
    trend = Trend()
    for t, value in enumerate(values):
        trend.add(float(t), value, version=0)
    return trend


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=24)
    | st.lists(st.floats(2.0, 1e6), min_size=2, max_size=24)
)
def test_values_can_be_read_off_a_line(values: list[float]) -> None:
    along = [float(t) for t in range(len(values))]
    line = ChartLine("one", trend_of(values), along)
    chart = line_chart([line], ChartAxis(along[-1]), title="t", explains="e")
    assert chart is not None
    (thick,) = [one for one in elements(chart, "path") if one["class"] == "thick s1"]
    drawn = points(thick["d"])
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)
    (svg,) = elements(chart, "svg")
    low, high = float(svg["data-low"]), float(svg["data-high"])
    for (_, y), value in zip(drawn, values, strict=True):  # so few are not averaged
        shown = max(value, low)  # what is far below the largest lies at the bottom
        wrong = abs(read_off(chart, y) - shown)
        assert wrong <= (0.05 * shown if "data-log" in svg else 1e-3 * (high - low))


def test_a_level_is_inside_the_chart_and_said() -> None:
    line = ChartLine("kl", trend_of([0.001, 0.002]), [0.0, 1.0])
    level = ChartLevel(0.01, "target")
    chart = line_chart([line], ChartAxis(1.0), title="t", explains="e", levels=[level])
    assert chart is not None
    (drawn,) = [one for one in elements(chart, "line") if one["class"] == "level"]
    assert read_off(chart, float(drawn["y1"])) == pytest.approx(0.01)
    assert elements(chart, "svg")[0]["aria-label"].endswith("target 0.01.")


def test_marks_are_named_where_there_is_room() -> None:
    marks = [AxisMark(0.0, "first"), AxisMark(50.0, "second"), AxisMark(51.0, "third")]
    line = ChartLine("one", trend_of([1.0, 2.0]), [0.0, 100.0])
    chart = line_chart([line], ChartAxis(100.0, marks=marks), title="t", explains="e")
    lines = [one for one in elements(chart or Element(""), "line") if one["class"] == "mark"]
    assert len(lines) == 3
    assert ">first<" in str(chart) and ">second<" not in str(chart) and ">third<" in str(chart)


def test_an_axis_of_matches_counts_in_whole_ones() -> None:
    assert list(ChartAxis(2.0, counts="matches").ticks()) == [
        (0.0, "0 matches"), (1.0, "1"), (2.0, "2"),
    ]  # fmt: skip
    assert [words for _, words in ChartAxis(40_000.0, counts="steps").ticks()] == [
        "0 steps", "10k", "20k", "30k", "40k",
    ]  # fmt: skip


def test_ticks_of_close_values_differ() -> None:
    scale = Scale.of([2.3021, 2.3024], "number")
    texts = scale.tick_texts()
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00025, "0.00025"), (2.5e-5, "2.5e-5"), (1e-6, "1e-6"), (12_345.0, "12.3k")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number_text(value) == text


# --- stacked areas -------------------------------------------------------------------------------


def test_layers_above_and_below_zero_add_up() -> None:
    layers = [
        AreaLayer("win", [2.0, 3.0]),
        AreaLayer("hit", [1.0, -1.0]),
        AreaLayer("cost", [-1.0, -2.0]),
    ]
    chart = stacked_areas(
        layers, [0.0, 10.0], ChartAxis(10.0, counts="steps"), title="Terms", explains="e",
        total=[2.0, 0.0], total_name="return",
    )  # fmt: skip
    assert chart is not None
    found: dict[str, list[float]] = {}
    for path in elements(chart, "path"):
        drawn = points(path["d"])
        if path["class"].startswith("layer"):
            outer, inner = drawn[:2], list(reversed(drawn[2:]))
            heights = [
                read_off(chart, out[1]) - read_off(chart, low[1])
                for out, low in zip(outer, inner, strict=True)
            ]
            before = found.get(path["data-name"], [0.0, 0.0])
            found[path["data-name"]] = [a + b for a, b in zip(before, heights, strict=True)]
        else:
            found[path["data-name"]] = [read_off(chart, y) for _, y in drawn]
    for layer in layers:
        assert found[layer.name] == pytest.approx(list(layer.values), abs=0.02)
    assert found["return"] == pytest.approx([2.0, 0.0], abs=0.02)


def test_layers_beyond_the_colours_are_one() -> None:
    layers = [AreaLayer(f"term {number}", [1.0, 1.0]) for number in range(9)]
    chart = stacked_areas(layers, [0.0, 1.0], ChartAxis(1.0), title="t", explains="e")
    assert chart is not None
    names = [one["data-name"] for one in elements(chart, "path")]
    assert names == [*(f"term {number}" for number in range(5)), "4 others"]


def test_one_place_makes_no_areas() -> None:
    layer = AreaLayer("one", [1.0])
    assert stacked_areas([layer], [0.0], ChartAxis(1.0), title="t", explains="e") is None


# --- forest plot ---------------------------------------------------------------------------------


def test_a_bar_is_the_interval_and_its_line_the_share() -> None:
    row = WinRow("zerg", [WinShare(30, 40, "the policy"), WinShare(0, 0)])
    made = interval_bars([WinGroup("By opponent", [row])], label="Win rates")
    interval, line = elements(made, "rect")
    low, high = wilson(30, 40)
    assert float(interval["x"]) == pytest.approx(100 * low, abs=1e-3)
    assert float(interval["width"]) == pytest.approx(100 * (high - low), abs=1e-3)
    assert float(line["x"]) + float(line["width"]) / 2 == pytest.approx(75.0)
    assert "60% to 86% of 40" in str(made)


def test_what_has_no_match_has_no_row_and_no_heading() -> None:
    rows = [WinRow("zerg", [WinShare(0, 0)])]
    made = interval_bars([WinGroup("By opponent", rows)], label="Win rates")
    assert "By opponent" not in str(made) and not elements(made, "svg")
