"""A stand-in of the tournament: a folder that looks like a checkout, over rules of our own.

`write_stand_in(path)` makes it. The package `environment` beside this file is what it copies: it
needs NumPy and nothing else, so that a submission can be tried where Understudy is not installed.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from understudy.core.errors import ConfigError

_PACKAGE = "environment"
_FOLDERS = ("assets", "user")


def write_stand_in(path: Path) -> list[Path]:
    """Make the folder; an error if something is there already. Returns what was written."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path} exists already: expected a new or empty folder")
    for name in (_PACKAGE, *_FOLDERS):
        (path / name).mkdir(parents=True, exist_ok=True)
    written = []
    for source in (resources.files(__name__) / _PACKAGE).iterdir():
        if source.name.endswith(".py"):
            target = path / _PACKAGE / source.name
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(target)
    return sorted(written)
