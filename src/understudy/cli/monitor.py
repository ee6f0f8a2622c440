"""`understudy monitor`: a run, the runs of a folder or a server, live in a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import Json

if TYPE_CHECKING:
    from understudy.screens.monitor.sources import FolderSource, RunSource
    from understudy.telemetry.run_view import RunView

_LEAST_S = 0.1
_NICE = 5
_READERS_END_S = 2.0


def monitor(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run folder, or a folder of runs (default: the latest run)."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A server instead: http://127.0.0.1:8765.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="The token of that server, if it has one.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two readings.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one block and end.")] = False,
    json: Json = False,
) -> None:
    """Watch a run: who plays and why, results, the learner, files, versions, the log.

    In a terminal a screen that follows the run, with keys (?) to filter, to pause learning and to
    roll back; in a pipe one block, then one line for each thing that happens. It reads the run
    folder alone, so it may start late, end at any time and run on another machine.

    Example: understudy monitor runs/swarm-1
    """
    from understudy.core.errors import ConfigError

    if not interval >= _LEAST_S:
        raise ConfigError(f"--interval: expected {_LEAST_S:g} seconds or more, got {interval:g}")
    if url is not None and run is not None:
        raise ConfigError("--url: expected either a run folder or the address of a server")
    if token_file is not None and url is None:
        raise ConfigError("--token-file: expected only together with --url")
    if json and not once:
        raise ConfigError("--json: expected only together with --once")
    first = _FirstReading()
    screen = not once and _has_screen()
    if url is not None:
        source: RunSource | FolderSource = _server(url, token_file)
    else:
        source = source_of(run, progress=first, promotion_later=screen)
    if not screen:
        _print(source, interval_s=interval, once=once, json=json)
    else:
        _show(source, interval_s=interval, first=first)


class _FirstReading:
    """Passes on how much of a long first reading is over, once there is a screen to show it."""

    def __init__(self) -> None:
        self.tell: Callable[[float], None] = lambda share: None

    def __call__(self, share: float) -> None:
        self.tell(share)


def _has_screen() -> bool:
    """Textual reads keys from stdin, and draws on stderr (on Windows on stdout)."""
    from understudy.screens.console import supports_cursor

    return sys.stdin.isatty() and supports_cursor(sys.stdout) and sys.stderr.isatty()


def _show(source: RunSource | FolderSource, *, interval_s: float, first: _FirstReading) -> None:
    import os

    from understudy.core.clock import SystemClock
    from understudy.core.dependencies import needs

    with needs("the monitor needs {} (or use --once)", extra="monitor"):
        import textual  # noqa: F401
    from understudy.screens.monitor.app import MonitorApp
    from understudy.screens.monitor.sources import wait_for_readers
    from understudy.screens.monitor.sparkline import glyphs_for

    if hasattr(os, "nice"):
        os.nice(_NICE)  # the bot that is watched comes first
    app = MonitorApp(
        source,
        clock=SystemClock(),
        interval_s=interval_s,
        glyphs=glyphs_for(sys.stdout.encoding),
    )
    first.tell = app.progressed
    app.run()
    wait_for_readers(_READERS_END_S)


def _print(source: RunSource | FolderSource, *, interval_s: float, once: bool, json: bool) -> None:
    import shutil

    from understudy.screens.console import reader_left
    from understudy.screens.monitor.plain import folder_block, follow, run_block
    from understudy.screens.monitor.sources import FolderSource
    from understudy.screens.monitor.sparkline import glyphs_for
    from understudy.telemetry.text import say, say_json

    glyphs = glyphs_for(sys.stdout.encoding)
    width = shutil.get_terminal_size().columns
    if isinstance(source, FolderSource):
        runs = source.read()
        if json:
            say_json([{"name": one.name, "view": one.view, "error": one.error} for one in runs])
        else:
            say("\n".join(folder_block(runs, width=width, glyphs=glyphs)))
        if not once:
            say("To follow one of them, name it: understudy monitor FOLDER/RUN", file=sys.stderr)
        return
    first = source.read()
    if json:
        say_json(first)
        return
    read = say("\n".join(run_block(source.name, first, width=width, glyphs=glyphs)))
    if read and not once:
        follow(
            source.read, first, say,
            interval_s=interval_s, glyphs=glyphs, gone=lambda: reader_left(sys.stdout),
        )  # fmt: skip


def _server(url: str, token_file: Path | None) -> RunSource:
    from understudy.core.clock import SystemClock
    from understudy.screens.monitor.server_reader import ServerReader
    from understudy.screens.monitor.sources import RunSource

    token = None
    if token_file is not None:
        from understudy.core.dependencies import needs

        with needs("a token file needs {}", extra="serve"):
            from understudy.web.auth import read_token
        token = read_token(token_file)
    return RunSource(url, ServerReader(url, token=token, clock=SystemClock()).read)


def source_of(
    path: Path | None,
    *,
    progress: Callable[[float], None] | None = None,
    promotion_later: bool = False,
) -> RunSource | FolderSource:
    """A run (default: the latest one), or a folder with runs in it, such as a population.

    `progress` is called while the journal of one run is read for the first time.
    `promotion_later` leaves the promotion log of that run for the second reading.
    """
    from understudy.core.errors import RunFolderError
    from understudy.registry.run_folder import agents_in, holds_run, latest
    from understudy.screens.monitor.sources import FolderSource, RunLine, taken

    root = path or latest()
    if holds_run(root) and not agents_in(root):
        return _run(root, progress, promotion_later=promotion_later)
    if not root.is_dir():
        raise RunFolderError(f"{root}: there is no such folder")
    sources: dict[str, RunSource] = {}
    lock = threading.Lock()  # a thread that was told to stop may still read

    def read() -> list[RunLine]:
        if not root.is_dir():
            raise RunFolderError(f"{root}: the folder is gone")
        names = sorted(one.name for one in root.iterdir() if holds_run(one))
        for gone in sources.keys() - set(names):
            del sources[gone]
        with lock:
            return [line(name) for name in names]

    def line(name: str) -> RunLine:
        if name not in sources:
            sources[name] = _run(root / name)
        view, error = taken(sources[name].read)
        return RunLine(name, view, error)

    if not any(holds_run(one) for one in root.iterdir()):
        raise RunFolderError(f"{root}: neither a run folder nor a folder of runs")
    return FolderSource(str(root), read, lambda name: _run(root / name))


def _run(
    root: Path,
    progress: Callable[[float], None] | None = None,
    *,
    promotion_later: bool = False,
) -> RunSource:
    from understudy.core.clock import SystemClock
    from understudy.core.errors import RunFolderError
    from understudy.registry.run_folder import RunFolder, holds_run
    from understudy.run.view import ViewReader
    from understudy.screens.monitor.sources import RollbackChoice, RunControls, RunSource

    reader: ViewReader | None = None

    def read() -> RunView:
        nonlocal reader
        if not holds_run(root):
            reader = None  # another run may take its place
            raise RunFolderError(f"{root}: the run folder is gone")
        if reader is None:
            reader = ViewReader(RunFolder.load(root, SystemClock()), progress)
            return reader.read(promotion_later=promotion_later)
        return reader.read()

    def choice() -> RollbackChoice:
        from understudy.run.controls import rollback_target

        folder = RunFolder.load(root, SystemClock())
        kept = tuple(folder.versions.numbers())
        try:
            version, why = rollback_target(folder)
        except RunFolderError as error:  # none is better than all others: a person chooses one
            if not kept:
                raise
            version, why = kept[-1], str(error)
        return RollbackChoice(version, why, kept)

    def back(version: int) -> str:
        from understudy.run.controls import roll_back

        return roll_back(RunFolder.load(root, SystemClock()), version)

    def pause(paused: bool) -> str:
        from understudy.run.controls import switch_learning

        _, changed = switch_learning(root, paused=paused)
        said = "learning is paused" if paused else "learning goes on, wherever a learner runs"
        return said if changed else f"{said} (it was so already)"

    return RunSource(str(root), read, RunControls(choice, back, pause))
