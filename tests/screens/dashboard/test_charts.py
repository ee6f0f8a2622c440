"""Charts: values land where they should, and their words say what is seen."""

from __future__ import annotations

import pytest

from understudy.screens.html.axis import PERCENT, Axis
from understudy.screens.html.heat_map import heat_map
from understudy.screens.html.interval_chart import IntervalRow, interval_chart
from understudy.screens.html.scatter import GROUPS, ScatterGroup, scatter
from understudy.screens.html.version_tree import TreeVersion, arranged, version_tree
from understudy.screens.html.xy_chart import Mark, Threshold, XyLine, xy_chart

from .readings import HOSTILE, Outline


def label(page: Outline) -> str:
    (drawing,) = page.of("svg", role="img")
    return drawing["aria-label"]


# --- axes ----------------------------------------------------------------------------------------


def test_a_logarithmic_axis_gives_every_factor_of_ten_the_same_room() -> None:
    axis = Axis.logarithmic(0.3, 60.0)
    assert (axis.low, axis.high) == pytest.approx((0.1, 100.0))
    places = [axis.share(value) for value in (0.1, 1.0, 10.0, 100.0)]
    assert places == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
    assert axis.share(1e-9) == 0.0
    assert axis.share(1e9) == 1.0


def test_a_tight_axis_ends_where_the_values_end_and_its_ticks_are_round() -> None:
    axis = Axis.tight(3.0, 97.0)
    assert (axis.low, axis.high) == (3.0, 97.0)
    assert axis.ticks == (20.0, 40.0, 60.0, 80.0)
    assert Axis.tight(5.0, 5.0).share(5.0) == 0.5


# --- heat map ------------------------------------------------------------------------------------


def drawn_heat(**changes: object) -> Outline:
    given: dict[str, object] = {
        "rows": ["a", "b"], "columns": ["x", "y"], "title": "T", "explains": "E", "low": 0.0,
        "high": 1.0, **changes,
    }  # fmt: skip
    found = heat_map([[0.0, 1.0], [None, 0.5]], **given)  # type: ignore[arg-type]
    return Outline(str(found))


def test_the_colour_of_a_cell_grows_with_its_value_and_an_empty_one_has_none() -> None:
    page = drawn_heat()
    cells = [one for one in page.of("rect") if "rx" in one]
    strength = [float(one["fill-opacity"]) for one in cells]
    assert strength[0] < strength[2] < strength[1]
    assert {one["class"] for one in cells} == {"above"}
    assert len(page.of("rect", **{"class": "missing"})) == 1
    assert "b, x: no value" in page.text
    assert "a, y: 1" in page.text
    assert label(page) == (
        "Heat map. T: 2 rows by 2 columns; lowest 0 at a, x; highest 1 at a, y; 1 without a value."
    )


def test_around_a_middle_the_hue_says_the_side_and_the_middle_has_no_colour() -> None:
    cells = [one for one in drawn_heat(middle=0.5).of("rect") if "rx" in one]
    assert [one["class"] for one in cells] == ["below", "above", "above"]
    assert [float(one["fill-opacity"]) for one in cells] == [0.75, 0.75, 0.0]


def test_a_square_map_has_square_cells_and_few_enough_labels() -> None:
    names = [str(one) for one in range(16)]
    page = Outline(
        str(
            heat_map(
                [[1.0] * 16 for _ in names], rows=names, columns=names, title="T", explains="E",
                low=0.0, high=2.0, square=True,
            )
        )
    )  # fmt: skip
    cells = [one for one in page.of("rect") if "rx" in one]
    assert len(cells) == 256
    assert all(one["width"] == one["height"] for one in cells)
    assert max(float(one["x"]) + float(one["width"]) for one in cells) <= 520.0


@pytest.mark.parametrize(("players", "shown"), [(3, "100%"), (12, "100"), (30, None)])
def test_the_numbers_of_neighbouring_cells_never_touch(players: int, shown: str | None) -> None:
    names = [f"step-{number}" for number in range(players)]
    page = Outline(
        str(
            heat_map(
                [[1.0] * players for _ in names], rows=names, columns=names, title="T",
                explains="E", low=0.0, high=1.0, text="{:.0%}".format,
            )
        )
    )  # fmt: skip
    inside = [one for one in page.of("text") if one.get("class") == "on-strong"]
    assert len(inside) == (0 if shown is None else players**2)
    if shown is not None:
        cell = next(one for one in page.of("rect") if "rx" in one)
        wide = sum(12 if letter == "%" else 8 for letter in shown)
        assert wide <= float(cell["width"]), "at 12.5 pixels a digit takes 8 and a sign 12"


def test_a_map_without_a_value_is_not_drawn() -> None:
    assert (
        heat_map([[None]], rows=["a"], columns=["b"], title="T", explains="E", low=0.0, high=1.0)
        is None
    )


# --- lines over any number -----------------------------------------------------------------------


def heights(path: str) -> list[float]:
    return [float(pair.split()[1]) for pair in path.removeprefix("M").split("L")]


def test_lines_thresholds_and_marks_share_one_scale() -> None:
    page = Outline(
        str(
            xy_chart(
                [XyLine("E", [0.0, 10.0], [1.0, 100.0])],
                title="T",
                explains="E",
                across="matches",
                y_axis=Axis.logarithmic(1.0, 100.0),
                thresholds=[Threshold("enough", 10.0, 2)],
                marks=[Mark("a test", 2.0, 8.0)],
            )
        )
    )
    (line,) = [one for one in page.of("path") if "thick" in one["class"]]
    low, high = heights(line["d"])
    (limit,) = [one for one in page.of("line") if "threshold" in one["class"]]
    assert float(limit["y1"]) == pytest.approx((low + high) / 2, abs=0.1), "in the middle of both"
    (stretch,) = page.of("rect")
    grid = next(one for one in page.of("line") if one["class"] == "grid")
    whole = float(grid["x2"]) - float(grid["x1"])
    assert float(stretch["width"]) == pytest.approx(0.6 * whole, abs=0.1)
    assert "E from 1 to 100; enough at 10" in label(page)


def test_a_long_line_is_thinned_and_keeps_its_end() -> None:
    many = [float(one) for one in range(10_000)]
    page = Outline(
        str(
            xy_chart(
                [XyLine("v", many, [0.0] * 9_999 + [1.0])], title="T", explains="E", across="n",
                y_axis=PERCENT,
            )
        )
    )  # fmt: skip
    (line,) = page.of("path")
    found = heights(line["d"])
    assert len(found) < 300
    assert found[-1] < found[0], "the last value is the only one at the top"


def test_an_interval_is_drawn_around_its_value() -> None:
    rows = [IntervalRow(HOSTILE, 0.5, 0.25, 0.75, "50% of 8")]
    page = Outline(str(interval_chart(rows, title="T", explains="E", axis=PERCENT, middle=0.5)))
    (line,) = [one for one in page.of("line") if "range" in one["class"]]
    (dot,) = page.of("circle")
    middle = (float(line["x1"]) + float(line["x2"])) / 2
    assert float(dot["cx"]) == pytest.approx(middle, abs=0.1)
    assert not page.of("script")
    assert "50% of 8" in page.text


# --- scatter -------------------------------------------------------------------------------------


def test_groups_of_points_differ_in_colour_or_shape() -> None:
    groups = [ScatterGroup(f"g{one}", [(one, -one), (one + 1, one)]) for one in range(GROUPS + 3)]
    page = Outline(str(scatter(groups, title="T", explains="E", across="a", up="b")))
    assert len(page.of("circle")) + len(page.of("path")) == 2 * GROUPS
    looks = {(name, given["class"]) for name, given in page.tags if name in ("circle", "path")}
    assert len(looks) == GROUPS
    assert "3 more groups are left out" in label(page)
    assert scatter([], title="T", explains="E", across="a", up="b") is None


# --- lineage -------------------------------------------------------------------------------------


def test_a_rollback_is_a_branch_and_pruned_versions_are_a_gap() -> None:
    versions = [
        TreeVersion(1, None),
        TreeVersion(5, 4),  # 2 to 4 are gone
        TreeVersion(6, 5),
        TreeVersion(7, 1),  # a rollback to 1
        TreeVersion(8, 7, ("champion",)),
    ]
    places = arranged(versions)
    assert [places[one].row for one in (1, 5, 6, 7, 8)] == [0, 0, 0, 1, 1]
    assert [places[one].origin for one in (1, 5, 6, 7, 8)] == [None, 1, 5, 1, 7]
    assert [one for one, place in places.items() if place.skipped] == [5]
    page = Outline(str(version_tree(versions, title="T", explains="E")))
    kinds = [one["class"] for one in page.of("circle")]
    assert kinds == ["now", "left", "left", "now", "now role"], "1, 7 and 8 are the newest line"
    assert "in 2 lines of learning; version 8: champion" in label(page)


def test_lines_that_ended_make_room_for_later_ones() -> None:
    versions = [TreeVersion(1, None)]
    for begin in range(2, 40, 2):  # each goes back to the version before the last one
        versions += [TreeVersion(begin, begin - 1), TreeVersion(begin + 1, begin - 1)]
    places = arranged(versions)
    assert max(one.row for one in places.values()) <= 2


def test_hundreds_of_versions_fit() -> None:
    versions = [TreeVersion(one, one - 1 or None) for one in range(1, 401)]
    page = Outline(str(version_tree(versions, title="T", explains="E")))
    assert len(page.of("circle")) == 400
    numbers = page.of("text")
    assert 5 < len(numbers) < 40
