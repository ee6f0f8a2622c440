"""An old model as the first version of a run."""

from __future__ import annotations

from understudy.core.errors import RunFolderError
from understudy.policy import weights as weight_files
from understudy.policy.legacy import OldModel
from understudy.registry.pointers import LATEST, NAMES
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

"""The same rule that the learner promotes by, so that its next version follows this one."""


def begin_with(folder: RunFolder, model: OldModel, journal: Journal) -> Manifest:
    """Commit the model and let it play; `Fenced` if a learner commits at the same time."""
    if folder.versions.numbers():
        raise RunFolderError(
            f"{folder.root}: has versions of its own already; "
            "an old model can only be the first one, so import it into a new run folder"
        )
    manifest = folder.versions.commit(
        Manifest(
            number=1,
            parent=None,
            created_at=folder.clock.time(),
            spec=folder.spec,
            counters={"old_episodes": model.episodes},
            session=1,
            mode="import",
        ),
        {WEIGHTS: weight_files.encode(model.weights)},
    )
    moved = [folder.pointers.move(name, manifest.number, by=LATEST) for name in NAMES]
    journal.write(
        events.VersionPublished(
            version=manifest.number, parent=None, matches=0, promoted=all(moved)
        )
    )
    return manifest
