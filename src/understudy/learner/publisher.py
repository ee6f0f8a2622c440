"""Publishing: what was learned becomes a version, and what it was learned from is archived after.

At most one version in `learner.publish_interval_s`, whoever learns: updating is not publishing.
"""

from __future__ import annotations

from typing import Any

from understudy.learner.intake import Intake
from understudy.learner.lineage import Lineage
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


class Publisher:
    """Publishes for one learner; every `tidy_every` versions it clears up behind it."""

    def __init__(
        self,
        folder: RunFolder,
        lineage: Lineage[Any],
        intake: Intake,
        journal: Journal,
        *,
        tidy_every: int = 10,
    ) -> None:
        self._interval_s = folder.config.learner.publish_interval_s
        self._clock = folder.clock
        self._lineage = lineage
        self._intake = intake
        self._journal = journal
        self._tidy_every = tidy_every
        self.last_at = -float("inf")
        """When a version was last published, by the monotonic clock."""

    def in_s(self) -> float:
        """Seconds until the next version may be published; 0 or less: now."""
        return self._interval_s - (self._clock.monotonic() - self.last_at)

    def publish(self) -> Manifest:
        """Commit, tell, archive; every so often, prune."""
        manifest, promoted = self._lineage.commit()
        self.last_at = self._clock.monotonic()
        self._journal.write(
            events.VersionPublished(
                version=manifest.number,
                parent=manifest.parent,
                matches=len(manifest.ingested),
                promoted=promoted,
                total_matches=self._lineage.total,
            )
        )
        self._intake.committed()
        if manifest.number % self._tidy_every == 0:
            try:
                self._lineage.tidy()
            except OSError as error:  # housekeeping can wait for the next turn
                self._journal.write(events.Problem(where="retention", message=str(error)))
        return manifest
