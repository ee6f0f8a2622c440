from __future__ import annotations

import re
from datetime import datetime

import pytest
from msgspec.structs import replace

from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusFold
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.report import describe, progress, statistics, status_report
from understudy.telemetry.status import Folder, Folders, LedgerCounts, Status, WinRecord

from .entries import at, batch, continuous, match, published, started

BEHAVIOUR_KL = (
    "behaviour KL 0.002, at most 0.3 for one decision (0: what is trained is what played)"
)
NOON = datetime(2026, 1, 25, 12, 0, 0).timestamp()


def example() -> Status:
    fold = StatusFold("runs/swarm-1")
    fold.add(at(NOON, ev.BotStarted(pid=1, mode="learn", learner="process", version=0)))
    fold.add(at(NOON, started()))
    for index in range(15):
        won = "victory" if index in {2, 8, 10, 12, 13, 14} else "defeat"
        fold.add(at(NOON + index, match(won, decision_us=(110.0, 320.0))))
    fold.add(at(NOON + 20, batch(15, version_lag={"0": 100, "10": 20, "2": 30})))
    fold.add(at(NOON + 21, published(1, 15)))
    fold.add(at(NOON + 21, ev.VersionAdopted(version=1, previous=0)))
    fold.add(at(NOON + 22, ev.Problem(where="spool", message="\x1b[2Jgone")))
    folders = Folders(Folder(3, 159_949), Folder(15, 799_232), Folder(1, 100))
    return fold.status(folders, NOON + 30)


def test_progress_is_one_line_with_what_matters() -> None:
    status = example()
    assert progress(status) == (
        "understudy: 15 matches, 40% won (first fifth 33%, last fifth 100%); version 1 plays; "
        "15 matches learned from, 3 waiting; 1 problem: understudy status --run runs/swarm-1"
    )
    assert "; the rules play (newest version: 1); " in progress(replace(status, mode="shadow"))
    mixed = replace(status, rules_matches=300, paused_since=NOON)
    assert "40% won (the policy's first fifth 33%, last fifth 100%); " in progress(mixed)
    assert "; learning is paused: understudy learner resume runs/swarm-1; " in progress(mixed)
    assert progress(Status()) == (
        "understudy: 0 matches; the policy plays, untrained; 0 matches learned from, 0 waiting"
    )


def test_status_report_has_every_line_of_the_old_one() -> None:
    text = status_report(example())
    for line in (
        "[BACKGROUND LEARNER] STATUS REPORT",
        "Training Statistics:",
        "  Files Processed:      15",
        "  Batch Training Runs:  1",
        "  Total Samples:        150",
        "  Average Loss:         0.0456",
        "  Last Loss:            0.0456",
        "Directory Status:",
        "  Buffer Files:         3",
        "  Archived Files:       15",
        "System Status:",
        "  Active Workers:       1/1",
        "  Total Process Time:   1.12s",
        "  Errors:               1",
        "  Last Training:        2026-01-25 12:00:20",
    ):
        assert line in text.splitlines()


def test_statistics_has_every_line_of_the_old_one() -> None:
    lines = statistics(example()).splitlines()
    for line in (
        "[BACKGROUND LEARNING] STATISTICS",
        "Experience Files Processed: 15",
        "Batch Training Runs: 1",
        "Total Training Samples: 150",
        "Average Loss: 0.0456",
        "Total Processing Time: 1.12s",
        "Active Workers: 1/1",
        "Errors: 1",
    ):
        assert line in lines


def test_describe_tells_how_it_goes() -> None:
    text = describe(example())
    for part in (
        "runs/swarm-1",
        "15 (6 won, 9 lost, 0 tied)",
        "40% (first fifth -> last fifth: 33% -> 100%, +67 points)",
        "1 is the newest of 1 published; the bot plays 1",
        "training, process 7",
        "3 waiting (156.2 KB), 15 archived (780.5 KB), 1 in quarantine",
        "15 written, 15 learned from",
        "p50 0.11 ms",
        BEHAVIOUR_KL,
        "versions behind: 0: 100, 2: 30, 10: 20",
        "spool: \\x1b[2Jgone",
        "logs/background_training.log",
        "reason.json",
    ):
        assert part in text


def test_in_shadow_it_says_that_the_rules_play_and_how_far_the_policy_follows_them() -> None:
    fold = StatusFold("r")
    fold.add(at(NOON, ev.BotStarted(pid=1, mode="shadow", learner="process", version=24)))
    fold.add(at(NOON, published(24, 3)))
    for index in range(40):
        outcome = "victory" if index % 2 or index > 35 else "defeat"
        fold.add(at(NOON, match(outcome, fallback=10, agreed=2 if index < 20 else 8)))
    status = fold.status(Folders(), NOON)
    assert (status.win_rate_first, status.win_rate_last) == (None, None), "the policy played none"
    assert (status.rules_matches, status.rules_wins, status.win_rate) == (40, 22, 0.55)
    for text in (describe(status), status_report(status), statistics(status)):
        assert "the rules play, 24 is measured" in text and "the bot plays" not in text
        assert "55% of 40 played by the rules\n" in text and "points" not in text
    assert (
        "the rules made 100%; versions agreed with 80% of those in the last 20 matches"
        in describe(status)
    )
    fold.add(at(NOON, ev.BotStarted(pid=1, mode="learn", learner="process", version=24)))
    for index in range(5):
        fold.add(at(NOON, match("victory" if index > 3 else "defeat")))
    text = describe(fold.status(Folders(), NOON))
    ends = "(first fifth -> last fifth: 0% -> 100%, +100 points)"
    assert f"20% of 5 played by the policy {ends}; 55% of 40 played by the rules" in text
    assert "the bot plays 24" in text


def test_every_report_says_which_share_of_matches_was_aborted() -> None:
    fold = StatusFold("r")
    for outcome in ("victory", "victory", "defeat", "aborted"):
        fold.add(at(NOON, match(outcome)))
    status = fold.status(Folders(), NOON)
    for text in (describe(status), status_report(status), statistics(status)):
        assert "4 (2 won, 1 lost, 0 tied, 1 aborted = 25%)" in text


def test_describe_tells_whom_training_met() -> None:
    text = describe(Status(opponents={"based": WinRecord(3, 1, 0), "random": WinRecord()}))
    assert "Opponents" in text and "based 75% of 4" in text
    assert "random" not in text, "nobody has met it yet"


@pytest.mark.parametrize("show", [status_report, statistics, describe])
def test_texts_are_ascii_without_controls_even_of_an_empty_run(show: object) -> None:
    assert callable(show)
    for status in (Status(), example(), served(started(), continuous())):
        text = show(status)
        assert text.isascii() and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
        assert all(line == line.rstrip() for line in text.splitlines())


def test_before_the_first_batch_no_loss_is_made_up() -> None:
    text = status_report(Status())
    assert "  Average Loss:         -" in text
    assert "  Last Training:        never" in text


def test_describe_asks_after_a_silent_learner_and_says_how_to_start_one() -> None:
    silent = StatusFold("r")
    silent.add(at(NOON, started()))
    waiting = Folders(buffer=Folder(2, 10))
    assert "not a word for 1h 0m" in describe(silent.status(waiting, NOON + 3600))
    silent.add(at(NOON, ev.LearnerDied(code=-9, restart_in_s=None)))
    text = describe(silent.status(waiting, NOON))
    assert "dead, died 1 time" in text and "understudy learner --run r" in text
    assert "died with exit code -9 and is not started again" in text


def test_describe_tells_how_the_league_stands() -> None:
    fold = StatusFold("runs/brawl-1")
    results = {"based": (9, 6, 1, 1), "step-64": (5, 1, 0, 3), "step-128": (5, 2, 0, 2)}
    for event in (
        ev.MatchesTrained(steps=192, results=results),
        ev.StageChanged(steps=128, before="1 constant", after="2 based", reason="92%"),
        ev.LearnerRated(steps=192, mu=27.25, sigma=1.5),
        ev.SnapshotTaken(steps=128, name="step-128", kept=True, reason="due", pool=2),
        ev.SnapshotTaken(steps=192, name="step-192", kept=False, reason="no better", pool=2),
        ev.CheckpointJudged(
            steps=128, version=3, seconds=1.0, opponents={"based": ev.OpponentTally(15, 1, 4)}
        ),
        ev.Note(where="league", message="no snapshot yet"),
    ):
        fold.add(at(NOON, event))
    lines = describe(fold.status(Folders(), NOON)).splitlines()
    for line in (
        "Opponents   based 75% of 8",
        "            snapshots 38% of 8",
        "Stage       2 based, since step 128",
        "Rating      1066 +- 88 (95% of the belief)",
        "Snapshots   2 in the league, the newest is step-128",
        "Benchmark   version 3 at step 128, in frozen matches:",
        "            based 75% of 20 (53% to 89%)",
        "Note        league: no snapshot yet",
    ):
        assert line in lines


def test_describe_tells_the_reward_of_an_environment() -> None:
    fold = StatusFold("runs/cartpole")
    fold.add(at(NOON, ev.MatchesTrained(
        steps=64, results={}, returns={"environment": 21.94}, matches=3, total_matches=1_203
    )))  # fmt: skip
    lines = describe(fold.status(Folders(), NOON)).splitlines()
    assert "Matches     1,203" in lines
    assert "Reward      21.94, mean of the last 3 matches" in lines
    assert not any(line.startswith("Win rate") for line in lines)
    fold.add(at(NOON, ev.CheckpointJudged(
        steps=64, version=2, seconds=1.0, matches=100, sides={"left": 0.25, "right": -0.25},
        opponents={"random": ev.OpponentTally(15, 1, 4)},
    )))  # fmt: skip
    lines = describe(fold.status(Folders(), NOON)).splitlines()
    assert "            reward left 0.25, right -0.25 of 100" in lines
    assert "            random 75% of 20 (53% to 89%), 1 drawn" in lines


def served(*told: ev.Event, waiting: int = 0) -> Status:
    """The status of a run that a server decides in."""
    fold = StatusFold("runs/queen")
    for event in (ev.BotStarted(pid=1, mode="serve", learner="off", version=0), *told):
        fold.add(at(NOON, event))
    status = fold.status(Folders(buffer=Folder(waiting, 100 * waiting)), NOON + 2)
    counts = LedgerCounts(opened=1_040, settled=1_000, expired=9, superseded=8, orphaned=7, open=16)
    return replace(status, ledger=counts)


def test_describe_tells_how_a_server_does() -> None:
    back = ev.RolledBack(reason="collapse", version=2, to=1)
    adopted = ev.VersionAdopted(version=3, previous=2)
    last = continuous(step_share=0.4)
    status = served(started(), continuous(6), back, last, published(3, 40), adopted)
    lines = describe(status).splitlines()
    for line in (
        "Decisions   1,040 = 1,000 settled + 9 expired + 8 superseded + 7 orphaned + 16 open",
        "Versions    3 is the newest of 1 published; the server decides by 3",
        "Replay      900 items held, 7.5 samples per insert",
        "Gate        judges 90% of what is sampled as it did at first",
        "Rollbacks   once a learner gave up what it had learned",
        "Segments    40 learned from, 0 archived, 0 quarantined",
        "What the gate is worth: understudy gate --run runs/queen",
    ):
        assert line in lines
    (training,) = (line for line in lines if line.startswith("Training"))
    assert "8 batches, 1,000 samples" in training
    (lately,) = (line for line in lines if line.startswith("Lately"))
    assert "busy 1% of the time, entropy 1.300 (80% of the largest)" in lately
    assert lately.endswith("learning rate 0.001, steps 40% of full size")
    assert lines[lines.index(lately) + 1].split() == [*BEHAVIOUR_KL.split()]
    text = "\n".join(lines)
    for word in ("Matches", "Win rate", "written", "the bot plays", "background_training.log"):
        assert word not in text, "there is none of that behind a server"


@pytest.mark.parametrize(
    ("promotion", "decides"),
    [
        (PromotionStatus(incumbent=0, served=True), "the rules decide"),
        (PromotionStatus(incumbent=2, served=True), "version 2 decides"),
        (PromotionStatus(incumbent=0, served=True, policy="latest"), "version 3 decides"),
    ],
)
def test_describe_tells_who_decides_on_a_server_by_evidence(
    promotion: PromotionStatus, decides: str
) -> None:
    adopted = ev.VersionAdopted(version=3, previous=2)
    status = served(started(), published(3, 40), adopted)
    lines = describe(replace(status, promotion=staged(promotion))).splitlines()
    assert f"Versions    3 is the newest of 1 published; {decides}" in lines
    assert any(line.startswith("Promotion   ") and "mode auto" not in line for line in lines)


def test_describe_says_when_the_learner_of_a_server_waits() -> None:
    waits = ev.WaitingForExperience(samples_per_insert=8.0)
    text = describe(served(started(), continuous(agreement=None), waits))
    assert "7.5 samples per insert; waiting for experience" in text
    assert "Gate" not in text and "gate --run" not in text, "no gate looks again"


@pytest.mark.parametrize(("count", "words"), [(1, "1 segment waits"), (2, "2 segments wait")])
def test_describe_names_the_learner_of_a_server(count: int, words: str) -> None:
    last = describe(served(waiting=count)).splitlines()[-1]
    assert last == (
        f"{words} to be learned from, by the server's gate: "
        "understudy learner --run runs/queen --continuous --gate GATE"
    )
    assert "understudy learner" not in describe(served(started(), waiting=2)), "one is at work"


def test_matches_that_a_bot_played_before_a_server_came_are_still_told() -> None:
    assert "Matches     1 (1 won" in describe(served(match()))


def test_a_run_without_a_league_says_nothing_of_one() -> None:
    text = describe(example())
    for label in ("Stage", "Rating", "Snapshots", "Benchmark", "Note"):
        assert not re.search(rf"^{label}", text, re.MULTILINE)
