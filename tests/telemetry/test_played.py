from __future__ import annotations

import msgspec

from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusFold
from understudy.telemetry.played import COLUMNS, PlayedFold, played_rows
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import ArmResult, PromotionStatus, TrialStatus
from understudy.telemetry.report import describe, progress
from understudy.telemetry.status import Folders

from .entries import at, match


def test_win_rates_by_player_mode_and_tag() -> None:
    entries = [
        at(1, ev.BotStarted(pid=1, mode="shadow", learner="off", version=3)),
        at(2, match("victory", fallback=10, tags={"opponent": "Zerg"})),
        at(3, match("defeat", fallback=10, tags={"opponent": "Terran"})),
        at(4, match("tie", version=3, mode="auto", tags={"opponent": "Zerg", "map": "x"})),
        at(5, match("aborted", version=3, mode="auto", tags={"opponent": "Zerg"})),
        at(6, match("victory", version=0, mode="learn")),
    ]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in played_rows(entries)]
    found = {(row["player"], row["mode"], row["tag"]): row for row in rows}
    rules = found["rules", "shadow", ""]
    assert (rules["matches"], rules["wins"], rules["win_rate"]) == (2, 1, "0.5000")
    assert found["rules", "shadow", "opponent=Zerg"]["wins"] == 1
    third = found["version 3", "auto", "opponent=Zerg"]
    assert (third["matches"], third["draws"], third["aborted"]) == (1, 1, 1)
    assert found["untrained", "learn", ""]["win_rate"] == "1.0000"
    assert len(found) == 3 + 2 + 2 and not rows[0]["tag"]
    fold = StatusFold()
    for entry in entries:
        fold.add(entry)
    assert len(fold.status(Folders()).played) == 7


def test_a_fault_is_a_loss_of_the_version_that_was_given_the_match() -> None:
    entries = [
        at(1, match("victory", version=5, assigned=3, fallback=10, fault="it raised")),
        at(2, match("tie", version=3, assigned=3, fallback=1, fault="it was slow")),
        at(3, match("victory", version=3, assigned=3)),
    ]
    (row,) = (dict(zip(COLUMNS, row, strict=True)) for row in played_rows(entries))
    assert (row["player"], row["wins"], row["draws"], row["losses"]) == ("version 3", 1, 0, 2)
    fold = StatusFold()
    for entry in entries:
        fold.add(entry)
    assert fold.status(Folders()).rules_matches == 0


def test_what_is_kept_is_bounded_and_has_the_most_played() -> None:
    fold = PlayedFold(limit=10)
    for version in range(1, 200):
        fold.add(match(version=version, tags={"opponent": f"{version}"}), mode="learn")
        fold.add(match(version=0, tags={"opponent": "Zerg"}), mode="learn")
    rows = fold.records()
    assert len(rows) <= 20
    assert (rows[0].player, rows[0].matches) == ("untrained", 199)
    assert any(one.tag == "opponent=Zerg" and one.matches == 199 for one in rows)
    assert len(fold.records(4)) == 4


def test_the_line_of_a_bot_says_who_plays_by_evidence() -> None:
    fold = StatusFold("runs/zerg")
    fold.add(at(1, ev.BotStarted(pid=1, mode="auto", learner="off", version=3)))
    fold.add(at(2, match(fallback=10)))
    promotion = PromotionStatus(
        incumbent=0,
        matches=1,
        tests=(
            TrialStatus(
                number=2,
                recheck=False,
                since=0.0,
                version=4,
                against=0,
                canary=ArmResult(version=4, matches=30, mean=0.7),
                incumbent=ArmResult(version=0, matches=50, mean=0.5),
                better=3.14,
                better_enough=20.0,
                worse=0.04,
                worse_enough=4.0,
                share=0.5,
                short=100,
                hopeless=0.2,
                long=300,
                promising=2.0,
                longest=600,
            ),
        ),
    )
    status = msgspec.structs.replace(fold.status(Folders()), promotion=staged(promotion))
    line = progress(status)
    assert "; the rules play, version 4 in 50%; E 3.1 of 20 for, 0.04 of 4 against; " in line
    assert "\n" not in line
    text = describe(status)
    assert "Promotion   canary: the rules play, version 4 in 50%; E 3.1" in text
    assert "understudy promotion status --run runs/zerg" in text
    pinned = msgspec.structs.replace(promotion, pinned=7)
    line = progress(msgspec.structs.replace(status, promotion=staged(pinned)))
    assert "version 7, pinned, plays every match; " in line and "E 3.1" not in line


def test_a_short_match_of_the_rules_with_a_long_cameo_is_theirs() -> None:
    fold = StatusFold()
    fold.add(at(1, match("victory", version=3, fallback=4, role="rules", mode="auto")))
    fold.add(at(2, match("defeat", version=3, fallback=6, role="champion", assigned=3)))
    status = fold.status(Folders())
    assert [one.player for one in status.played] == ["rules", "version 3"]
    assert (status.rules_matches, status.rules_wins) == (1, 1)


def test_all_versions_that_practise_are_one_player() -> None:
    fold = PlayedFold()
    for version in range(1, 6):
        fold.add(match("victory", version=version, assigned=version, role="practice"), mode="auto")
    fault = {"assigned": 6, "role": "practice", "fault": "it raised"}
    fold.add(match("victory", version=6, fallback=10, **fault), mode="auto")
    fold.add(match("victory", version=6, assigned=6, role="canary"), mode="auto")
    found = {one.player: (one.version, one.wins, one.losses) for one in fold.records()}
    assert found == {"practice": (0, 5, 1), "version 6": (6, 1, 0)}
