"""A stand-in of the tournament: a folder that looks like a checkout, over rules of our own.

`write_stand_in(path)` makes it. The package `environment` beside this file is what it copies: it
needs NumPy and nothing else, so that a submission can be tried where Understudy is not installed.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from understudy.core.errors import ConfigError

_PACKAGE = "environment"
_FOLDERS = ("assets", "user")


def write_stand_in(path: Path) -> Path:
    """Make the folder; an error if something is there already. Returns it."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ConfigError(f"{path}: expected a new or empty folder for the stand-in")
    for name in (_PACKAGE, *_FOLDERS):
        (path / name).mkdir(parents=True, exist_ok=True)
    for source in _sources():
        text = source.read_text(encoding="utf-8")
        (path / _PACKAGE / source.name).write_text(text, encoding="utf-8")
    return path


def _sources() -> list[Traversable]:
    files = (resources.files(__name__) / _PACKAGE).iterdir()
    return [one for one in files if one.name.endswith(".py")]
