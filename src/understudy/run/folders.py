"""Where runs live: `runs/<game>-<n>` for writers, the one named in `runs/LATEST` for readers."""

from __future__ import annotations

from pathlib import Path

from understudy.core import files
from understudy.core.errors import RunFolderError

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
    files.make_folders(RUNS)
    files.write_atomic(RUNS / _LATEST, f"{run.as_posix()}\n".encode())


def latest() -> Path:
    """The run that was written to last."""
    try:
        return Path((RUNS / _LATEST).read_text(encoding="utf-8").strip())
    except FileNotFoundError as error:
        raise RunFolderError(
            "no run yet: name one with --run, or make one with `understudy play swarm`"
        ) from error
