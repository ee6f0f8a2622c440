"""Renders pages of runs. One thread at a time: readers of run folders are not made for several.

A page in which nothing happened is not rendered again: a source returns the reading that it
returned before, and the parts made from it are kept.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from understudy.core.errors import RunFolderError, UnderstudyError
from understudy.screens.dashboard.layout import shell
from understudy.screens.dashboard.page import Page, PagePart, RunReading
from understudy.screens.dashboard.pages import PAGES, compare, offered, runs
from understudy.screens.html.elements import WrittenHtml, tag, written
from understudy.telemetry.text import plain

RUNS, COMPARE = "runs", "compare"
"""Pages of all runs."""
_KEPT_PAGES = 32
"""Rendered pages that are kept."""


class ReadableRun(Protocol):
    """A run that can be read again and again."""

    def read(self) -> RunReading:
        """The run now: the reading of before where nothing has happened since.

        Raises:
            UnderstudyError: It cannot be read.
            OSError: The same.
        """


class RunCatalog(Protocol):
    """The runs of a dashboard."""

    def sources(self) -> Mapping[str, ReadableRun]:
        """By name, in the order in which they are listed."""


class Address(NamedTuple):
    """Which page is asked for."""

    page: str
    run: str = ""
    """Empty for a page of all runs."""
    runs: tuple[str, ...] = ()
    """Those that are compared."""
    match: str = ""
    """The one that is shown, on a page of matches."""


class RenderedPart(NamedTuple):
    """A part as it is sent."""

    html: WrittenHtml
    digest: str


class RenderedPage(NamedTuple):
    """The content of a page."""

    title: str
    parts: dict[str, RenderedPart]
    pages: tuple[Page, ...] = ()
    """Those of its run that are offered."""
    found: bool = True
    seconds: float = 0.0
    """Of processor time that reading and rendering took."""


_Content: TypeAlias = tuple[str, dict[str, RenderedPart], tuple[Page, ...]]


class Renderer:
    """All pages of a dashboard."""

    def __init__(self, catalog: RunCatalog) -> None:
        self._catalog = catalog
        self._kept: dict[Address, tuple[Hashable, _Content]] = {}

    def content(self, address: Address) -> RenderedPage:
        """The parts of a page, now. What cannot be read is said in their place."""
        began = time.thread_time()
        found = True
        try:
            title, parts, pages = self._content(address)
        except Exception as error:  # noqa: BLE001  the boundary: a damaged run must not end all
            known = isinstance(error, (UnderstudyError, OSError))
            words = str(error) if known else f"{type(error).__name__}: {error}"
            said = tag("p", plain(words, limit=600), class_="finding problem")
            title, parts, pages = (
                address.run or "Understudy",
                _rendered([PagePart("error", said)]),
                (),
            )
            found = False
        return RenderedPage(title, parts, pages, found, time.thread_time() - began)

    def document(self, address: Address, *, assets: str) -> tuple[str, RenderedPage]:
        """The whole page as HTML, and what it was made from."""
        page = self.content(address)
        text = shell(
            title=page.title,
            parts={key: (one.html, one.digest) for key, one in page.parts.items()},
            assets=assets,
            run=address.run,
            pages=page.pages,
            current=address.page,
        )
        return text, page

    def _content(self, address: Address) -> _Content:
        sources = self._catalog.sources()
        if address.page == RUNS:
            rows = tuple(runs.row(name, one.read) for name, one in sources.items())
            return self._kept_or(address, rows, lambda: ("Runs", _rendered(runs.parts(rows)), ()))
        if address.page == COMPARE:
            chosen = tuple(sources[name].read() for name in address.runs if name in sources)
            names = tuple(sources)
            return self._kept_or(
                address,
                (chosen, names),
                lambda: ("Compare runs", _rendered(compare.parts(chosen, names)), ()),
            )
        page = next((one for one in PAGES if one.key == address.page), None)
        if page is None or address.run not in sources:
            what = f"page {address.page!r}" if page is None else f"run {address.run!r}"
            raise RunFolderError(f"there is no {what} here")
        reading, of_match = sources[address.run].read(), page.of_match

        def make() -> _Content:
            if of_match is not None and address.match:
                made = of_match(reading, address.match)
            else:
                made = page.parts(reading)
            return page.title, _rendered(made), offered(reading)

        stamp = reading, page.beside(reading), reading.cache.turn()
        return self._kept_or(address, stamp, make)

    def _kept_or(self, address: Address, stamp: Hashable, make: Callable[[], _Content]) -> _Content:
        """What was made from the same readings before, or what is made now."""
        kept = self._kept.pop(address, None)
        if kept is None or kept[0] != stamp:
            kept = stamp, make()
        self._kept[address] = kept
        if len(self._kept) > _KEPT_PAGES:
            del self._kept[next(iter(self._kept))]
        return kept[1]


def _rendered(parts: Iterable[PagePart]) -> dict[str, RenderedPart]:
    made: dict[str, RenderedPart] = {}
    for one in parts:
        assert one.key not in made, f"two parts of a page are called {one.key}"
        html = written(one.body)
        digest = hashlib.blake2b(html.html.encode("utf-8", "backslashreplace"), digest_size=8)
        made[one.key] = RenderedPart(html, digest.hexdigest())
    return made
