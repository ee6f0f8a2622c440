"""Keeps what host rollouts teach: versions with their counters, and takes them up again.

A version holds parameters, optimiser, normaliser, random key and counters. It is all that a session
leaves behind and all that it goes on from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.registry.pointers import NAMES
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

if TYPE_CHECKING:
    from understudy.learner.trainer import Trainer

_STEPS, _MATCHES = "steps", "matches"


class HostKeeper:
    """Between one trainer and one run folder; use it under the learner's lock."""

    def __init__(self, folder: RunFolder, journal: Journal, trainer: Trainer) -> None:
        self._folder = folder
        self._journal = journal
        self._trainer = trainer
        self.version = 0
        self._kept: Mapping[str, int] = {}

    def resume(self, *, allowed: bool) -> Mapping[str, int]:
        """The trainer as the newest version left it; the counters of then, or none."""
        versions = self._folder.versions
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        head = versions.head()
        if head is None:
            return {}
        if not allowed:
            raise RunFolderError(
                f"--run: {self._folder.root} holds a run already; --resume continues it, or name "
                "another"
            )
        manifest = versions.manifest(head)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {head}")
        self.version, self._kept = head, manifest.counters
        return manifest.counters

    def due(self, steps: int) -> bool:
        """Whether a version should be kept now."""
        every = self._folder.config.train.checkpoint_steps
        return steps - self._kept.get(_STEPS, 0) >= every

    def commit(self, counters: Mapping[str, int], metrics: Mapping[str, float]) -> None:
        """What was learned becomes the next version, if there is anything new."""
        from understudy.learner.commit import commit

        if counters == self._kept:
            return
        manifest, promoted = commit(
            self._folder,
            self._trainer.snapshot(),
            number=max(self._folder.versions.numbers(), default=0) + 1,
            parent=self.version or None,
            ingested={},
            replay={},
            counters=counters,
            metrics=metrics,
        )
        self._journal.write(
            events.VersionPublished(
                version=manifest.number,
                parent=manifest.parent,
                matches=counters[_MATCHES] - self._kept.get(_MATCHES, 0),
                promoted=promoted,
            )
        )
        self.version, self._kept = manifest.number, dict(counters)
        records = [self._folder.pointers.read(name) for name in NAMES]
        self._folder.versions.prune(
            keep_newest=self._folder.config.registry.keep_versions,
            keep={record.version for record in records if record is not None},
        )
