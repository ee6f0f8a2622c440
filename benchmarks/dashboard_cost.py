"""What the dashboard costs: first paint, updates, a bot beside it, an idle minute, memory.

    python benchmarks/dashboard_cost.py [--events 1000000] [--keep DIR] [--rounds 10] [--seconds 30]
                                        [--goals] [--json]

Chromium (see CONTRIBUTING.md) opens the dashboard on the same cores. The run is a ring of a year
of play (`year_of_play.py`); `--keep` reuses one that an earlier call of either script made there.
The server is warm: it has rendered the page once. Every visit has a browser profile of its own,
with nothing cached. `--goals` exits with 1 where a goal is missed.

- First paint is what the browser calls first contentful paint; the first chart is the moment when
  the first path of an SVG is in the document. Medians of seven visits, in seconds from the request.
- An update is 20 times an entry in the journal; its delay ends when its text is in the page.
- A bot of swarm plays by turns without the dashboard and with a page open that follows its run.
- While no page is open the process should do nothing.
- Memory is what the process holds after every page of ten such runs was opened once.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import machine
import monitor_cost
import numpy as np
import psutil
import year_of_play
from playwright.sync_api import Browser, Page, sync_playwright

from understudy.core.clock import SystemClock
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal

VISITS, UPDATES, RUNS = 7, 20, 10
PAINT_S, CHART_S, UPDATE_MS, P50, P99, IDLE_SHARE, MEMORY_MB = 1.0, 2.0, 500, 1.05, 1.15, 0.02, 200
_PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
_WORD = "noted for the benchmark, number"
_WATCH = """
window.firstChart = null;
window.seen = {};
new MutationObserver(() => {
  if (window.firstChart === null && document.querySelector("main svg path")) {
    window.firstChart = performance.now();
  }
  const log = document.querySelector("section[data-part=log]");
  for (const [, number] of log ? log.textContent.matchAll(/WORD (\\d{10})/g) : []) {
    window.seen[number] ??= Date.now();
  }
}).observe(document, {childList: true, subtree: true});
""".replace("WORD", _WORD)
_FIRST_PAINT = """new Promise(
  done => new PerformanceObserver(
    list => list.getEntriesByName("first-contentful-paint").forEach(one => done(one.startTime))
  ).observe({type: "paint", buffered: true})
)"""


# --- a dashboard and a browser -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OpenDashboard:
    """`understudy dashboard` in a process of its own."""

    url: str
    process: psutil.Process

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=120) as answer:
            text: str = answer.read().decode()
        return text

    def cpu_s(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextlib.contextmanager
def started(folder: Path) -> Iterator[OpenDashboard]:
    """A dashboard of a run, or of a folder of runs."""
    command = [sys.executable, "-m", "understudy", "dashboard", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[\d.:]+\d", process.stdout.readline())
            assert found is not None, "the dashboard did not start"
            yield OpenDashboard(url=found[0], process=psutil.Process(process.pid))
        finally:
            process.terminate()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise SystemExit(f"expected one of {', '.join(_PROGRAMS)} on the path")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@contextlib.contextmanager
def visit(browser: Browser, url: str) -> Iterator[Page]:
    """A page with nothing cached, once it is live."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.goto(url)
    page.locator("#connection[data-state=live]").wait_for()
    yield page
    context.close()


# --- measuring -----------------------------------------------------------------------------------


def paints(browser: Browser, url: str) -> dict[str, list[float]]:
    """Seconds from the request to the first paint and to the first chart, of each visit."""
    paint, chart = [], []
    for _ in range(VISITS):
        with visit(browser, url) as page:
            paint.append(page.evaluate(_FIRST_PAINT) / 1e3)
            drawn = page.evaluate("window.firstChart")
            assert drawn is not None, "no chart"
            chart.append(drawn / 1e3)
    return {"paint_s": paint, "chart_s": chart}


def updates(browser: Browser, url: str, run: Path) -> list[float]:
    """Milliseconds from an entry in the journal to its text in the page."""
    rng = np.random.default_rng(1)
    journal = Journal(run / "journal", "bot", SystemClock())
    delays = []
    first = int(time.time())
    with visit(browser, url) as page:
        for number in range(first, first + UPDATES):
            time.sleep(rng.uniform(0.5, 1.5))
            began = time.time()
            journal.write(ev.Problem(where="benchmark", message=f"{_WORD} {number}"))
            page.locator("section[data-part=log]", has_text=f"{_WORD} {number}").wait_for()
            seen = page.evaluate(f"window.seen[{number}]")
            delays.append(max(seen - 1e3 * began, 0.0))
    return delays


def idle(board: OpenDashboard, seconds: float) -> float:
    """The share of a core while no page is open."""
    time.sleep(2.0)
    began, used = time.perf_counter(), board.cpu_s()
    time.sleep(seconds)
    return (board.cpu_s() - used) / (time.perf_counter() - began)


def ten_runs(run: Path, seconds: float) -> dict[str, float]:
    """Memory, and the share of a core without a page, once all pages of ten runs were opened."""
    with tempfile.TemporaryDirectory(dir=run.parent) as folder:
        for number in range(RUNS):
            shutil.copytree(run, Path(folder) / f"run-{number}", copy_function=os.link)
        with started(Path(folder)) as board:
            opened = [path for name in _links(board.get("/")) for path in _pages(board, name)]
            for path in opened:
                board.get(path)
            return {
                "pages": len(opened),
                "idle_share": idle(board, seconds),
                "memory_mb": board.process.memory_info().rss / 2**20,
            }


def _links(html: str) -> list[str]:
    return sorted(set(re.findall(r'href="(/runs/[^"/?]+)"', html)))


def _pages(board: OpenDashboard, run: str) -> list[str]:
    return sorted(set(re.findall(rf'href="({re.escape(run)}/[^"/?]+)"', board.get(run))))


def beside_a_bot(browser: Browser, rounds: int) -> dict[str, float]:
    """See `monitor_cost.beside_a_bot`."""

    @contextlib.contextmanager
    def watched(run: Path) -> Iterator[None]:
        with started(run) as board, visit(browser, f"{board.url}/runs/{run.name}"):
            yield

    return monitor_cost.beside_a_bot(watched, rounds=rounds, seconds=4.0)


class Goal(NamedTuple):
    """One line of the table."""

    name: str
    seen: str
    goal: str
    met: bool


def measure(home: Path, *, count: int, rounds: int, seconds: float) -> dict[str, object]:
    _, run, sizes = year_of_play.grown("ring", home, count=count)
    year_of_play.summarise(run)
    with chromium() as browser:
        with started(run) as board:
            url = f"{board.url}/runs/{run.name}"
            board.get(f"/runs/{run.name}")  # the server is warm
            first = paints(browser, url)
            delays = updates(browser, url, run)
        bot = beside_a_bot(browser, rounds)
    return {
        "events": sizes["events"],
        **first,
        "update_ms": delays,
        "bot": bot,
        **ten_runs(run, seconds),
        "machine": machine.describe("starlette", "uvicorn", "websockets"),
    }


def goals(result: dict[str, object]) -> list[Goal]:
    """All figures, each with what it should be."""
    paint, chart, delays = (_numbers(result[name]) for name in ("paint_s", "chart_s", "update_ms"))
    bot = result["bot"]
    assert isinstance(bot, dict)
    idle_share, memory = (_number(result[name]) for name in ("idle_share", "memory_mb"))
    middle, worst = float(np.median(delays)), max(delays)
    return [
        Goal("first contentful paint", _spread(paint), f"under {PAINT_S:g} s",
             float(np.median(paint)) < PAINT_S),
        Goal("first chart", _spread(chart), f"under {CHART_S:g} s",
             float(np.median(chart)) < CHART_S),
        Goal("an update is behind by", f"{middle:.0f} ms, at most {worst:.0f} ms",
             f"at most {UPDATE_MS} ms", worst <= UPDATE_MS),
        Goal("p50 of a bot's decisions", f"{bot['p50_ratio']:.3f} times that without",
             f"within {P50 - 1:.0%}", bot["p50_ratio"] <= P50),
        Goal("p99 of a bot's decisions", f"{bot['p99_ratio']:.3f} times that without",
             f"at most {P99:g}", bot["p99_ratio"] <= P99),
        Goal("without an open page", f"{idle_share:.2%} of a core", f"under {IDLE_SHARE:.0%}",
             idle_share < IDLE_SHARE),
        Goal(f"memory with {RUNS} runs", f"{memory:.0f} MB", f"under {MEMORY_MB} MB",
             memory < MEMORY_MB),
    ]  # fmt: skip


def _numbers(value: object) -> Sequence[float]:
    assert isinstance(value, list)
    return value


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return value


def _spread(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = arguments.keep or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        machine.keep_bytecode(Path(folder) / "bytecode")
        result = measure(
            home, count=arguments.events, rounds=arguments.rounds, seconds=arguments.seconds
        )
    rows = goals(result)
    if arguments.json:
        print(json.dumps({**result, "missed": [one.name for one in rows if not one.met]}))
    else:
        print(result["machine"], f"{result['events']:,} events of one run", sep="\n")
        for name, seen, goal, met in rows:
            print(f"{name:26} {seen:34} goal: {goal}{'' if met else '   MISSED'}")
    if arguments.goals and not all(one.met for one in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
