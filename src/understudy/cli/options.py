"""Options that several commands have: their declarations, `--set key=value`, and output paths.

Whether a path can be written is checked before the work begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.core import files
from understudy.core.config import Config, with_values
from understudy.core.dependencies import install_line, needs
from understudy.core.errors import ConfigError
from understudy.core.toml import value_of

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
JsonAtEnd = Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")]
LatestRun = Annotated[
    Path | None, typer.Option("--run", help="The run folder (default: the latest).")
]
NewRun = Annotated[
    Path | None, typer.Option("--run", help="The run folder (default: a new runs/GAME-N).")
]
WithDashboard = Annotated[
    bool, typer.Option("--dashboard", help="Show the run in a browser as well, on port 8710.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting: learner.gamma=0.99. Repeatable.")
]
NamedGame = Annotated[
    str, typer.Argument(help="A game (see `understudy games`), FILE.py:GAME or MODULE:GAME.")
]
GameOfTwo = Annotated[
    str,
    typer.Argument(help="A game of two (see `understudy games`), FILE.py:GAME or MODULE:GAME."),
]
MatchSeed = Annotated[int, typer.Option(help="Seeds the matches; none was ever trained on.")]
Greedy = Annotated[bool, typer.Option("--greedy", help="Take the likeliest actions, draw none.")]
FirstRunDelay = Annotated[
    int | None, typer.Option(help="Frames that both see late (default: the first run's).")
]
Bots = Annotated[
    list[str] | None,
    typer.Option(help="A .py file or module with scripted opponents of one's own. Repeatable."),
]
GameOption = Annotated[
    list[str] | None,
    typer.Option("--option", help="Of a custom game: size=5. Repeatable."),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Workers that play environments side by side (default: this process)."),
]
RayMode = Annotated[
    str | None,
    typer.Option(
        "--ray",
        help="Workers are Ray actors: local (of this machine), auto (of the cluster of the job or "
        "of RAY_ADDRESS).",
    ),
]
EngineName = Annotated[str, typer.Option(help="auto, numpy or jax.")]

_FLAGS = {
    "learner.seed": "--seed",
    "train.opponents": "--opponents",
    "curriculum.pin": "--stage",
    "population.agents": "--population",
    "live.threshold": "--threshold",
    "promotion.evidence": "--evidence",
    "train.asynchronous": "--async",
}
"""Settings with a flag of their own."""


def config_from(
    pairs: Sequence[str], *, base: Config | None = None, defaults: Mapping[str, Any]
) -> Config:
    """The settings of a run (`base`), changed by `defaults` and then by `pairs` of the user."""
    chosen = dict(parsed(pair) for pair in pairs)
    try:
        return with_values(base or Config(), {**defaults, **chosen})
    except ConfigError as error:
        message = str(error).removeprefix("config: ")
        key, _, rest = message.partition(": ")
        if key in _FLAGS and key in defaults and key not in chosen:
            raise ConfigError(f"{_FLAGS[key]}: {rest}") from error
        raise ConfigError(f"--set: {message}") from error


def parsed(
    pair: str, *, flag: str = "--set", example: str = "learner.gamma=0.99"
) -> tuple[str, Any]:
    """`key=value` with the value as in TOML, or as text."""
    key, equals, text = pair.partition("=")
    if not equals:
        raise ConfigError(f"{flag} {pair}: expected key=value, such as {example}")
    return key.strip(), value_of(text)


def check_workers(game: str, workers: int | None, ray: str | None) -> tuple[int, str]:
    """How many workers there are, and whether they are Ray actors; an error, before anything is
    made, where that is not possible."""
    from understudy.adapters.environments.factory import is_environment
    from understudy.workers.ray_mode import check_mode

    if workers is not None and workers < 0:
        raise ConfigError(f"--workers: expected 0 or more, got {workers}")
    if not is_environment(game):
        for flag, value in (("--workers", workers), ("--ray", ray)):
            if value is not None:
                raise ConfigError(
                    f"{flag}: {game} has no such choice: it belongs to environments, such as "
                    "pettingzoo:my_game"
                )
    if ray is not None:
        check_mode(ray)
        if not workers:
            raise ConfigError(f"--ray {ray}: say how many workers there are: --workers N")
        with needs("--ray needs Ray", extra="scale"):
            pass
    return workers or 0, ray or ""


def workers_line(workers: int, ray: str) -> str:
    """Who plays, in words; where it is not Ray, what Ray would add."""
    from understudy.workers.ray_mode import is_installed

    if ray:
        where = "of this machine" if ray == "local" else "of the cluster"
        return f"{workers} workers, Ray actors {where}."
    get = "" if is_installed() else f" ({install_line('scale')})"
    return (
        f"{workers} workers, processes of this machine; with Ray{get} they can be on other "
        "machines: --ray auto."
    )


def game_options(pairs: Sequence[str]) -> dict[str, str]:
    """`--option key=value` of a custom game, the values as text: what run folders keep."""
    chosen = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--option {pair}: expected key=value, such as size=5")
        chosen[key.strip()] = text.strip()
    return chosen


def check_folder(flag: str, folder: Path) -> None:
    """Raises ConfigError unless the folder exists or can be made, and can be written to."""
    there = folder
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise ConfigError(f"{flag} {folder}: {there} is a file; expected a folder")
    _check_writable(flag, folder, there)


def check_file(flag: str, path: Path) -> None:
    """Raises ConfigError unless the file can be written or replaced, in an existing folder."""
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
