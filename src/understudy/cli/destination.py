"""Where a result goes: told to be impossible before the work, not after it."""

from __future__ import annotations

from pathlib import Path

from understudy.core import files
from understudy.core.errors import ConfigError


def check_folder(flag: str, folder: Path) -> None:
    """A folder that is there or can be made, and written to; nothing is made yet."""
    there = folder
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise ConfigError(f"{flag} {folder}: {there} is a file; expected a folder")
    _check_writable(flag, folder, there)


def check_file(flag: str, path: Path) -> None:
    """A file that can be written or replaced, in a folder that is there."""
    if path.is_dir():
        raise ConfigError(f"{flag}: {path} is a folder; expected the name of a file")
    if not path.parent.is_dir():
        raise ConfigError(f"{flag}: there is no folder {str(path.parent)!r}")
    _check_writable(flag, path, path.parent)


def _check_writable(flag: str, asked: Path, folder: Path) -> None:
    try:
        files.check_writable(folder)
    except OSError as error:
        raise ConfigError(f"{flag} {asked}: cannot be written ({error.strerror})") from error
