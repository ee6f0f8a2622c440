"""The first page of a run: is it learning, is it healthy, who plays and why, what happened last."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.doctor.findings import Finding
from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.dashboard.pages.runs import about, answer_cards
from understudy.screens.dashboard.pages.server import reward_chart
from understudy.screens.html import run_charts
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.parts import chart_row, finding_article, key_figures_list
from understudy.screens.monitor.log_lines import LogLine, clock_time, log_lines
from understudy.screens.report.summary import key_figures
from understudy.telemetry.text import stamp

_FINDINGS, _LINES = 8, 14


def parts(reading: RunReading) -> Iterator[PagePart]:
    """Answers, figures, curves, findings, and the log."""
    yield PagePart("about", tag("p", *about(reading), class_="soft"))
    yield answer_cards(reading)
    figures = key_figures(reading.view, reading.kind)
    if figures:
        yield PagePart("figures", key_figures_list(figures))
    if curves := _curves(reading):
        yield part("curves", "How it goes", *curves)
    yield _findings(reading.findings)
    yield _log(reading)


def _curves(reading: RunReading) -> list[HtmlNode]:
    shown = (
        run_charts.WIN_RATE,
        run_charts.RETURN,
        run_charts.ALL_BENCHMARKS,
        run_charts.UTILISATION,
    )
    drawn = [reading.charts.draw(one) for one in shown]
    return chart_row([reward_chart(reading), *drawn] if reading.kind == "server" else drawn)


def _findings(findings: tuple[Finding, ...] | None) -> PagePart:
    heading = "What is wrong, and what to do"
    if findings is None:
        return empty("findings", heading, "The checks run; this takes a moment.")
    if not findings:
        return empty("findings", heading, "All checks passed.")
    more = len(findings) - _FINDINGS
    rest = [tag("p", f"{more} more: understudy doctor.", class_="soft")] if more > 0 else []
    return part("findings", heading, *(finding_article(one) for one in findings[:_FINDINGS]), *rest)


def _log(reading: RunReading) -> PagePart:
    lines = log_lines(reading.view.recent)[-_LINES:]
    if not lines:
        return empty("log", "What happened last", "Nothing has happened yet.")
    rows = [_line(one) for one in reversed(lines)]
    return part("log", "What happened last", tag("ol", *rows, class_="log"))


def _line(one: LogLine) -> Element:
    return tag(
        "li",
        tag("time", clock_time(one.t), title=stamp(one.t)),
        tag("span", one.by, class_="by"),
        tag("span", one.text, class_=f"what {one.tone}"),
    )
