from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from walk.toys import (
    SPEC,
    SetClock,
    Toy,
    a_bad_night,
    check_ingested_once,
    check_registry,
    counts,
    episode,
    head_tally,
    learner,
    manifests,
    matches_of,
    metas,
    open_run,
    problems,
    reasons,
    settings,
    spool_of,
    tally_of,
    work_to_the_end,
)

from understudy.core.config import Config
from understudy.core.errors import Fenced, NotFinite
from understudy.experience import episode as episodes
from understudy.experience.spool import Spool
from understudy.learner.ring import RingLearner
from understudy.learner.trainer import Trainer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.weights import encode
from understudy.registry.pointers import Pointers
from understudy.registry.retention import scores_of
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import last_good
from understudy.registry.versions import WEIGHTS
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal, Reader


def run(root: Path, **values: object) -> RunFolder:
    return open_run(root, settings(**values), SetClock())


def play(folder: RunFolder, *names: str) -> None:
    spool = spool_of(folder)
    for name in names:
        spool.put(episode(name, finished_at=folder.clock.time()))


def poisoned_by(*culprits: str) -> Toy:
    def meet(ids: Sequence[str]) -> None:
        if set(culprits) & set(ids):
            raise NotFinite("the loss is nan")

    return Toy(settings(), meet)


def quarantined(folder: RunFolder) -> list[str]:
    return [meta.id for meta in metas(folder.root / "quarantine")]


def champion(folder: RunFolder) -> int:
    record = folder.pointers.read("champion")
    assert record is not None
    return record.version


# --- poison --------------------------------------------------------------------------------------


@pytest.mark.parametrize("culprits", [{"3"}, {"0", "9"}, {"4", "5", "10"}])
def test_poison_is_set_aside_and_all_others_are_learned_from(
    tmp_path: Path, culprits: set[str]
) -> None:
    folder = run(tmp_path, learner__replay_matches=3, learner__samples_per_insert=4)
    names = {str(number) for number in range(12)}
    play(folder, *sorted(names))
    toy = poisoned_by(*culprits)
    work_to_the_end(learner(folder, toy))
    assert set(quarantined(folder)) == culprits
    assert all(reason.startswith("poison") for reason in reasons(folder).values())
    check_ingested_once(folder, names - culprits)
    assert not (tmp_path / "suspects.json").exists()


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("observations", "feature 'b' is 3.40282e+38 in decision 1"),
        ("bootstrap", "feature 'b' is 3.40282e+38 after the last decision"),
        ("rewards", "the reward is 3.40282e+38 in decision 1"),
        ("values", "the value is 3.40282e+38 in decision 1"),
    ],
)
def test_a_number_too_large_to_learn_from_is_named_and_never_counted(
    tmp_path: Path, field: str, words: str
) -> None:
    """Finite in 32 bits, and so a good file, but no square of it is; with the real trainer."""
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__minibatches=1, learner__batch_matches=2), clock)
    mind = RingLearner(
        folder,
        Trainer(SPEC, folder.config.learner),
        Journal(folder.journal, "learner", folder.clock),
    )
    spool = spool_of(folder)
    for number in range(6):
        made = episode(str(number), finished_at=clock.time())
        array = getattr(made, field)
        if array is None:
            array = np.zeros(len(SPEC.features), np.float32)
        if number == 3:
            array[(1, 1) if array.ndim == 2 else 1] = np.finfo(np.float32).max
        spool.put(replace(made, **{field: array}))
        clock.advance(1e-3)
    work_to_the_end(mind)
    assert quarantined(folder) == ["3"]
    (reason,) = reasons(folder).values()
    assert words in reason
    assert mind.total_matches == 5 and mind.version >= 3
    assert not problems(folder)


def test_suspects_are_tried_again_before_a_long_queue(tmp_path: Path) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=2), clock)
    for number in range(9):
        play(folder, str(number))
        clock.advance(0.001)
    met: list[Sequence[str]] = []

    def meet(ids: Sequence[str]) -> None:
        met.append(ids)
        if "2" in ids:
            raise NotFinite("the loss is nan")

    work_to_the_end(learner(folder, Toy(folder.config, meet)))
    assert met[:6] == [["7", "8"], ["5", "6"], ["3", "4"], ["1", "2"], ["1", "2"], ["1", "2"]]
    assert met[6:] == [["1"], ["2"], ["2"], ["2"], ["0"]]
    assert quarantined(folder) == ["2"]
    check_ingested_once(folder, set("01345678"))


def test_after_nonsense_nothing_is_committed_and_the_last_good_version_goes_on(
    tmp_path: Path,
) -> None:
    folder = run(tmp_path)
    play(folder, "good")
    toy = poisoned_by("bad")
    mind = learner(folder, toy)
    mind.work()
    play(folder, "bad", "fine")
    toy.restored.clear()
    mind.work()
    assert folder.versions.numbers() == [1]
    assert toy.restored == ["version 1"] and toy.slowed == 1
    assert toy.tally.ingested == {"good": 1}
    assert counts(tmp_path) == (2, 1, 0)
    assert problems(folder) == ["the loss is nan"]


def test_nonsense_in_the_first_batch_goes_back_to_a_fresh_start(tmp_path: Path) -> None:
    folder = run(tmp_path)
    play(folder, "bad")
    toy = poisoned_by("bad")
    work_to_the_end(learner(folder, toy))
    assert set(toy.restored) == {"a fresh start"}
    assert folder.versions.numbers() == [] and quarantined(folder) == ["bad"]


def test_nobody_is_condemned_for_a_poisonous_neighbour_from_the_replay(tmp_path: Path) -> None:
    """An episode may have gone well when it was new, and turn bad when it is sampled again."""
    folder = run(tmp_path, learner__replay_matches=2, learner__samples_per_insert=100)
    turned = False

    def meet(ids: Sequence[str]) -> None:
        if turned and "bad" in ids:
            raise NotFinite("the loss is nan")

    toy = Toy(folder.config, meet)
    play(folder, "bad")
    mind = learner(folder, toy)
    work_to_the_end(mind)
    turned = True
    for number in range(5):
        play(folder, str(number))
        work_to_the_end(mind)
    assert quarantined(folder) == []
    check_ingested_once(folder, {"bad", "0", "1", "2", "3", "4"})


# --- once, and never too often -------------------------------------------------------------------


def test_a_copy_under_another_name_is_not_learned_from(tmp_path: Path) -> None:
    folder = run(tmp_path, learner__batch_matches=2)
    spool = spool_of(folder)
    play(folder, "a", "b")
    mind = learner(folder)
    mind.work()
    spool.put(episode("a"))
    spool.put(episode("c"))
    spool.put(episode("c"))
    work_to_the_end(mind)
    spool.put(episode("b"))
    work_to_the_end(learner(folder))
    check_ingested_once(folder, {"a", "b", "c"})
    assert sorted(quarantined(folder)) == ["a", "b", "c"]
    assert all(reason.startswith("a copy") for reason in reasons(folder).values())


def test_what_was_forgotten_is_too_old_to_be_learned_from_again(tmp_path: Path) -> None:
    """Neither under its name nor under another, however long ago it was."""
    folder = run(tmp_path, retention__remembered_episodes=10, registry__keep_versions=2)
    clock = folder.clock
    assert isinstance(clock, SetClock)
    rules = np.zeros(3, np.bool_)  # decisions of the rules have no age limit otherwise
    for number in range(40):
        clock.advance(1.0)
        spool_of(folder).put(episode(str(number), finished_at=clock.time(), sampled=rules))
        work_to_the_end(learner(folder))
    assert folder.versions.forgotten() and "1" not in folder.versions.ingested_by_pruned()
    names = {episodes.read_meta(path).id: path for path in (tmp_path / "archive").iterdir()}
    shutil.copy(names["0"], tmp_path / "buffer" / names["0"].name)
    shutil.copy(names["1"], tmp_path / "buffer" / "copy.npz")
    clock.advance(1.0)
    spool_of(folder).put(episode("new", finished_at=clock.time(), sampled=rules))
    before = learner(folder)
    total = before.total_matches
    work_to_the_end(before)
    assert before.total_matches == total + 1 == 41
    assert not list((tmp_path / "buffer").iterdir()) and not quarantined(folder)
    assert (tmp_path / "archive" / "copy.npz").exists(), "archived, not learned from"


def test_bounds_are_kept_while_it_learns_and_are_said(tmp_path: Path) -> None:
    folder = run(
        tmp_path,
        retention__remembered_episodes=5,
        retention__quarantine_files=2,
        registry__keep_versions=2,
        registry__keep_bytes=0,
    )
    clock = folder.clock
    assert isinstance(clock, SetClock)
    one = learner(folder)
    for number in range(60):
        clock.advance(1.0)
        play(folder, str(number))
        if number < 5:
            (tmp_path / "buffer" / f"bad{number}.npz").write_bytes(b"bad")
        work_to_the_end(one)
    assert len(folder.versions.ingested_by_pruned()) < 30
    assert len(list((tmp_path / "quarantine").iterdir())) == 4, "two files, each with its reason"
    told = [entry.e for entry in Reader(folder.journal).new()]
    notes = [event.message for event in told if isinstance(event, ev.Note)]
    assert any("retention.remembered_episodes" in note for note in notes)
    assert any("retention.quarantine_files" in note for note in notes)


def test_the_quarantine_is_bounded_where_no_version_is_ever_published(tmp_path: Path) -> None:
    folder = run(tmp_path, retention__quarantine_files=30)
    one = learner(folder)
    for number in range(70):
        (tmp_path / "buffer" / f"bad{number}.npz").write_bytes(b"bad")
        work_to_the_end(one)
    assert not folder.versions.numbers()
    assert len(reasons(folder)) == 40, "30, and the last 10 until the next turn"
    learner(folder)  # another one starts
    assert len(reasons(folder)) == 30
    told = [entry.e for entry in Reader(folder.journal).new()]
    notes = [event.message for event in told if isinstance(event, ev.Note)]
    assert [note.partition(" oldest")[0] for note in notes] == ["the 10", "the 20", "the 10"]


def test_a_copy_is_known_long_after_its_version_was_pruned(tmp_path: Path) -> None:
    folder = run(tmp_path, registry__keep_versions=2, learner__batch_matches=1)
    play(folder, *map(str, range(20)))
    mind = learner(folder)
    work_to_the_end(mind)
    assert folder.versions.numbers() == [19, 20]
    for restarted in (mind, learner(folder)):
        play(folder, "0", "11")
        work_to_the_end(restarted)
    assert folder.versions.numbers() == [19, 20]
    assert sorted(quarantined(folder)) == ["0", "0", "11", "11"]


def test_what_a_version_names_is_archived_even_if_it_lies_in_the_buffer_again(
    tmp_path: Path,
) -> None:
    folder = run(tmp_path)
    play(folder, "a")
    mind = learner(folder)
    work_to_the_end(mind)
    (archived,) = (tmp_path / "archive").iterdir()
    archived.rename(tmp_path / "buffer" / archived.name)
    work_to_the_end(mind)
    check_ingested_once(folder, {"a"})
    assert archived.exists() and quarantined(folder) == []


def test_matches_that_are_too_old_are_archived_and_not_learned_from(tmp_path: Path) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__max_age_s=60.0), clock)
    play(folder, "old")
    clock.advance(61.0)
    play(folder, "new")
    work_to_the_end(learner(folder))
    assert head_tally(folder).ingested == {"new": 1}
    assert sorted(meta.id for meta in metas(tmp_path / "archive")) == ["new", "old"]


def test_what_no_policy_sampled_never_is_too_old(tmp_path: Path) -> None:
    """Shadow mode: the rules played, so no policy has moved away from it."""
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__max_age_s=60.0), clock)
    rules, some = np.zeros(3, np.bool_), np.array([False, True, False])
    spool_of(folder).put(episode("shadow", sampled=rules, log_probs=np.zeros(3, np.float32)))
    spool_of(folder).put(episode("mixed", sampled=some))
    clock.advance(86400.0)
    work_to_the_end(learner(folder))
    assert head_tally(folder).ingested == {"shadow": 1}
    assert counts(tmp_path) == (0, 2, 0)


LIVES = st.lists(
    st.sampled_from(["play", "play", "work", "work", "publish", "die", "roll back"]), max_size=40
)


@examples(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(life=LIVES, limit=st.integers(1, 4), epochs=st.integers(1, 2))
def test_no_match_is_ever_sampled_more_often_than_it_may(
    tmp_path_factory: pytest.TempPathFactory, life: list[str], limit: int, epochs: int
) -> None:
    """Through any life: versions, deaths before a commit, rollbacks, all lineages added up."""
    folder = run(
        tmp_path_factory.mktemp("run"),
        learner__epochs=epochs,
        learner__samples_per_insert=max(limit, epochs),
        learner__replay_matches=3,
        learner__batch_matches=2,
        learner__publish_interval_s=1e9,
    )
    limit = folder.config.learner.samples_per_insert
    mind = learner(folder)
    played = 0
    for act in life:
        if act == "play":
            play(folder, f"match {played}")
            played += 1
        elif act == "work":
            mind.work()
        elif act == "publish":
            mind.publish_rest()
        elif act == "die":
            mind = learner(folder)
        elif folder.versions.numbers():
            folder.pointers.pin("champion", folder.versions.numbers()[0], by="rollback")
    work_to_the_end(mind)
    ever: Counter[str] = Counter()
    for manifest in manifests(folder):
        sampled = Counter(tally_of(folder, manifest.number).sampled)
        before = tally_of(folder, manifest.parent).sampled if manifest.parent else {}
        ever.update(sampled - Counter(before))
        for key, entry in manifest.replay.items():
            assert sampled[key] <= entry.samples < limit
    assert all(count <= limit for count in ever.values())
    ingested = [key for manifest in manifests(folder) for key in manifest.ingested]
    assert sorted(ingested) == sorted(f"match {number}" for number in range(played))
    check_registry(folder)


def test_a_batch_is_no_larger_than_it_may_be(tmp_path: Path) -> None:
    folder = run(tmp_path, learner__batch_matches=4)
    play(folder, *map(str, range(10)))
    work_to_the_end(learner(folder))
    assert [len(manifest.ingested) for manifest in manifests(folder)] == [4, 4, 2]


def test_a_long_queue_is_not_listed_for_every_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=2), clock)
    for number in range(40):
        play(folder, str(number))
        clock.advance(0.001)
    mind = learner(folder)
    pending, listed = Spool.pending, 0

    def slow(self: Spool) -> list[str]:
        nonlocal listed
        listed += 1
        clock.advance(1.0)
        return pending(self)

    monkeypatch.setattr(Spool, "pending", slow)
    for _ in range(10):
        assert mind.work()
    assert listed == 1
    play(folder, "late")
    assert mind.pending() == 21, "those that were not listed are counted"
    work_to_the_end(mind)
    check_ingested_once(folder, {*map(str, range(40)), "late"})
    assert listed < 6


def test_where_more_waits_than_a_batch_takes_the_newest_matches_are_learned_from_first(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=2), clock)
    met: list[list[str]] = []
    mind = learner(folder, Toy(folder.config, lambda ids: met.append(list(ids))))
    for number in range(5):
        play(folder, str(number))
        clock.advance(0.001)
    mind.work()
    play(folder, "late")
    work_to_the_end(mind)
    assert met == [["3", "4"], ["2", "late"], ["0", "1"]]
    check_ingested_once(folder, {*"01234", "late"})


# --- publishing ----------------------------------------------------------------------------------


def test_updating_is_not_publishing(tmp_path: Path) -> None:
    clock = SetClock()
    config = settings(learner__publish_interval_s=5.0, learner__batch_matches=1)
    folder = open_run(tmp_path, config, clock)
    play(folder, *map(str, range(6)))
    mind = learner(folder)
    published = []
    for _ in range(6):
        assert mind.work()
        published.append(mind.version)
        clock.advance(2.0)
    assert published == [1, 1, 1, 2, 2, 2]
    assert mind.publish_in_s() == pytest.approx(-1.0)
    assert not mind.work()
    assert mind.version == 3
    check_ingested_once(folder, set("012345"))


def test_what_was_learned_but_not_published_is_learned_again_after_a_death(tmp_path: Path) -> None:
    folder = run(tmp_path, learner__publish_interval_s=1e9, learner__batch_matches=1)
    play(folder, "a", "b", "c")
    mind = learner(folder)
    assert mind.work() and mind.work()
    assert mind.pending() == 1
    again = learner(folder)
    assert again.pending() == 2, "a was published, b was not"
    work_to_the_end(again)
    check_ingested_once(folder, set("abc"))


def test_of_two_learners_the_second_is_fenced_off(tmp_path: Path) -> None:
    folder = run(tmp_path, learner__publish_interval_s=1e9)
    play(folder, "a", "b")
    first, second = learner(folder), learner(folder)
    first._published_at = second._published_at = 0.0  # neither publishes by itself
    assert first.work() and second.work()
    first.publish()
    with pytest.raises(Fenced):
        second.publish()
    check_ingested_once(folder, {"a", "b"})
    assert folder.versions.numbers() == [1]
    work_to_the_end(learner(folder))
    assert folder.versions.numbers() == [1]


class Crash(Exception):
    pass


@pytest.mark.parametrize("moves", [0, 1])
def test_a_version_that_was_committed_before_a_crash_is_promoted_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    folder = run(tmp_path)
    play(folder, "a")
    work_to_the_end(learner(folder))
    play(folder, "b")
    move, left = Pointers.move, moves

    def crash(self: Pointers, *arguments: object, by: str) -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crash
        return move(self, *arguments, by=by)  # type: ignore[arg-type]

    mind = learner(folder)
    with monkeypatch.context() as patch:
        patch.setattr(Pointers, "move", crash)
        with pytest.raises(Crash):
            mind.work()
    assert (folder.versions.head(), champion(folder)) == (2, 1)
    work_to_the_end(learner(folder))
    assert champion(folder) == 2
    check_registry(folder)
    check_ingested_once(folder, {"a", "b"})


# --- going back ----------------------------------------------------------------------------------


def three_versions(root: Path) -> tuple[RunFolder, Toy, RingLearner]:
    folder = run(root)
    toy = poisoned_by("bad")
    mind = learner(folder, toy)
    for name in "abc":
        play(folder, name)
        work_to_the_end(mind)
    return folder, toy, mind


@pytest.mark.parametrize("restart", [False, True])
def test_after_a_rollback_learning_goes_on_from_there_and_nothing_is_ingested_again(
    tmp_path: Path, restart: bool
) -> None:
    folder, _, mind = three_versions(tmp_path)
    folder.pointers.pin("champion", 1, by="rollback")
    if restart:
        mind = learner(folder)
    play(folder, "d")
    work_to_the_end(mind)
    play(folder, "e")
    work_to_the_end(learner(folder))
    assert [(one.number, one.parent) for one in manifests(folder)[3:]] == [(4, 1), (5, 4)]
    assert head_tally(folder).ingested == {"a": 1, "d": 1, "e": 1}
    ingested = [key for manifest in manifests(folder) for key in manifest.ingested]
    assert ingested == ["a", "b", "c", "d", "e"]
    assert champion(folder) == 1, "pinned"
    folder.pointers.release("champion")
    play(folder, "f")
    work_to_the_end(learner(folder))
    assert champion(folder) == 6


def test_nonsense_after_a_rollback_does_not_bring_the_abandoned_version_back(
    tmp_path: Path,
) -> None:
    folder, toy, mind = three_versions(tmp_path)
    folder.pointers.pin("champion", 1, by="rollback")
    play(folder, "bad")
    toy.restored.clear()
    mind.work()
    mind.work()
    assert set(toy.restored) == {"version 1"}
    assert toy.slowed == 2 == len(toy.restored) - 1, "restored after it was slowed down"


def test_a_rollback_to_a_damaged_version_does_not_stop_the_learner(tmp_path: Path) -> None:
    folder, _, mind = three_versions(tmp_path)
    (folder.versions.folder(1) / WEIGHTS).write_bytes(b"rotten")
    folder.pointers.pin("champion", 1, by="rollback")
    play(folder, "d")
    work_to_the_end(mind)
    assert head_tally(folder).ingested == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert any("cannot learn on from version 1" in message for message in problems(folder))


def test_a_champion_by_evidence_bounds_learning_and_a_lost_one_is_told_once(tmp_path: Path) -> None:
    folder, toy, mind = three_versions(tmp_path)
    folder.promotion.mkdir()
    folder.pointers.move("champion", 2, by="promotion")
    play(folder, "d")
    work_to_the_end(mind)
    judged, near = toy.judged
    assert judged and near is not None
    lost = folder.versions.folder(1).rename(tmp_path / "lost")
    folder.pointers.move("champion", 1, by="promotion")
    for name in "ef":
        play(folder, name)
        work_to_the_end(mind)
    assert toy.judged == (True, None)
    told = [message for message in problems(folder) if "version 1 is not in" in message]
    assert len(told) == 1 and "the learner is not held near it" in told[0]
    assert head_tally(folder).ingested == dict.fromkeys("abcdef", 1)
    lost.rename(folder.versions.folder(1))
    assert isinstance(folder.clock, SetClock)
    folder.clock.advance(10.0)
    play(folder, "g")
    work_to_the_end(mind)
    assert toy.judged[1] is not None, "it is there again"


def test_a_champion_of_another_network_is_told_and_bounds_nothing(tmp_path: Path) -> None:
    folder, toy, mind = three_versions(tmp_path)
    folder.promotion.mkdir()
    other = msgspec.structs.replace(SPEC, network=Mlp(widths=(3,)))
    made = msgspec.structs.replace(manifests(folder)[1], spec=other)
    shutil.rmtree(folder.versions.folder(2))
    folder.versions.commit(made, {WEIGHTS: encode(untrained(other, 0).weights)})
    folder.pointers.move("champion", 2, by="promotion")
    play(folder, "d")
    work_to_the_end(mind)
    assert toy.judged == (True, None)
    assert any("version 2 was made for another run" in message for message in problems(folder))


def test_a_damaged_head_is_passed_over(tmp_path: Path) -> None:
    folder, _, _ = three_versions(tmp_path)
    (folder.versions.folder(3) / WEIGHTS).write_bytes(b"rotten")
    mind = learner(folder)
    assert (mind.version, champion(folder)) == (2, 2)
    play(folder, "d")
    work_to_the_end(mind)
    assert (folder.versions.head(), champion(folder)) == (4, 4)
    assert head_tally(folder).ingested == {"a": 1, "b": 1, "d": 1}, "c is not ingested again"
    assert counts(tmp_path) == (0, 4, 0)


# --- housekeeping --------------------------------------------------------------------------------


def test_pruning_keeps_what_the_pointers_name(tmp_path: Path) -> None:
    folder = run(tmp_path, registry__keep_versions=2, learner__batch_matches=1)
    mind = learner(folder)
    play(folder, "first")
    work_to_the_end(mind)
    folder.pointers.pin("champion", 1, by="rollback")
    play(folder, *map(str, range(29)))
    work_to_the_end(mind)
    assert folder.versions.numbers() == [1, 29, 30]
    check_registry(folder)


def night_settings() -> Config:
    return settings(registry__keep_versions=20, registry__keep_bytes=2**30)


def test_the_last_good_version_before_a_bad_night_is_still_there(tmp_path: Path) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, night_settings(), clock)
    good = a_bad_night(folder, clock)
    numbers = folder.versions.numbers()
    assert [number for number in numbers if good - 10 < number <= good]
    assert len(numbers) < 20 + 15
    found = last_good(scores_of(folder), numbers, before=numbers[-1])
    assert found is not None and good - 10 < found[0] <= good
    check_registry(folder)


def test_a_match_counts_once_for_the_version_that_played_it(tmp_path: Path) -> None:
    """Through a batch that failed, a death before the commit, a rollback and a restart."""
    folder = run(tmp_path, learner__publish_interval_s=1e9)
    spool = spool_of(folder)
    play(folder, "first")
    mind = learner(folder, poisoned_by("bad 0"))
    work_to_the_end(mind)
    for one in (*matches_of(1, "bad", won=1, lost=0), *matches_of(1, "fine", won=2, lost=1)):
        spool.put(one)
    assert mind.work()
    mind = learner(folder, poisoned_by("bad 0"))  # it died: nothing was committed
    work_to_the_end(mind)
    work_to_the_end(mind)
    assert quarantined(folder) == ["bad 0"]
    folder.pointers.pin("champion", 1, by="rollback")
    for one in matches_of(1, "again", won=1, lost=1):
        spool.put(one)
    work_to_the_end(mind)
    untrained, score = scores_of(folder)
    assert (untrained.first, untrained.last, untrained.matches) == (0, 0, 1)
    assert (score.first, score.last, score.matches, score.wins) == (1, 1, 5, 3)
    work_to_the_end(learner(folder))
    assert scores_of(folder) == (untrained, score)


def test_what_the_rules_decided_says_nothing_of_the_version_that_looked_on(tmp_path: Path) -> None:
    folder = run(tmp_path)
    spool = spool_of(folder)
    play(folder, "first")
    mind = learner(folder)
    work_to_the_end(mind)
    (looked_on,) = matches_of(1, "rules", won=1, lost=0)
    spool.put(replace(looked_on, sampled=np.zeros(3, np.bool_), log_probs=np.zeros(3, np.float32)))
    work_to_the_end(mind)
    assert [one.last for one in scores_of(folder)] == [0], "of the match before it"
    assert [one.mode for one in manifests(folder)] == ["learn", "shadow"]


def test_a_restart_and_a_rollback_each_begin_a_session(tmp_path: Path) -> None:
    folder, _, mind = three_versions(tmp_path)
    mind = learner(folder)
    play(folder, "d")
    work_to_the_end(mind)
    folder.pointers.pin("champion", 2, by="rollback")
    for name in "ef":
        play(folder, name)
        work_to_the_end(mind)
    assert [one.session for one in manifests(folder)] == [1, 1, 1, 4, 5, 5]


def test_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    folder = run(tmp_path)
    learner(folder)
    for where in ("", "buffer", "quarantine", "versions", "pointers/champion"):
        half = tmp_path / where / ".tmp-1-2-3"
        half.write_bytes(b"half")
        os.utime(half, (0, 0))
    learner(folder)
    assert list(tmp_path.rglob(".tmp-*")) == []


def test_a_replayed_match_that_was_pruned_or_damaged_is_simply_not_replayed(tmp_path: Path) -> None:
    folder = run(tmp_path, learner__samples_per_insert=9, learner__replay_matches=3)
    play(folder, "a", "b", "c")
    work_to_the_end(learner(folder))
    pruned, damaged, _ = sorted((tmp_path / "archive").iterdir())
    pruned.unlink()
    damaged.write_bytes(b"rotten")
    seen: list[str] = []
    toy = Toy(folder.config, seen.extend)
    play(folder, "d")
    work_to_the_end(learner(folder, toy))
    assert len(seen) == 2 and "d" in seen
    assert any("not a readable" in message for message in problems(folder))


def test_a_file_that_vanishes_is_nobodys_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path)
    play(folder, "a", "b")
    mind = learner(folder)
    first = spool_of(folder).pending()[0]
    decode = episodes.decode

    def vanish(*arguments: object, **named: object) -> episodes.Episode:
        (tmp_path / "buffer" / first).unlink(missing_ok=True)
        return decode(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(episodes, "decode", vanish)
    work_to_the_end(mind)
    assert head_tally(folder).ingested.keys() == {"a", "b"}
    assert counts(tmp_path) == (0, 1, 0)
