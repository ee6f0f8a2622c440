"""The run folder: everything that one run is, in one place that can be copied and shared.

run.json          what the run is for: features, actions, network
config.toml       its settings, resolved
buffer/ archive/ quarantine/      the spool
versions/ pointers/               the registry
journal/ logs/                    what happened

Beside the run folders, `runs/LATEST` names the one that was opened for writing last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from understudy.core import config as configs
from understudy.core import files
from understudy.core.clock import Clock
from understudy.core.config import Config
from understudy.core.errors import RunFolderError
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
    """`swarm 1`: the built-in game and the version of its rules; empty for a bot of one's own."""
    game_options: dict[str, str] = {}
    """The options that the game was made with, where they belong to the run (a delay, say)."""


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

    @property
    def spec(self) -> PolicySpec:
        """Features, actions and network."""
        return self.identity.spec

    @classmethod
    def kept(cls, root: Path, clock: Clock) -> RunFolder | None:
        """The run folder as it was left; None: there is no run yet."""
        return cls.load(root, clock) if (root / _IDENTITY).exists() else None

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
    ) -> RunFolder:
        """Open a run folder for this spec, or make one; a clear error before the first match."""
        try:
            files.make_folders(root)
            for name in ("journal", "logs"):
                files.make_folders(root / name)
            files.check_writable(root)
            if (root / _IDENTITY).exists():
                folder = cls.load(root, clock)
                _check_fit(folder.identity, spec, game, dict(game_options or {}), root)
                if config is not None and config != folder.config:
                    configs.save(root / _CONFIG, config)
                    folder.config = config
                return folder
            identity = Identity(
                spec=spec,
                created_at=clock.time(),
                game=game,
                game_options=dict(game_options or {}),
            )
            configs.save(root / _CONFIG, config or Config())
            files.write_atomic(root / _IDENTITY, msgspec.json.encode(identity))
            return cls(root, identity, config or Config(), clock)
        except OSError as error:
            raise RunFolderError(
                f"{root}: cannot be used as a run folder ({error.strerror or error}); "
                "choose a folder that can be written to"
            ) from error


def remember(run: Path) -> None:
    """Readers that are given no run read this one from now on."""
    # A convenience: where nothing can be written here, people name the run themselves.
    with contextlib.suppress(OSError):
        files.make_folders(RUNS)
        files.write_atomic(RUNS / LATEST, f"{run.as_posix()}\n".encode())


def _check_fit(
    identity: Identity, spec: PolicySpec, game: str, game_options: dict[str, str], root: Path
) -> None:
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
