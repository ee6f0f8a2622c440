"""Where runs live: `runs/<game>-<n>` for writers, the one named in `runs/LATEST` for readers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError, UnderstudyError
from understudy.registry.run_folder import LATEST, RUNS, RunFolder, remember
from understudy.registry.versions import Versions


def new_run(game: str) -> Path:
    """The next free `runs/<game>-<n>`."""
    taken = {path.name for path in RUNS.iterdir()} if RUNS.is_dir() else set()
    number = 1
    while f"{game}-{number}" in taken:
        number += 1
    return RUNS / f"{game}-{number}"


@contextlib.contextmanager
def new_start(run: Path, *, existed: bool) -> Iterator[None]:
    """Make `run` the latest one; a failure before its first version undoes the start.

    Use it under the lock of a session that made the run. After such a failure the folder holds no
    run, so a retry is not refused, and `runs/LATEST` names the run before it. A folder that
    `existed` before the session stays, with all other files in it.
    """
    before = _named_latest()
    remember(run)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # the failure itself is what a person must see
            if not Versions(run / "versions").numbers():
                _undo(run, existed=existed, before=before)
        raise


def latest() -> Path:
    """The run that was written to last."""
    run = _named_latest()
    if run is None:
        raise RunFolderError(
            "no run yet: name one with --run, or make one with `understudy play swarm`"
        )
    if not run.is_dir():
        raise RunFolderError(f"the latest run, {run}, is gone: name another with --run")
    return run


def latest_of(game: str) -> Path:
    """The run of this game that was written to last: that of `LATEST`, else one in `runs/`."""
    with contextlib.suppress(RunFolderError):  # no run yet, or it is gone
        if _is_of(latest(), game):
            return latest()
    found = [path.parent for path in RUNS.glob("*/run.json") if _is_of(path.parent, game)]
    if not found:
        raise RunFolderError(f"there is no run of {game} yet (`understudy train {game}`)")
    return max(found, key=_written_at)


def _is_of(run: Path, game: str) -> bool:
    try:
        return RunFolder.load(run, SystemClock()).identity.game.partition(" ")[0] == game
    except UnderstudyError:  # a damaged run is not the one that is meant
        return False


def _written_at(run: Path) -> float:
    return max(path.stat().st_mtime for path in (run / "run.json", *run.glob("journal/*.jsonl")))


def check_resume(run: Path, *, resume: bool) -> None:
    """A run is gone on with only where a person says so, and only where there is one."""
    exists = (run / "run.json").exists()
    if exists and not resume:
        raise RunFolderError(
            f"--run: {run} holds a run already; --resume continues it, or name another"
        )
    if resume and not exists:
        raise RunFolderError(f"--resume: {run} holds no run to go on with")


def newest(folder: RunFolder | None) -> int:
    """The number of the newest version; 0 where there is none."""
    return max(folder.versions.numbers(), default=0) if folder else 0


def kept(run: Path | None) -> RunFolder | None:
    """The run folder that a person wants to go on with; None where there is no such run yet."""
    return None if run is None else RunFolder.kept(run, SystemClock())


def _named_latest() -> Path | None:
    try:
        return Path((RUNS / LATEST).read_text(encoding="utf-8").strip())
    except OSError:
        return None


def _undo(run: Path, *, existed: bool, before: Path | None) -> None:
    if before is not None:
        remember(before)
    else:
        files.remove(RUNS / LATEST)
    files.remove(run / "run.json")
    if not existed:
        files.remove_folder(run)
