from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from understudy.core.errors import RunFolderError
from understudy.gates.promotion.records import Assigned, Declared, Nominated, Ordered, Resolved
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.promotion.explain import story_of, story_text
from understudy.promotion.history import PromotionHistory, history
from understudy.promotion.report import (
    MATCH_COLUMNS,
    brief_status,
    match_rows,
    matches_per_hour,
    promotion_status,
    results_of,
)
from understudy.telemetry import played
from understudy.telemetry.promotion_lines import describe_promotion, promotion_lines
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.table import csv_bytes
from understudy.telemetry.verdicts import VERDICTS, verdict_line

from .scripted import PRACTICE_SHARE, ScriptedLog


def status_of(log: ScriptedLog, pinned: int | None = None) -> PromotionStatus:
    return promotion_status(history(log.records), pinned=pinned)


def text_of(log: ScriptedLog, pinned: int | None = None) -> str:
    return describe_promotion(status_of(log, pinned), run="runs/zerg", at=log.now, width=80)


def flat(text: str) -> str:
    """Without the breaks at 80 columns."""
    return text.replace("\n            ", " ")


# --- scripts -------------------------------------------------------------------------------------


def nothing(log: ScriptedLog) -> None:
    pass


def early(log: ScriptedLog) -> None:
    log.nominate(4)
    log.play(3, {0: 0.5, 4: 0.5})


def tried(log: ScriptedLog) -> None:
    log.nominate(4)
    log.play(80, {0: 0.5, 4: 0.65}, stratum="opponent=Zerg map=Acropolis")


def promoted(log: ScriptedLog) -> None:
    log.nominate(4)
    log.play(600, {0: 0.3, 4: 0.9}, until="promoted", stratum="opponent=Zerg")


def rechecked(log: ScriptedLog) -> None:
    promoted(log)
    log.nominate(9)
    log.play(300, {0: 0.3, 4: 0.2, 9: 0.2}, until="alarm")
    log.play(4, {0: 0.3, 4: 0.2, 9: 0.2})


def rolled_back(log: ScriptedLog) -> None:
    rechecked(log)
    log.play(300, {0: 0.6, 4: 0.1, 9: 0.2}, until="rolled back")


def asks(log: ScriptedLog) -> None:
    log.append(Ordered(order="pause", words="\x1b[31mno"))
    log.append(Ordered(order="resume"))
    log.nominate(4)
    log.append(Ordered(order="pause"))
    log.play(600, {0: 0.3, 4: 0.9}, until="asks")


def simulated(log: ScriptedLog) -> None:
    test = log.append(Nominated(version=7, simulator=True, reason="new"))
    log.pair(test, [1.0, 0.0, 1.0, 0.5, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5, 0.5, 1.0])


SCRIPTS = [nothing, early, tried, promoted, rechecked, rolled_back, asks, simulated]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("pinned", [None, 4])
def test_every_screen_is_plain_and_fits_the_console(
    script: Callable[[ScriptedLog], None], pinned: int | None
) -> None:
    log = ScriptedLog(seed=2)
    script(log)
    told = history(log.records)
    stories = [story_of(told, version) for version in told.state.roles]
    status = status_of(log, pinned)

    def screens(width: int | None) -> list[str]:
        said = describe_promotion(status, run="runs/zerg", at=log.now, width=width)
        return [said, *(story_text(one, width=width) for one in stories)]

    for width in (60, 80, 120, 160, None):
        for text in screens(width):
            assert text.isascii() and text.isprintable() is ("\n" not in text)
            assert "\x1b" not in text
            if width is not None:
                rows = [row for row in text.splitlines() if "understudy " not in row]
                assert max(map(len, rows)) <= width, "a command is never broken"
    assert max(map(len, screens(80)[0].splitlines())) <= 80, "nor does it have to be"
    assert ("pinned by a person, plays every match" in screens(None)[0]) is (pinned is not None)
    assert msgspec.json.decode(msgspec.json.encode(status_of(log, pinned)), type=PromotionStatus)


# --- what is said --------------------------------------------------------------------------------


def test_the_rules_play_until_a_version_has_shown_that_it_is_better() -> None:
    log = ScriptedLog(seed=2)
    assert "the rules play every match; no version is tried now" in text_of(log)
    early(log)
    text = text_of(log)
    assert "the rules play; version 4 is tried in 20% of the matches" in text
    assert "if its mean result is 20 points above that of the rules (50%, not" in flat(text)
    log = ScriptedLog(seed=2)
    promoted(log)
    text = text_of(log)
    assert "version 4 (champion) plays; the rules keep 10% of the matches" in text
    assert "Why         promoted: better than the rules; version 4: " in text


def test_a_server_is_told_by_its_segments_and_their_score() -> None:
    log = ScriptedLog(seed=2)
    early(log)
    log.append(Ordered(order="pause", words="no rematch of this match"))
    status = promotion_status(history(log.records), pinned=None, served=True)
    text = flat(describe_promotion(status, run="runs/match", at=log.now, mode="serve"))
    assert "mode auto" not in text, "evidence decides on this server"
    assert "version 4 is tried in 20% of the segments" in text
    assert "that of the rules (50%, not known yet). 8 of 10" in text, "a score has no ties"
    assert "Results     player     segments  mean result  95% interval  against" in text
    assert "no rematch of this segment" in text
    assert text.count("match") == text.count("runs/match") + 1
    narrow = describe_promotion(status, run="r", at=0.0, width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    other = describe_promotion(status_of(log), run="r", at=0.0, mode="serve")
    assert "Mode        serve; what follows holds for matches of mode auto" in other


def test_a_test_is_told_with_both_arms_its_evidence_and_its_interval() -> None:
    log = ScriptedLog(seed=2)
    tried(log)
    [test] = status_of(log).tests
    results = [
        (assigned.arm, record.result)
        for (_, record), (_, assigned) in zip(log.records[3::2], log.records[2::2], strict=True)
        if isinstance(record, Resolved) and isinstance(assigned, Assigned)
    ]
    for arm, found in (("canary", test.canary), ("incumbent", test.incumbent)):
        mine = [result for one, result in results if one == arm]
        assert found.matches == len(mine)
        assert found.mean == pytest.approx(np.mean(mine))
    assert test.interval is not None and test.interval[0] < 0.15 < test.interval[1]
    assert (test.better_enough, test.worse_enough, test.share) == (20.0, 4.0, 0.5)
    assert test.since == log.records[1][1].at
    text = text_of(log)
    assert f"of {test.canary.matches} (" in text and "90% confidence" in text


def test_open_matches_and_results_that_wait_for_them() -> None:
    log = ScriptedLog(seed=2)
    tried(log)
    log.assign()
    order, _ = log.assign()
    log.append(Resolved(order=order, result=1.0))
    status = status_of(log)
    assert (status.open, status.waiting, status.matches) == (1, 1, 82)
    assert "1 match of 82 assigned; 1 result waits for an earlier match" in text_of(log)


def test_a_recheck_suspends_the_test_of_a_version() -> None:
    log = ScriptedLog(seed=2)
    rechecked(log)
    status = status_of(log)
    recheck, test = status.tests
    assert recheck.recheck and recheck.share == pytest.approx(0.45)
    assert test.version == 9 and test.share == 0.0
    rows = promotion_lines(status)
    assert {label for label, _ in rows[1:]} == {""} and rows[0][0] == "Promotion"
    assert "version 9 " in " ".join(row for _, row in rows)
    text = text_of(log)
    assert "is rechecked\n            against the rules" in text
    assert "the test of version 9 waits for the recheck" in text
    rolled_back(other := ScriptedLog(seed=2))
    assert "the rules play every match" in text_of(other)
    assert "more matches before another test" in text_of(other)


def test_what_the_state_alone_says_is_the_same() -> None:
    log = ScriptedLog(seed=2)
    rechecked(log)
    whole = status_of(log)
    brief = brief_status(log.state, log.verdicts, pinned=None)
    for one, other in zip(brief.tests, whole.tests, strict=True):
        assert (one.better, one.worse, one.canary) == (other.better, other.worse, other.canary)
    assert brief.why == whole.why and brief.incumbent == whole.incumbent


def test_the_pace_of_several_machines_needs_no_common_clock() -> None:
    log = ScriptedLog(seed=2)
    for number in range(40):
        log.session, log.now = (
            ("one/1/a", 1e9 + 600.0 * number) if number % 2 else ("two/1/b", 5e8 + 600.0 * number)
        )
        log.assign()
    assert matches_per_hour(history(log.records).matches) == pytest.approx(6.0)
    assert matches_per_hour(()) is None


def test_the_time_between_two_sessions_is_no_pace() -> None:
    log = ScriptedLog(seed=2)
    log.play(20, {0: 0.5})
    log.now += 16 * 3600.0
    log.play(20, {0: 0.5})
    assert matches_per_hour(history(log.records).matches) == pytest.approx(6.0)


def test_matches_of_the_holdout_are_time_that_a_test_does_not_get() -> None:
    log = ScriptedLog(seed=2)
    promoted(log)
    log.nominate(5, first_canaries=0)
    log.play(40, {0: 0.5, 4: 0.6, 5: 0.6})
    status = status_of(log)
    [test] = status.tests
    assert status.holdout == 0.1 and test.expected is not None
    assert test.expected.seconds == pytest.approx(600.0 * test.expected.matches / 0.9)


def test_practice_is_time_that_a_test_does_not_get_and_no_result() -> None:
    log = ScriptedLog(seed=2)
    log.practice = 7
    log.nominate(5, first_canaries=0)
    log.play(60, {0: 0.5, 5: 0.6, 7: 0.6})
    status = status_of(log)
    [test] = status.tests
    assert status.practice_now == PRACTICE_SHARE and test.expected is not None
    counted = test.expected.matches / (1.0 - PRACTICE_SHARE)
    assert test.expected.seconds == pytest.approx(600.0 * counted)
    practised = sum(one.practises for one in history(log.records).matches)
    assert practised and {one.version for one in status.results} == {0, 5}
    assert sum(one.matches for one in status.results if not one.stratum) == 60 - practised


def test_practice_is_shown_in_the_screen_the_table_and_the_story() -> None:
    log = ScriptedLog(seed=2)
    log.practice = 7
    log.nominate(5, first_canaries=0)
    log.play(80, {0: 0.5, 5: 0.6, 7: 0.6})
    told = history(log.records)
    practised = [one for one in told.matches if one.practises]
    table = csv_bytes([MATCH_COLUMNS, *match_rows(told)]).decode()
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["arm"] == "practice"]
    assert len(rows) == len(practised) > 5
    for row in rows:
        assert (row["practice"], row["version"], row["test"]) == (str(PRACTICE_SHARE), "7", "")
        assert row["result"] in ("0.0", "1.0") and row["better"] == "", "shown, and not counted"
    story = story_of(told, 7)
    assert (story.practised.matches, story.record.matches) == (len(practised), 0)
    text = story_text(story)
    assert "Version     7: it was never tested" in text
    assert f"of {len(practised)} (" in text and "these count for no test" in flat(text)
    assert story_of(told, 5).practised.matches == 0
    screen = flat(text_of(log))
    assert f"Practice    {len(practised)} matches, which count for no test; " in screen
    assert "of 4 against it" in screen


def test_results_are_bounded_and_the_rules_are_always_there() -> None:
    log = ScriptedLog(seed=2)
    for number in range(30):
        log.play(1, {0: 0.5}, stratum=f"opponent={number}")
    rows = results_of(history(log.records).matches, most=5)
    assert len([one for one in rows if one.stratum]) == 5
    assert [(one.version, one.matches) for one in rows if not one.stratum] == [(0, 30)]


def test_the_table_of_matches_has_the_evidence_after_each() -> None:
    log = ScriptedLog(seed=2)
    promoted(log)
    order, _ = log.assign()
    told = history(log.records)
    table = csv_bytes([MATCH_COLUMNS, *match_rows(told)]).decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == len(told.matches)
    last = rows[-2]
    assert float(last["better"]) >= 20.0 and last["ending"] == "finished"
    assert (rows[-1]["order"], rows[-1]["ending"], rows[-1]["better"]) == (str(order), "", "")


# --- the story of a version ----------------------------------------------------------------------


def test_the_story_has_every_match_behind_the_verdict() -> None:
    log = ScriptedLog(seed=2)
    rolled_back(log)
    told = history(log.records)
    story = story_of(told, 4)
    test, recheck = story.trials
    assert [one.kind for one in story.verdicts] == ["nominated", "promoted", "alarm", "rolled back"]
    assert test.matches[-1].better >= 20.0 > test.matches[-2].better
    assert all((one.coin < one.share) is (one.version == 4) for one in test.matches)
    assert recheck.recheck and recheck.ending is not None
    assert recheck.ending.kind == "rolled back"
    assert story.role == "retired" and story.record.matches > len(test.matches) / 2
    text = story_text(story)
    assert f"The last 20 of {len(test.matches)} matches:" in text
    assert f"{test.matches[-1].match[:8]}  4" in text
    assert "its recheck showed that it is worse than the rules" in text


def test_a_test_that_another_verdict_ended_says_so() -> None:
    log = ScriptedLog(seed=2)
    rolled_back(log)
    story = story_of(history(log.records), 9)
    assert [one.kind for one in story.verdicts] == ["nominated", "closed"]
    assert "the champion was rolled back" in story_text(story)


def test_a_version_without_a_story_is_an_error_that_says_what_there_is() -> None:
    log = ScriptedLog(seed=2)
    with pytest.raises(
        RunFolderError, match=r"version 3 was never tested .* no version was so far"
    ):
        story_of(history(log.records), 3)
    tried(log)
    with pytest.raises(RunFolderError, match=r"version 3 was never .* were: 4 \(canary\)"):
        story_of(history(log.records), 3)


def test_every_verdict_has_words() -> None:
    from typing import get_args

    from understudy.gates.promotion.roles import VerdictKind

    assert set(VERDICTS) == set(get_args(VerdictKind))
    for kind in VERDICTS:
        verdict = PromotionVerdict(1, 7, kind, "so it is")  # type: ignore[arg-type]
        line = verdict_line(verdict, Path("runs/zerg"))
        assert line.endswith(": so it is") and "{" not in line


def test_the_rules_have_a_story() -> None:
    log = ScriptedLog(seed=2)
    promoted(log)
    log.append(Ordered(order="pause"))
    story = story_of(history(log.records), 0)
    assert (story.role, story.tested_against, story.verdicts) == ("rules", (4,), ())
    text = story_text(story)
    assert text.startswith("Version     the rules: they play while no version is better")
    assert "tested against the rules: 4" in text and "it never played" not in text
    assert "paused" not in text
    assert story_of(history(ScriptedLog().records), 0).record.matches == 0


def test_a_simulated_test_that_asks_shows_the_pairs_that_were_counted() -> None:
    log = ScriptedLog()
    log.append(Declared(rules="v1", policy="manual"))
    test = log.append(Nominated(version=7, simulator=True))
    while not any(one.kind == "asks" for one in log.verdicts):
        log.pair(test, [1.0] * 16, [0.0] * 16)
    counted = log.state.test.paired  # type: ignore[union-attr]
    assert counted % 16, "the verdict fell inside a record"
    for ended in (False, True):
        if ended:
            log.append(Ordered(order="approve", version=7))
        [trial] = history(log.records).trials
        assert len(trial.pairs) == len(trial.looks.better) == counted


def test_pairs_are_told_as_pairs() -> None:
    log = ScriptedLog(seed=2)
    simulated(log)
    [test] = status_of(log).tests
    assert test.simulator and test.matches == 6 and test.expected is not None
    assert test.expected.seconds is None
    assert "            pairs         6; it ends after 300" in text_of(log)
    told: PromotionHistory = history(log.records)
    assert [one.other for one in story_of(told, 7).trials[0].matches][:2] == [0.0, 0.0]


def test_every_column_of_the_tables_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for table, columns in (
        ("promotion_matches.csv", MATCH_COLUMNS),
        ("win_rates.csv", played.COLUMNS),
    ):
        section = page.split(f"\n## {table}\n")[1].split("\n## ")[0]
        rows = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        assert rows == list(columns)
