"""When a verdict is due: made-up logs whose answer is known, and how often the range holds."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from understudy.core.config import PromotionConfig
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.practice import PracticeArm
from understudy.gates.promotion.records import Declared, Nominated, Ordered, Resolved, TrialSettings
from understudy.gates.promotion.running import RunningTest
from understudy.promotion.expectation import expected_verdict, next_verdict
from understudy.promotion.history import MatchColumns, history
from understudy.promotion.report import promotion_status
from understudy.telemetry.promotion_lines import describe_promotion
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import ExpectedVerdict, PromotionStatus

from .scripted import ScriptedLog

NO_PAIRS = np.zeros((0, 2))


def steady(
    canary: float, incumbent: float = 0.5, *, matches: int = 60, **settings: object
) -> ScriptedLog:
    """Win rates that are as near to these as they can be after every match."""
    log = ScriptedLog(seed=11)
    log.nominate(4, first_canaries=0, **settings)
    rates = {4: canary, 0: incumbent}
    wins, played = {4: 0, 0: 0}, {4: 0, 0: 0}
    for _ in range(matches):
        order, assigned = log.assign()
        one = assigned.version
        played[one] += 1
        won = wins[one] < round(rates[one] * played[one])
        wins[one] += won
        log.now += 600.0
        log.append(Resolved(order=order, result=float(won)))
    return log


def status_of(log: ScriptedLog, pinned: int | None = None) -> PromotionStatus:
    return promotion_status(history(log.records), pinned=pinned)


def expected(log: ScriptedLog) -> ExpectedVerdict:
    [test] = status_of(log).tests
    assert test.expected is not None
    return test.expected


def text_of(status: PromotionStatus) -> str:
    """The whole screen without the breaks at 80 columns."""
    text = describe_promotion(status, run="runs/zerg", at=1e9, width=80)
    assert max(map(len, text.splitlines())) <= 80
    return text.replace("\n            ", " ")


# --- a test that runs ----------------------------------------------------------------------------


def test_50_to_70_percent_is_expected_to_take_about_160_matches() -> None:
    """The median of simulated tests is 163 (docs/benchmarks.md)."""
    status = status_of(steady(0.7))
    [test] = status.tests
    due = test.expected
    assert due is not None and due.kind == "better"
    assert 110 <= 60 + due.matches <= 200
    assert due.fewest < due.matches < due.most <= 540
    assert 0.5 < due.better < 1.0 and due.better + due.worse <= 1.0
    assert status.matches_per_hour == pytest.approx(6.0)
    assert due.pace == pytest.approx(6.0) and due.seconds == pytest.approx(600.0 * due.matches)
    text = text_of(status)
    assert f"promoted in about {due.matches} more matches (" in text
    assert "at the pace so far), if both go on as so far. 8 of 10 such tests end after" in text
    assert f"{due.fewest} to {due.most} more (" in text


def test_what_to_expect_follows_the_difference() -> None:
    assert expected(steady(0.8, matches=30)).matches < expected(steady(0.7, matches=30)).matches
    worse = expected(steady(0.3, matches=20))
    assert worse.kind == "worse" and worse.matches < 80
    equal = expected(steady(0.5, matches=90))
    assert equal.kind == "undecided" and equal.better < 0.1
    assert 10 <= equal.matches <= 210, "hopeless from match 100 on, undecided at 300 at the latest"


def test_the_end_of_a_test_is_never_expected_after_its_last_match() -> None:
    due = expected(steady(0.6, matches=50, long=60, longest=70, short=60))
    assert 1 <= due.fewest <= due.most <= 20
    assert due.kind == "undecided"
    text = text_of(status_of(steady(0.5, matches=58, long=60, longest=60)))
    assert "promoted: never, at this difference; ended undecided in about 2 more matches" in text


def test_before_the_first_results_an_assumption_is_told() -> None:
    log = ScriptedLog(seed=2)
    log.play(40, {0: 0.9})
    mean = log.state.records[0].mean
    log.nominate(4)
    due = expected(log)
    gain = 100 * (1.0 - mean) / 2.0
    assert due.assumption == (
        f"if its mean result is {gain:.0f} points above that of the rules ({mean:.0%}, a tie "
        "counts half)"
    )
    log = ScriptedLog(seed=2)
    log.nominate(4)
    due = expected(log)
    assert due.assumption == (
        "if its mean result is 20 points above that of the rules (50%, not known yet, a tie counts "
        "half)"
    )
    assert 0.8 <= due.better <= 1.0, "90% of such tests promote (docs/benchmarks.md)"
    assert 120 <= due.matches <= 200 and due.seconds is None


def test_scores_that_lie_close_together_are_decided_sooner_than_wins() -> None:
    """A score with spread .2 that moves from .5 to .6 needs about 80 matches, wins about 700."""

    def columns(spread: float) -> MatchColumns:
        rng = np.random.default_rng(1)
        arms = np.arange(40) % 2.0
        results = np.clip(0.5 + 0.1 * arms + spread * rng.standard_normal(40), 0.0, 1.0)
        if not spread:
            results = (np.arange(40) // 2 % 10 < 5 + arms).astype(np.float64)
        return MatchColumns(arms, np.full(40, 0.5), results, np.zeros(40, np.int64))

    def due(seen: MatchColumns) -> ExpectedVerdict:
        settings = TrialSettings(first_canaries=0)
        trial, _ = gate.advance(gate.new_trial(), settings, alpha=0.05, **seen._asdict())
        now = RunningTest(
            number=1, version=4, against=0, alpha=0.05, settings=settings, trial=trial
        )
        found = expected_verdict(now, columns=seen, pairs=NO_PAIRS)
        assert found is not None
        return found

    scores, wins = due(columns(0.2)), due(columns(0.0))
    assert scores.better > wins.better + 0.2


def test_pairs_and_a_person_who_is_asked() -> None:
    log = ScriptedLog(seed=2)
    test = log.append(Nominated(version=7, simulator=True, reason="new"))
    log.pair(test, [1.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    [few] = status_of(log).tests
    assert few.expected is None and "too early to say" in text_of(status_of(log))
    log.pair(test, [1.0, 0.5, 1.0, 0.0], [0.0, 0.5, 1.0, 1.0])
    due = expected(log)
    assert due.seconds is None and due.pace is None and due.most <= 600
    manual = steady(0.7)
    manual.append(Declared(rules="v1", policy="manual"))
    assert "better, and a person asked in about" in text_of(status_of(manual))


def test_the_same_log_gives_the_same_range() -> None:
    assert expected(steady(0.6)) == expected(steady(0.6))


def test_the_range_holds_the_end_of_eight_tests_in_ten() -> None:
    """50 to 70%, told before the first match; later moments: benchmarks/promotion_gate.py."""
    due = next_verdict(TrialSettings(), alpha=0.05, against=0, incumbent_mean=0.5)
    rng, settings, runs = np.random.default_rng(5), TrialSettings(), 400
    now = gate.new_trial(shape=(runs,))
    end = np.zeros(runs, int)
    for match in range(1, settings.longest + 1):
        shares = gate.canary_share(now, settings)
        arms = (rng.random(runs) < shares).astype(np.float64)
        results = (rng.random(runs) < np.where(arms == 1, 0.7, 0.5)).astype(np.float64)
        now, looks = gate.advance(
            now, settings, alpha=0.05, arms=arms[None], shares=shares[None],
            results=results[None], strata=np.zeros((1, runs), int),
        )  # fmt: skip
        end[(end == 0) & (looks.verdict[0] != gate.CONTINUE)] = match
    inside = np.mean((due.fewest <= end) & (end <= due.most))
    assert 0.7 <= inside <= 0.9
    assert np.median(end) == pytest.approx(due.matches, rel=0.25)


# --- no test -------------------------------------------------------------------------------------


def test_without_a_test_it_is_told_how_long_one_would_take() -> None:
    log = ScriptedLog(seed=2)
    log.play(40, {0: 0.5})
    status = status_of(log)
    due = status.next_test
    assert due is not None and not status.never
    assert due.seconds == pytest.approx(600.0 * due.matches)
    assert f"once a test begins, a verdict in about {due.matches} more matches (" in text_of(status)
    log.nominate(4)
    assert status_of(log).next_test is None


def test_no_verdict_while_a_person_or_the_policy_stands_against_it() -> None:
    log = steady(0.7)
    pinned = status_of(log, pinned=4)
    assert pinned.never == "a champion is pinned, and nothing is tried"
    assert "Expect      no verdict: a champion is pinned" in text_of(pinned)
    log = ScriptedLog(seed=2)
    log.append(Ordered(order="pause"))
    paused = status_of(log)
    assert paused.never == "promotion is paused, and no test begins" and paused.next_test is None
    log.append(Ordered(order="resume"))
    assert not status_of(log).never
    log.append(Declared(rules="v1", policy="latest"))
    assert status_of(log).never == "promotion.policy is 'latest', and no version is tried"


def test_a_copy_of_the_rules_that_does_not_practise_is_never_better() -> None:
    told = history(ScriptedLog(seed=2).records)
    off = promotion_status(told, pinned=None, config=PromotionConfig(practice_share=0.0))
    assert not off.never, "it is not known whether versions copy the rules"
    never = staged(off, agreement=0.97).never
    assert "decide as the rules do (97% of decisions)" in never and "practice_share is 0" in never
    assert not staged(off, agreement=0.6).never, "rules that vary leave something to learn"
    on = promotion_status(told, pinned=None)
    assert not staged(on, agreement=0.97).never
    assert not staged(msgspec.structs.replace(off, incumbent=3), agreement=0.97).never


def test_practice_that_is_suspended_again_and_again_leads_to_no_test() -> None:
    log = ScriptedLog(seed=2)
    log.practice = 7
    seen: list[str] = []
    for _ in range(1500):
        log.play(1, {0: 1.0, 7: 0.0})
        practice: PracticeArm = log.state.practice
        if practice.in_a_row > len(seen):
            seen.append(status_of(log).never)
        if len(seen) == 3:
            break
    assert seen[:2] == ["", ""]
    assert seen[2].startswith("practice was suspended 3 times in a row")
    assert "no verdict: practice was suspended 3 times" in text_of(status_of(log))
