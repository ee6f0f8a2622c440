from __future__ import annotations

from pathlib import Path

import pytest

from understudy.learner.intake import SuspectGroup, Suspects


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suspects.json"


def fail(path: Path, times: int) -> Suspects:
    """Learners that die while they train on whatever is suspected first."""
    for _ in range(times):
        suspects = Suspects(path)
        group = suspects.next_group()
        assert group is not None
        suspects.attempt(group.names)
    return Suspects(path)


def test_a_batch_that_went_well_leaves_no_trace(path: Path) -> None:
    suspects = Suspects(path)
    suspects.attempt(("a", "b"))
    assert path.exists()
    suspects.succeeded(("a", "b"))
    assert not path.exists()
    assert Suspects(path).next_group() is None


def test_what_was_tried_when_a_learner_died_is_suspect(path: Path) -> None:
    Suspects(path).attempt(("a", "b"))
    suspects = Suspects(path)
    assert suspects.next_group() == SuspectGroup(("a", "b"), failures=1)
    assert suspects.poison() is None
    assert Suspects(path).next_group() == SuspectGroup(("a", "b"), failures=1), (
        "counted once a death"
    )


def test_after_three_failures_a_batch_is_halved_until_one_is_left(path: Path) -> None:
    Suspects(path).attempt(("a", "b", "c", "d"))
    suspects = fail(path, 2)
    assert suspects.next_group() == SuspectGroup(("a", "b"))
    suspects.succeeded(("a", "b"))
    suspects = fail(path, 3)
    assert suspects.next_group() == SuspectGroup(("c",))
    suspects.succeeded(("c",))
    assert suspects.poison() is None
    suspects = fail(path, 3)
    assert suspects.poison() == "d"
    suspects.forget("d")
    assert suspects.next_group() is None and not path.exists()


def test_one_death_of_a_single_match_does_not_condemn_it(path: Path) -> None:
    Suspects(path).attempt(("a",))
    assert Suspects(path).poison() is None
    assert fail(path, 1).poison() is None
    assert fail(path, 1).poison() == "a"


def test_a_group_that_lost_a_member_starts_over(path: Path) -> None:
    Suspects(path).attempt(("a", "b"))
    suspects = fail(path, 1)
    suspects.forget("a")
    assert suspects.next_group() == SuspectGroup(("b",), failures=0)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b'{"attempt": 5}', b'{"groups": [{"names": [1]}]}', b'{"attempt": ["\xff"]}'],
)
def test_a_damaged_record_does_not_stop_the_learner(path: Path, damage: bytes) -> None:
    path.write_bytes(damage)
    assert Suspects(path).next_group() is None
