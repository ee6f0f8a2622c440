"""Parts that the sections of a report share: explained tables, and charts of a run's trends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from understudy.doctor.findings import Finding
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.line_chart import ChartLine, PlayTime, line_chart
from understudy.screens.html.plot import COLOURS, AxisMark, ChartLevel, Unit
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


def finding_article(one: Finding) -> Element:
    """A finding of the doctor with its evidence and the next step."""
    return tag(
        "article",
        tag("span", one.weight, class_=f"badge {one.weight}"),
        " ",
        tag("span", one.certainty, class_="soft"),
        tag("h3", one.title),
        tag("ul", *(tag("li", line) for line in one.evidence)),
        tag("p", tag("strong", "Next: "), one.next_step),
        tag("p", "More in ", tag("code", one.link), ".", class_="soft"),
        class_=f"finding {one.weight}",
    )


def key_figures_list(figures: Iterable[tuple[str, HtmlNode, HtmlNode]]) -> Element:
    """Figures that are shown large: a name, a value, and a few words below it."""
    shown = [
        tag("div", tag("dt", name), tag("dd", value, tag("span", under, class_="under")))
        for name, value, under in figures
    ]
    return tag("dl", *shown, class_="figures")


def chart_row(figures: Iterable[Element | None]) -> list[HtmlNode]:
    """Charts side by side; None: a chart that would be empty."""
    drawn = [one for one in figures if one is not None]
    return [tag("div", *drawn, class_="charts")] if drawn else []


class TrendChart(NamedTuple):
    """Which trends a chart shows, and what it says about them."""

    title: str
    explains: str
    names: Mapping[str, str]
    """The trends, and what their lines are called."""
    unit: Unit = "number"


class TrendCharts:
    """Makes charts of the trends of one run. `marks` lie at seconds since 1970."""

    def __init__(self, trends: Trends, marks: Sequence[AxisMark] = ()) -> None:
        self._trends = trends
        self.time = PlayTime(trends)
        self.axis = self.time.axis([AxisMark(self.time.at(t), name) for t, name in marks])

    def of(
        self, title: str, explains: str, names: dict[str, str], unit: Unit = "number"
    ) -> Element | None:
        """`names`: the trends, and what their lines are called."""
        return self.draw(TrendChart(title, explains, names, unit))

    def draw(self, chart: TrendChart, *, levels: Sequence[ChartLevel] = ()) -> Element | None:
        """The chart, or None where the run has nothing of it; `levels` are drawn across it."""
        # Rules have their colour before the first version plays, too.
        fixed = 1 < len(chart.names) <= COLOURS
        lines = [
            ChartLine(
                called, self._trends[name], self.time.along(self._trends[name]),
                place if fixed else None,
            )
            for place, (name, called) in enumerate(chart.names.items(), start=1)
            if name in self._trends
        ]  # fmt: skip
        return line_chart(
            lines, self.axis, title=chart.title, explains=chart.explains, unit=chart.unit,
            levels=levels,
        )  # fmt: skip
