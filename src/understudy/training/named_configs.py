"""Settings with a name: TOML files that ship with the package, or a file of one's own.

`extends = "small"` at the top of a file builds on another: on one that ships, or on a file beside
it (`extends = "base.toml"`). A table such as `[curriculum.stages.league]` changes that stage of
the other. What comes out is always resolved; a run keeps that.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from understudy.core.config import Config, from_table
from understudy.core.config.tables import checked, merged, read
from understudy.core.errors import ConfigError, nearest

_FOLDER = "understudy.training.configs"
_EXTENDS = "extends"


def names() -> tuple[str, ...]:
    """All that ship with the package."""
    files = resources.files(_FOLDER).iterdir()
    return tuple(sorted(Path(one.name).stem for one in files if one.name.endswith(".toml")))


def config(name: str, *, flag: str = "--config") -> Config:
    """The settings of that name, or in the file of that name."""
    table, source = _resolved(name, flag, folder=Path(), trail=())
    return from_table(table, source=source)


def summary(name: str) -> str:
    """What a config that ships is for: the first comment of its file, one line."""
    first, *_ = _shipped(name).read_text(encoding="utf-8").splitlines()
    return first.removeprefix("#").strip()


def _resolved(
    name: str, asker: str, *, folder: Path, trail: tuple[str, ...]
) -> tuple[dict[str, Any], str]:
    """The tables of `name` over those that it extends, and what to call them in an error.

    `asker` is the flag or file that named it, `trail` the chain of configs that led here.
    """
    path = folder / name
    if name.endswith(".toml"):
        source, here = str(path), str(path.resolve())
        if not path.is_file():
            raise ConfigError(f"{asker}: there is no file {path}")
        table = read(path)
    else:
        source, here = f"config {name}", name
        if name not in names():
            raise ConfigError(
                f"{asker}: expected one of {', '.join(names())}, or a .toml file; got {name!r}."
                f"{nearest(name, names())}"
            )
        with resources.as_file(_shipped(name)) as shipped:
            table = read(shipped)
    if here in trail:
        raise ConfigError(f"{asker}: goes round in a circle: {' -> '.join((*trail, here))}")
    base = table.pop(_EXTENDS, None)
    table = checked(table, source=source, over_others=base is not None)
    if base is None:
        return table, source
    if not isinstance(base, str):
        raise ConfigError(f"{source}: {_EXTENDS}: expected a name or a .toml file, got {base!r}")
    below, below_source = _resolved(
        base, f"{source}: {_EXTENDS}", folder=path.parent, trail=(*trail, here)
    )
    from_table(below, source=below_source)  # its own mistakes are told under its own name
    try:
        return merged(below, table), source
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def _shipped(name: str) -> Traversable:
    return resources.files(_FOLDER) / f"{name}.toml"
