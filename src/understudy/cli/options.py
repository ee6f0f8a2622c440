"""`--set key=value` at the command line.

Where a result goes: told to be impossible before the work, not after it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.core import files
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError

_FLAGS = {
    "learner.seed": "--seed",
    "train.opponents": "--opponents",
    "curriculum.pin": "--stage",
    "population.agents": "--population",
    "live.threshold": "--threshold",
}
"""Settings that have a flag of their own."""


def config_from(
    pairs: Sequence[str], *, base: Config | None = None, defaults: Mapping[str, Any]
) -> Config:
    """The settings of a run (`base`), changed by `defaults` and then by what the person set."""
    chosen = dict(parsed(pair) for pair in pairs)
    try:
        return with_values(base or Config(), {**defaults, **chosen})
    except ConfigError as error:
        told = str(error).removeprefix("config: ")
        key, _, rest = told.partition(": ")
        if key in _FLAGS and key in defaults and key not in chosen:
            raise ConfigError(f"{_FLAGS[key]}: {rest}") from error
        raise ConfigError(f"--set: {told}") from error


def parsed(
    pair: str, *, flag: str = "--set", example: str = "learner.gamma=0.99"
) -> tuple[str, Any]:
    """`key=value` with the value as TOML has it, or as text."""
    key, equals, text = pair.partition("=")
    if not equals:
        raise ConfigError(f"{flag} {pair}: expected key=value, such as {example}")
    return key.strip(), value_of(text)


def value_of(text: str) -> Any:
    """A number, a truth or a list as TOML has it; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


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
