"""The harness of browser tests sees what is wrong with a page, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest
from browser import accessibility_violations, clean_page, page_problems, served
from required import skip_without

if TYPE_CHECKING:
    from playwright.sync_api import Browser

GOOD = """<!DOCTYPE html><html lang="en"><title>Good</title>
<main><h1>Wins</h1><p>All is well.</p></main></html>"""
FAINT = GOOD.replace("<p>", '<p style="color:#ccc">')
BROKEN = GOOD.replace(
    "<main>",
    """<script src="/missing.js"></script><img alt="" src="http://127.0.0.1:9/closed.png">
    <script>console.error("a chart without data"); console.log("a chart with data")</script>
    <script>thisIsNoFunction()</script><main>""",
)
PAGES = {"/good": GOOD, "/faint": FAINT, "/broken": BROKEN}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        # As strict as our own pages: the harness must see through it.
        if page is GOOD:
            self.send_header("Content-Security-Policy", "default-src 'none'")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, *_: object) -> None:
        """A test's output is for what failed."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(Handler) as url:
        yield url


def test_a_good_page_has_no_problems(browser: Browser, address: str) -> None:
    with clean_page(browser, f"{address}/good", width=390, dark=True) as page:
        assert page.get_by_role("heading", name="Wins").is_visible()
        assert page.evaluate("innerWidth") == 390
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        assert accessibility_violations(page) == []


def test_text_without_contrast_is_a_violation(browser: Browser, address: str) -> None:
    with clean_page(browser, f"{address}/faint") as page:
        [violation] = accessibility_violations(page)
    assert violation.startswith("color-contrast (serious): p: ")


def test_errors_of_a_page_are_collected(browser: Browser, address: str) -> None:
    page = browser.new_page()
    problems = page_problems(page)
    page.goto(f"{address}/broken")
    page.close()
    assert "console: a chart without data" in problems
    assert "script: thisIsNoFunction is not defined" in problems
    assert f"request: {address}/missing.js: 404" in problems
    assert any(one.startswith("request: http://127.0.0.1:9/closed.png: ") for one in problems)
    assert not any("a chart with data" in one for one in problems)


def test_a_page_with_errors_fails_its_test(browser: Browser, address: str) -> None:
    with (
        pytest.raises(AssertionError, match="a chart without data"),
        clean_page(browser, f"{address}/broken"),
    ):
        pass


def test_a_missing_program_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSTUDY_REQUIRE", "")
    with pytest.raises(pytest.skip.Exception, match="it is not installed"):
        skip_without("chromium", "it is not installed")
    monkeypatch.setenv("UNDERSTUDY_REQUIRE", "sc2")
    with pytest.raises(pytest.skip.Exception):
        skip_without("chromium", "it is not installed")
    monkeypatch.setenv("UNDERSTUDY_REQUIRE", "sc2, chromium")
    with pytest.raises(pytest.fail.Exception, match="names chromium, but it is not installed"):
        skip_without("chromium", "it is not installed")
