"""A real Chromium for tests of pages: starting it, and what is wrong with a page it shows."""

from __future__ import annotations

import importlib.resources
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from required import skip_without

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
_ENDED_BY_THE_PAGE = "net::ERR_ABORTED"
"""Chromium says this of a request when its page is left, and of every body that a script has read
to its end as a stream."""


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium without a window; the test is skipped where there is none.

    Until it is closed, an event loop of Playwright counts as running in this thread, so that
    `asyncio.run` is an error here. A server runs in a thread or process of its own.
    """
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        skip_without("chromium", f"none of {', '.join(PROGRAMS)} is on the path")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_without("chromium", "the package playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            # A machine of CI has neither a GPU nor, as root, a sandbox; nothing leaves it either.
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def clean_page(
    browser: Browser, url: str, *, width: int = 1440, height: int = 900, dark: bool = False
) -> Iterator[Page]:
    """A page in a profile of its own (nothing cached); fails at the end if anything went wrong."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    try:
        page = context.new_page()
        problems = page_problems(page)
        page.goto(url)
        yield page
        assert not problems, problems
    finally:
        context.close()


def page_problems(page: Page) -> list[str]:
    """A list that grows from now on: errors of the console and of scripts, failed requests."""
    problems: list[str] = []
    page.on(
        "console",
        lambda message: (
            problems.append(f"console: {message.text}") if message.type == "error" else None
        ),
    )
    page.on("pageerror", lambda error: problems.append(f"script: {error}"))
    page.on(
        "requestfailed",
        lambda request: (
            problems.append(f"request: {request.url}: {request.failure}")
            if request.failure != _ENDED_BY_THE_PAGE
            else None
        ),
    )
    page.on(
        "response",
        lambda response: (
            problems.append(f"request: {response.url}: {response.status}")
            if response.status >= 400
            else None
        ),
    )
    return problems


def accessibility_violations(page: Page, *rules: str) -> list[str]:
    """What axe-core finds: `rule (impact): selector: what to do`, one line for each element.

    Args:
        rules: The rules to check; none: all.
    """
    # The package is used for the script in it alone. Debuggers may evaluate under any policy (CSP).
    if not page.evaluate("'axe' in window"):
        axe = importlib.resources.files("axe_playwright_python") / "axe.min.js"
        page.evaluate(axe.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        "options => axe.run(options).then(results => results.violations)",
        {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})},
    )
    return [
        f"{rule['id']} ({rule['impact']}): {node['target'][0]}: {rule['help']}"
        for rule in found
        for node in rule["nodes"]
    ]


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A small server on loopback; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
