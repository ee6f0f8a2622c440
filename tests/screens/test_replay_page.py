"""The replay viewer in a browser, and the list of recorded matches: names are text, always."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from browser import accessibility_violations, clean_page, served

from understudy.judging.replays import MatchListing
from understudy.screens import dashboard
from understudy.screens.dashboard.layout import POLICY
from understudy.screens.dashboard.pages.replay import match_list, viewer
from understudy.screens.html.elements import document, tag
from understudy.screens.html.style import DARK, LIGHT, PARTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<img src=x onerror=alert(1)>"
STATIC = Path(dashboard.__file__).parent / "static"
FRAMES = 120


def header(**fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "kind": "header", "schema": 1, "game": "toy", "match": "1", "seed": 0, "frames": FRAMES,
        "frames_per_s": 30.0, "frame_s": 0.1, "outcome": "won", "recorded_at": 0.0,
        "players": [{"name": HOSTILE, "paint": 1, "learner": True}, {"name": "two", "paint": 2}],
        "opponent": HOSTILE, "compared": "all states are as recorded",
        "parts": [{"name": "action", "options": [HOSTILE, "right"]}],
        "opponents": ["two", HOSTILE], "window": 3, "versions": [4], "note": HOSTILE,
        "missing": [{"part": "belief", "why": HOSTILE}], "view": [0, 0, 10, 10], "unit": 0.01,
        "background": 0, "palette": ["#000000", "#ff8b3d", "#45b4ff"], "texts": [HOSTILE],
        "fixed": [[0, 1, 0, 0, 1000, 100]],
    }  # fmt: skip
    return {**known, **fields}


def frame(number: int) -> dict[str, Any]:
    """A box that moves, and a label that stays."""
    box, label = [0, 2, 5 * number, 400, 5 * number + 200, 600], [4, 1, 500, 800, 50, 0]
    found: dict[str, Any] = {
        "shapes": [box, label if number == 0 else [1, 1]],
        "clock": f"{number}",
    }
    if number < FRAMES:
        found["thought"] = {
            "did": [number % 2], "odds": [[250, 750]], "chosen": 750 if number % 2 else 250,
            "value": number / FRAMES, "belief": [900, 100], "attention": "0aZ", "most": 700,
            "version": 4,
        }  # fmt: skip
    return found


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in records)


WHOLE = lines(
    header(),
    {"kind": "frames", "first": 0, "frames": [frame(at) for at in range(60)]},
    {
        "kind": "frames", "first": 60, "frames": [frame(at) for at in range(60, FRAMES + 1)],
        "events": [{"frame": 100, "time_s": 10.0, "words": HOSTILE}],
    },
    {"kind": "end", "result": HOSTILE, "reward": 1.0, "deviation": None},
)  # fmt: skip
STREAMS = {
    "/whole.jsonl": WHOLE,
    "/cut.jsonl": WHOLE[: WHOLE.index(b"\n", WHOLE.index(b"\n") + 1) + 1],
    "/problem.jsonl": lines({"kind": "problem", "words": f"There is no match {HOSTILE}"}),
}


def page_of(name: str) -> str:
    body = tag("main", tag("h1", "Replay"), viewer(HOSTILE, f"/{name}.jsonl"), id="content")
    head = [
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="/static/page.css"),
        tag("script", src="/static/dashboard.js", type="module"),
    ]
    return document(title="Replay", body=[body], head=head)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if self.path in STREAMS:
            self._send(STREAMS[self.path], "application/x-ndjson")
        elif name == "page.css":
            themes = f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}{PARTS}"
            sheets = "".join((STATIC / f"{one}.css").read_text() for one in ("dashboard", "replay"))
            self._send((themes + sheets).encode(), "text/css")
        elif self.path.startswith("/static/"):
            self._send((STATIC / name).read_bytes(), "text/javascript")
        else:
            self._send(page_of(name).encode(), "text/html; charset=utf-8")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A test's output is for what failed."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(Handler) as url:
        yield url


def test_a_match_is_painted_stepped_and_described(browser: Browser, address: str) -> None:
    with clean_page(browser, f"{address}/whole") as page:
        scrubber = page.get_by_role("slider", name="Position in the match")
        scrubber.wait_for()
        page.get_by_text("What happened (1)").click()
        page.get_by_role("listitem").get_by_role("button").click()
        assert scrubber.get_attribute("aria-valuetext") == f"100, frame 100 of {FRAMES}"
        page.keyboard.press("ArrowRight")
        moment = page.locator(".replay-moment")
        assert "frame 101 of 120" in moment.inner_text()
        assert "The policy chose right (75%), expecting +0.84." in moment.inner_text()
        # The middle of the box, which has come from the left edge by now.
        colour = page.evaluate(
            """() => {
              const canvas = document.querySelector(".replay-picture canvas");
              const side = Math.min(canvas.width, canvas.height);
              const left = (canvas.width - side) / 2;
              const place = [left + 0.605 * side, 0.5 * canvas.height];
              return [...canvas.getContext("2d").getImageData(...place, 1, 1).data.slice(0, 3)];
            }"""
        )
        assert colour == [0x45, 0xB4, 0xFF]
        page.get_by_role("combobox", name="Speed").select_option("8")
        page.get_by_role("button", name="Play").click()
        page.get_by_role("button", name="Play").wait_for()  # it stops by itself at the end
        assert scrubber.input_value() == f"{FRAMES}"


@pytest.mark.parametrize("dark", [False, True])
def test_hostile_names_stay_text_and_a_phone_can_read_them(
    browser: Browser, address: str, *, dark: bool
) -> None:
    with clean_page(browser, f"{address}/whole", width=390, dark=dark) as page:
        page.get_by_role("slider").wait_for()
        assert page.locator("#content img").count() == 0
        for part in (".replay-name", ".replay-option", ".replay-missing", ".replay-note"):
            assert HOSTILE in page.locator(part).first.inner_text()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert accessibility_violations(page) == []


def test_what_cannot_be_shown_says_why(browser: Browser, address: str) -> None:
    with clean_page(browser, f"{address}/problem") as page:
        alert = page.get_by_role("alert")
        assert f"There is no match {HOSTILE}" in alert.inner_text()
    with clean_page(browser, f"{address}/cut") as page:
        page.get_by_text("the stream ended after frame 60").wait_for()
        assert page.get_by_role("slider").input_value() == "0"


def test_the_list_of_matches_links_those_that_can_be_watched() -> None:
    rows = [
        MatchListing(id="12", opponent=HOSTILE, outcome="won", frames=1800, at=1.0, version=3),
        MatchListing(id="11", problem=f"damaged {HOSTILE}"),
    ]
    html = str(match_list(rows, address=lambda match: f"/m/{match}", frame_s=1 / 30, more=3))
    assert "<img" not in html and html.count("&lt;img") == 3
    assert 'href="/m/12"' in html and "/m/11" not in html
    assert "It cannot be replayed: damaged" in html
    assert ">1:00<" in html and "3 older matches" in html
    assert ">shown<" in str(match_list(rows, address=str, chosen="12"))
    alike = [MatchListing(id=name, problem=f"gone {HOSTILE}") for name in "ab"]
    html = str(match_list(alike, address=str))
    assert html.count("&lt;img") == 1 and "None of these can be replayed" in html, "said once"
    empty = str(match_list([], address=str, how="`train.record` records some."))
    assert "No match of this run is recorded. `train.record` records some." in empty
