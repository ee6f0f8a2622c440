"""The one commit: a trainer's state becomes a version, and the pointers follow.

Promotion here is the explicit rule `latest`: every version that is committed becomes the champion,
unless a person pinned the pointer.
"""

from __future__ import annotations

from collections.abc import Mapping

from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest, ReplayEntry


def commit(
    folder: RunFolder,
    contents: Mapping[str, bytes],
    *,
    number: int,
    parent: int | None,
    ingested: Mapping[str, str],
    replay: Mapping[str, ReplayEntry],
    counters: Mapping[str, int],
    metrics: Mapping[str, float],
) -> tuple[Manifest, bool]:
    """Durable when it returns; also says whether the version now plays."""
    manifest = folder.versions.commit(
        Manifest(
            number=number,
            parent=parent,
            created_at=folder.clock.time(),
            spec=folder.spec,
            ingested=dict(ingested),
            replay=dict(replay),
            counters=dict(counters),
            metrics=dict(metrics),
        ),
        contents,
    )
    folder.pointers.move("candidate", number, by=LATEST)
    return manifest, folder.pointers.move("champion", number, by=LATEST)
