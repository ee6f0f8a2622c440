"""One client's rewards can be purged: waiting or archived, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from walk.toys import (
    SetClock,
    episode,
    learner,
    metas,
    open_run,
    reasons,
    settings,
    spool_of,
    work_to_the_end,
)

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.judging.forgetting import forget
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.status_reader import StatusReader


def taught(name: str, client: str) -> Episode:
    meta = Meta(id=name, outcome=Outcome.ABORTED, finished_at=0.0, tags={"client": client})
    return episode(name, meta=meta)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Six episodes were learned from in three versions, four wait."""
    clock = SetClock()
    config = settings(learner__batch_matches=2, learner__max_age_s=1e12)
    run = open_run(tmp_path / "run", config, clock)
    spool = spool_of(run)
    for number in range(10):
        clock.advance(1.0)
        if number in {2, 4, 6}:
            work_to_the_end(learner(run))
        spool.put(taught(f"live-{number}", "bad" if number in (2, 5, 6, 9) else "good"))
    spool.put(episode("a match"))
    return run


def test_a_client_is_forgotten_everywhere_and_the_others_are_not(folder: RunFolder) -> None:
    report = forget(folder.root, "bad", clock=folder.clock)
    assert (report.waiting, report.archived, report.decisions) == (2, 2, 12)
    assert report.learned_by == 2
    assert {meta.id for meta in metas(folder.root / "quarantine")} == {
        "live-2", "live-5", "live-6", "live-9",
    }  # fmt: skip
    assert set(reasons(folder).values()) == {"client bad was forgotten"}
    assert StatusReader(folder.root, folder.clock).read().quarantine_file_count >= 4
    work_to_the_end(learner(folder))
    kept = {meta.id for meta in metas(folder.root / "archive")}
    assert kept == {f"live-{number}" for number in (0, 1, 3, 4, 7, 8)} | {"a match"}
    again = forget(folder.root, "bad", clock=folder.clock)
    assert (again.waiting, again.archived, again.learned_by) == (0, 0, None)


def test_what_cannot_be_read_is_told_and_stays(folder: RunFolder) -> None:
    files.write_atomic(folder.root / "archive" / "odd.npz", b"not an episode")
    report = forget(folder.root, "nobody", clock=folder.clock)
    assert report.unread == ["odd.npz"]
    assert (folder.root / "archive" / "odd.npz").exists()
    with pytest.raises(RunFolderError, match="not a run folder"):
        forget(folder.root / "buffer", "bad", clock=folder.clock)


def test_what_the_learner_moves_meanwhile_is_found_where_it_went(folder: RunFolder) -> None:
    class Faster(files.Disk):
        """The learner archives a file at the moment in which it is set aside."""

        def rename(self, source: Path, target: Path) -> None:
            if source.parent.name == "buffer" and target.parent.name == "quarantine":
                source.rename(folder.root / "archive" / source.name)
                raise FileNotFoundError(source)
            super().rename(source, target)

    with files.using(Faster()):
        report = forget(folder.root, "bad", clock=folder.clock)
    assert (report.waiting, report.archived) == (0, 4)
    assert len(reasons(folder)) == 4
