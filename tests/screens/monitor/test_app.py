"""The app as a person uses it: keys on a real run folder, and pictures of the screen."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from textual.pilot import Pilot

from understudy.cli.monitor import source_of
from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError
from understudy.core.pause import read_pause
from understudy.registry.run_folder import RunFolder
from understudy.screens.monitor.app import MonitorApp
from understudy.screens.monitor.canvas import Canvas
from understudy.screens.monitor.rows import plain_text
from understudy.screens.monitor.sources import (
    FolderSource,
    Poller,
    Reading,
    RunLine,
    RunSource,
    wait_for_readers,
)
from understudy.screens.monitor.state import RunState
from understudy.telemetry.run_view import RunView

from . import views

_RUN = Path(__file__).parents[2] / "compat" / "runs" / "de4ea70" / "ring.zip"
Play = Callable[[Pilot[None]], Coroutine[Any, Any, None]]


def app_of(source: RunSource | FolderSource, *, still: bool = False) -> MonitorApp:
    return MonitorApp(source, clock=views.StillClock() if still else SystemClock(), interval_s=0.05)


def shown(app: MonitorApp) -> str:
    """The text of everything on the screen, the box on top of it first."""
    canvases = [one for screen in reversed(app.screen_stack) for one in screen.query(Canvas)]
    return "\n".join(plain_text(line) for canvas in canvases for line in canvas.lines)


async def until(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Wait for another thread; a broken promise fails after a while."""
    deadline = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline, shown(pilot.app)  # type: ignore[arg-type]
        await pilot.pause(0.01)


def drive(app: MonitorApp, play: Play, size: tuple[int, int] = (80, 24)) -> None:
    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await play(pilot)

    asyncio.run(go())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A real run folder: a bot that has played, three versions, the second one pinned."""
    with zipfile.ZipFile(_RUN) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "runs").mkdir()
    return (tmp_path / "run").rename(tmp_path / "runs" / "swarm-1")


def test_rollback_asks_first_and_moves_the_pointer(run: Path) -> None:
    app, folder = app_of(source_of(run)), RunFolder.load(run, SystemClock())
    before = folder.pointers.read("champion")

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "Archive" in shown(app))
        await pilot.press("b")
        await until(pilot, lambda: "Roll back?" in shown(app))
        assert "version 1 " in shown(app).partition("Because")[0]
        question = shown(app).partition("Because")[2]
        assert "until `models release`; the learner" in question, "not cut off"
        await pilot.press("right")
        assert "version 2 " in shown(app).partition("Because")[0]
        await pilot.press("n")
        await until(pilot, lambda: "nothing was rolled back" in shown(app))
        assert folder.pointers.read("champion") == before
        await pilot.press("b")
        await until(pilot, lambda: "Roll back?" in shown(app))
        await pilot.press("y")
        await until(pilot, lambda: "version 1, PINNED" in shown(app))

    drive(app, play)
    champion = folder.pointers.read("champion")
    assert champion is not None and (champion.version, champion.pinned) == (1, True)
    assert champion.by == "rollback"


def test_pause_pauses_and_resumes(run: Path) -> None:
    app = app_of(source_of(run))

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "Archive" in shown(app))
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED by a person" in shown(app))
        assert read_pause(run).paused
        assert "resume learning" in shown(app)
        await pilot.press("p")
        await until(pilot, lambda: "PAUSED by a person" not in shown(app))
        assert not read_pause(run).paused

    drive(app, play)


def test_a_run_of_train_is_not_paused_and_says_why() -> None:
    app = app_of(RunSource("run", views.training, refusing()))

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "Steps" in shown(app))
        await pilot.press("p")
        await until(pilot, lambda: "NOT DONE: it has no pause" in shown(app))

    drive(app, play)


def refusing() -> Any:
    from understudy.screens.monitor.sources import RunControls

    def refuse(*_: object) -> Any:
        raise RunFolderError("it has no pause")

    return RunControls(refuse, refuse, refuse)


def test_the_promotion_log_is_read_after_the_first_screen() -> None:
    whole, read = views.ring(), list[RunView]()
    first = structs.replace(
        whole, promotion_unread=True, status=structs.replace(whole.status, promotion=None)
    )

    def reading() -> RunView:
        read.append(whole if read else first)
        return read[-1]

    app = MonitorApp(RunSource("runs/swarm-1", reading), clock=SystemClock(), interval_s=600.0)

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "v12 81% of 29" in shown(app))
        assert len(read) == 2, "the second reading came at once"

    drive(app, play)
    assert "reading the promotion log" in run_text(first)


def run_text(view: RunView) -> str:
    state = RunState("runs/swarm-1", views.NOW)
    state.take(Reading(view))
    return "\n".join(map(plain_text, state.lines(width=80, height=24, now=views.NOW, keys=())))


def test_a_run_folder_that_goes_is_said_and_comes_back(run: Path) -> None:
    app, aside = app_of(source_of(run)), run.parent / "aside"

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "Archive" in shown(app))
        run.rename(aside)
        await until(pilot, lambda: "the run folder is gone" in " ".join(shown(app).split()))
        assert "LOST" in shown(app)
        aside.rename(run)
        await until(pilot, lambda: "LOST" not in shown(app))
        (run / "run.json").write_text("{", encoding="utf-8")
        await pilot.pause(0.2)

    drive(app, play)


def test_tabs_filter_and_help(run: Path) -> None:
    app = app_of(source_of(run))

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "[1 ring]" in shown(app))
        await pilot.press("tab")
        assert "[2 training]" in shown(app) and "Value loss" in shown(app)
        await pilot.press("1", *["up"] * 5, "slash", *"publish")
        await until(pilot, lambda: "Log with 'publish'" in shown(app))
        log = shown(app).partition("Log with")[2]
        assert "published" in log and "batch:" not in log
        await pilot.press("enter")
        await until(pilot, lambda: not app.query("#filter"))
        assert "Log with 'publish'" in shown(app)
        await pilot.press("escape")
        assert "Log with" not in shown(app)
        await pilot.press("question_mark")
        await until(pilot, lambda: "came in the last 10 seconds" in shown(app))
        await pilot.press("q")
        await until(pilot, lambda: "came in the last" not in shown(app))
        await pilot.press("q")
        await pilot.pause()

    drive(app, play)
    assert app.return_code == 0


def test_a_folder_of_runs_opens_one_and_comes_back(run: Path) -> None:
    shutil.copytree(run, run.parent / "swarm-2")
    (run.parent / "damaged").mkdir()
    (run.parent / "damaged" / "run.json").write_text("{", encoding="utf-8")
    app = app_of(source_of(run.parent))

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "swarm-2" in shown(app))
        assert "> damaged" in shown(app) and "cannot be read" in shown(app)
        await pilot.press("slash", *"swarm", "enter")
        await until(pilot, lambda: "damaged" not in shown(app))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "Archive" in shown(app))
        assert "swarm-2" in shown(app).splitlines()[0]
        await pilot.press("escape")
        await until(pilot, lambda: "2 of 3 runs" in shown(app))

    drive(app, play)


def test_who_quits_waits_for_a_reading_that_goes_on_but_not_for_one_that_hangs() -> None:
    reads, go_on = threading.Event(), threading.Event()

    def read() -> int:
        reads.set()
        assert go_on.wait(60)
        return 1

    poller = Poller(read, lambda reading: None, interval_s=60.0)
    poller.start()
    assert reads.wait(60)
    poller.stop()
    assert not wait_for_readers(0.01), "it hangs"
    go_on.set()
    assert wait_for_readers(60.0)


def test_only_lines_that_changed_are_redrawn() -> None:
    app = app_of(RunSource("run", views.ring), still=True)

    async def play(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "Archive" in shown(app))
        canvas = app.screen.query_one(Canvas)
        await pilot.pause(0.2)
        assert canvas.show(list(canvas.lines)) == 0
        assert canvas.show([*canvas.lines[:-1], ()]) == 1

    drive(app, play)


# --- pictures ------------------------------------------------------------------------------------


def folder() -> FolderSource:
    runs = [
        RunLine("brawl-1", views.training()),
        RunLine("queen", views.server()),
        RunLine("swarm-1", views.ring()),
        RunLine("swarm-2", error="runs/swarm-2/run.json: damaged"),
    ]
    return FolderSource("runs", lambda: runs, lambda name: RunSource(name, views.ring))


SCREENS: dict[str, Callable[[], RunView] | None] = {
    "ring": views.ring,
    "training": views.training,
    "server": views.server,
    "trouble": views.trouble,
    "empty": views.empty,
    "folder": None,
}


@pytest.mark.skipif(os.name == "nt", reason="the pictures have the time of one zone: tzset")
@pytest.mark.parametrize(
    "name",
    [
        "ring-80x24", "ring-160x45", "training-80x24", "server-80x24", "trouble-80x24",
        "empty-80x24", "folder-80x24",
    ],
)  # fmt: skip
def test_picture(snap_compare: Any, name: str) -> None:
    name, _, size = name.partition("-")
    columns, _, rows = size.partition("x")
    make = SCREENS[name]
    source = folder() if make is None else RunSource(f"runs/{name}", make)
    app = app_of(source, still=True)

    async def ready(pilot: Pilot[None]) -> None:
        word = {"empty": "none published", "folder": "swarm-2"}.get(name, "Version")
        await until(pilot, lambda: word in shown(app))
        await pilot.pause()

    assert snap_compare(app, terminal_size=(int(columns), int(rows)), run_before=ready)


_FIRST_SCREEN = """
import pathlib, sys
from understudy.cli.app import make_app
from understudy.cli.monitor import source_of
make_app("monitor")
source = source_of(pathlib.Path(sys.argv[1]), promotion_later=True)
source.read()
import understudy.screens.monitor.app
print(*sys.modules)
"""


def test_the_first_screen_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Each of these takes longer than reading a short run."""
    import subprocess

    from understudy import Understudy

    with (
        Understudy.open(
            tmp_path, features=["a"], actions=["x", "y"], mode="auto", learner="off"
        ) as mind,
        mind.match() as match,
    ):
        match.decide([1.0], fallback=0)
        match.finish("victory")
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_SCREEN, tmp_path], capture_output=True, text=True, check=True
    )
    heavy = {
        "jax", "matplotlib", "sklearn", "starlette", "gymnasium", "pygments", "markdown_it",
        "rich.progress", "rich.markdown", "textual.widgets._data_table", "multiprocessing",
        "understudy.promotion.report", "understudy.doctor.examine", "understudy.games.catalog",
        "understudy.cli.models", "understudy.cli.train", "understudy.bot.understudy",
    }  # fmt: skip
    assert heavy & set(done.stdout.split()) == set()


def test_no_import_of_textual_before_it_is_needed() -> None:
    """`understudy status` and a monitor in a pipe must not wait for it."""
    import subprocess

    code = "import sys, understudy.cli.app, understudy.screens.monitor.plain; " \
           "print('textual' in sys.modules)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
