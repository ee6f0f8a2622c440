"""The promotion of a run folder: who is assigned what, pins, pointers, and a disk that refuses."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from walk.power import UnsyncedDisk
from walk.toys import SetClock

from promotion.runs import (
    CANARY,
    INCUMBENT,
    assigned,
    bot,
    counted,
    folded,
    pointed,
    records,
    resolved,
    run,
)
from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.seals import seal
from understudy.gates.promotion.records import RULES, Declared, Ordered
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.promotion import log as logs
from understudy.promotion.promotion import Promotion
from understudy.registry import retention
from understudy.registry.pointers import LATEST, PROMOTION
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest


def play(one: Promotion, name: str, uniform: float, result: float = 1.0) -> int:
    """One match; returns the version that was assigned."""
    order, made = one.assign(name, {"map": "a", "weather": "b"}, uniform)
    one.resolve(order, result, "finished")
    return made.version


class Refusing(UnsyncedDisk):
    """A full disk."""

    def write(self, path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


# --- assignment ----------------------------------------------------------------------------------


def test_an_assignment_records_the_coin_and_its_stratum(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one = bot(folder)
    assert one.nominate(3, experience=1, reason="first")
    order, made = one.assign("m", {"map": "a", "weather": "b", "opponent": "o"}, 0.3)
    number, kept = records(folder)[-1]
    assert (number, kept) == (order, made)
    assert (made.version, made.share, made.uniform, made.test) == (3, 0.5, 0.3, 2)
    assert made.stratum == "opponent=o map=a"


def test_a_bot_sees_what_another_one_wrote(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one, other = bot(folder), bot(folder)
    one.nominate(3, experience=1, reason="first")
    assert not other.nominate(4, experience=1, reason="second")
    assert play(other, "m", CANARY) == 3
    assert one.follow().champion == 3
    assert pointed(folder) == {"champion": 3, "canary": RULES}


def test_a_run_that_is_opened_again_as_before_has_no_longer_log(tmp_path: Path) -> None:
    folder = run(tmp_path)
    for _ in range(3):
        bot(folder)
    assert len(records(folder)) == 1
    Promotion(folder).declare(rules="other rules", score=None)
    Promotion(folder).declare(rules="other rules", score=(0.0, 9.0))
    assert [record.score for _, record in records(folder) if isinstance(record, Declared)] == [
        None, None, (0.0, 9.0),
    ]  # fmt: skip


def test_a_bot_with_other_rules_than_were_declared_last_gets_no_match(tmp_path: Path) -> None:
    folder = run(tmp_path)
    old = bot(folder)
    new = Promotion(folder)
    new.declare(rules="other rules", score=None)
    order, made = old.assign("m", {}, INCUMBENT)  # it has not read on since
    assert (order, made.version, made.test) == (0, RULES, 0)
    assert assigned(folder) == []
    assert play(new, "n", INCUMBENT) == RULES and counted(new.state) == 1
    old.declare(rules="rules", score=None)
    assert old.assign("o", {}, INCUMBENT)[0] > 0
    assert new.assign("p", {}, INCUMBENT)[0] == 0


def test_a_verdict_is_told_by_the_bot_whose_record_it_came_with(tmp_path: Path) -> None:
    folder = run(tmp_path)
    told: list[list[PromotionVerdict]] = [[], [], []]
    one, other = (Promotion(folder, tell=told[index].append) for index in (0, 1))
    one.nominate(3, experience=1, reason="first")
    play(other, "m", CANARY)
    one.follow()
    again = Promotion(folder, tell=told[2].append)
    assert [[verdict.kind for verdict in verdicts] for verdicts in told] == [
        ["nominated"], ["promoted"], [],
    ]  # fmt: skip
    assert [verdict.kind for verdict in again.verdicts] == ["nominated", "promoted"]


def test_threads_share_a_promotion(tmp_path: Path) -> None:
    folder = run(tmp_path)
    with files.using(UnsyncedDisk()):
        one = bot(folder)
        threads = [
            threading.Thread(
                target=lambda n=n: [play(one, f"{n} {m}", INCUMBENT) for m in range(9)]
            )
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counted(folded(folder)) == counted(one.state) == 36


# --- pins and policies ---------------------------------------------------------------------------


def test_a_pinned_champion_plays_every_match_outside_of_any_test(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one = bot(folder)
    one.nominate(3, experience=1, reason="first")
    folder.pointers.pin("champion", 2, by="rollback")
    for uniform in (CANARY, INCUMBENT):
        assert play(one, "m", uniform) == 2
    assert {(made.test, made.share, made.holdout) for made in assigned(folder)} == {(0, 0.0, 0.0)}
    assert one.state.test is not None and one.state.test.trial.arm_counts.sum() == 0


@pytest.mark.parametrize("forced", ["pinned", "latest"])
def test_what_no_coin_assigned_raises_no_alarm_then_or_later(tmp_path: Path, forced: str) -> None:
    folder = run(tmp_path)
    one = bot(folder)
    one.order(Ordered(order="approve", version=3))
    with files.using(UnsyncedDisk()):
        for number in range(30):  # what it promises
            assert play(one, f"good {number}", INCUMBENT, 1.0) == 3
        promise = one.state.reigns[-1].promise
        assert promise > 0.5
        if forced == "pinned":
            folder.pointers.pin("champion", 3, by="rollback")
        else:
            folder.pointers.move("candidate", 3, by=LATEST)
            one = bot(run(tmp_path, promotion__policy="latest"))
        for number in range(40):
            assert play(one, f"bad {number}", INCUMBENT, 0.0) == 3
        folder.pointers.release("champion")
        one = bot(folder)
        assert play(one, "after", INCUMBENT, 1.0) == 3
    assert {verdict.kind for verdict in one.verdicts} == {"promoted"}
    assert one.state.recheck is None and one.state.reigns[-1].promise == promise


def test_nothing_here_moves_a_pinned_champion_until_it_is_released(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one = bot(folder)
    one.nominate(3, experience=1, reason="first")
    play(one, "m1", CANARY)
    assert pointed(folder)["champion"] == 3
    folder.pointers.pin("champion", 2, by="rollback")
    one.order(Ordered(order="approve", version=5))
    play(bot(folder), "m2", CANARY)
    record = folder.pointers.read("champion")
    assert record is not None and record.pinned and record.version == 2
    folder.pointers.release("champion")
    assert play(one, "m3", INCUMBENT) == 5
    record = folder.pointers.read("champion")
    assert record is not None and (record.version, record.by) == (5, PROMOTION)


def test_pinned_to_the_rules(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one = bot(folder)
    one.order(Ordered(order="approve", version=5))
    folder.pointers.pin("champion", RULES, by="rollback")
    assert play(one, "m", INCUMBENT) == RULES


def test_by_policy_latest_the_newest_version_plays_every_match(tmp_path: Path) -> None:
    folder = run(tmp_path, promotion__policy="latest")
    one = bot(folder)
    assert play(one, "m0", CANARY) == RULES, "there is no version yet"
    for newest in (1, 2):
        folder.pointers.move("candidate", newest, by=LATEST)
        assert play(one, "m", CANARY) == newest
        assert pointed(folder)["champion"] == newest
    assert {made.test for made in assigned(folder)} == {0}
    evidence = run(tmp_path, promotion__policy="auto")
    assert play(bot(evidence), "m3", CANARY) == RULES
    assert pointed(folder)["champion"] == RULES


# --- what pruning keeps --------------------------------------------------------------------------


def commit(folder: RunFolder, count: int) -> None:
    """So many more versions, with what a learner does after each."""
    for _ in range(count):
        number = max(folder.versions.numbers(), default=0) + 1
        manifest = Manifest(
            number=number, parent=number - 1 or None, created_at=float(number), spec=folder.spec
        )
        folder.versions.commit(manifest, {"weights.npz": b"x"})
        folder.pointers.move("candidate", number, by=LATEST)
        retention.prune(folder)


def few_versions(root: Path, policy: str = "auto") -> RunFolder:
    return run(root, promotion__policy=policy, registry__keep_versions=2, registry__keep_bytes=0)


def test_a_version_that_is_approved_while_another_is_pinned_is_there_after_the_release(
    tmp_path: Path,
) -> None:
    folder = few_versions(tmp_path)
    one = bot(folder)
    with files.using(UnsyncedDisk()):
        commit(folder, 3)
        folder.pointers.pin("champion", 1, by="rollback")
        one.order(Ordered(order="approve", version=3))
        commit(folder, 9)
    folder.pointers.release("champion")
    one.follow()
    assert pointed(folder)["champion"] == 3
    assert 3 in folder.versions.numbers()


def test_the_champion_of_evidence_outlives_a_time_of_policy_latest(tmp_path: Path) -> None:
    folder = few_versions(tmp_path)
    with files.using(UnsyncedDisk()):
        commit(folder, 3)
        bot(folder).order(Ordered(order="approve", version=2))
        newest = bot(few_versions(tmp_path, "latest"))
        for _ in range(30):
            commit(folder, 1)
            newest.follow()
        assert pointed(folder)["champion"] == 33
        bot(folder)
    assert pointed(folder)["champion"] == 2
    assert 2 in folder.versions.numbers()


def test_every_champion_that_a_rollback_can_return_to_is_there(tmp_path: Path) -> None:
    folder = few_versions(tmp_path)
    one = bot(folder)
    with files.using(UnsyncedDisk()):
        for version in range(1, 31):
            commit(folder, 1)
            one.order(Ordered(order="approve", version=version))
        commit(folder, 5)
    assert [reign.version for reign in one.state.reigns] == [RULES, *range(21, 31)]
    assert folder.versions.numbers() == [*range(21, 31), 34, 35]


# --- a disk that refuses -------------------------------------------------------------------------


def test_on_a_full_disk_the_rules_play_outside_of_any_test_and_this_is_said_once(
    tmp_path: Path,
) -> None:
    folder, problems = run(tmp_path), list[str]()
    one = bot(folder, problems=problems)
    one.nominate(3, experience=1, reason="first")
    with files.using(Refusing()):
        for name in "ab":
            order, made = one.assign(name, {}, CANARY)
            assert (order, made.version, made.test) == (0, RULES, 0)
            one.follow()  # can be read all the while
            assert one.flush()
    assert len(problems) == 1
    assert "No space left" in problems[0] and "the rules play" in problems[0]
    assert play(one, "c", CANARY) == 3
    assert [made.match for made in assigned(folder)] == ["c"]
    with files.using(Refusing()):
        one.assign("d", {}, CANARY)
    assert len(problems) == 2, "it was better in between"


def test_a_result_that_cannot_be_written_comes_before_the_next_record(tmp_path: Path) -> None:
    folder, problems = run(tmp_path), list[str]()
    one = bot(folder, problems=problems)
    first, _ = one.assign("a", {}, INCUMBENT)
    second, _ = one.assign("b", {}, INCUMBENT)
    with files.using(Refusing()):
        assert not one.resolve(first, 1.0, "finished")
        assert not one.resolve(second, 0.5, "finished")
        assert not one.flush()
    assert len(problems) == 1 and "kept in memory" in problems[0]
    third, _ = one.assign("c", {}, INCUMBENT)
    assert [(one.order, one.result) for one in resolved(folder)] == [(first, 1.0), (second, 0.5)]
    assert [number for number, _ in records(folder)] == [1, first, second, 4, 5, third]
    assert one.flush()


def test_a_process_that_ends_without_writing_a_result_has_lost_the_match(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one = bot(folder, problems=[])
    order, _ = one.assign("a", {}, INCUMBENT)
    with files.using(Refusing()):
        one.resolve(order, 1.0, "finished")
    one.close()
    again = bot(folder)
    assert [(one.order, one.ending) for one in resolved(folder)] == [(order, "vanished")]
    assert again.state.records[RULES].total == 0.0


def test_an_assignment_that_was_written_though_it_failed_counts_for_no_arm(tmp_path: Path) -> None:
    class Uncertain(UnsyncedDisk):
        def sync_folder(self, path: Path) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    folder, problems = run(tmp_path), list[str]()
    one = bot(folder, problems=problems)
    with files.using(Uncertain()):
        assert one.assign("a", {}, CANARY)[0] == 0
    assert [made.match for made in assigned(folder)] == ["a"]
    play(one, "b", INCUMBENT)
    play(one, "c", INCUMBENT)
    assert [one.ending for one in resolved(folder)] == ["void", "finished", "finished"]
    assert counted(folded(folder)) == 2


def test_the_rules_are_declared_before_the_first_match_however_late(tmp_path: Path) -> None:
    folder, problems = run(tmp_path), list[str]()
    with files.using(Refusing()):
        one = bot(folder, problems=problems)
        assert one.assign("a", {}, CANARY)[0] == 0
    assert folder.promotion.is_dir() and records(folder) == []
    play(one, "b", CANARY)
    assert isinstance(records(folder)[0][1], Declared)
    assert len(problems) == 1


def test_pointers_that_cannot_be_moved_stop_no_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, problems = run(tmp_path), list[str]()
    one = bot(folder, problems=problems)
    one.nominate(3, experience=1, reason="first")

    def refuse(*arguments: object, **named: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", "pointers")

    with monkeypatch.context() as patched:
        patched.setattr(folder.pointers, "move", refuse)
        assert play(one, "a", CANARY) == 3
        assert play(one, "b", INCUMBENT) == 3
    assert len(problems) == 1 and "moved later" in problems[0]
    assert pointed(folder) == {"champion": RULES, "canary": 3}
    one.follow()
    assert pointed(folder) == {"champion": 3, "canary": RULES}


def test_a_log_of_a_newer_program_leaves_the_match_to_the_rules(tmp_path: Path) -> None:
    folder, problems = run(tmp_path), list[str]()
    bot(folder).nominate(3, experience=1, reason="first")
    (folder.promotion / "00000003.json").write_bytes(seal(b'{"record":"Foretold"}'))
    one = bot(folder, problems=problems)
    assert one.assign("a", {}, CANARY)[0] == 0
    assert not one.nominate(4, experience=9, reason="second")
    assert all("00000003.json" in problem and "update" in problem for problem in problems)
    with pytest.raises(FileFormatError, match=r"00000003\.json"):
        one.order(Ordered(order="pause"))


def test_a_damaged_record_is_told_and_play_goes_on(tmp_path: Path) -> None:
    folder, problems = run(tmp_path), list[str]()
    one = bot(folder)
    for number in range(3):
        play(one, str(number), INCUMBENT)
    (folder.promotion / "00000004.json").write_bytes(b"scratched")
    again = bot(folder, problems=problems)
    assert len(problems) == 1 and "00000004.json" in problems[0]
    assert play(again, "next", INCUMBENT) == RULES
    assert counted(again.state) == 3, "the match without an assignment is not counted"


# --- growing -------------------------------------------------------------------------------------


def test_old_records_are_compacted_while_matches_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "BLOCK", 4)
    folder = run(tmp_path)
    with files.using(UnsyncedDisk()):
        one, other = bot(folder), bot(folder)
        for number in range(20):
            play((one, other)[number % 2], str(number), INCUMBENT)
    assert len(list(folder.promotion.glob("*.jsonl"))) == 9
    assert len(list(folder.promotion.glob("*.json"))) < 9
    assert [number for number, _ in records(folder)] == list(range(1, 42))
    assert counted(folded(folder)) == counted(one.follow()) == 20


def test_a_run_without_a_log_has_one_once_a_bot_declares(tmp_path: Path) -> None:
    folder = run(tmp_path)
    folder.pointers.move("champion", 7, by=LATEST)
    one = Promotion(folder)
    assert not folder.by_evidence and one.state.sequence == 0
    assert pointed(folder) == {"champion": 7}, "as it was"
    one.declare(rules="rules", score=None)
    assert RunFolder.load(tmp_path, SetClock()).by_evidence
    assert pointed(folder) == {"champion": RULES, "canary": RULES}
