"""Practice: who practises, with what probability, when it is suspended, and what it never does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.gates.promotion import evidence, roles
from understudy.gates.promotion.practice import (
    SUSPENSIONS,
    PracticeArm,
    PracticeVerdict,
    RecentResults,
    practised,
)
from understudy.gates.promotion.records import Assigned, Declared, Resolved, TrialSettings

from .promotion_worlds import PRACTICE_SHARE, Story, random_world, uniform_of

SHARES = st.floats(0.0, 0.99)


@pytest.fixture
def story() -> Story:
    told = Story(TrialSettings(first_share=0.5, cool_down=4, misfit=1e9))
    told.say(Declared(rules="v1"))
    return told


def practise_until(story: Story, kind: str, *, practice: float, incumbent: float) -> int:
    """Matches until something of practice is decided: one of practice after four others."""
    for match in range(1, 2000):
        arm = "practice" if match % 5 == 0 and not story.state.practice.suspended else "incumbent"
        result = practice if arm == "practice" else incumbent
        kinds = story.match(arm, result, practice=7)  # type: ignore[arg-type]
        if kinds:
            assert kinds == [kind]
            return match
    raise AssertionError(f"practice is not {kind}")


# --- the coin ------------------------------------------------------------------------------------


@given(SHARES, SHARES, st.floats(0.01, 0.99), st.floats(0.0, 1.0, exclude_max=True))
def test_each_uniform_number_has_one_arm_and_its_record_has_the_probabilities(
    holdout: float, practice: float, share: float, uniform: float
) -> None:
    coin = roles.Shares(3, 4, 2, share, holdout, practice=9, practice_share=practice)
    record = roles.assigned(coin, uniform, match="m")
    # The slices of [0, 1) lie next to each other: holdout, practice, canary, incumbent.
    ends = np.cumsum(
        [
            holdout,
            (1.0 - holdout) * practice,
            (1.0 - holdout) * (1.0 - practice) * share,
        ]
    )
    arms = ("holdout", "practice", "canary", "incumbent")
    place = int(np.searchsorted(ends, uniform, side="right"))
    if np.abs(ends - uniform).min() > 1e-12:
        assert record.arm == arms[place]
    assert record.version == {"holdout": 0, "practice": 9, "canary": 4, "incumbent": 2}[record.arm]
    assert (record.holdout, record.practice, record.share) == (holdout, practice, share)
    assert record.test == (0 if record.arm == "practice" else 3)


def test_without_practice_a_coin_falls_as_before() -> None:
    """Bit by bit, since the coins of old logs are recomputed."""
    rng = np.random.default_rng(0)
    for uniform, holdout, share in rng.random((300, 3)).tolist():
        coin = roles.Shares(1, 4, 3, share, holdout)
        canary = (uniform - holdout) / (1.0 - holdout) < share
        expected = "holdout" if uniform < holdout else "canary" if canary else "incumbent"
        assert roles.draw(coin, uniform)[0] == expected


def test_the_recorded_probabilities_are_the_frequencies(story: Story) -> None:
    story.nominate(1)
    assert story.matches(1.0, 0.0, 100) == ["promoted"]
    story.nominate(2)
    coin = roles.shares(story.state, practice=7, practice_share=0.2)
    drawn = np.random.default_rng(1).random(20_000).tolist()
    arms = [roles.draw(coin, one) for one in drawn]
    expected = {
        ("holdout", 0): 0.1,
        ("practice", 7): 0.9 * 0.2,
        ("canary", 2): 0.9 * 0.8 * 0.5,
        ("incumbent", 1): 0.9 * 0.8 * 0.5,
    }
    assert set(arms) == set(expected)
    for arm, share in expected.items():
        assert arms.count(arm) / len(arms) == pytest.approx(share, abs=0.015)  # type: ignore[arg-type]


def test_no_version_practises_while_it_may_not(story: Story) -> None:
    def practises(version: int = 7) -> bool:
        coin = roles.shares(story.state, practice=version, practice_share=0.2)
        assert (coin.practice is None) == (coin.practice_share == 0.0)
        return coin.practice is not None

    assert practises() and not practises(0)
    assert roles.shares(story.state, practice=7).practice is None, "its share is 0"
    story.order("pause")
    assert not practises()
    assert roles.practice_refused(story.state, 7) == "promotion is paused"
    story.order("resume")
    story.nominate(5)
    story.order("stop", version=5)
    assert not practises(5)
    assert roles.practice_refused(story.state, 5) == "version 5 was tried, and plays no more"
    story.nominate(1)
    assert practises(), "beside a canary"
    assert story.matches(1.0, 0.0, 100) == ["promoted"]
    assert practises() and not practises(1), "beside a champion, which does not practise itself"
    assert story.plays(0.0, 100) == ["alarm"]
    assert not practises()
    assert roles.practice_refused(story.state, 7) == "champion 1 is being rechecked"


# --- what it counts for --------------------------------------------------------------------------


def test_the_first_match_of_practice_is_told_and_remembered(story: Story) -> None:
    before = story.state.practice
    number = story.begin("practice", practice=7)
    assert (before.begun, story.state.practice.begun) == (False, True), "once it is assigned"
    assert story.verdicts[-1] == roles.PromotionVerdict(
        number, 7, "practising", "the newest plays 25% of matches to learn; they count for no test"
    )
    story.end(number, 0.0, "vanished")
    assert story.match("practice", 1.0, practice=8) == [], "told once"
    assert story.state.practice.version == 8
    assert story.say(Declared(rules="v2")) == []
    assert story.state.practice.begun and story.state.practice.recent == RecentResults()


def test_practice_is_in_no_record_and_raises_no_alarm(story: Story) -> None:
    story.nominate(1)
    late = story.begin("practice", practice=5)
    assert story.match("canary", 1.0) == []
    story.order("approve", 5)
    story.end(late, 0.0)
    assert story.state.records == {1: story.state.records[1]}
    assert story.state.reigns[-1].first.matches == 0, "its promise is learned from other matches"
    test = story.state.test
    assert test is None and story.state.practice.recent.matches == 1


def test_a_cool_down_counts_no_practice(story: Story) -> None:
    story.state = replace(story.state, cool_down=3)
    story.match("practice", 1.0, practice=7)
    assert story.state.cool_down == 3
    story.match("incumbent", 1.0, practice=7)
    assert story.state.cool_down == 2


# --- suspension ----------------------------------------------------------------------------------


def test_practice_that_loses_is_suspended_ever_longer_and_begins_anew(story: Story) -> None:
    story.match("practice", 1.0, practice=7)
    lengths = []
    for _ in range(5):
        practise_until(story, "suspended", practice=0.0, incumbent=1.0)
        lengths.append(story.state.practice.suspended)
        coin = roles.shares(story.state, practice=7, practice_share=0.2)
        assert coin.practice is None
        assert not story.state.practice.promising
        waited = practise_until(story, "practising", practice=0.0, incumbent=1.0)
        assert waited == lengths[-1]
        assert story.state.practice.worse == 1.0
        assert story.state.practice.recent.matches == 0
    assert lengths == [*SUSPENSIONS, 400] == [50, 100, 200, 400, 400]
    words = story.verdicts[-2].words
    assert words.startswith("worse than the rules; practice: 0% recently in ")
    assert words.endswith("(enough: 4); no practice for 400 matches")


def test_practice_is_suspended_at_the_harm_of_the_run_before_any_nomination(story: Story) -> None:
    story.match("practice", 1.0, practice=7)
    soon = practise_until(story, "suspended", practice=0.0, incumbent=1.0)
    late = Story(TrialSettings())
    late.say(Declared(rules="v1", harm=40.0))
    late.match("practice", 1.0, practice=7)
    assert practise_until(late, "suspended", practice=0.0, incumbent=1.0) > soon
    assert "(enough: 40)" in late.verdicts[-1].words
    with pytest.raises(ValueError, match=r"`harm` is 1\.0: expected evidence above 1"):
        Declared(rules="v1", harm=1.0)


def test_a_suspension_after_a_long_time_of_practice_is_short_again(story: Story) -> None:
    story.match("practice", 1.0, practice=7)
    practise_until(story, "suspended", practice=0.0, incumbent=1.0)
    practise_until(story, "practising", practice=0.0, incumbent=1.0)
    for _ in range(100):
        assert story.match("practice", 1.0, practice=7) == []
        assert story.match("incumbent", 1.0, practice=7) == []
    practise_until(story, "suspended", practice=0.0, incumbent=1.0)
    assert story.state.practice.suspended == 50 and story.state.practice.in_a_row == 1


def test_matches_of_practice_that_end_during_a_suspension_change_nothing(story: Story) -> None:
    story.match("practice", 1.0, practice=7)
    for _ in range(200):
        late = story.begin("practice", practice=7)
        kinds = [
            *story.match("incumbent", 1.0, practice=7),
            *story.match("practice", 0.0, practice=7),
        ]
        assert kinds == []
        kinds = story.end(late, 0.0)
        if story.state.practice.suspended:
            break
    before = story.state.practice
    late = story.begin(uniform_of(roles.Shares(0, None, 0, 0.0, 0.0), "incumbent"))
    assert story.state.practice == before
    story.end(late, 1.0)
    assert story.state.practice == replace(before, suspended=before.suspended - 1)


def test_another_incumbent_is_compared_from_its_first_match_on(story: Story) -> None:
    for _ in range(30):
        story.match("incumbent", 1.0, practice=7)
        story.match("practice", 0.9, practice=7)
    assert story.state.practice.worse > 1.0 and not story.state.practice.promising
    story.order("approve", 4)
    for _ in range(20):
        story.match("incumbent", 0.2, practice=7)
    practice = story.state.practice
    assert practice.against == 4 and practice.incumbent.mean == pytest.approx(0.2)
    assert practice.recent.matches == 30 and practice.promising


def test_recent_results_forget() -> None:
    recent = RecentResults()
    assert recent.mean == 0.0
    for result in [0.0] * 50 + [1.0] * 50:
        recent = recent.with_result(result)
    weights = 0.98 ** np.arange(100)
    assert recent.mean == pytest.approx(weights[:50].sum() / weights.sum())
    assert recent.matches == 100


# --- its evidence --------------------------------------------------------------------------------


def slow_worse(coins: list[Assigned], results: list[float]) -> float:
    """The evidence against practice by the formulas of a test."""
    arms = np.array([float(coin.arm == "practice") for coin in coins])
    p = np.array([coin.practice for coin in coins])
    s = np.array([coin.share for coin in coins])
    forecasts = []
    for n in range(len(coins)):
        weight, total = 2.0, 1.0
        for arm in (0.0, 1.0):
            mine = [y for y, one in zip(results[:n], arms, strict=False) if one == arm]
            kept = 0.98 ** np.arange(len(mine))[::-1]
            weight, total = weight + kept.sum(), total + float(kept @ mine)
        forecasts.append(total / weight)
    gained = evidence.gains(
        arms, p / (p + (1 - p) * (1 - s)), np.array(results), np.array(forecasts)
    )
    return float(evidence.evidence(evidence.grow(evidence.new_capital(), -gained)[-1]))


def test_the_evidence_against_practice_is_that_of_a_test() -> None:
    rng = np.random.default_rng(3)
    coins, results, arm = list[Assigned](), list[float](), PracticeArm()
    for number in range(1, 61):
        practice, share = rng.uniform(0.1, 0.6, 2).tolist()
        name = "practice" if rng.random() < practice else "incumbent"
        coin = Assigned(match="m", arm=name, version=0, practice=practice, share=share)  # type: ignore[arg-type]
        result = float(rng.random())
        arm, changes = practised(
            arm, [(number, coin, Resolved(order=number, result=result))], harm=1e9, since=0
        )
        assert not changes
        coins.append(coin)
        results.append(result)
        assert arm.worse == pytest.approx(slow_worse(coins, results), rel=1e-9)


def practice_matches(
    rates: list[tuple[float, float]], *, share: float, seed: int
) -> tuple[list[PracticeVerdict], int]:
    """Suspensions in matches of these win rates of practice and incumbent; matches of practice."""
    rng, arm, seen, played = np.random.default_rng(seed), PracticeArm(), list[PracticeVerdict](), 0
    for number, (of_practice, of_incumbent) in enumerate(rates, 1):
        p = 0.0 if arm.suspended else share
        practises = bool(rng.random() < p)
        coin = Assigned(
            match="m",
            arm="practice" if practises else "incumbent",
            version=7 if practises else 0,
            practice=p,
        )
        result = float(rng.random() < (of_practice if practises else of_incumbent))
        played += practises
        arm, changes = practised(
            arm, [(number, coin, Resolved(order=number, result=result))], harm=4.0, since=0
        )
        seen += [one for one in changes if one.kind == "suspended"]
    return seen, played


def test_practice_that_wins_25_points_less_is_suspended_soon_and_equal_practice_seldom() -> None:
    worse = [practice_matches([(0.25, 0.5)] * 400, share=0.2, seed=one)[0] for one in range(60)]
    first = [one[0].sequence if one else 400 for one in worse]
    assert np.median(first) < 100
    equal = [practice_matches([(0.5, 0.5)] * 400, share=0.2, seed=one)[0] for one in range(60)]
    assert np.mean([bool(one) for one in equal]) < 0.35


def test_practice_that_breaks_down_after_a_good_time_is_suspended() -> None:
    rates = [(0.7, 0.5)] * 600 + [(0.2, 0.5)] * 500
    seen = [practice_matches(rates, share=0.2, seed=one)[0] for one in range(10)]
    late = [[one.sequence for one in run if one.sequence > 600] for run in seen]
    assert sum(map(bool, late)) >= 9


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_practice_is_the_same_wherever_a_process_is_killed(seed: int) -> None:
    """What is read again from the log, up to any record, is what was known there."""
    story = random_world(seed)
    seen = [roles.PromotionState()]
    for numbered in story.log:
        seen.append(roles.fold(seen[-1], [numbered])[0])
    for cut in range(0, len(story.log), 37):
        again, _ = roles.fold(roles.PromotionState(), story.log[:cut])
        assert again.practice == seen[cut].practice
    assert any(state.practice.worse not in (0.0, 1.0) for state in seen)
    assert PRACTICE_SHARE in {one.practice for _, one in story.log if isinstance(one, Assigned)}


def test_a_lead_counts_in_standard_errors() -> None:
    rng = np.random.default_rng(0)

    def results(mean: float) -> RecentResults:
        recent = RecentResults()
        for result in rng.normal(mean, 0.1, 400):
            recent = recent.with_result(float(result))
        return recent

    recent, incumbent = results(0.55), results(0.5)
    # With a weight of 0.98 for each match that follows about 99 of them count.
    assert recent.error == pytest.approx(0.1 / np.sqrt(99), rel=0.2)
    arm = PracticeArm(recent=recent, incumbent=incumbent)
    expected = (recent.mean - incumbent.mean) / np.hypot(recent.error, incumbent.error)
    assert arm.lead == pytest.approx(expected) and 2.0 < arm.lead < 6.0
    assert PracticeArm(recent=recent).lead == 0.0, "nothing to compare with"
    flat = RecentResults().with_result(1.0).with_result(1.0)
    assert flat.error == 0.0
    assert PracticeArm(recent=flat, incumbent=flat).lead == 0.0
