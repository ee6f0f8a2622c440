"""Episodes that a copy of a run recorded elsewhere, taken into the run: what a ladder gives back.

The source is a zip file or a folder with run folders in it, at any depth. Each episode is taken
once, by its id, however often it is given. Never changes the source.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from understudy.core.arrays import read_bytes
from understudy.core.clock import Clock
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience import episode as episodes
from understudy.legacy.importing import EpisodeIntake, ImportedFile, ImportReport, npz_files
from understudy.registry.run_folder import Identity, RunFolder

_IDENTITY = "run.json"
_EPISODE = re.compile(r"(?P<run>.*?)/?(?:buffer|archive)/[^/]+\.npz")
_MAX_MEMBERS = 1_000_000


class _Source:
    """The files of a folder or a zip file, by path with forward slashes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive: zipfile.ZipFile | None = None
        if path.is_dir():
            found = (Path(where) / name for where, _, names in os.walk(path) for name in names)
            self.names = sorted(one.relative_to(path).as_posix() for one in found)
            return
        try:
            self._archive = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise FileFormatError(f"{path}: there is no such file") from None
        except (zipfile.BadZipFile, OSError) as error:
            raise FileFormatError(f"{path}: not a readable zip file ({error})") from error
        if len(self._archive.infolist()) > _MAX_MEMBERS:
            raise FileFormatError(f"{path}: more than {_MAX_MEMBERS:,} files")
        self.names = sorted(self._archive.namelist())

    def read(self, name: str) -> bytes:
        """One file, of a size that an episode may have."""
        if self._archive is None:
            return read_bytes(self._path / name, limit=episodes.MAX_BYTES)
        size = self._archive.getinfo(name).file_size
        if size > episodes.MAX_BYTES:
            raise FileFormatError(f"larger than {episodes.MAX_BYTES} bytes")
        try:
            with self._archive.open(name) as file:
                return file.read(episodes.MAX_BYTES)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise FileFormatError(f"damaged ({error})") from error


def is_returned(path: Path) -> bool:
    """Whether a path is a zip file, or a folder with run folders and no other `.npz` files."""
    if not path.is_dir():
        return path.suffix == ".zip"
    return any(path.rglob(_IDENTITY)) and not any(npz_files(path))


def import_returned(
    paths: Sequence[Path],
    run: Path,
    *,
    clock: Clock,
    show: Callable[[float], None] = lambda share: None,
) -> ImportReport:
    """Take the episodes of these into a run that exists; a bad one never stops the others."""
    folder = RunFolder.load(run, clock)
    taker = _Taker(folder)
    for path in paths:
        source = _Source(path)
        found = list(_runs(source))
        if not found:
            reason = "there is no run folder with episodes in it"
            taker.report.lines.append(ImportedFile(path, "failed", reason))
        for done, (root, names) in enumerate(found, start=1):
            taker.take(path, source, root, names)
            show(done / len(found))
    return taker.report


class _Taker:
    def __init__(self, folder: RunFolder) -> None:
        self.report = ImportReport(folder.root)
        self._folder = folder
        self._intake = EpisodeIntake(folder)

    def take(self, path: Path, source: _Source, root: str, names: Sequence[str]) -> None:
        """The episodes of one run folder of the source."""
        try:
            self._check_fit(source, root)
        except (FileFormatError, RunFolderError) as error:
            self.report.lines.append(ImportedFile(path / root, "failed", str(error)))
            return
        for name in names:
            what = PurePosixPath(name).name
            try:
                episode = episodes.decode(source.read(name), self._folder.spec, what=what)
                line = self._intake.take(episode, path / name)
            except (FileFormatError, OSError) as error:
                line = ImportedFile(path / name, "failed", str(error))
            self.report.lines.append(line)

    def _check_fit(self, source: _Source, root: str) -> None:
        name = f"{root}/{_IDENTITY}" if root else _IDENTITY
        try:
            identity = msgspec.json.decode(source.read(name), type=Identity)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FileFormatError(f"{name}: {error}") from error
        own = self._folder.spec
        for what, theirs, ours in (
            ("features", identity.spec.features, own.features),
            ("actions", identity.spec.actions, own.actions),
        ):
            if theirs != ours:
                raise RunFolderError(
                    f"was recorded with other {what} than those of {self._folder.root}; name the "
                    "run that the bot was exported from (--run)"
                )


def _runs(source: _Source) -> Iterator[tuple[str, list[str]]]:
    """Each run folder of a source, with the names of its episodes."""
    roots = {
        name.removesuffix(_IDENTITY).rstrip("/")
        for name in source.names
        if PurePosixPath(name).name == _IDENTITY
    }
    by_root: dict[str, list[str]] = {}
    for name in source.names:
        match = _EPISODE.fullmatch(name)
        if match is not None and match["run"] in roots:
            by_root.setdefault(match["run"], []).append(name)
    yield from sorted(by_root.items())
