"""Modules that users write: games, scripted bots and reward terms, loaded from a file or by name.

Loading a module runs it. Modules are named on the command line, in a call, or in the identity of a
run folder (`CodeSource`), never in a config. Every failure is a `ConfigError` that names the file,
and the line where a line is known.

A file is imported as `python FILE` would import its neighbours: its folder joins the end of
`sys.path`, so that `my_bots.py` may import `my_game` from the same folder, and no file there hides
an installed library. A module is known under the file's stem where that name is free.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType

import msgspec

from understudy.core.errors import ConfigError

USER_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError,
    RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What a mistake in a user's code looks like from here."""
_LOADED: dict[Path, tuple[str, ModuleType]] = {}
"""Files that were loaded, by resolved path: the SHA-256 of what was run, and the module."""


@dataclass(frozen=True)
class UserModule:
    """A module that was loaded."""

    source: str
    """As it was named: `my_game.py`, or `package.my_game`."""
    module: ModuleType
    file: Path | None
    """Resolved; None for a module without a Python file."""
    sha256: str = ""
    """Of the file when it was loaded."""

    @property
    def key(self) -> str:
        """Which module it is, however it was named."""
        return str(self.file) if self.file is not None else self.source


class CodeSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where a user's module was found, as a run folder keeps it.

    A file is looked for beside the run folder first (`relative`), so that a project can be moved
    or copied whole, then at its absolute path (`file`), for a run folder that was moved alone.
    """

    module: str = ""
    """The dotted name, where the module was named by one; then no path is searched."""
    relative: str = ""
    """The path from the run folder, with forward slashes; empty across Windows drives."""
    file: str = ""
    """The absolute path."""
    name: str = ""
    """The class (or function, or object) in the module that is the game."""
    sha256: str = ""
    """Of the file, when the run was made."""

    @classmethod
    def of(cls, loaded: UserModule, run: Path, *, name: str = "") -> CodeSource:
        """To be kept in the run folder `run`."""
        if loaded.source.endswith(".py") and loaded.file is not None:
            return cls(
                relative=_relative(loaded.file, run.resolve()),
                file=str(loaded.file),
                name=name,
                sha256=loaded.sha256,
            )
        return cls(module=loaded.source, name=name, sha256=loaded.sha256)

    def is_named(self, text: str, run: Path) -> bool:
        """Whether `FILE.py:NAME` or `MODULE:NAME` is this one, kept in the run folder `run`."""
        source, _, name = text.rpartition(":")
        if name != self.name:
            return False
        if self.module:
            return source == self.module
        given = Path(source).resolve()
        return given in ((run / self.relative).resolve(), Path(self.file))

    def find(self, run: Path) -> str:
        """What `load_module` takes: the path that exists, or the module's name."""
        if self.module:
            return self.module
        for path in ((run / self.relative).resolve() if self.relative else None, Path(self.file)):
            if path is not None and path.is_file():
                return str(path)
        raise ConfigError(
            f"{run}: the file {self.file} that this run was made with is gone"
            + (f", and so is {self.relative} from the run folder" if self.relative else "")
            + "; put it back, or name it on the command line where it is now"
        )


def load_module(source: str | Path, *, flag: str, fresh: bool = False) -> UserModule:
    """Load `my_bots.py` or `package.my_bots`; errors begin with `flag`.

    A file that was loaded and has not changed is not run again, unless `fresh`.

        load_module("my_bots.py", flag="--bots").module.BOTS
    """
    path = Path(source)
    where = f"{flag} {source}"
    if path.suffix != ".py" and not path.is_file():
        return _by_name(str(source), where=where)
    if not path.is_file():
        raise ConfigError(f"{flag}: there is no file {source}")
    if path.suffix != ".py":
        raise ConfigError(f"{where}: not a Python file: its name does not end in .py")
    path = path.resolve()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: cannot be read ({error.strerror or error})") from error
    sha256 = hashlib.sha256(data).hexdigest()
    kept = _LOADED.get(path)
    if kept is None or kept[0] != sha256 or fresh:
        _LOADED[path] = kept = sha256, _run(path, data, where=where)
    return UserModule(str(source), kept[1], path, sha256)


def run_module(name: str, path: Path, data: bytes) -> ModuleType:
    """Run `data`, which was read from `path`, as a module that is known by this name.

    Neither the file nor bytecode of it is read again, so what was judged by its text is what runs:
    bytecode is found by a file's size and the second of its change, and may be that of the text
    before. Errors of the code are raised, and the name means what it meant before.
    """
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceInMemory(path, data))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


class _SourceInMemory(SourceLoader):
    """Loads a module from bytes that were read before; it has no bytecode."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = str(path)
        self._data = data

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_data(self, path: str) -> bytes:
        return self._data


def split_name(text: str, *, flag: str) -> tuple[str, str]:
    """`my_game.py:TicTacToe` as source and name. The last colon divides them, so a path may begin
    with a Windows drive."""
    source, colon, name = text.rpartition(":")
    if not colon or not source or not name.isidentifier():
        raise ConfigError(
            f"{flag} {text}: expected FILE.py:NAME or MODULE:NAME, such as my_game.py:TicTacToe"
        )
    return source, name


def explained(error: BaseException, *, file: Path | None) -> str:
    """`KeyError: 'x', line 12 of my_game.py`: what went wrong, and where in the user's file."""
    words = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or file is None:
        return words
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename) == file
    ]
    return f"{words}, line {lines[-1]} of {file.name}" if lines else words


def _by_name(source: str, *, where: str) -> UserModule:
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` has it; a console script does not
        sys.path.append(here)
    try:
        module = importlib.import_module(source)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except USER_ERRORS as error:
        raise ConfigError(f"{where}: cannot be imported ({explained(error, file=None)})") from error
    origin = getattr(module, "__file__", None)
    file = Path(origin).resolve() if origin else None
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file and file.is_file() else ""
    return UserModule(source, module, file, digest)


def _run(path: Path, data: bytes, *, where: str) -> ModuleType:
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    importlib.invalidate_caches()
    try:
        return run_module(_free_name(path), path, data)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except USER_ERRORS as error:
        words = explained(error, file=path)
        raise ConfigError(f"{where}: cannot be imported ({words})") from error


def _free_name(path: Path) -> str:
    """The stem, so that neighbours can import the module; another where it means another module."""
    stem = path.stem
    loaded = sys.modules.get(stem)
    if loaded is not None:
        free = Path(getattr(loaded, "__file__", None) or "").resolve() == path
    elif stem.isidentifier():
        spec = importlib.util.find_spec(stem)
        free = spec is None or Path(spec.origin or "").resolve() == path
    else:
        free = False
    return stem if free else f"{stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _relative(file: Path, run: Path) -> str:
    try:
        return Path(os.path.relpath(file, run)).as_posix()
    except ValueError:  # another drive
        return ""
