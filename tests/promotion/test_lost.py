"""Lost matches: of an ended process, of a machine that never comes back; never of a live one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from walk.toys import SetClock

from promotion.runs import CANARY, bot, counted, folded, resolved, run
from understudy.gates.promotion.records import Assigned, Ordered, Resolved
from understudy.promotion.lost import OpenMatches, new_session_name, process_lives
from understudy.promotion.promotion import Promotion

ELSEWHERE = "elsewhere/1/abcd"
HERE = new_session_name()
MACHINE, PID, _ = HERE.rsplit("/", 2)


def ended_process() -> int:
    """The number of a process that ran on this machine and is gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def match(session: str, at: float = 0.0) -> Assigned:
    return Assigned(match="m", arm="incumbent", version=0, session=session, at=at)


def word(session: str, at: float) -> Ordered:
    return Ordered(order="pause", session=session, at=at)


def lost(open_matches: OpenMatches, now: float) -> list[int]:
    return [order for order, _ in open_matches.lost(now)]


# --- processes -----------------------------------------------------------------------------------


def test_which_process_lives() -> None:
    assert process_lives(os.getpid())
    assert process_lives(os.getppid())
    assert not process_lives(ended_process())
    assert not process_lives(0)
    assert not process_lives(10**30)


def test_every_opening_of_a_run_is_a_session_of_its_process(tmp_path: Path) -> None:
    folder = run(tmp_path)
    one, other = Promotion(folder), Promotion(folder)
    assert one.session != other.session
    assert {session.rsplit("/", 1)[0] for session in (one.session, other.session)} == {
        f"{MACHINE}/{os.getpid()}"
    }
    assert str(os.getpid()) == PID


def test_where_a_lock_keeps_others_out_matches_of_every_other_session_are_lost() -> None:
    """A server that comes back in a container has another name of its machine."""
    for alone, expected in ((False, []), (True, [1])):
        open_matches = OpenMatches(HERE, timeout_s=1e9, alone=alone)
        open_matches.note(1, match(ELSEWHERE))
        open_matches.note(2, match(HERE))
        assert lost(open_matches, 1.0) == expected


@pytest.mark.parametrize("end", ["closed", "gone"])
def test_a_match_of_an_earlier_opening_in_this_process_is_lost_once_that_has_ended(
    tmp_path: Path, end: str
) -> None:
    folder = run(tmp_path)
    one, other = bot(folder), bot(folder)
    order, _ = one.assign("m1", {}, CANARY)
    finished, _ = one.assign("m2", {}, CANARY)
    other.assign("m3", {}, CANARY)
    assert resolved(folder) == [], "it goes on beside the other"
    if end == "closed":
        one.close()
        one.resolve(finished, 1.0, "finished")  # still allowed
    else:
        one.resolve(finished, 1.0, "finished")
        del one
    bot(folder)
    assert [(one.order, one.ending) for one in resolved(folder)] == [
        (finished, "finished"),
        (order, "vanished"),
    ]


@pytest.mark.parametrize(
    ("session", "ended"),
    [
        (HERE, False),
        (f"{MACHINE}/{os.getppid()}/abcd", False),
        (f"{MACHINE}/{os.getpid()}/abcd", True),
        (f"elsewhere/{os.getpid()}/abcd", False),
        (f"{MACHINE}/soon/abcd", False),
        ("", False),
    ],
    ids=["this", "alive", "former with this number", "elsewhere", "no number", "none"],
)
def test_whose_matches_are_lost_at_once(session: str, ended: bool) -> None:
    found = OpenMatches(HERE, timeout_s=10.0)
    found.note(1, match(session))
    assert lost(found, now=0.0) == ([1] if ended else [])


def test_a_match_of_an_ended_process_is_lost(tmp_path: Path) -> None:
    folder = run(tmp_path)
    killed = bot(folder, session=f"{MACHINE}/{ended_process()}/abcd")
    order, _ = killed.assign("m1", {}, CANARY)
    again = bot(folder)
    assert [(one.order, one.result, one.ending) for one in resolved(folder)] == [
        (order, 0.0, "vanished")
    ]
    assert counted(again.state) == 1


def test_a_result_that_came_before_its_process_ended_counts(tmp_path: Path) -> None:
    """This process has read the assignment, and not yet the result."""
    folder = run(tmp_path)
    here, ended = bot(folder), bot(folder, session=f"{MACHINE}/{ended_process()}/abcd")
    order, _ = ended.assign("m1", {}, CANARY)
    here.follow()
    ended.resolve(order, 1.0, "finished")
    here.assign("m2", {}, CANARY)
    assert [(one.order, one.ending) for one in resolved(folder)] == [(order, "finished")]


# --- time ----------------------------------------------------------------------------------------


def test_a_timeout_runs_from_the_first_record_of_this_machine() -> None:
    found = OpenMatches("here/1/a", timeout_s=10.0)
    found.note(1, match(ELSEWHERE, at=1e9))
    found.note(2, word("third/1/c", at=-1e9))
    assert lost(found, now=1e12) == [], "nothing of this machine came after it"
    found.note(3, word("here/2/b", at=100.0))
    found.note(4, word("here/1/a", at=109.0))
    assert lost(found, now=109.9) == []
    assert lost(found, now=110.0) == [1]
    found.note(5, Resolved(order=1))
    assert lost(found, now=200.0) == []


def test_a_timeout_holds_for_a_match_of_this_machine_too() -> None:
    found = OpenMatches(HERE, timeout_s=10.0)
    found.note(1, match(HERE, at=100.0))
    assert lost(found, now=109.0) == []
    assert lost(found, now=110.0) == [1]


def test_a_clock_that_is_set_back_begins_anew() -> None:
    found = OpenMatches("here/1/a", timeout_s=10.0)
    found.note(1, match("here/1/a", at=1000.0))
    assert lost(found, now=100.0) == []
    assert lost(found, now=110.0) == [1]


def test_a_machine_that_never_comes_back_does_not_hold_up_the_others(tmp_path: Path) -> None:
    clock = SetClock()
    gone = bot(run(tmp_path, SetClock(clock.now + 3600.0)), session=ELSEWHERE)
    late, _ = gone.assign("gone", {}, CANARY)
    here = bot(run(tmp_path, clock))
    for number in range(3):
        order, _ = here.assign(str(number), {}, CANARY)
        here.resolve(order, 1.0, "finished")
        clock.advance(3000.0)
        assert counted(here.state) == 0, "the match before them has no result yet"
    here.assign("next", {}, CANARY)
    assert counted(here.state) == 4
    gone.resolve(late, 1.0, "finished")
    assert [(one.order, one.ending) for one in resolved(here._folder)][-2:] == [
        (late, "vanished"),
        (late, "finished"),
    ]
    state = folded(here._folder)
    assert counted(state) == 4, "what comes later is noted, not counted"
    assert state.records[0].total == 3.0


def test_two_bots_with_clocks_an_hour_apart_lose_no_match(tmp_path: Path) -> None:
    clocks = SetClock(), SetClock(SetClock().now + 3600.0)
    changes = {"promotion__match_timeout_s": 1800.0}
    bots = [
        bot(run(tmp_path, clock, **changes), session=f"machine {index}/1/abcd")
        for index, clock in enumerate(clocks)
    ]
    for number in range(20):
        orders = [one.assign(f"{number}", {}, CANARY)[0] for one in bots]
        for clock in clocks:
            clock.advance(60.0)
        for one, order in zip(bots, orders, strict=True):
            one.resolve(order, 1.0, "finished")
    folder = bots[0]._folder
    assert {one.ending for one in resolved(folder)} == {"finished"}
    assert counted(folded(folder)) == 40
