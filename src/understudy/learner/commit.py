"""The one commit: a trainer's state becomes a version, and the pointers follow.

Promotion here is the explicit rule `latest`: every version that is committed becomes the champion,
unless a person pinned the pointer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.registry.comparisons import Comparison
from understudy.registry.pointers import LATEST, NAMES
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score
from understudy.registry.versions import Manifest, ReplayEntry

ROLLBACK = "rollbacks_followed"
"""A counter of versions: the last rollback that was followed, by its number in the pointer."""


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
    session: int,
    mode: str,
    scores: Sequence[Score] = (),
    comparisons: Sequence[Comparison] = (),
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
            session=session,
            mode=mode,
            scores=tuple(scores),
            comparisons=tuple(comparisons),
        ),
        contents,
    )
    folder.pointers.move("candidate", number, by=LATEST)
    return manifest, folder.pointers.move("champion", number, by=LATEST)


def finish_promotion(folder: RunFolder, number: int) -> None:
    """A crash may have come between a commit and the moves of the pointers."""
    for name in NAMES:
        record = folder.pointers.read(name)
        if record is None or record.by == LATEST:
            folder.pointers.move(name, number, by=LATEST)
