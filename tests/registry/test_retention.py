from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walk.toys import SPEC, SetClock, Toy, open_run, settings

from understudy.core.errors import FileFormatError
from understudy.registry import retention
from understudy.registry.retention import NeededVersions, VersionFacts, reasons
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score
from understudy.registry.versions import Manifest

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
PLENTY = 10**12

gaps = st.sampled_from([0.5, 5.0, 40.0, 400.0, 2500.0, 20_000.0, 100_000.0])
changes = st.tuples(gaps, st.booleans(), st.sampled_from(["learn", "shadow"]))


@st.composite
def runs(draw: st.DrawFn, most: int = 150) -> list[VersionFacts]:
    """Versions of a run: numbers and times grow, sessions and modes change."""
    made: list[VersionFacts] = []
    at, session = 1_700_000_000.0, 1
    for number, (gap, restarted, mode) in enumerate(draw(st.lists(changes, max_size=most)), 1):
        at += gap
        session = number if restarted else session
        made.append(VersionFacts(number, at, 100, session, mode))
    return made


def last_of(versions: list[VersionFacts], width_s: float, most: int) -> set[int]:
    """The slow and obvious way."""
    buckets = {int(one.created_at / width_s): one.number for one in versions}
    return set(list(buckets.values())[-most:])


@given(runs(), st.integers(1, 60))
def test_a_history_is_thinned_by_minutes_hours_and_days(
    versions: list[VersionFacts], newest: int
) -> None:
    kept = reasons(versions, keep_newest=newest, keep_bytes=PLENTY, named={})
    for name, width_s, most in (("minute", MINUTE, 60), ("hour", HOUR, 24), ("day", DAY, 365)):
        assert {n for n, why in kept.items() if name in why} == last_of(versions, width_s, most)
    numbers = [one.number for one in versions]
    assert {n for n, why in kept.items() if "newest" in why} == set(numbers[-newest:])
    sessions = {one.session: one.number for one in versions}
    assert {n for n, why in kept.items() if "session" in why} == set(list(sessions.values())[-20:])
    modes = {one.mode: one.number for one in versions}
    assert {n for n, why in kept.items() if {"mode learn", "mode shadow"} & {*why}} == {
        *modes.values()
    }
    assert all(kept.values()), "nothing is kept without a reason"


@given(runs(), st.integers(1, 20), st.lists(st.booleans(), min_size=150, max_size=150))
def test_pruning_often_leaves_what_pruning_once_leaves(
    versions: list[VersionFacts], newest: int, pruned_then: list[bool]
) -> None:
    def prune(some: list[VersionFacts]) -> list[VersionFacts]:
        kept = reasons(some, keep_newest=newest, keep_bytes=PLENTY, named={})
        return [one for one in some if one.number in kept]

    there: list[VersionFacts] = []
    for one, now in zip(versions, pruned_then, strict=False):
        there.append(one)
        there = prune(there) if now else there
    assert prune(there) == prune(versions)


@given(runs(most=60), st.integers(0, 3000), st.data())
def test_bytes_bound_everything_but_the_newest_and_the_named(
    versions: list[VersionFacts], keep_bytes: int, data: st.DataObject
) -> None:
    numbers = st.sampled_from([one.number for one in versions] or [0])
    named = data.draw(st.dictionaries(numbers, st.just(["champion"]), max_size=3))
    best = data.draw(st.lists(numbers, unique=True, max_size=5))
    newest = data.draw(st.integers(1, 10))

    def kept(limit: int) -> dict[int, tuple[str, ...]]:
        return reasons(versions, keep_newest=newest, keep_bytes=limit, named=named, best=best)

    there = {one.number for one in versions}
    certain = {*(named.keys() & there), *sorted(there)[-newest:]}
    assert certain <= kept(keep_bytes).keys()
    assert 100 * len(kept(keep_bytes).keys() - certain) <= keep_bytes
    assert kept(0).keys() == certain
    assert kept(keep_bytes).keys() <= kept(keep_bytes + 700).keys(), "more room keeps no less"
    wanted = best[:1] if keep_bytes >= 100 and there else []
    assert {*wanted} <= kept(keep_bytes).keys(), "the best comes first"


@given(runs())
def test_a_small_bound_still_reaches_back_days(versions: list[VersionFacts]) -> None:
    there: list[VersionFacts] = []
    for one in versions:
        there.append(one)
        kept = reasons(there, keep_newest=2, keep_bytes=12 * 100, named={})
        there = [version for version in there if version.number in kept]
    numbers = {one.number for one in there}
    for width_s in (MINUTE, HOUR, DAY):
        assert last_of(versions, width_s, 2) <= numbers


# --- of a run folder -----------------------------------------------------------------------------


def commit(folder: RunFolder, number: int, **fields: object) -> None:
    at = folder.clock.time()
    manifest = Manifest(number=number, parent=number - 1 or None, created_at=at, spec=SPEC)
    folder.versions.commit(msgspec.structs.replace(manifest, **fields), Toy(settings()).snapshot())


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def folder(tmp_path: Path, clock: SetClock) -> RunFolder:
    config = settings(registry__keep_versions=3, registry__keep_bytes=PLENTY)
    return open_run(tmp_path / "run", config, clock)


def test_what_a_person_pinned_is_kept_long_after_the_release(
    folder: RunFolder, clock: SetClock
) -> None:
    for number in range(1, 41):
        commit(folder, number)
        folder.pointers.move("champion", number, by="latest")
        if number == 5:
            folder.pointers.pin("champion", 2, by="rollback")
            folder.pointers.release("champion")
        clock.advance(0.1)
    retention.prune(folder)
    assert folder.pointers.pinned("champion") == {2}
    assert retention.kept(folder)[2] == ("pinned",)
    assert 2 in folder.versions.numbers()


def test_what_the_promotion_needs_is_kept_until_it_says_otherwise(folder: RunFolder) -> None:
    folder.promotion.mkdir()
    retention.note_needed(folder, 7, {4, 2})
    retention.note_needed(folder, 6, {1})  # of a process that has read less of the log
    assert retention.needed(folder) == NeededVersions(7, (2, 4))
    for number in range(1, 11):
        commit(folder, number)
    retention.note_needed(folder, 9, {2})
    retention.prune(folder)
    assert retention.kept(folder)[2] == ("promotion",)
    assert 2 in folder.versions.numbers() and 4 not in folder.versions.numbers()


def test_nothing_is_pruned_while_it_cannot_be_read_what_the_promotion_needs(
    folder: RunFolder,
) -> None:
    folder.promotion.mkdir()
    retention.note_needed(folder, 7, {2})
    (folder.promotion / "needed.json").write_bytes(b"scratched")
    for number in range(1, 11):
        commit(folder, number)
    assert retention.prune(folder) == []
    with pytest.raises(FileFormatError, match=r"needed\.json: damaged"):
        retention.kept(folder)
    retention.note_needed(folder, 8, ())
    assert len(retention.prune(folder)) > 0


def test_the_best_is_kept_and_says_so(folder: RunFolder, clock: SetClock) -> None:
    scores = (
        Score(first=1, last=4, matches=50, wins=20),
        Score(first=5, last=9, matches=50, wins=45),
        Score(first=10, last=30, matches=50, wins=5),
    )
    for number in range(1, 31):
        commit(folder, number, scores=scores, session=1, mode="learn")
        clock.advance(0.1)
    removed = retention.prune(folder)
    assert folder.versions.numbers() == [4, 9, 28, 29, 30]
    assert len(removed) == 25
    kept = retention.kept(folder)
    assert "best" in kept[9] and "newest" not in kept[9]
    assert {"newest", "session", "mode learn", "minute", "hour", "day", "head"} <= {*kept[30]}
    assert "parent" in kept[29]


def test_the_last_good_version_of_a_server_is_kept(folder: RunFolder, clock: SetClock) -> None:
    for number in range(1, 31):
        commit(folder, number, counters={retention.GOOD: 7})
    retention.prune(folder)
    assert folder.versions.numbers() == [7, 28, 29, 30]


def test_a_run_from_before_is_read_and_pruned(folder: RunFolder, clock: SetClock) -> None:
    """Manifests without session, mode and scores."""
    for number in range(1, 31):
        commit(folder, number)
        clock.advance(30.0)
    retention.prune(folder)
    kept = retention.kept(folder)
    assert folder.versions.numbers() == list(kept)
    assert 12 <= len(kept) <= 20, "every minute of a quarter of an hour"
