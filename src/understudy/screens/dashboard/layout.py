"""What stands around every page: the head, navigation between pages and runs, and dialogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from understudy.screens.dashboard.page import Page
from understudy.screens.html.elements import Element, HtmlNode, document, tag

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing from elsewhere, and no script or style inside a page."""


def run_path(run: str, page: str = "") -> str:
    """The address of a page of a run; any name of a run is one piece of it."""
    base = f"/runs/{quote(run, safe='', errors='backslashreplace')}"
    return f"{base}/{page}" if page else base


def shell(
    *,
    title: str,
    parts: Mapping[str, tuple[HtmlNode, str]],
    assets: str,
    run: str = "",
    pages: Sequence[Page] = (),
    current: str = "",
    live: bool = True,
) -> str:
    """A whole page.

    Args:
        parts: The content and its digest by key, so that only what changes is sent later.
        assets: The version of scripts and styles, for their addresses.
        run: The run that the page is of; empty: of several.
        pages: Those of the run that are offered.
        current: The key of the page.
        live: Whether the page is kept up to date.
    """
    sections = [
        tag("section", body, **{"data-part": key, "data-digest": digest})
        for key, (body, digest) in parts.items()
    ]
    body: list[HtmlNode] = [
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _top(run, pages, current),
        tag("main", tag("h1", title), *sections, id="content", tabindex="-1"),
        _help(pages),
        tag("dialog", id="confirm", aria__labelledby="confirm-title"),
        tag("div", id="said", role="status", aria__live="polite"),
    ]
    head = [
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href=f"/static/{assets}/dashboard.css"),
        tag("script", src=f"/static/{assets}/theme.js"),
        tag("script", src=f"/static/{assets}/dashboard.js", type="module"),
    ]
    if live:
        head.append(tag("meta", name="understudy-live", content="/live"))
    return document(
        title=" · ".join(filter(None, (title, run, "Understudy"))), body=body, head=head
    )


def _top(run: str, pages: Sequence[Page], current: str) -> Element:
    links = [
        tag(
            "li",
            tag(
                "a", one.title,
                href=run_path(run, "" if one.key == "overview" else one.key),
                aria__current="page" if one.key == current else None,
            ),
        )
        for one in pages
    ]  # fmt: skip
    where = [tag("a", run, href=run_path(run), class_="run")] if run else []
    return tag(
        "header",
        tag(
            "div",
            tag("a", "Understudy", href="/", class_="brand"),
            *where,
            tag("span", "", id="connection", class_="connection", role="status"),
            tag("button", "?", id="keys", type="button", aria__label="Keyboard shortcuts"),
            tag(
                "button", "", id="theme", type="button", aria__label="Switch between dark and light"
            ),
            class_="bar",
        ),
        *([tag("nav", tag("ul", *links), aria__label="Pages of this run")] if links else []),
    )


def _help(pages: Sequence[Page]) -> Element:
    rows = [("?", "this list"), ("a", "all runs"), ("c", "compare runs"), ("t", "dark or light")]
    rows += [(str(index), one.title) for index, one in enumerate(pages[:9], start=1)]
    return tag(
        "dialog",
        tag("h2", "Keys", id="help-title"),
        tag(
            "dl",
            *(tag("div", tag("dt", tag("kbd", key)), tag("dd", words)) for key, words in rows),
            class_="keys-list",
        ),
        tag("form", tag("button", "Close", type="submit"), method="dialog"),
        id="help",
        aria__labelledby="help-title",
    )
