"""The page of a report, from its facts: pure, and the same facts give the same page."""

from __future__ import annotations

from collections.abc import Iterator

from understudy.screens.html.elements import Element, HtmlNode, document, tag
from understudy.screens.html.parts import key_figures_list
from understudy.screens.report import summary
from understudy.screens.report.facts import ReportFacts
from understudy.screens.report.sections import sections
from understudy.screens.report.style import STYLE

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Nothing may be loaded from anywhere, even if a browser found something to load."""


def report_page(facts: ReportFacts) -> str:
    """The whole HTML file."""
    shown = list(sections(facts))
    contents = tag(
        "nav",
        tag("ul", *(tag("li", tag("a", one.heading, href=f"#{one.key}")) for one in shown)),
        aria__label="Contents",
    )
    body: list[HtmlNode] = [
        tag("header", *_head(facts), contents),
        tag(
            "main",
            *(tag("section", tag("h2", one.heading, id=one.key), *one.body) for one in shown),
        ),
        tag(
            "footer",
            tag(
                "p",
                "Made by Understudy from the files of the run alone. This file needs no network "
                "and runs no script.",
            ),
        ),
    ]
    return document(title=f"{facts.name}: a report", policy=_POLICY, style=STYLE, body=body)


def _head(facts: ReportFacts) -> Iterator[Element]:
    kind, words = summary.headline(facts)
    yield tag("h1", facts.name, " ", tag("span", words, class_=f"badge {kind}"))
    yield tag("p", f"A report, made on {summary.moment(facts.status.at)}.", class_="made")
    yield tag(
        "div",
        tag("p", summary.what_it_is(facts)),
        tag("p", tag("strong", "How it goes. "), summary.how_it_goes(facts)),
        tag("p", tag("strong", "What is wrong. "), summary.what_is_wrong(facts)),
        tag("p", tag("strong", "What next. "), summary.what_next(facts)),
        class_="lead",
    )
    figures = summary.key_figures(facts.view, facts.kind)
    if figures:
        yield key_figures_list(figures)
