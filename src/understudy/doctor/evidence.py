"""What checks are given: a run's view, its configuration, and a few of its newest episodes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from understudy.core.arrays import read_bytes
from understudy.core.config import Config
from understudy.core.errors import FileFormatError
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.experience.ledger.recovery import LEDGER
from understudy.experience.spool import files_of
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trends

RunKind: TypeAlias = Literal["ring", "server", "training"]

_EPISODES = 32


@dataclass(frozen=True)
class Evidence:
    """All that a check may look at."""

    folder: RunFolder
    view: RunView
    kind: RunKind
    episodes: tuple[Episode, ...]
    """The newest on disk, oldest first; none of a run of `train`."""

    @property
    def status(self) -> Status:
        return self.view.status

    @property
    def trends(self) -> Trends:
        return self.view.trends

    @property
    def config(self) -> Config:
        return self.folder.config


def gather(folder: RunFolder, view: RunView) -> Evidence:
    """Read what is on disk beside the view. Damaged episodes are left out: `quarantine/` says
    so."""
    kept: list[Episode] = []
    newest = sorted(files_of(folder.root).items())[-_EPISODES:]
    for name, path in newest:
        with contextlib.suppress(FileFormatError, OSError):
            data = read_bytes(path, limit=episodes.MAX_BYTES)
            kept.append(episodes.decode(data, folder.spec, what=name))
    return Evidence(folder=folder, view=view, kind=_kind(folder, view), episodes=tuple(kept))


def _kind(folder: RunFolder, view: RunView) -> RunKind:
    if (folder.root / LEDGER).is_dir():
        return "server"
    return "training" if view.status.steps else "ring"
