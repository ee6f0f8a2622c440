"""HTML as values: elements with text inside, and the only code that writes tags.

Text and attributes are always escaped, and characters that cannot be seen or that turn the
direction of text are shown as `\\u202e`: no name of an opponent, file or tag becomes HTML.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from understudy.telemetry.text import plain

_VOID = frozenset({"meta", "img", "br", "hr", "input", "link"})
_POLICY = "Content-Security-Policy"
_LONGEST_ATTRIBUTE = 40_000
"""The path of a chart with many points is longer than any text."""
_MOST_CHARACTERS = 4_000
"""Of one piece of text: what comes from outside may be any length."""


@dataclass(frozen=True)
class Element:
    """One tag with its attributes and what is inside it."""

    name: str
    attributes: tuple[tuple[str, str], ...] = ()
    children: tuple[HtmlNode, ...] = ()

    def __str__(self) -> str:
        return "".join(_written(self))


@dataclass(frozen=True)
class WrittenHtml:
    """An element that was written before; made by `written` alone, so that it is always escaped."""

    html: str


HtmlNode: TypeAlias = Element | WrittenHtml | str


def written(element: Element) -> WrittenHtml:
    """The element as HTML, to be put into several pages."""
    return WrittenHtml(str(element))


def tag(name_: str, *children: HtmlNode, **attributes: str | float | None) -> Element:
    """`tag("td", "3", class_="number")`; an attribute that is None is left out.

    `_` at the end is dropped and `__` becomes `-`: `aria__label`.
    """
    given = tuple(
        (key.rstrip("_").replace("__", "-"), value if isinstance(value, str) else f"{value:g}")
        for key, value in attributes.items()
        if value is not None
    )
    return Element(name_, given, children)


def picture(png: bytes, *, alt: str) -> Element:
    """A PNG inside the page."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    return tag("img", src=source, alt=alt)


def document(
    *,
    title: str,
    body: Iterable[HtmlNode],
    policy: str = "",
    head: Iterable[Element] = (),
    style: str = "",
) -> str:
    """A whole page.

    Args:
        policy: The Content-Security-Policy, what a browser may load; empty: a header says it.
        head: What else stands in the head, such as links to style sheets.
        style: CSS of this program inside the page: it is not escaped.
    """
    assert "</" not in style, "it would end the style element"
    top = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        *([tag("meta", **{"http-equiv": _POLICY}, content=policy)] if policy else []),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        *head,
    )
    begin, end = str(top).rsplit("</head>", 1)
    inside = f"<style>{style}</style>" if style else ""
    page = tag("body", *body)
    return f'<!DOCTYPE html>\n<html lang="en">{begin}{inside}</head>{end}\n{page}</html>\n'


def _written(node: HtmlNode) -> Iterable[str]:
    if isinstance(node, str):
        yield _text(node)
        return
    if isinstance(node, WrittenHtml):
        yield node.html
        return
    yield f"<{node.name}"
    for name, value in node.attributes:
        shown = (
            html.escape(value)
            if value.startswith("data:image/png;base64,")
            else _text(value, _LONGEST_ATTRIBUTE)
        )
        yield f' {name}="{shown}"'
    yield ">"
    if node.name in _VOID:
        return
    for child in node.children:
        yield from _written(child)
    yield f"</{node.name}>"


def _text(text: str, limit: int = _MOST_CHARACTERS) -> str:
    return html.escape(plain(text, limit=limit), quote=True)
