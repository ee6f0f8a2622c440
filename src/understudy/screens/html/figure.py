"""What every chart has around it: a heading, an explanation and a key."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.screens.html.elements import Element, tag


def chart_figure(
    drawing: Element,
    *,
    title: str,
    explains: str,
    keys: Sequence[tuple[str, str]] = (),
    kind: str | None = None,
) -> Element:
    """A figure. `keys` are names with the classes of their colours; a single one says nothing."""
    shown = [tag("li", name, class_=classes) for name, classes in keys]
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        drawing,
        *([tag("ul", *shown, class_="keys")] if len(shown) > 1 else []),
        class_=kind,
    )
