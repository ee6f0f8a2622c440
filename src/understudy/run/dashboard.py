"""The process of the dashboard: run folders behind its pages, on a socket of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path

import msgspec

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, RunFolderError
from understudy.doctor.evidence import gather
from understudy.doctor.examine import examine
from understudy.doctor.findings import Finding
from understudy.judging.replay_frames import problem_line
from understudy.judging.replays import count_recorded, listed
from understudy.registry.run_folder import RunFolder, agents_in, holds_run
from understudy.run import controls
from understudy.run.replay_process import replay_command
from understudy.run.view import ViewReader, written_at
from understudy.screens.dashboard.app import ActionRequest, Dashboard, ReplayRequest
from understudy.screens.dashboard.page import PartCache, RecordedMatches, RunReading
from understudy.screens.dashboard.rendering import Renderer
from understudy.supervise.dashboard import HOST, PORT
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry.status import Status
from understudy.web.auth import Auth, check_exposure, make_auth
from understudy.web.listening import Listening, Tls, bound

_EXAMINE_EVERY_S, _REST = 10.0, 9.0
_LONGEST_MESSAGE = 64 * 1024
_MOST_VIEWERS = 64
_LONGEST_LINE = 16 * 2**20


class ExaminationPace:
    """When the doctor may look at a run: it takes a tenth of the time at most, of all runs
    together."""

    def __init__(self) -> None:
        self._next = 0.0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    def took(self, seconds: float) -> None:
        self._next = time.monotonic() + _REST * seconds


class WatchedRun:
    """A run folder, read again and again by one thread."""

    def __init__(self, name: str, root: Path, pace: ExaminationPace) -> None:
        self._name = name
        self._root = root
        self._pace = pace
        self._reader: ViewReader | None = None
        self._last: RunReading | None = None
        self._cache = PartCache()
        self._findings: tuple[Finding, ...] | None = None
        self._examined = (-_EXAMINE_EVERY_S, -1)
        """When the doctor looked, and how many entries there were."""

    def read(self) -> RunReading:
        """See `rendering.ReadableRun`. The doctor looks with the second reading at the earliest, so
        that the first page does not wait for it."""
        if not holds_run(self._root):
            self._reader = self._last = None  # another run may take its place
            raise RunFolderError(f"{self._root}: the run folder is gone")
        if self._reader is None:
            self._reader = ViewReader(RunFolder.load(self._root, SystemClock()))
        view, folds = self._reader.read(), self._reader.folds
        evidence = gather(self._reader.folder, view)
        if self._last is not None:
            self._examine(lambda: tuple(examine(evidence)), folds.entries)
        last = self._last
        if (
            last is not None
            and last.folds.entries == folds.entries
            and last.findings is self._findings
            and _lasting(last.status) == _lasting(view.status)
        ):
            return last
        folder = self._reader.folder
        self._last = RunReading(
            name=self._name,
            folder=folder,
            view=view,
            folds=folds,
            kind=evidence.kind,
            findings=self._findings,
            recorded=lambda most: _recorded(folder, most),
            cache=self._cache,
        )
        return self._last

    def _examine(self, look: Callable[[], tuple[Finding, ...]], entries: int) -> None:
        at, before = self._examined
        now = time.monotonic()
        if entries == before or now - at < _EXAMINE_EVERY_S or not self._pace.due():
            return
        found = look()
        self._pace.took(time.monotonic() - now)
        if found != self._findings:
            self._findings = found
        self._examined = time.monotonic(), entries


def _recorded(folder: RunFolder, most: int) -> RecordedMatches:
    """A file is read for each row, so no more are read than are shown."""
    rows = tuple(islice(listed(folder), most))
    return RecordedMatches(rows, max(0, count_recorded(folder) - len(rows)))


def _lasting(status: Status) -> Status:
    """Without what changes as time passes."""
    return msgspec.structs.replace(status, at=0.0, experience_waits_s=0.0)


class WatchedRuns:
    """The runs in some folders: run folders themselves, and folders of runs."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._sources: dict[str, WatchedRun] = {}
        self._pace = ExaminationPace()

    def sources(self) -> Mapping[str, WatchedRun]:
        """By name, the one that was written to last first."""
        found = self._roots()
        ordered = sorted(found, key=lambda name: (-written_at(found[name]), name))
        self._sources = {
            name: self._sources.get(name) or WatchedRun(name, found[name], self._pace)
            for name in ordered
        }
        return self._sources

    def root(self, name: str) -> Path:
        """The folder of a run; from any thread. No name that is not listed leads anywhere.

        Raises:
            RunFolderError: There is no such run.
        """
        found = self._roots()
        if name not in found:
            raise RunFolderError(f"there is no run {name!r} here")
        return found[name]

    def _roots(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            for root in _runs_in(folder):
                found.setdefault(_free_name(root, found), root)
        return found


def _runs_in(folder: Path) -> list[Path]:
    """The agents of a population are runs of their own beside it."""
    if holds_run(folder):
        return [folder, *agents_in(folder)]
    if not folder.is_dir():
        return []
    runs = sorted(one for one in folder.iterdir() if holds_run(one))
    return [one for run in runs for one in (run, *agents_in(run))]


def _free_name(root: Path, taken: Mapping[str, Path]) -> str:
    """The name of the folder; with that of its parent, and a number, where another run has it.
    It is one part of an address, so it has no slash."""
    place = root.resolve()
    longer = f"{place.name} ({place.parent.name})"
    names = chain(
        (longer,) if holds_run(place.parent) else (place.name, longer),
        (f"{place.name} ({place.parent.name}, {number})" for number in count(2)),
    )
    return next(name for name in names if name not in taken or taken[name] == root)


@dataclass(frozen=True, kw_only=True)
class DashboardOptions:
    """What `understudy dashboard` was asked for."""

    folders: tuple[Path, ...]
    host: str = HOST
    port: int = PORT
    token: str | None = None
    tls: Tls | None = None
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()

    def auth(self, port: int) -> Auth:
        """The checks of every request; pages of this dashboard alone may connect."""
        check_exposure(
            host=self.host,
            token=self.token is not None,
            tls=self.tls is not None,
            behind_proxy=self.behind_proxy,
        )
        scheme = "https" if self.secure else "http"
        names = ("localhost", "127.0.0.1", "[::1]", _in_address(self.host))
        own = [f"{scheme}://{name}:{port}" for name in names]
        own += [
            f"{scheme}://{name}{rest}" for name in self.allow_hosts for rest in ("", f":{port}")
        ]
        return make_auth(
            host=self.host, allow_hosts=self.allow_hosts, allow_origins=own, token=self.token
        )

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by https."""
        return self.tls is not None or self.behind_proxy


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def dashboard(
    options: DashboardOptions,
    *,
    started: Callable[[str], object],
    ended: threading.Event | None = None,
) -> int:
    """Serve the pages until Ctrl-C, SIGTERM or `ended`; returns the exit code."""
    with contextlib.ExitStack() as stack, Interrupts() as ending:
        at = stack.enter_context(contextlib.closing(bound(options.host, options.port)))
        port = at.getsockname()[1]
        catalog = WatchedRuns(options.folders)
        board = Dashboard(
            Renderer(catalog),
            auth=options.auth(port),
            act=lambda run, action, asked: _act(catalog, run, action, asked),
            replay=lambda asked: _replay(catalog, asked),
            secure=options.secure,
        )
        stack.callback(board.close)

        def beat() -> None:
            listener.should_exit = ending.asked or (ended is not None and ended.is_set())

        listener = Listening(
            board.app,
            max_message_bytes=_LONGEST_MESSAGE,
            max_clients=_MOST_VIEWERS,
            tls=options.tls,
            beat=beat,
        )
        scheme = "https" if options.tls is not None else "http"
        started(f"{scheme}://{_in_address(options.host)}:{port}")
        with contextlib.suppress(KeyboardInterrupt), ending.held():
            listener.listen(at)
    return ending.code


def _act(catalog: WatchedRuns, run: str, action: str, asked: ActionRequest) -> str:
    """What a person confirmed."""
    root = catalog.root(run)
    folder = RunFolder.load(root, SystemClock())
    match action:
        case "rollback":
            return controls.roll_back(folder, _version(asked))
        case "release":
            return controls.release_champion(folder)[1]
        case "approve":
            return " ".join(controls.order(folder, "approve", version=_version(asked)))
        case "stop":
            return " ".join(controls.order(folder, "stop"))
        case "pause-learning" | "resume-learning":
            paused = action == "pause-learning"
            controls.switch_learning(root, paused=paused)
            return "Learning is paused." if paused else "Learning goes on, where a learner runs."
    raise ConfigError(f"there is no action {action!r}")


def _version(asked: ActionRequest) -> int:
    if asked.version is None:
        raise ConfigError("version: expected the number of a version")
    return asked.version


async def _replay(catalog: WatchedRuns, asked: ReplayRequest) -> AsyncIterator[bytes]:
    """The lines of `run.replay_process`, which ends when its reader goes away."""
    try:
        root = catalog.root(asked.run)
    except RunFolderError as error:
        yield problem_line(error)
        return
    process = await asyncio.create_subprocess_exec(
        *replay_command(root, asked.match),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LONGEST_LINE,
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            yield line
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
