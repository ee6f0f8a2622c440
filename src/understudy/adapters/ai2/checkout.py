"""The user's checkout of the tournament's repository: where it is, and whether it can be used."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from understudy.core.errors import ConfigError

HOME = "AI2_HOME"
"""The environment variable that names the checkout where no option does."""
_GAME = ("environment/environment.py", "environment/agent.py")
_ASSETS = "assets"


@dataclass(frozen=True)
class Checkout:
    """A folder that has what the adapter needs, and the Python that runs it."""

    home: Path
    python: str

    @classmethod
    def find(cls, home: str | Path | None = None, python: str | Path | None = None) -> Checkout:
        """The checkout at `home`, else at the environment variable AI2_HOME.

        `python` is the interpreter with the tournament's libraries (default: this one).
        Raises ConfigError that says what is missing, and what to do.
        """
        given, source = (home, "--option home") if home else (os.environ.get(HOME), HOME)
        if not given:
            raise ConfigError(
                "ai2: which checkout of the tournament? Give --option home=PATH, or set "
                f"{HOME}=PATH"
            )
        folder = Path(str(given)).expanduser().resolve()  # --option home=2024 is a number
        if not folder.is_dir():
            raise ConfigError(f"{source}: there is no folder {folder}")
        for name in _GAME:
            if not (folder / name).is_file():
                raise ConfigError(
                    f"{source}: {folder} is no checkout of the tournament: it has no {name}"
                )
        if not (folder / _ASSETS).is_dir():
            raise ConfigError(
                f"{source}: {folder} has no folder {_ASSETS}, so that the game would download it "
                "at every start; start the game once by hand, or make the folder"
            )
        return cls(folder, _interpreter(python))


def _interpreter(python: str | Path | None) -> str:
    if not python:
        return sys.executable
    # Not resolved: the link in a virtual environment is what makes it one.
    path = Path(str(python)).expanduser().absolute()
    if not path.is_file():
        raise ConfigError(f"--option python: there is no file {path}; expected a Python")
    return str(path)
