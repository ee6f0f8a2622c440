"""Settings with a name: TOML files that ship with the package, or a file of one's own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from understudy.core.config import Config, load
from understudy.core.errors import ConfigError, nearest

_FOLDER = "understudy.run.configs"


def names() -> tuple[str, ...]:
    """All that ship with the package."""
    files = resources.files(_FOLDER).iterdir()
    return tuple(sorted(Path(one.name).stem for one in files if one.name.endswith(".toml")))


def config(name: str) -> Config:
    """The settings of that name, or in the file of that name."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"--config: there is no file {name}")
        return load(path)
    if name not in names():
        raise ConfigError(
            f"--config: expected one of {', '.join(names())}, or a .toml file; got {name!r}."
            f"{nearest(name, names())}"
        )
    with resources.as_file(resources.files(_FOLDER) / f"{name}.toml") as path:
        return load(path)
