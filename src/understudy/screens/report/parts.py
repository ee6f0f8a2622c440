"""Parts that the sections of a report share: explained tables, and charts of a run's trends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from understudy.screens.report.chart import ChartLine, PlayTime, Unit, line_chart
from understudy.screens.report.html import Element, HtmlNode, tag
from understudy.telemetry.trends import Trends

_CLASSES = {"n": "number", "w": "line"}


def explains(text: str) -> Element:
    """One sentence below a heading."""
    return tag("p", text, class_="explains")


def table(
    words: str, columns: Sequence[str], rows: Iterable[Sequence[HtmlNode]], *, kinds: str = ""
) -> Element:
    """A table with its explanation above. `kinds` has a letter for each column: `n` is a number,
    `w` stays on one line."""
    classes = [_CLASSES.get(one) for one in kinds.ljust(len(columns), ".")]
    head = [
        tag("th", name, class_=kind, scope="col")
        for name, kind in zip(columns, classes, strict=True)
    ]
    body = [
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, classes, strict=True)))
        for row in rows
    ]
    return tag(
        "div",
        explains(words),
        tag(
            "div",
            tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), aria__label=words),
            class_="table",
            tabindex="0",  # a wide one is scrolled with the keyboard, too
        ),
    )


def chart_row(figures: Iterable[Element | None]) -> list[HtmlNode]:
    """Charts side by side; None: a chart that would be empty."""
    drawn = [one for one in figures if one is not None]
    return [tag("div", *drawn, class_="charts")] if drawn else []


class TrendCharts:
    """Makes charts of the trends of one run."""

    def __init__(self, trends: Trends) -> None:
        self._trends = trends
        self._time = PlayTime(trends)

    def of(
        self, title: str, explains: str, names: dict[str, str], unit: Unit = "number"
    ) -> Element | None:
        """`names`: the trends, and what their lines are called."""
        lines = [
            ChartLine(called, self._trends[name])
            for name, called in names.items()
            if name in self._trends
        ]
        return line_chart(lines, self._time, title=title, explains=explains, unit=unit)
