"""Reads an exported file (`agents.module_file`) back: what it says of itself, and its policy.

Loading one runs its code, as importing any Python file does. So only a path that a person named is
ever loaded, never one that a run folder or a setting holds, and a file that does not say that it
was exported is refused unread.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from understudy.agents.module_file import FORMAT
from understudy.core.errors import FileFormatError
from understudy.core.user_code import USER_ERRORS, run_module

ENDING = ".py"
_MODULE = "module"


class About(msgspec.Struct, frozen=True, rename={"kind": "as"}):
    """What an exported file says of itself; fields of later versions are passed over."""

    format: int
    kind: str
    """What `--as` wrote it."""
    run: str
    version: int
    game: str = ""
    game_options: dict[str, str] = {}
    float16: bool = False

    @property
    def game_name(self) -> str:
        """`game` without the version of its rules."""
        return self.game.partition(" ")[0]


class ExportedAgent:
    """An exported file that was loaded."""

    def __init__(self, path: Path, about: About, module: ModuleType) -> None:
        self.path = path
        self.about = about
        self._module = module

    @property
    def policy(self) -> Any:
        """The file's own policy: it has `spec`, `begin` and `act` of `policy.policy.Policy`."""
        return self._module.policy()

    def agent(self, *, greedy: bool | None = None, seed: int | None = None) -> Any:
        """A new agent of the file; `greedy` None: as the file says."""
        given = {} if greedy is None else {"greedy": greedy}
        return self._module.Agent(seed=seed, **given)


def is_file(name: str) -> bool:
    """Whether a name is that of an exported file, and not of a run."""
    return name.endswith(ENDING)


def load_exported(path: Path) -> ExportedAgent:
    """Run an exported file. `FileFormatError`: it is none, or of a newer version."""
    try:
        data = path.read_bytes()
        text = data.decode().replace("\r\n", "\n")  # as version control on Windows makes them
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: there is no such file") from error
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a Python file that was exported ({error})") from error
    about = _about(path, text)
    # A name of its own: two files that are both called agent.py are two modules.
    name = f"understudy_exported_{hashlib.sha256(data).hexdigest()[:16]}"
    try:
        module = sys.modules.get(name) or run_module(name, path, data)
    except USER_ERRORS as error:
        raise FileFormatError(f"{path}: cannot be loaded ({error})") from error
    return ExportedAgent(path, about, module)


def _about(path: Path, text: str) -> About:
    """The literal `ABOUT` of a file, without running it."""
    start = text.find("\nABOUT = {\n")
    end = text.find("\n}\n", start)
    if start < 0 or end < 0:
        raise FileFormatError(
            f"{path}: not an agent that `understudy export --as module` wrote (it has no ABOUT)"
        )
    try:
        value = ast.literal_eval(text[start:end].partition("=")[2].strip() + "\n}")
        about = msgspec.convert(value, About)
    except (ValueError, SyntaxError, msgspec.ValidationError) as error:
        raise FileFormatError(f"{path}: ABOUT cannot be read ({error})") from error
    if about.format != FORMAT:
        raise FileFormatError(
            f"{path}: exported in format {about.format}, this program reads {FORMAT}"
        )
    if about.kind != _MODULE:
        raise FileFormatError(
            f"{path}: exported with --as {about.kind}, to be loaded by another program; export the "
            f"run with --as {_MODULE}"
        )
    return about
