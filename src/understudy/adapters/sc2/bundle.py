"""Packs a bot for a ladder: `understudy export --as ladder`.

A ladder installs nothing, so that the packages `understudy` and `msgspec` lie beside the bot's
`run.py`, where Python finds them first. `champion/` is a run folder with one version, pinned: it
plays every match, which is recorded in `data/` (`ladder_run`). Without a champion the rules play.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import msgspec

import understudy
from understudy.adapters.sc2.ladder import CHAMPION, DATA, NAME
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, MissingDependency, RunFolderError
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS

_PROGRAM = "run.py"
_VENDORED = ("understudy", "msgspec")
_LEFT_OUT = (DATA, "runs", "venv", "__pycache__", "*.pyc", "*.zip", ".*")
_OLDEST = (3, 11)
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class LadderTarget:
    """The Python of a ladder."""

    python: str = "3.12"
    platform: str = "manylinux2014_x86_64"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"3\.\d+", self.python):
            raise ConfigError(f"--python: expected a version such as 3.12, got {self.python!r}")
        if tuple(map(int, self.python.split("."))) < _OLDEST:
            raise ConfigError(
                f"--python: Understudy needs Python {'.'.join(map(str, _OLDEST))} or newer, got "
                f"{self.python}"
            )

    @property
    def is_here(self) -> bool:
        """Whether what is installed here runs there."""
        linux = sys.platform == "linux" and self.platform.startswith("manylinux")
        same = self.platform.endswith(platform.machine())
        return linux and same and self.python == f"{sys.version_info[0]}.{sys.version_info[1]}"


class LadderBundle(msgspec.Struct, frozen=True, kw_only=True):
    """What was packed; the answer of `export --json`."""

    what: str = "ladder"
    run: str
    version: int | None
    """None: the rules play."""
    folder: str
    file: str
    bytes: int
    python: str
    platform: str


def pack(
    run: RunFolder, version: int | None, bot: Path, out: Path, target: LadderTarget, *, force: bool
) -> LadderBundle:
    """Make the folder and the zip file. Nothing is left where something fails.

    Args:
        run: The run that the bot belongs to.
        version: What plays; None: the rules.
        bot: The folder with the bot's own files, `run.py` among them.
        out: The zip file; the folder is beside it, `my_bot-ladder` of `my_bot.zip`.
        target: The Python of the ladder.
        force: Replace both where they exist.
    """
    folder = out.with_name(f"{out.stem}-ladder")
    _check(bot, folder, out, force=force)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.stem}-") as temporary:
        staged = Path(temporary) / folder.name
        shutil.copytree(bot, staged, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        _vendor_understudy(staged)
        _vendor_msgspec(staged, target)
        _write_champion(run, version, staged / CHAMPION)
        packed = Path(temporary) / out.name
        _write_zip(staged, packed)
        if folder.exists():
            files.remove_folder(folder)
        staged.replace(folder)
        packed.replace(out)
    return LadderBundle(
        run=run.root.as_posix(),
        version=version,
        folder=str(folder),
        file=str(out),
        bytes=out.stat().st_size,
        python=target.python,
        platform=target.platform,
    )


def champion_of(run: RunFolder) -> int | None:
    """The version that plays a run; None: the rules do, since nothing plays unproven."""
    record = run.pointers.read("champion")
    return record.version or None if record is not None else None


def _check(bot: Path, folder: Path, out: Path, *, force: bool) -> None:
    if out.suffix != ".zip":
        raise ConfigError(f"--out {out}: expected a name that ends in .zip")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}")
    if not (bot / _PROGRAM).is_file():
        raise ConfigError(
            f"--bot {bot}: there is no {_PROGRAM} in it; --bot names the folder of the bot, such "
            f"as `understudy new sc2-bot my_bot` makes (without it, the name of --out: {out.stem})"
        )
    for name in (*_VENDORED, CHAMPION):
        if (bot / name).exists():
            raise ConfigError(
                f"--bot {bot}: has {name} already, which the export writes; it may be an export "
                "itself: name the folder that it was made from"
            )
    if bot.resolve() == folder.resolve():
        raise ConfigError(
            f"--out {out}: the folder {folder} would replace the bot itself; choose another name"
        )
    for path in (folder, out):
        if path.exists() and not force:
            raise ConfigError(f"--out {out}: {path} exists already; --force replaces it")


def _vendor_understudy(staged: Path) -> None:
    source = Path(understudy.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(source, staged / "understudy", ignore=ignored)


def _vendor_msgspec(staged: Path, target: LadderTarget) -> None:
    """The same version as here: copied where it runs there too, else from the package index."""
    wanted = f"msgspec=={metadata.version('msgspec')}"
    if target.is_here:
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(Path(msgspec.__file__).parent, staged / "msgspec", ignore=ignored)
        return
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-compile", "--only-binary=:all:", "--implementation=cp",
        f"--python-version={target.python}", f"--platform={target.platform}",
        f"--target={staged}", wanted,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not (staged / "msgspec").is_dir():
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = (lines or done.stderr.splitlines() or ["pip said nothing"])[-1]
        raise MissingDependency(
            f"--as ladder: there is no {wanted} for Python {target.python} on {target.platform} "
            f"({why.strip()}); check --python and --platform, and that pip reaches its index"
        )


def _write_champion(run: RunFolder, version: int | None, path: Path) -> None:
    """A run folder with this version alone, pinned."""
    identity = run.identity
    made = RunFolder.open(
        path, spec=identity.spec, config=run.config, clock=SystemClock(), game=identity.game
    )
    digest = hashlib.sha256(msgspec.json.encode(identity))
    if version is not None:
        manifest = run.versions.existing(version)
        if manifest.spec != identity.spec:
            raise RunFolderError(f"{run.root}: version {version} is of another spec than its run")
        data = run.versions.read(manifest, WEIGHTS)
        digest.update(data)
        alone = msgspec.structs.replace(manifest, parent=None, ingested={}, replay={}, scores=())
        made.versions.commit(alone, {WEIGHTS: data})
        made.pointers.pin("champion", version, by="export")
    files.write_atomic(path / NAME, f"run-{digest.hexdigest()[:12]}\n".encode())


def _write_zip(folder: Path, path: Path) -> None:
    """The contents of a folder: `run.py` is at the top, where a ladder looks for it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in _files(folder):
            info = zipfile.ZipInfo(one.relative_to(folder).as_posix(), _EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, one.read_bytes())


def _files(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.is_file())
