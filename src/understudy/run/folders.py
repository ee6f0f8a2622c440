"""Where runs live: `runs/<game>-<n>` for writers, the one named in `runs/LATEST` for readers."""

from __future__ import annotations

import contextlib
from pathlib import Path

from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError
from understudy.registry.run_folder import RunFolder

RUNS = Path("runs")
_LATEST = "LATEST"


def new_run(game: str) -> Path:
    """The next free `runs/<game>-<n>`."""
    taken = {path.name for path in RUNS.iterdir()} if RUNS.is_dir() else set()
    number = 1
    while f"{game}-{number}" in taken:
        number += 1
    return RUNS / f"{game}-{number}"


def remember(run: Path) -> None:
    """Readers that are not told otherwise read this run from now on."""
    # A convenience: where nothing can be written here, people name the run themselves.
    with contextlib.suppress(OSError):
        files.make_folders(RUNS)
        files.write_atomic(RUNS / _LATEST, f"{run.as_posix()}\n".encode())


def latest() -> Path:
    """The run that was written to last."""
    try:
        run = Path((RUNS / _LATEST).read_text(encoding="utf-8").strip())
    except FileNotFoundError as error:
        raise RunFolderError(
            "no run yet: name one with --run, or make one with `understudy play swarm`"
        ) from error
    if not run.is_dir():
        raise RunFolderError(f"the latest run, {run}, is gone: name another with --run")
    return run


def check_resume(run: Path, *, resume: bool) -> None:
    """A run is gone on with only where a person says so, and only where there is one."""
    exists = (run / "run.json").exists()
    if exists and not resume:
        raise RunFolderError(
            f"--run: {run} holds a run already; --resume continues it, or name another"
        )
    if resume and not exists:
        raise RunFolderError(f"--resume: {run} holds no run to go on with")


def kept(run: Path | None) -> RunFolder | None:
    """The run folder that a person wants to go on with; None where there is no such run yet."""
    if run is None or not (run / "run.json").exists():
        return None
    return RunFolder.load(run, SystemClock())
