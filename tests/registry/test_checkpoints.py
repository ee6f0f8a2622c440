"""Checkpoints: numbers are fenced, a rollback is followed once, and nothing is half promoted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from learner.toy_items import told
from walk.toys import open_run, settings

from understudy.core.errors import Fenced, FileFormatError
from understudy.registry.checkpoints import MATCHES, STEPS, TRAIN, Checkpoints, resume_version
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

ROLLBACK = "rollbacks_followed"


class Bytes:
    """A trainer whose state is one file."""

    def __init__(self, state: bytes = b"fresh") -> None:
        self.state = state

    def snapshot(self) -> dict[str, bytes]:
        return {WEIGHTS: self.state}

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        self.state = b"fresh" if contents is None else contents[WEIGHTS]


def opened(root: Path) -> RunFolder:
    return open_run(root, settings())


def begun(folder: RunFolder, trainer: Bytes, *, follow: bool = True) -> Checkpoints:
    journal = Journal(folder.journal, "train", folder.clock)
    checkpoints = Checkpoints(folder, journal, mode=TRAIN)
    checkpoints.resume(trainer, follow=follow)
    return checkpoints


def trained(root: Path, *states: bytes) -> RunFolder:
    """A run with a version for each state, of 10 steps and one match each."""
    folder = opened(root)
    checkpoints = begun(folder, Bytes())
    for state in states:
        steps = checkpoints.counters.get(STEPS, 0)
        counters = {STEPS: steps + 10, MATCHES: steps // 10 + 1}
        assert checkpoints.save(Bytes(state), counters, {}, extras={"more": b"+" + state})
    return folder


def test_a_session_goes_on_from_the_head_with_its_counters_and_further_files(
    tmp_path: Path,
) -> None:
    folder = trained(tmp_path, b"one", b"two")
    trainer = Bytes()
    checkpoints = begun(folder, trainer)
    assert (trainer.state, checkpoints.version, checkpoints.next) == (b"two", 2, 3)
    assert checkpoints.counters == {STEPS: 20, MATCHES: 2, ROLLBACK: 0}
    assert checkpoints.extras == {"more": b"+two"} and not checkpoints.rolled_back
    assert [
        (one.version, one.parent, one.matches) for one in told(folder, events.VersionPublished)
    ] == [
        (1, None, 1),
        (2, 1, 1),
    ]


def test_without_a_version_the_trainer_stays_as_it_is(tmp_path: Path) -> None:
    trainer = Bytes(b"new")
    checkpoints = begun(opened(tmp_path), trainer)
    assert trainer.state == b"new" and checkpoints.version == 0 and checkpoints.parent is None


def test_what_has_not_moved_is_not_saved_again(tmp_path: Path) -> None:
    folder = trained(tmp_path, b"one")
    checkpoints = begun(folder, Bytes())
    assert not checkpoints.save(Bytes(b"other"), {STEPS: 10, MATCHES: 1, ROLLBACK: 7}, {})
    assert folder.versions.numbers() == [1]


def test_of_two_sessions_the_second_is_fenced_off(tmp_path: Path) -> None:
    folder = trained(tmp_path, b"one")
    first, second = begun(folder, Bytes()), begun(folder, Bytes())
    first.commit({WEIGHTS: b"first"}, {STEPS: 20}, {})
    with pytest.raises(Fenced):
        second.commit({WEIGHTS: b"second"}, {STEPS: 20}, {})
    assert second.version == 1 and second.next == 2
    assert folder.versions.read(folder.versions.manifest(2), WEIGHTS) == b"first"


def test_training_follows_a_rollback_once(tmp_path: Path) -> None:
    folder = trained(tmp_path, b"one", b"two")
    folder.pointers.pin("champion", 1, by="rollback")
    found = resume_version(folder)
    assert found is not None and found.number == 1
    trainer = Bytes()
    checkpoints = begun(folder, trainer)
    assert trainer.state == b"one" and checkpoints.version == 1 and checkpoints.rolled_back
    assert checkpoints.save(Bytes(b"three"), {STEPS: 15, MATCHES: 2}, {})
    manifest = folder.versions.manifest(3)
    assert (manifest.parent, manifest.session) == (1, 3) and manifest.counters[ROLLBACK] > 0
    assert begun(folder, trainer).version == 3, "what came of it is gone on from"
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == 1, "a pin holds"


def test_a_learner_is_told_of_a_rollback_while_it_works(tmp_path: Path) -> None:
    folder = trained(tmp_path, b"one", b"two")
    trainer = Bytes()
    checkpoints = begun(folder, trainer, follow=False)
    assert checkpoints.rollback() is None
    folder.pointers.pin("champion", 1, by="rollback")
    assert checkpoints.rollback() == 1
    assert checkpoints.rollback() is None, "once"
    checkpoints.go_back_to(trainer, 1, keep_scores=True)
    assert (trainer.state, checkpoints.version, checkpoints.session) == (b"one", 1, 3)
    checkpoints.go_back_to(trainer, 0, keep_scores=True)
    assert trainer.state == b"fresh" and checkpoints.parent is None


def test_a_rollback_to_a_damaged_version_stops_training_and_is_told_by_a_learner(
    tmp_path: Path,
) -> None:
    folder = trained(tmp_path, b"one", b"two")
    learner = begun(folder, Bytes(), follow=False)
    (folder.versions.folder(1) / WEIGHTS).write_bytes(b"damaged")
    folder.pointers.pin("champion", 1, by="rollback")
    assert learner.rollback() is None
    [problem] = told(folder, events.Problem)
    assert problem.where == "registry" and "cannot learn on from version 1" in problem.message
    with pytest.raises(FileFormatError):
        begun(folder, Bytes())


def test_a_promotion_that_a_crash_interrupted_is_finished(tmp_path: Path) -> None:
    folder = trained(tmp_path, b"one")
    manifest = folder.versions.manifest(1)
    after = type(manifest)(number=2, parent=1, created_at=0.0, spec=manifest.spec)
    folder.versions.commit(after, {WEIGHTS: b"two"})
    begun(folder, Bytes())
    for name in ("candidate", "champion"):
        record = folder.pointers.read(name)
        assert record is not None and record.version == 2


def test_what_any_version_ingested_is_known_although_one_is_damaged(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    checkpoints = begun(folder, Bytes(), follow=False)
    checkpoints.commit({WEIGHTS: b"1"}, {}, {}, ingested={"a": "a.npz", "b": "b.npz"})
    checkpoints.commit({WEIGHTS: b"2"}, {}, {}, ingested={"c": "c.npz"})
    assert checkpoints.total_ingested == 3
    again = begun(folder, Bytes(), follow=False)
    assert again.ingested() == {"a": "a.npz", "b": "b.npz", "c": "c.npz"}
    assert again.total_ingested == 3
    (folder.versions.folder(1) / "manifest.json").write_bytes(b"damaged")
    again = begun(folder, Bytes(), follow=False)
    assert again.ingested() == {"c": "c.npz"} and again.total_ingested == 3
    assert [one.total_matches for one in told(folder, events.VersionPublished)] == [2, 3]
    assert "version 1 is damaged" in told(folder, events.Problem)[0].message
