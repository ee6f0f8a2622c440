"""Where runs live: `runs/<game>-<n>` for writers, the one named in `runs/LATEST` for readers."""

# ruff: noqa: PLC0414  an alias to the same name is how a type checker learns of a re-export

from __future__ import annotations

from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError
from understudy.registry.run_folder import LATEST, RunFolder
from understudy.registry.run_folder import RUNS as RUNS
from understudy.registry.run_folder import remember as remember


def new_run(game: str) -> Path:
    """The next free `runs/<game>-<n>`."""
    taken = {path.name for path in RUNS.iterdir()} if RUNS.is_dir() else set()
    number = 1
    while f"{game}-{number}" in taken:
        number += 1
    return RUNS / f"{game}-{number}"


def latest() -> Path:
    """The run that was written to last."""
    try:
        run = Path((RUNS / LATEST).read_text(encoding="utf-8").strip())
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
