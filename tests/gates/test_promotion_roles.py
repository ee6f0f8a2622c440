"""Who plays, and why: each verdict of the promotion gate, told record by record."""

from __future__ import annotations

import msgspec
import pytest

from understudy.gates.promotion import roles
from understudy.gates.promotion.evidence import evidence
from understudy.gates.promotion.records import (
    Assigned,
    Declared,
    Paired,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.running import RunningTest, VersionRecord, alpha_of

from .promotion_worlds import Story, plain, random_world

EVEN = TrialSettings(first_share=0.5, cool_down=4, misfit=1e9)
"""Even from the first match on: a story need not wait for the canary."""


@pytest.fixture
def story() -> Story:
    told = Story(EVEN)
    told.say(Declared(rules="v1"))
    return told


def with_champion(story: Story, version: int = 1) -> Story:
    story.nominate(version)
    assert story.matches(1.0, 0.0, 100) == ["promoted"]
    return story


def rechecked(story: Story) -> Story:
    """A champion whose results have broken down."""
    with_champion(story)
    assert story.plays(0.0, 100) == ["alarm"]
    return story


def e_of(test: RunningTest | None) -> float:
    assert test is not None
    return float(evidence(test.trial.better))


# --- one test ------------------------------------------------------------------------------------


def test_a_better_canary_becomes_champion_and_the_words_say_why(story: Story) -> None:
    assert story.nominate(7, reason="20% more experience") == ["nominated"]
    assert story.matches(1.0, 0.0, 100) == ["promoted"]
    assert story.state.champion == 7 and story.state.roles == {7: "champion"}
    words = story.verdicts[-1].words
    assert words.startswith(
        "better than the rules; version 7: 100% in 3 matches, the rules: 0% in 4; evidence for"
    )
    assert "(enough: 20), against it 0." in words


def test_a_canary_that_loses_is_stopped_as_harmful(story: Story) -> None:
    story.nominate(1)
    assert story.matches(0.0, 1.0, 100) == ["harmful"]
    assert story.state.champion is None and story.state.roles == {1: "retired"}


def test_harmful_versions_in_a_row_are_tried_ever_more_seldom(story: Story) -> None:
    waits = []
    for version in range(1, 6):
        story.nominate(version)
        assert story.matches(0.0, 1.0, 100) == ["harmful"]
        waits.append(story.state.cool_down)
        assert story.plays(1.0, story.state.cool_down) == []
    assert waits == [0, 25, 50, 100, 200]
    story.nominate(6)
    assert story.matches(1.0, 0.0, 100) == ["promoted"]
    story.nominate(7)
    assert story.matches(0.0, 1.0, 100) == ["harmful"] and story.state.cool_down == 0


def test_a_person_gives_the_matches_back_to_the_rules(story: Story) -> None:
    with_champion(story)
    story.order("approve", 2)
    story.nominate(3)
    assert story.order("approve", 0) == ["closed", "rolled back"]
    assert story.state.champion is None and roles.shares(story.state).incumbent == 0
    assert story.state.roles == {1: "retired", 2: "retired", 3: "retired"}
    assert story.verdicts[-1].words == "a person gave the matches back to the rules"


@pytest.mark.parametrize(
    ("hopeless", "kind", "matches"), [(0.2, "hopeless", 100), (0.0, "undecided", 300)]
)
def test_a_canary_without_a_difference_ends_its_test(
    hopeless: float, kind: str, matches: int
) -> None:
    story = Story(msgspec.structs.replace(EVEN, hopeless=hopeless))
    story.nominate(1)
    kinds: list[str] = []
    while not kinds:
        kinds = story.matches(1.0, 1.0, 1) or story.matches(0.0, 0.0, 1)
    assert kinds == [kind]
    assert f"in {matches // 2} matches, the rules: " in story.verdicts[-1].words


def test_results_that_depend_on_the_arm_by_void_matches_close_the_test() -> None:
    story = Story(TrialSettings(first_share=0.5, harm=1e9, alpha=1e-9, long=999, longest=999))
    story.nominate(1)
    for place in range(400):
        number = story.begin("canary" if place % 2 else "incumbent")
        kinds = story.end(number, 0.0, "void" if place % 2 and place % 3 else "finished")
        if kinds:
            break
    assert kinds == ["misfit"]
    assert "which the recorded coin does not explain" in story.verdicts[-1].words


def test_matches_count_in_the_order_of_their_assignment(story: Story) -> None:
    story.nominate(1)
    slow = story.begin("incumbent")
    for _ in range(30):
        assert story.matches(1.0, 0.0, 1) == []
    assert story.state.test is not None and int(story.state.test.trial.matches) == 0
    assert story.end(slow, 0.0, "vanished") == ["promoted"]
    assert story.verdicts[-1].sequence < slow + 30  # as if it had been resolved at once
    assert story.end(slow, 1.0) == []  # what comes later is noted, not counted


def test_a_vanished_match_counts_for_its_arm_and_a_void_one_does_not(story: Story) -> None:
    story.nominate(1)
    story.end(story.begin("canary"), 0.0, "vanished")
    story.end(story.begin("canary"), 0.0, "void")
    test = story.state.test
    assert test is not None and test.trial.arm_counts.tolist() == [0.0, 1.0]
    assert story.state.records[1].matches == 1


def test_a_late_result_of_a_closed_test_counts_for_the_record_alone(story: Story) -> None:
    story.nominate(1)
    late = story.begin("canary")
    story.order("stop")
    story.nominate(2)
    story.end(late, 1.0)
    test = story.state.test
    assert test is not None and int(test.trial.matches) == 0
    assert story.state.records[1] == VersionRecord(1, 1.0)


def test_pairs_of_a_simulator_promote_and_stop(story: Story) -> None:
    for version, canary, kind in ((1, 1.0, "promoted"), (2, 0.0, "harmful")):
        story.nominate(version, simulator=True)
        test = story.state.test
        assert test is not None and roles.shares(story.state).canary is None
        pairs = Paired(test=test.number, canary=(canary,) * 50, incumbent=(1.0 - canary,) * 50)
        assert story.say(pairs) == [kind]
        assert f"version {version}: {canary:.0%} in " in story.verdicts[-1].words
        assert story.say(pairs) == []  # the test is closed
    assert story.state.champion == 1


def test_a_version_that_a_simulator_promoted_learns_its_promise_from_its_first_matches(
    story: Story,
) -> None:
    story.nominate(1, simulator=True)
    pairs = Paired(test=len(story.log), canary=(0.8,) * 90, incumbent=(0.2,) * 90)
    assert story.say(pairs) == ["promoted"]
    assert story.state.reigns[-1].promise == 0.0
    assert story.plays(0.2, 30) == [], "against opponents that are stronger than the rules"
    assert 0.05 < story.state.reigns[-1].promise < 0.2


def test_a_reign_spends_less_on_every_further_test() -> None:
    settings = TrialSettings(spend="reign", reign_alpha=0.1)
    spent = [alpha_of(settings, test) for test in range(1, 20_000)]
    assert spent == sorted(spent, reverse=True)
    assert 0.08 < sum(spent) < 0.1
    assert alpha_of(TrialSettings(), 17) == 0.05


# --- a champion ----------------------------------------------------------------------------------


def test_a_champion_that_breaks_down_is_rechecked_and_rolled_back(story: Story) -> None:
    with_champion(story)
    coin = roles.shares(story.state)
    assert (coin.canary, coin.incumbent, coin.holdout) == (None, 1, 0.1)
    assert story.match("holdout", 1.0) == []
    assert story.plays(0.0, 100) == ["alarm"]
    assert story.verdicts[-1].words == "its results have fallen below the promised 33%"
    coin = roles.shares(story.state)
    assert (coin.canary, coin.incumbent, coin.share, coin.holdout) == (1, 0, 0.45, 0.0)
    assert story.matches(0.0, 1.0, 100) == ["rolled back"]
    assert story.state.champion is None and story.state.roles == {1: "retired"}
    assert story.verdicts[-1].words.endswith("the rules again")


def test_after_a_rollback_no_test_begins_for_some_matches(story: Story) -> None:
    rechecked(story).matches(0.0, 1.0, 100)
    assert story.nominate(2) == ["refused"]
    assert story.verdicts[-1].words == "4 more matches without a test"
    for _ in range(4):
        story.match("incumbent", 1.0)
    assert story.nominate(2) == ["nominated"]


def test_a_rechecked_champion_stays_unless_it_is_worse(story: Story) -> None:
    assert rechecked(story).matches(1.0, 0.0, 100) == ["kept"]
    assert story.state.champion == 1 and story.state.recheck is None
    assert not story.state.reigns[-1].alarm.any()
    assert story.plays(1.0, 50) == []


def test_a_recheck_of_a_few_matches_lowers_no_promise(story: Story) -> None:
    promise = with_champion(story).state.reigns[-1].promise
    for _ in range(5):
        assert story.plays(0.0, 100) == ["alarm"]
        assert story.matches(0.4, 0.0, 100) == ["kept"]
        assert story.verdicts[-1].words.endswith(f"from now on it is held to {promise:.0%}")
    assert story.state.reigns[-1].promise == promise


def test_a_recheck_of_many_matches_lowers_the_promise(story: Story) -> None:
    promise = with_champion(story).state.reigns[-1].promise
    assert story.plays(0.0, 100) == ["alarm"]
    assert story.matches(0.1, 0.1, 200) == ["kept"]
    assert 0.0 < story.state.reigns[-1].promise < promise / 2


def test_a_recheck_without_a_verdict_keeps_the_champion_after_the_long_time(story: Story) -> None:
    rechecked(story)
    kinds: list[str] = []
    while not kinds:
        kinds = story.matches(0.0, 0.0, 1) or story.matches(1.0, 1.0, 1)
    assert kinds == ["kept"]
    verdict = story.verdicts[-1]
    assert "in 150 matches" in verdict.words and "from now on it is held to" in verdict.words


def test_a_champion_is_rolled_back_to_the_former_one(story: Story) -> None:
    with_champion(with_champion(story, 1), 2)
    assert story.state.roles == {1: "former", 2: "champion"}
    assert story.plays(0.0, 100) == ["alarm"]
    assert story.matches(0.0, 1.0, 100) == ["rolled back"]
    assert story.state.champion == 1
    assert story.state.roles == {1: "champion", 2: "retired"}
    assert story.verdicts[-1].words.endswith("version 1 again")
    assert story.plays(0.0, 100) == ["alarm"]
    assert story.matches(0.0, 1.0, 100) == ["rolled back"]
    assert story.state.champion is None


def test_a_suspended_test_keeps_its_matches_and_goes_on_with_the_same_evidence(
    story: Story,
) -> None:
    with_champion(story)
    story.nominate(2)
    late = story.begin("canary")
    assert story.plays(0.0, 40) == []  # the first match holds up all of them
    suspended = story.begin("canary")
    assert story.end(late, 0.0) == ["alarm"]
    before = e_of(story.state.test)
    assert roles.shares(story.state).test == story.state.recheck.number  # type: ignore[union-attr]
    story.end(suspended, 1.0)
    counted = e_of(story.state.test)
    assert counted > before
    assert story.matches(1.0, 0.0, 100) == ["kept"]
    assert e_of(story.state.test) == counted
    assert roles.shares(story.state).canary == 2


def test_a_test_that_ends_with_the_match_of_the_alarm_is_closed_and_the_alarm_is_raised() -> None:
    story = Story(TrialSettings(first_share=0.5, long=2, longest=2, alarm=3.0))
    story.nominate(9)
    story.order("approve", 1)
    assert story.plays(1.0, 30) == []  # what it promises
    story.nominate(2)
    assert story.plays(0.0, 2) == ["undecided", "alarm"]


# --- a person's word -----------------------------------------------------------------------------


def test_with_policy_manual_a_person_is_asked_once(story: Story) -> None:
    story.say(Declared(rules="v1", policy="manual"))
    story.nominate(1)
    assert story.matches(1.0, 0.0, 100) == ["asks"]
    assert story.matches(0.5, 0.5, 400) == []  # neither asked again nor undecided
    assert story.order("approve", 1) == ["promoted"]
    assert story.verdicts[-1].words.startswith("a person approved it; version 1: ")
    assert story.state.reigns[-1].promise > 0.0


def test_a_pause_stops_promotions_and_tests_until_it_is_resumed(story: Story) -> None:
    story.nominate(1)
    story.order("pause")
    assert story.matches(1.0, 0.0, 100) == ["asks"]
    assert story.verdicts[-1].words.startswith("promotion is paused; ")
    assert story.order("resume") == ["resumed", "promoted"]
    story.order("pause")
    assert story.nominate(2) == ["refused"]
    assert story.verdicts[-1].words == "promotion is paused"


def test_a_pause_stops_no_harm_stop_and_no_rollback(story: Story) -> None:
    with_champion(story)
    story.nominate(2)
    story.order("pause")
    assert story.matches(0.0, 1.0, 100) == ["harmful"]
    assert story.plays(0.0, 100) == ["alarm"]
    assert story.matches(0.0, 1.0, 100) == ["rolled back"]


def test_a_canary_that_a_person_is_asked_about_is_still_stopped_for_harm(story: Story) -> None:
    story.say(Declared(rules="v1", policy="manual"))
    story.nominate(1)
    assert story.matches(1.0, 0.0, 100) == ["asks"]
    assert story.matches(0.0, 1.0, 400) == ["harmful"]
    assert story.order("resume") == ["resumed"]
    assert story.state.champion is None


def test_a_canary_that_breaks_down_is_stopped_as_soon_however_long_a_person_is_asked(
    story: Story,
) -> None:
    story.say(Declared(rules="v1", policy="manual"))
    waits, stopped = (0, 300), []
    for version, wait in enumerate(waits, 1):
        story.nominate(version)
        assert story.matches(1.0, 0.0, 100) == ["asks"]
        assert story.matches(0.7, 0.5, wait) == []
        before = len(story.log)
        assert story.matches(0.0, 1.0, 400) == ["harmful"]
        stopped.append((len(story.log) - before) // 2)
        assert "worse than the rules since a person is asked; " in story.verdicts[-1].words
        assert "(enough: 1000)" in story.verdicts[-1].words
    assert max(stopped) < 40, "matches until it was stopped"


@pytest.mark.parametrize("by", ["resume", "policy"])
def test_stale_evidence_promotes_no_version_and_its_test_goes_on(by: str) -> None:
    story = Story(msgspec.structs.replace(EVEN, alarm=1e6, harm=1e6))
    story.say(Declared(rules="v1", policy="auto" if by == "resume" else "manual"))
    story.nominate(1)
    if by == "resume":
        story.order("pause")
    assert story.matches(1.0, 0.0, 100) == ["asks"]
    while e_of(story.state.test) >= 20.0:
        assert story.matches(0.3, 0.7, 1) == []
    if by == "resume":
        assert story.order("resume") == ["resumed", "continued"]
    else:
        assert story.say(Declared(rules="v1", policy="auto")) == ["continued"]
    assert story.verdicts[-1].words.startswith("its evidence is no longer enough; version 1: ")
    test = story.state.test
    assert test is not None and not test.asks and story.state.champion is None
    assert story.matches(1.0, 0.0, 100) == ["promoted"], "it goes on with the same evidence"


def test_a_person_may_approve_a_version_whose_evidence_has_fallen(story: Story) -> None:
    story.say(Declared(rules="v1", policy="manual"))
    story.nominate(1)
    assert story.matches(1.0, 0.0, 100) == ["asks"]
    assert story.matches(0.3, 0.5, 6) == []
    assert e_of(story.state.test) < 20.0
    assert story.order("approve", 1) == ["promoted"]


def test_a_version_that_a_person_approves_learns_its_promise_from_its_first_matches(
    story: Story,
) -> None:
    story.nominate(1)
    assert story.order("approve", 5) == ["closed", "promoted"]
    assert story.plays(0.0, 3) == []
    assert story.plays(1.0, 30) == []
    assert 0.6 < story.state.reigns[-1].promise < 0.9
    assert story.plays(0.0, 100) == ["alarm"]


def test_a_former_champion_that_is_approved_again_reigns_once(story: Story) -> None:
    with_champion(with_champion(story, 1), 2)
    assert story.order("approve", 1) == ["promoted"]
    assert [reign.version for reign in story.state.reigns] == [0, 2, 1]
    assert story.state.roles == {1: "champion", 2: "former"}


@pytest.mark.parametrize(
    ("order", "version", "words"),
    [
        ("approve", 1, "it is the champion already"),
        ("stop", 9, "nothing to stop: version 2 is being tested"),
    ],
)
def test_a_word_that_means_nothing_is_refused(
    story: Story, order: str, version: int, words: str
) -> None:
    with_champion(story)
    story.nominate(2)
    assert story.order(order, version) == ["refused"]
    assert story.verdicts[-1].words == words
    assert story.order("stop") == ["stopped"]
    assert story.order("stop") == ["refused"]


def test_a_version_is_tested_once_and_the_rules_never(story: Story) -> None:
    story.nominate(1)
    assert story.nominate(2) == ["refused"]
    story.order("stop", 1)
    assert story.nominate(1) == ["refused"]
    assert story.verdicts[-1].words == "it was tested before"
    assert story.nominate(0) == ["refused"]


# --- other rules, another scale ------------------------------------------------------------------


def test_edited_rules_close_the_test_and_begin_their_record_again(story: Story) -> None:
    with_champion(story)
    story.nominate(2)
    old = story.begin("holdout")
    assert story.say(Declared(rules="v2")) == ["closed"]
    assert story.verdicts[-1].words == "the rules changed"
    story.end(old, 1.0)
    assert 0 not in story.state.records and story.state.records[1].matches > 0
    assert story.state.reigns[-1].promise == pytest.approx(1 / 3)
    assert story.say(Declared(rules="v2")) == []  # another bot with the same rules


def test_edited_rules_begin_a_recheck_again(story: Story) -> None:
    rechecked(story)
    number = roles.shares(story.state).test
    story.matches(0.0, 1.0, 1)
    assert story.say(Declared(rules="v2")) == ["alarm"]
    coin = roles.shares(story.state)
    assert coin.canary == 1 and coin.test > number
    assert story.state.recheck is not None and int(story.state.recheck.trial.matches) == 0


def test_another_scale_makes_a_champion_learn_its_promise_again(story: Story) -> None:
    with_champion(story)
    assert story.say(Declared(rules="v1", score=(0.0, 100.0))) == []
    assert story.state.records == {} and story.state.reigns[-1].promise == 0.0
    assert story.plays(0.02, 60) == []  # low numbers, and no alarm
    assert 0.0 < story.state.reigns[-1].promise < 0.02


# --- shares --------------------------------------------------------------------------------------


def test_the_share_of_a_canary_rises_after_its_first_matches() -> None:
    story = Story(TrialSettings())
    story.nominate(1)
    shares = []
    for _ in range(11):
        shares.append(roles.shares(story.state).share)
        story.match("canary", 0.5)
    assert shares == [0.2] * 10 + [0.5]


@pytest.mark.parametrize("holdout", [0.0, 0.1])
def test_a_uniform_number_draws_each_arm_with_its_probability(holdout: float) -> None:
    coin = roles.Shares(test=1, canary=4, incumbent=3, share=0.2, holdout=holdout)
    drawn = [roles.draw(coin, place / 1000) for place in range(1000)]
    assert drawn.count(("holdout", 0)) == 1000 * holdout
    assert drawn.count(("canary", 4)) == pytest.approx(1000 * (1 - holdout) * 0.2, abs=1)
    assert drawn.count(("incumbent", 3)) == pytest.approx(1000 * (1 - holdout) * 0.8, abs=1)


def test_fold_leaves_the_state_that_it_is_given(story: Story) -> None:
    with_champion(story)
    story.nominate(2)
    before = plain(story.state)
    coin = Assigned(match="x", arm="canary", version=2, test=99, share=0.5)
    roles.fold(story.state, [(900, coin), (901, Declared(rules="v3", score=(0.0, 1.0)))])
    assert plain(story.state) == before


def test_a_state_that_is_owned_becomes_what_fold_returns() -> None:
    for seed in range(4):
        world = random_world(seed)
        owned, shown = roles.PromotionState(), []
        verdicts: list[roles.PromotionVerdict] = []
        for numbered in world.log:
            verdicts += roles.fold_owned(owned, [numbered])
            shown.append(roles.snapshot(owned))
        assert plain(owned) == plain(world.state)
        assert verdicts == world.verdicts
        middle, _ = roles.fold(roles.PromotionState(), world.log[:200])
        assert plain(shown[199].reigns) == plain(middle.reigns)
        assert plain(shown[199].test) == plain(middle.test)


def test_a_record_costs_the_same_however_many_matches_wait_or_were_played() -> None:
    """Counted in copies of the parts that grow: an owned state makes none."""
    state = roles.PromotionState()
    roles.fold_owned(state, [(1, Declared(policy="latest"))])
    number = 1
    for version in range(1, 2001):  # policy latest: a version a match
        number += 2
        coin = Assigned(match="m", arm="incumbent", version=version, forced=True)
        roles.fold_owned(state, [(number - 1, coin), (number, Resolved(order=number - 1))])
    assert state.records == {}, "versions that were never tested"
    lost = number + 1
    roles.fold_owned(state, [(lost, Assigned(match="lost", arm="incumbent", version=0))])
    parts = state.open, state.resolved
    for number in range(lost + 1, lost + 4001, 2):
        coin = Assigned(match="m", arm="incumbent", version=0)
        roles.fold_owned(state, [(number, coin), (number + 1, Resolved(order=number))])
    assert (state.open, state.resolved) == parts and state.open is parts[0]
    assert len(state.open) == 2001 and len(state.resolved) == 2000
    roles.fold_owned(state, [(number + 2, Resolved(order=lost, ending="vanished"))])
    assert not state.open and not state.resolved
    assert state.records[0].matches == 2001
