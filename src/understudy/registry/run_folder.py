"""Run folders: everything that one run is, in one place that can be copied and shared.

run.json          what the run is for: features, actions, network
config.toml       its settings, resolved
buffer/ archive/ quarantine/      the spool
versions/ pointers/               the registry
promotion/                        who played which match, and how it ended
journal/ logs/                    what happened

Commands that write make `runs/<game>-<n>`, unless a person names another folder. `runs/LATEST`
names the run that was opened for writing last: commands that read use it by default.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from understudy.core import config as configs
from understudy.core import files
from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config
from understudy.core.errors import RunFolderError, UnderstudyError
from understudy.core.user_code import CodeSource
from understudy.policy.spec import PolicySpec
from understudy.registry.pointers import Pointers
from understudy.registry.versions import Versions

SCHEMA = 1
RUNS = Path("runs")
"""Where commands make new runs and look for the latest one, relative to the working directory."""
LATEST = "LATEST"
_IDENTITY = "run.json"
_CONFIG = "config.toml"


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a run is for; never changes."""

    schema: int = SCHEMA
    spec: PolicySpec
    created_at: float
    game: str = ""
    """`swarm 1`: the game and the version of its rules; empty for a custom bot."""
    game_options: dict[str, str] = {}
    """The options that the game was made with, where they belong to the run (a delay, say)."""
    game_code: CodeSource | None = None
    """Where a custom game came from; None for a built-in one."""
    bot_code: tuple[CodeSource, ...] = ()
    """Where the scripted bots came from that were added to the game (`--bots`)."""

    @property
    def game_name(self) -> str:
        """`game` without the version of its rules."""
        return self.game.partition(" ")[0]


class RunFolder:
    """An opened run folder."""

    def __init__(self, root: Path, identity: Identity, config: Config, clock: Clock) -> None:
        self.root = root
        self.identity = identity
        self.config = config
        self.clock = clock
        self.versions = Versions(root / "versions")
        self.pointers = Pointers(root / "pointers", clock)
        self.journal = root / "journal"
        self.logs = root / "logs"
        self.promotion = root / "promotion"

    @property
    def spec(self) -> PolicySpec:
        return self.identity.spec

    @property
    def by_evidence(self) -> bool:
        """Whether the promotion gate moves the champion: its log exists. Else every new version
        becomes the champion."""
        return self.promotion.is_dir()

    def load_code(self) -> list[str]:
        """Load the custom game and the bots that the identity names, where it names any: this
        runs their modules. Returns notes on files that have changed since the run was made."""
        identity = self.identity
        if identity.game_code is None and not identity.bot_code:
            return []
        from understudy.games.custom import load_from_run

        return load_from_run(
            self.root,
            name=identity.game_name,
            game=identity.game_code,
            bots=identity.bot_code,
            options=identity.game_options,
        )

    @classmethod
    def kept(cls, root: Path | None, clock: Clock | None = None) -> RunFolder | None:
        """Open the run that a folder holds; None where it holds none, or no folder is named."""
        if root is None or not holds_run(root):
            return None
        return cls.load(root, clock or SystemClock())

    @classmethod
    def load(cls, root: Path, clock: Clock) -> RunFolder:
        """Open a run folder that exists."""
        path = root / _IDENTITY
        try:
            identity = msgspec.json.decode(path.read_bytes(), type=Identity)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise RunFolderError(f"{root}: not a run folder (it has no {_IDENTITY})") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RunFolderError(f"{path}: {error}") from error
        if identity.schema != SCHEMA:
            raise RunFolderError(f"{path}: schema {identity.schema}, this program reads {SCHEMA}")
        settings = root / _CONFIG
        config = configs.load(settings) if settings.exists() else Config()
        return cls(root, identity, config, clock)

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        spec: PolicySpec,
        config: Config | None,
        clock: Clock,
        game: str = "",
        game_options: Mapping[str, str] | None = None,
        game_code: CodeSource | None = None,
        bot_code: tuple[CodeSource, ...] = (),
    ) -> RunFolder:
        """Open a run folder for this spec, or make one; a clear error before the first match."""
        if config is not None:
            config.features.check(spec.features)
        try:
            files.make_folders(root)
            for name in ("journal", "logs"):
                files.make_folders(root / name)
            files.check_writable(root)
            folder = cls.kept(root, clock)
            if folder is not None:
                check_fit(folder.identity, spec, game, dict(game_options or {}), root)
                if config is not None and config != folder.config:
                    configs.save(root / _CONFIG, config)
                    folder.config = config
                folder.config.features.check(spec.features)  # it may have been edited
                return folder
            identity = Identity(
                spec=spec,
                created_at=clock.time(),
                game=game,
                game_options=dict(game_options or {}),
                game_code=game_code,
                bot_code=bot_code,
            )
            configs.save(root / _CONFIG, config or Config())
            files.write_atomic(root / _IDENTITY, msgspec.json.encode(identity))
            return cls(root, identity, config or Config(), clock)
        except OSError as error:
            raise RunFolderError(
                f"{root}: cannot be used as a run folder ({error.strerror or error}); "
                "choose a folder that can be written to"
            ) from error


def holds_run(root: Path) -> bool:
    """Whether a folder holds a run, damaged or not."""
    return (root / _IDENTITY).exists()


def agents_in(root: Path) -> list[Path]:
    """The run folders of the agents of a population, `agent-1` and so on; none: `root` is none."""
    if not holds_run(root):
        return []
    found = [one for one in root.glob("agent-*") if holds_run(one)]
    return sorted(found, key=lambda one: (len(one.name), one.name))


def newest(folder: RunFolder | None) -> int:
    """The number of the newest version; 0 where there is none."""
    return max(folder.versions.numbers(), default=0) if folder else 0


def check_resume(run: Path, *, resume: bool) -> None:
    """`RunFolderError` where `run` holds a run and is not resumed, or is resumed and holds none."""
    exists = holds_run(run)
    if exists and not resume:
        raise RunFolderError(
            f"--run: {run} holds a run already; --resume continues it, or name another"
        )
    if resume and not exists:
        raise RunFolderError(f"--resume: {run} holds no run to go on with")


def check_fit(
    identity: Identity, spec: PolicySpec, game: str, game_options: dict[str, str], root: Path
) -> None:
    """`RunFolderError` where a run is not for this spec, game and options."""
    kept = identity.spec
    for what, old, new in (
        ("game", identity.game, game),
        ("the game's options", identity.game_options, game_options),
        ("features", kept.features, spec.features),
        ("actions", kept.actions, spec.actions),
        ("network", kept.network, spec.network),
    ):
        if old != new:
            raise RunFolderError(
                f"{root}: {what} do not fit this run folder: it was made for {_short(old, new)}. "
                "Use another run folder, or the same as before."
            )


def _short(old: object, new: object) -> str:
    if isinstance(old, tuple) and isinstance(new, tuple):
        if len(old) != len(new):
            return f"{len(old)}, now there are {len(new)}"
        index = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
        return f"{old[index]!r} at position {index}, now it is {new[index]!r}"
    return f"{old!r}, now it is {new!r}"


# --- the latest run ------------------------------------------------------------------------------


def new_run(game: str) -> Path:
    """The next free `runs/<game>-<n>`."""
    taken = {path.name for path in RUNS.iterdir()} if RUNS.is_dir() else set()
    number = 1
    while f"{game}-{number}" in taken:
        number += 1
    return RUNS / f"{game}-{number}"


def remember(run: Path) -> None:
    """Make this the latest run, which commands read by default."""
    # A convenience: where nothing can be written here, people name the run themselves.
    with contextlib.suppress(OSError):
        files.make_folders(RUNS)
        files.write_atomic(RUNS / LATEST, f"{run.as_posix()}\n".encode())


@contextlib.contextmanager
def new_start(run: Path, *, existed: bool) -> Iterator[None]:
    """Make `run` the latest one; a failure before its first version undoes the start.

    Use it under the lock of a session that made the run. After such a failure the folder holds no
    run, so a retry is not refused, and `runs/LATEST` names the run before it. A folder that
    `existed` before the session stays, with all other files in it.
    """
    before = _named_latest()
    remember(run)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # the failure itself is what a person must see
            if not Versions(run / "versions").numbers():
                _undo(run, existed=existed, before=before)
        raise


def latest() -> Path:
    """The run that was written to last."""
    run = _named_latest()
    if run is None:
        raise RunFolderError(
            "no run yet: name one with --run, or make one with `understudy play swarm`"
        )
    if not run.is_dir():
        raise RunFolderError(f"the latest run, {run}, is gone: name another with --run")
    return run


def latest_of(game: str) -> Path:
    """The run of this game that was written to last: that of `LATEST`, else one in `runs/`."""
    with contextlib.suppress(RunFolderError):  # no run yet, or it is gone
        if _is_of(latest(), game):
            return latest()
    found = [path.parent for path in RUNS.glob(f"*/{_IDENTITY}") if _is_of(path.parent, game)]
    if not found:
        raise RunFolderError(f"there is no run of {game} yet (`understudy train {game}`)")
    return max(found, key=_written_at)


def _named_latest() -> Path | None:
    try:
        return Path((RUNS / LATEST).read_text(encoding="utf-8").strip())
    except OSError:
        return None


def _is_of(run: Path, game: str) -> bool:
    """Whether a run is of the game of this name, or of the custom game `FILE.py:NAME`."""
    try:
        identity = RunFolder.load(run, SystemClock()).identity
        return identity.game_name == game or (
            identity.game_code is not None and identity.game_code.is_named(game, run)
        )
    except UnderstudyError:  # a damaged run is not the one that is meant
        return False


def _written_at(run: Path) -> float:
    return max(path.stat().st_mtime for path in (run / _IDENTITY, *run.glob("journal/*.jsonl")))


def _undo(run: Path, *, existed: bool, before: Path | None) -> None:
    if before is not None:
        remember(before)
    else:
        files.remove(RUNS / LATEST)
    files.remove(run / _IDENTITY)
    if not existed:
        files.remove_folder(run)
