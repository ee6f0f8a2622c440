"""The dashboard in a real browser: every page of every kind of run, and what people do there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from browser import accessibility_violations, clean_page, page_problems
from cli.calling import understudy
from run.dashboards import Standing, standing, unpacked

from understudy.core.clock import SystemClock
from understudy.core.pause import read_pause
from understudy.gates.promotion.records import Ordered
from understudy.promotion.log import PromotionLog
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

from .dashboard_runs import PROMOTED, TESTED, run_by_evidence, run_with_replays

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

COMPAT = ("ring", "served", "arena", "shadow", "host", "population", "memory")
RUNS = (*COMPAT, "evidence", "swarm")
RICH = ("ring", "served", "arena", "evidence", "swarm")
"""Whose pages differ from each other: these are checked for accessibility."""
DRAWN = {
    "ring": {"overview", "training", "matches", "experience"},
    "memory": {"overview", "training"},
    "arena": {"overview", "training", "league", "strategy"},
    "evidence": {"overview", "matches", "versions"},
    "served": {"overview", "versions", "server", "experience"},
}
"""Pages that have charts, whatever else they have."""
CONTRAST = "color-contrast"
"""The one rule of accessibility for which colours matter."""
_POINTS = """svg => [...svg.querySelectorAll("path, polyline")].some(
    path => path.getTotalLength() > 1) || svg.querySelector("rect, circle") !== null"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run folders of every kind. Tests that change one take a copy of it."""
    folder = unpacked(tmp_path_factory.mktemp("runs"), *COMPAT)
    run_by_evidence(folder / "evidence")
    run_with_replays(folder / "swarm")
    return folder


@pytest.fixture(scope="module")
def board(runs: Path) -> Iterator[Standing]:
    with standing(runs) as found:
        yield found


@pytest.fixture
def copied(runs: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], Path]]:
    """Copies a run beside the others, until the test ends."""
    made: list[Path] = []

    def copy(name: str) -> Path:
        made.append(runs / f"{name}-of-{request.node.name.removeprefix('test_')[:40]}")
        shutil.copytree(runs / name, made[-1])
        return made[-1]

    yield copy
    for one in made:
        shutil.rmtree(one)


def offered(page: Page) -> list[str]:
    """The addresses in the navigation of a run."""
    found: list[str] = page.eval_on_selector_all("header nav a", "all => all.map(one => one.href)")
    return found


def key_of(url: str) -> str:
    """Of the page at an address of a run."""
    pieces = urlsplit(url).path.split("/")
    return pieces[3] if len(pieces) > 3 else "overview"


def empty_charts(page: Page) -> list[str]:
    """The labels of charts in which nothing is drawn."""
    found: list[str] = page.eval_on_selector_all(
        "main svg[role=img]",
        f"all => all.filter(svg => !({_POINTS})(svg)).map(svg => svg.getAttribute('aria-label'))",
    )
    return found


def cut_labels(page: Page) -> list[str]:
    """Words in charts that are cut off at an edge, or run out of the card of their chart."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("main figure svg[role=img] text")]
            .filter(text => !text.closest(".scroll") && text.textContent.trim())
            .filter(text => {
                const svg = text.ownerSVGElement;
                const whole = getComputedStyle(svg).overflowX === "visible";
                const box = (whole ? svg.closest("figure") : svg).getBoundingClientRect();
                const at = text.getBoundingClientRect();
                return at.width && (at.left < box.left - 1 || at.right > box.right + 1
                    || at.top < box.top - 1 || at.bottom > box.bottom + 1);
            })
            .map(text => `${text.textContent} of ${text.closest("figure").className}`)
        """
    )
    return found


def wide_by(page: Page) -> int:
    """Pixels by which a page is wider than the window."""
    excess: int = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return excess


@contextmanager
def on_a_phone_at_night(page: Page) -> Iterator[None]:
    """The same page at 390 pixels and in dark colours."""
    before = page.viewport_size
    assert before is not None
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    yield
    page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")


def is_live(page: Page) -> None:
    page.locator("#connection[data-state=live]").wait_for()


# --- every page ----------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_every_page_is_whole_in_light_and_in_dark_wide_and_narrow(
    browser: Browser, board: Standing, run: str
) -> None:
    wrong: dict[str, list[str]] = {}
    with clean_page(browser, f"{board.url}/runs/{run}") as page:
        for url in offered(page):
            key = key_of(url)
            page.goto(url)
            is_live(page)
            charts = page.locator("main svg[role=img]").count()
            found = [f"nothing is drawn: {label}" for label in empty_charts(page)]
            if key in DRAWN.get(run, ()) and not charts:
                found.append("it has no chart")
            found += [f"cut off: {words}" for words in cut_labels(page)]
            if run in RICH:
                found += [f"light: {one}" for one in accessibility_violations(page)]
            with on_a_phone_at_night(page):
                if run in RICH:
                    found += [f"dark: {one}" for one in accessibility_violations(page, CONTRAST)]
                found += [f"cut off on a phone: {words}" for words in cut_labels(page)]
                if excess := wide_by(page):
                    found.append(f"it is {excess} pixels wider than a phone")
            if found:
                wrong[key] = found
    assert not wrong


@pytest.mark.parametrize("run", ["evidence", "arena"])
def test_a_report_is_whole_wide_and_on_a_phone(
    browser: Browser, runs: Path, tmp_path: Path, run: str
) -> None:
    out = tmp_path / "report.html"
    assert understudy("report", "--run", runs / run, "-o", out).code == 0
    with clean_page(browser, out.as_uri()) as page:
        assert page.locator("svg[role=img]").count() > 0 and empty_charts(page) == []
        assert page.locator("figure img").count() > 0, "pictures of matplotlib"
        assert accessibility_violations(page) == []
        with on_a_phone_at_night(page):
            assert accessibility_violations(page) == [] and wide_by(page) == 0


def test_the_list_of_runs_leads_to_each_of_them(browser: Browser, board: Standing) -> None:
    with clean_page(browser, board.url, width=390, dark=True) as page:
        for run in RUNS:
            assert page.get_by_role("link", name=run, exact=True).is_visible()
        assert empty_charts(page) == []
        assert accessibility_violations(page) == []
        assert wide_by(page) == 0
        page.get_by_role("link", name="served", exact=True).click()
        page.wait_for_url("**/runs/served")
        assert page.get_by_role("heading", name="Overview").is_visible()


def test_two_runs_are_compared_by_the_form(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/compare") as page:
        for run in ("ring", "memory"):
            page.get_by_role("checkbox", name=run, exact=True).check()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/compare?run=*")
        assert page.get_by_role("checkbox", checked=True).count() == 2
        keys = page.get_by_role("list", name="Colours of runs")
        assert sorted(keys.get_by_role("link").all_inner_texts()) == ["memory", "ring"]
        assert page.locator("main svg[role=img]").count() > 3
        assert page.locator("main svg path.s1").count() and page.locator("main svg path.s2").count()
        assert empty_charts(page) == []
        assert accessibility_violations(page) == []
        with on_a_phone_at_night(page):
            assert accessibility_violations(page, CONTRAST) == []
            assert wide_by(page) == 0


# --- actions -------------------------------------------------------------------------------------


@contextmanager
def versions_of(browser: Browser, board: Standing, run: Path) -> Iterator[Page]:
    with clean_page(browser, f"{board.url}/runs/{run.name}/versions") as page:
        is_live(page)
        yield page


def answered(page: Page) -> str:
    """What the dashboard says an action came to."""
    said = page.locator("#said:not(:empty)")
    said.wait_for()
    return said.inner_text()


def confirm(page: Page, button: str, yes: str) -> None:
    """Press a button and confirm."""
    page.get_by_role("button", name=button).first.click()
    page.get_by_role("dialog").get_by_role("button", name=yes, exact=True).click()


def champion(run: Path) -> tuple[int, bool] | None:
    """The version that should play, and whether a person pinned it."""
    found = RunFolder.load(run, SystemClock()).pointers.read("champion")
    return None if found is None else (found.version, found.pinned)


def orders(run: Path) -> list[tuple[str, int]]:
    records = PromotionLog(run / "promotion").new()
    return [(one.order, one.version) for _, one in records if isinstance(one, Ordered)]


def test_a_rollback_asks_first_and_pins(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("swarm")
    before = champion(run)
    with versions_of(browser, board, run) as page:
        row = page.get_by_role("row").filter(has=page.get_by_role("button")).first
        row.get_by_role("button", name="Pin as champion").click()
        dialog = page.get_by_role("dialog")
        assert "pinned" in dialog.inner_text()
        assert accessibility_violations(page) == []
        dialog.get_by_role("button", name="Cancel").click()
        dialog.wait_for(state="hidden")
        assert champion(run) == before
        row.get_by_role("button", name="Pin as champion").click()
        dialog.get_by_role("button", name="Roll back").click()
        assert "2" in answered(page)
        assert champion(run) == (2, True)
        page.get_by_role("button", name="Release the champion").wait_for()
        confirm(page, "Release the champion", "Release")
        page.get_by_role("button", name="Release the champion").wait_for(state="detached")
        assert champion(run) == (2, False)


def test_a_canary_is_approved(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("evidence")
    assert champion(run) == (PROMOTED, False)
    with versions_of(browser, board, run) as page:
        confirm(page, f"Approve version {TESTED}", "Approve")
        answered(page)
        assert orders(run) == [("approve", TESTED)]
        page.get_by_role("button", name="Approve version").wait_for(state="detached")


def test_a_test_is_stopped(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("evidence")
    with versions_of(browser, board, run) as page:
        confirm(page, "Stop the test", "Stop the test")
        answered(page)
        assert [order for order, _ in orders(run)] == ["stop"]
        page.get_by_role("button", name="Stop the test").wait_for(state="detached")


def test_learning_is_paused_and_resumed(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("ring")
    journal = Journal(run / "journal", "bot", SystemClock())
    journal.write(events.BotStarted(pid=1, mode="learn", learner="process", version=2))
    with versions_of(browser, board, run) as page:
        confirm(page, "Pause learning", "Pause")
        page.get_by_role("button", name="Resume learning").wait_for()
        paused = read_pause(run)
        assert paused is not None and paused.paused
        confirm(page, "Resume learning", "Resume")
        page.get_by_role("button", name="Pause learning").wait_for()
        paused = read_pause(run)
        assert paused is None or not paused.paused


def test_what_cannot_be_done_is_said(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("swarm")
    page = browser.new_page()
    page.goto(f"{board.url}/runs/{run.name}/versions")
    is_live(page)
    page.get_by_role("button", name="Pin as champion").first.click()
    shutil.rmtree(run / "versions" / "00000002", ignore_errors=True)
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    assert "2" in answered(page)
    assert page.locator("#said").get_attribute("data-tone") == "problem"
    page.close()


# --- replays -------------------------------------------------------------------------------------


def frame(page: Page) -> int:
    """The frame that a replay shows."""
    shown = page.locator(".replay-place").inner_text()
    return int(shown.partition(" / ")[0].replace(",", ""))


def test_a_match_is_replayed(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/swarm/replay") as page:
        page.get_by_role("link", name=re.compile("Watch the match")).first.click()
        page.locator(".replay-place").wait_for()
        page.locator(".replay-loaded[hidden]").wait_for(state="attached")
        assert frame(page) == 0
        assert page.locator(".replay-missing").all_inner_texts() != []  # no attention in an MLP
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert frame(page) == 1
        page.get_by_role("slider", name="Position in the match").fill("40")
        assert frame(page) == 40
        assert "frame 40 of" in page.locator(".replay-moment").inner_text()
        assert accessibility_violations(page) == []
        page.get_by_role("button", name="Play").click()
        beyond = page.locator(".replay-place").filter(
            has_text=re.compile(r"^(4[5-9]|[5-9]\d|\d{3}) /")
        )
        beyond.wait_for()
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("combobox", name="Speed").select_option("8")
        with on_a_phone_at_night(page):
            assert wide_by(page) == 0
            assert accessibility_violations(page, CONTRAST) == []


def test_a_replay_says_which_version_is_gone(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/swarm/replay") as page:
        page.get_by_role("link", name=re.compile("Watch the match")).last.click()
        words = page.locator(".replay-missing").filter(has_text="Version 1 is no longer kept")
        words.wait_for()


def test_a_served_run_says_why_nothing_can_be_replayed(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/served/replay") as page:
        assert page.get_by_role("link", name=re.compile("Watch")).count() == 0
        assert "no state of the game" in page.locator("main").inner_text()


# --- keys and themes -----------------------------------------------------------------------------


def theme(page: Page) -> str:
    """The background of a page."""
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


def test_the_theme_is_kept(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/ring") as page:
        light = theme(page)
        page.get_by_role("button", name="Switch between dark and light").click()
        dark = theme(page)
        assert dark != light
        page.reload()
        assert theme(page) == dark
        page.keyboard.press("t")
        assert theme(page) == light


def test_keys_lead_through_the_pages(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/ring") as page:
        pages = offered(page)
        for number, url in reversed(list(enumerate(pages[:9], start=1))):
            page.keyboard.press(str(number))
            page.wait_for_url(url)
        page.keyboard.press("?")
        help_ = page.get_by_role("dialog", name="Keys")
        assert help_.is_visible()
        assert accessibility_violations(page) == []
        page.keyboard.press("a")  # goes nowhere while the list is open
        page.keyboard.press("Escape")
        help_.wait_for(state="hidden")
        assert page.url == pages[0]
        page.keyboard.press("c")
        page.wait_for_url("**/compare")
        page.keyboard.press("a")
        page.wait_for_url(f"{board.url}/")


def test_a_keyboard_alone_reaches_the_content(browser: Browser, board: Standing) -> None:
    with clean_page(browser, f"{board.url}/runs/ring") as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


# --- updates -------------------------------------------------------------------------------------


def happens(run: Path, words: str) -> None:
    """Something that the log of a run shows."""
    journal = Journal(run / "journal", "bot", SystemClock())
    journal.write(events.Problem(where="test", message=words))


def test_a_page_follows_the_run(
    browser: Browser, board: Standing, copied: Callable[[str], Path]
) -> None:
    run = copied("ring")
    with clean_page(browser, f"{board.url}/runs/{run.name}") as page:
        is_live(page)
        page.evaluate("window.sameDocument = true")
        happens(run, "<b>a new thing</b> happened")
        page.get_by_text("<b>a new thing</b> happened").first.wait_for()
        assert page.evaluate("window.sameDocument")


def test_a_page_comes_back_with_its_dashboard(browser: Browser, runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "ring"
    shutil.copytree(runs / "ring", run)
    page = browser.new_page()
    with standing(run) as first:
        page.goto(f"{first.url}/runs/ring")
        is_live(page)
        page.evaluate("window.sameDocument = true")
    page.get_by_text("connection lost").wait_for()
    happens(run, "while nothing listened")
    problems = page_problems(page)
    with standing(run, port=urlsplit(first.url).port or 0):
        is_live(page)
        page.get_by_text("while nothing listened").first.wait_for()
        assert page.evaluate("window.sameDocument")
        page.close()
    assert not [one for one in problems if one.startswith("script")]
