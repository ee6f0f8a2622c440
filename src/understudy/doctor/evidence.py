"""What checks are given: a run's view, its configuration, its newest version and episodes.

Files are read when the first check asks for them, and once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from understudy.core.arrays import read_bytes
from understudy.core.config import Config
from understudy.core.errors import FileFormatError
from understudy.doctor.machine import Machine, read_machine
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.experience.ledger.recovery import is_served
from understudy.experience.spool import files_of
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trend, Trends

RunKind: TypeAlias = Literal["ring", "server", "training"]

_EPISODES, _FIRST = 128, 64
_NONE = Trend()


@dataclass(frozen=True)
class Evidence:
    """All that a check may look at."""

    folder: RunFolder
    view: RunView
    kind: RunKind

    @property
    def status(self) -> Status:
        return self.view.status

    @property
    def trends(self) -> Trends:
        return self.view.trends

    @property
    def config(self) -> Config:
        return self.folder.config

    def trend(self, name: str) -> Trend:
        """A trend by name; an empty one where the run has no such values."""
        return self.trends.get(name, _NONE)

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """The newest on disk, oldest first; none of a run of `train`. Damaged ones are left out:
        `quarantine/` says so."""
        return self._decoded(self._files[-_EPISODES:])

    @cached_property
    def first_episodes(self) -> tuple[Episode, ...]:
        """The oldest on disk that are not among `episodes`, oldest first."""
        return self._decoded(self._files[:-_EPISODES][:_FIRST])

    @cached_property
    def _files(self) -> list[tuple[str, Path]]:
        return sorted(files_of(self.folder.root).items())

    def _decoded(self, files: Iterable[tuple[str, Path]]) -> tuple[Episode, ...]:
        kept: list[Episode] = []
        for name, path in files:
            with contextlib.suppress(FileFormatError, OSError):
                data = read_bytes(path, limit=episodes.MAX_BYTES)
                kept.append(episodes.decode(data, self.folder.spec, what=name))
        return tuple(kept)

    @cached_property
    def manifest(self) -> Manifest | None:
        """Of the newest version that can be read; None: there is none."""
        for number in reversed(self.folder.versions.numbers()):
            with contextlib.suppress(FileFormatError, OSError):
                return self.folder.versions.manifest(number)
        return None

    @cached_property
    def policy(self) -> Policy | None:
        """The newest version, ready to act; None: there is none, or it is damaged."""
        manifest = self.manifest
        if manifest is not None:
            with contextlib.suppress(FileFormatError, OSError):
                return self.folder.versions.policy(manifest.number)
        return None

    @cached_property
    def machine(self) -> Machine:
        """The machine that the run lies on, now."""
        return read_machine(self.folder.root, self.status)


def gather(folder: RunFolder, view: RunView) -> Evidence:
    """The evidence on a run, as its view says that it is now."""
    return Evidence(folder=folder, view=view, kind=_kind(folder, view))


def _kind(folder: RunFolder, view: RunView) -> RunKind:
    if is_served(folder.root):
        return "server"
    spooled = (folder.root / "buffer").is_dir()
    return "training" if view.status.steps or not spooled else "ring"
