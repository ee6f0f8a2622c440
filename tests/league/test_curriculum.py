"""Agents of a known strength go through stages: who passes, who does not, who comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.config import CurriculumConfig, StageConfig
from understudy.core.errors import ConfigError
from understudy.league.curriculum import Curriculum, CurriculumState, StageChange
from understudy.league.stage_evidence import Counts

EASY = StageConfig(
    name="easy", opponents="constant", measure="win_rate:constant", threshold=0.9,
    min_matches=100, window=200,
)  # fmt: skip
HARD = StageConfig(
    name="hard", opponents="based=9,constant=1", measure="win_rate:based", threshold=0.7,
    min_matches=100, window=200, rewards="dense", rewards_end="sparse", anneal_steps=1000,
)  # fmt: skip
END = StageConfig(name="end", opponents="self=7,based=2,constant=1")


def curriculum(*stages: StageConfig, **values: Any) -> Curriculum:
    return Curriculum(CurriculumConfig(stages=stages or (EASY, HARD, END), **values))


def played(
    rules: Curriculum,
    state: CurriculumState,
    strength: Mapping[str, float],
    *,
    matches: int,
    seed: int,
    each: int = 8,
) -> tuple[CurriculumState, list[StageChange]]:
    """An agent that wins with these probabilities plays so many matches against each opponent."""
    random, changes = np.random.default_rng(seed), []
    for number in range(matches // each):
        results: dict[str, Counts] = {}
        for name, rate in strength.items():
            wins = int(random.binomial(each, rate))
            results[name] = (wins, 0, each - wins)
        state, change = rules.note(state, results, steps=(number + 1) * 100)
        changes += [change] if change else []
    return state, changes


def in_stage(rules: Curriculum, name: str) -> CurriculumState:
    state = CurriculumState(name)
    return rules.resumed(state, steps=0)[0]


# --- advance ---------------------------------------------------------------------------------


def test_it_begins_with_the_first_stage_and_says_why_it_moves() -> None:
    rules = curriculum()
    state = rules.start()
    assert (rules.stage(state), rules.index(state)) == (EASY, 0)
    state, change = rules.note(state, {"constant": (148, 1, 1)}, steps=500)
    assert change == StageChange(
        kind="advance", before="easy", after="hard", steps=500,
        reason="constant: 148 of 150 won; evidence of more than 90%: 30,728, 10,000 wanted",
    )  # fmt: skip
    assert state == CurriculumState("hard", entered=500)
    assert rules.stage(state) == HARD


def test_a_share_above_the_threshold_is_not_enough_to_be_sure() -> None:
    rules = curriculum()
    state, change = rules.note(rules.start(), {"constant": (92, 0, 8)}, steps=1)
    assert change is None
    assert state.trials["easy"].reached < EASY.evidence == pytest.approx(10_000)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=30),
    st.sampled_from(["win_rate:constant", "score:constant"]),
)
def test_it_never_advances_before_there_are_enough_matches(
    parts: list[Counts], measure: str
) -> None:
    rules = curriculum(msgspec.structs.replace(EASY, measure=measure, threshold=0.05), HARD)
    state, seen = rules.start(), 0
    for part in parts:
        state, change = rules.note(state, {"constant": part}, steps=1)
        seen += sum(part)
        assert change is None or seen >= EASY.min_matches
        if change:
            return


@settings(max_examples=50)
@given(st.integers(0, 300), st.integers(0, 50))
def test_who_passes_would_have_passed_with_more_wins(wins: int, losses: int) -> None:
    rules = curriculum()
    _, change = rules.note(rules.start(), {"constant": (wins, 0, losses + 1)}, steps=1)
    _, better = rules.note(rules.start(), {"constant": (wins + 1, 0, losses)}, steps=1)
    assert better or not change


def test_a_player_of_50_percent_does_not_pass_70() -> None:
    rules = curriculum()
    passed = [
        played(rules, in_stage(rules, "hard"), {"based": 0.5}, matches=4000, seed=seed)[1]
        for seed in range(20)
    ]
    assert passed == [[]] * 20  # 20 x 500 looks


def test_a_lucky_streak_does_not_pass() -> None:
    """66% agents, looked at 250 times each; of a bound for one look, 18% passed."""
    rules = curriculum()
    passed = [
        played(rules, in_stage(rules, "hard"), {"based": 0.66}, matches=2000, seed=seed)[1]
        for seed in range(60)
    ]
    assert sum(map(bool, passed)) <= 3


def test_who_climbs_passes_soon_after_the_bar() -> None:
    """10 to 85% in 2,000 matches: 70% is reached after 1,600."""
    rules, passed = curriculum(), []
    for seed in range(20):
        random, state = np.random.default_rng(seed), in_stage(rules, "hard")
        for match in range(0, 2500, 8):
            wins = int(random.binomial(8, min(0.1 + 0.75 * match / 2000, 0.85)))
            state, change = rules.note(state, {"based": (wins, 0, 8 - wins)}, steps=match + 8)
            if change:
                passed.append(change.steps)
                break
    assert len(passed) == 20
    assert np.median(passed) == pytest.approx(1920, rel=0.05)


def test_a_player_of_95_percent_passes_soon() -> None:
    rules = curriculum()
    for seed in range(20):
        start = in_stage(rules, "hard")
        _, changes = played(rules, start, {"based": 0.95}, matches=160, seed=seed)
        assert [change.after for change in changes] == ["end"]


def test_evidence_begins_anew_with_each_stage() -> None:
    rules = curriculum()
    state, _ = rules.note(rules.start(), {"constant": (200, 0, 0), "based": (200, 0, 0)}, steps=1)
    assert (state.stage, state.windows, state.trials) == ("hard", {}, {})
    state, change = rules.note(state, {"based": (99, 0, 0)}, steps=2)
    assert change is None


def test_evidence_for_another_bar_begins_anew() -> None:
    """A threshold that was changed with a resume is another question."""
    state, _ = curriculum().note(CurriculumState("hard"), {"based": (40, 0, 10)}, steps=1)
    kept = state.trials["hard"].reached
    raised = curriculum(EASY, msgspec.structs.replace(HARD, threshold=0.75), END)
    state, _ = raised.note(state, {"based": (0, 0, 1)}, steps=2)
    assert kept > 10 and state.trials["hard"].reached < 1


def test_a_state_of_an_older_program_goes_on() -> None:
    """It has the results of its window, and no evidence yet."""
    old = b'{"stage":"hard","entered":7,"windows":{"based":[[60,0,40],[90,1,9]]}}'
    rules = curriculum()
    state, change = rules.resumed(msgspec.json.decode(old, type=CurriculumState), steps=9)
    assert (change, state.windows["based"]) == (None, ((60, 0, 40), (90, 1, 9)))
    _, changes = played(rules, state, {"based": 0.95}, matches=96, seed=0)
    assert [change.after for change in changes] == ["end"]


def test_nobody_leaves_the_last_stage_forwards() -> None:
    rules = curriculum(EASY)
    _, change = rules.note(rules.start(), {"constant": (200, 0, 0)}, steps=1)
    assert change is None
    rules = curriculum()
    state, change = rules.note(in_stage(rules, "end"), {"step-1": (900, 0, 0)}, steps=1)
    assert (state.stage, change) == ("end", None)


def test_snapshots_together_are_self() -> None:
    own = StageConfig(name="own", opponents="self,based", measure="score:self", threshold=0.5)
    rules = curriculum(own, END)
    _, change = rules.note(
        rules.start(), {"step-1": (60, 40, 0), "step-2": (80, 0, 40), "based": (0, 0, 9)}, steps=3
    )
    assert change and change.after == "end"
    assert change.reason.startswith("self: 160 points of 220; evidence of more than 50%: ")


# --- step back -------------------------------------------------------------------------------


def test_a_skill_that_is_lost_leads_back_and_is_won_again() -> None:
    rules = curriculum()
    state, changes = played(
        rules, in_stage(rules, "end"), {"based": 0.95, "constant": 0.4}, matches=400, seed=0
    )
    assert [(change.kind, change.after) for change in changes] == [("step_back", "easy")]
    assert changes[0].reason.startswith("constant: ")
    assert "; evidence of less than 80% (90% less 10% is to be held): " in changes[0].reason
    assert changes[0].reason.endswith(", 10,000 wanted")
    _, changes = played(rules, state, {"based": 0.95, "constant": 0.99}, matches=800, seed=1)
    assert [change.after for change in changes] == ["hard", "end"]


def test_the_earliest_skill_that_is_lost_counts() -> None:
    rules = curriculum()
    _, change = rules.note(
        in_stage(rules, "end"), {"based": (0, 0, 100), "constant": (0, 0, 100)}, steps=1
    )
    assert change and change.after == "easy"
    _, change = rules.note(
        in_stage(rules, "end"), {"based": (0, 0, 100), "constant": (99, 0, 0)}, steps=1
    )
    assert change and change.after == "hard"


def test_who_is_between_the_two_bounds_stays() -> None:
    """86%: too weak to pass 90% again, too strong to have lost it."""
    rules = curriculum()
    for seed in range(10):
        for stage in ("easy", "end"):
            start = in_stage(rules, stage)
            _, changes = played(rules, start, {"constant": 0.86}, matches=4000, seed=seed)
            assert changes == []


def test_an_opponent_that_is_not_met_any_more_is_not_judged() -> None:
    rules = curriculum()
    _, changes = played(rules, in_stage(rules, "end"), {"based": 0.95}, matches=800, seed=0)
    assert changes == []


def test_stepping_back_can_be_turned_off() -> None:
    rules = curriculum(step_back=False)
    _, changes = played(rules, in_stage(rules, "end"), {"constant": 0.1}, matches=800, seed=0)
    assert changes == []


# --- pin -------------------------------------------------------------------------------------


def test_a_pinned_stage_holds() -> None:
    rules = curriculum(pin="hard")
    assert rules.start().stage == "hard"
    for rate in (0.0, 1.0):
        strength = {"based": rate, "constant": rate}
        state, changes = played(rules, rules.start(), strength, matches=800, seed=0)
        assert (state.stage, changes) == ("hard", [])


def test_a_pin_that_is_new_moves_a_resumed_run() -> None:
    kept, _ = curriculum().note(curriculum().start(), {"constant": (50, 0, 0)}, steps=1)
    state, change = curriculum(pin="hard").resumed(kept, steps=700)
    assert state == CurriculumState("hard", entered=700)
    assert change and (change.kind, change.before, change.after) == ("pin", "easy", "hard")
    assert curriculum(pin="easy").resumed(kept, steps=700) == (kept, None)
    assert curriculum().resumed(kept, steps=700) == (kept, None)


# --- what is kept ----------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.integers(1, 60))
def test_a_resume_goes_on_as_if_nothing_had_been(seed: int, cut: int) -> None:
    rules, random = curriculum(), np.random.default_rng(seed)
    straight = resumed = rules.start()
    for number in range(60):
        wins, lost = (int(random.binomial(12, rate)) for rate in (0.93, 0.3))
        results = {"constant": (wins, 1, 12 - wins), "based": (12 - lost, 0, lost)}
        straight, change = rules.note(straight, results, steps=number)
        if number == cut:
            resumed = msgspec.json.decode(msgspec.json.encode(resumed), type=CurriculumState)
            resumed, _ = rules.resumed(resumed, steps=number)
        resumed, again = rules.note(resumed, results, steps=number)
        assert (resumed, again) == (straight, change)


def test_what_is_kept_stays_small() -> None:
    rules = curriculum()
    strength = {"based": 0.5, "constant": 0.85, "step-7": 0.5, "random": 0.5}
    state, _ = played(rules, in_stage(rules, "end"), strength, matches=4000, seed=0)
    assert set(state.windows) == {"based", "constant"}  # nothing else is measured
    assert all(len(window) == 200 / 8 for window in state.windows.values())


def test_noting_leaves_the_state_before_alone() -> None:
    rules = curriculum()
    before, _ = rules.note(rules.start(), {"constant": (3, 0, 0)}, steps=1)
    copy = msgspec.json.decode(msgspec.json.encode(before), type=CurriculumState)
    rules.note(before, {"constant": (3, 0, 0)}, steps=2)
    assert before == copy


def test_a_stage_that_is_gone_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"was in stage 'hrd', .* easy, hard, end\. .*'hard'"):
        curriculum().resumed(CurriculumState("hrd"), steps=0)


def test_a_curriculum_has_stages() -> None:
    with pytest.raises(ConfigError, match=r"curriculum\.stages"):
        Curriculum(CurriculumConfig())


def test_rewards_are_annealed_from_where_the_stage_began() -> None:
    rules = curriculum()
    state, _ = rules.note(rules.start(), {"constant": (200, 0, 0)}, steps=5000)
    shares = [rules.blend(state, steps) for steps in (5000, 5250, 6000, 9000)]
    assert shares == [0.0, 0.25, 1.0, 1.0]
    assert rules.blend(rules.start(), 9000) == 0.0
