"""Whom a run meets and what it is rewarded for, stage by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy.core.config import Config, from_table, with_values
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.training.stage_plan import StagePlan

BOTS = tuple(catalog.bots("brawl"))
STAGES: list[dict[str, Any]] = [
    {
        "name": "easy",
        "opponents": "constant",
        "measure": "win_rate:constant",
        "threshold": 0.5,
        "min_matches": 8,
        "window": 16,
        "rewards": "dense",
        "rewards_end": "sparse",
        "anneal_steps": 1000,
    },
    {"name": "hard", "opponents": "self=3,based=1,constant=1", "rewards": "sparse"},
]


def config(**values: Any) -> Config:
    table = {"curriculum": {"stages": STAGES, "step_back": True}}
    return with_values(from_table(table), {k.replace("__", "."): v for k, v in values.items()})


def course(**values: Any) -> StagePlan:
    return StagePlan("brawl", config(**values), BOTS)


def by_name(one: StagePlan, steps: int) -> dict[str, float]:
    weights = one.weights(steps)
    assert weights.dtype == np.float32
    return dict(zip(one.rewards.names, weights.tolist(), strict=True))


def test_without_a_curriculum_there_is_one_stage_that_never_ends() -> None:
    only = StagePlan("brawl", with_values(Config(), {"train.opponents": "based=3,self=1"}), BOTS)
    assert (only.stage, only.state, only.bots, only.meets_itself) == ("", None, ("based",), True)
    assert only.note({"based": (1000, 0, 0)}, steps=5) is None
    assert by_name(only, 0) == by_name(only, 10**9) != {}
    assert only.resume(None, steps=7) is None


def test_all_stages_share_one_list_of_bots_and_terms() -> None:
    """So that the arena is compiled once, whatever stage comes."""
    both = course()
    assert both.bots == ("constant", "based") and both.meets_itself
    assert list(both.mix.names) == ["constant"] and not both.mix.meets_itself
    assert "closing" in both.rewards.names, "which only the first stage has"
    assert both.note({"constant": (19, 0, 0)}, steps=640) is not None
    assert list(both.mix.names) == ["based", "constant", "self"] and both.mix.own_share == 0.6
    assert by_name(both, 640)["closing"] == 0.0


def test_a_stage_is_passed_by_its_criterion_and_lost_by_it() -> None:
    one = course()
    assert one.note({"constant": (7, 0, 0)}, steps=100) is None, "too few to judge"
    change = one.note({"constant": (12, 0, 0)}, steps=200)
    assert change is not None and (change.before, change.after) == ("easy", "hard")
    assert (change.kind, change.steps) == ("advance", 200) and "more than 50%: " in change.reason
    back = one.note({"constant": (0, 0, 32)}, steps=300)
    assert back is not None and (back.kind, back.after, one.stage) == ("step_back", "easy", "easy")


def test_a_pin_holds_whatever_happens_and_moves_a_run_that_goes_on() -> None:
    pinned = course(curriculum__pin="hard")
    assert pinned.stage == "hard"
    assert pinned.note({"constant": (0, 0, 500)}, steps=10) is None and pinned.stage == "hard"
    free = course()
    free.note({"constant": (6, 0, 0)}, steps=10)
    kept = free.state
    change = pinned.resume(kept, steps=64)
    assert change is not None and (change.kind, change.before, change.after) == (
        "pin", "easy", "hard"
    )  # fmt: skip
    assert pinned.state is not None and pinned.state.entered == 64
    assert course().resume(kept, steps=64) is None, "nothing is pinned: it goes on as it was"


def test_going_on_is_going_on_with_the_same_evidence() -> None:
    one, other = course(), course()
    one.note({"constant": (6, 0, 0)}, steps=100)
    assert other.resume(one.state, steps=100) is None and other.state == one.state
    for each in (one, other):
        change = each.note({"constant": (13, 0, 0)}, steps=200)
        assert change is not None and change.after == "hard"
    assert other.state == one.state


def test_rewards_are_annealed_with_the_steps_of_the_stage() -> None:
    one = course()
    one.resume(None, steps=5000)  # the run had no curriculum before
    sets = catalog.reward_sets("brawl")
    dense, sparse = sets["dense"], sets["sparse"]
    for steps, share in ((5000, 0.0), (5250, 0.25), (5500, 0.5), (6000, 1.0), (99_000, 1.0)):
        expected = {
            name: (1 - share) * dense.get(name, 0.0) + share * sparse.get(name, 0.0)
            for name in one.rewards.names
        }
        assert by_name(one, steps) == pytest.approx(expected, rel=1e-6)


def test_weights_of_ones_own_are_in_every_stage() -> None:
    one = course(rewards__weights={"combo": 0.5, "win": 0.0})
    assert by_name(one, 0)["combo"] == by_name(one, 1000)["combo"] == 0.5
    one.note({"constant": (19, 0, 0)}, steps=10)
    assert one.stage == "hard" and by_name(one, 10)["combo"] == 0.5
    assert "win" not in one.rewards.names


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("curriculum.stages.hard.rewards", "spars", r"stages\.hard\.rewards: .*'sparse'"),
        ("curriculum.stages.easy.rewards_end", "x", r"\.stages\.easy\.rewards_end: brawl"),
        ("curriculum.stages.hard.opponents", "basd", r"stages\.hard\.opponents: .*'based'"),
        ("curriculum.stages.hard.opponents", "based,hawk", r"hard\.opponents: hawk is held out"),
        ("curriculum.pin", "hrd", r"curriculum\.pin: expected one of easy, hard; got 'hrd'"),
        ("rewards.weights.jump", 1.0, r"rewards\.weights\.jump: brawl has no reward term"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_stage_and_the_key(key: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        StagePlan("brawl", with_values(config(), {key: value}), BOTS)


def test_held_out_bots_are_refused_with_the_reason() -> None:
    for name in catalog.held_out("brawl"):
        with pytest.raises(ConfigError, match=r"train\.opponents: .*eval --opponents heldout"):
            StagePlan("brawl", with_values(Config(), {"train.opponents": f"based,{name}"}), BOTS)


def test_a_run_whose_stage_is_gone_says_so() -> None:
    kept = course().state
    other = StagePlan(
        "brawl", from_table({"curriculum": {"stages": [{"name": "new", "opponents": "based"}]}}),
        BOTS,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="the run was in stage 'easy', which is not among new"):
        other.resume(kept, steps=3)


def test_an_exploiter_meets_its_victim_alone() -> None:
    one = course(league__exploits="runs/x@3")
    assert (one.bots, one.meets_itself, one.mix.own_share, one.stage) == ((), True, 1.0, "")


@pytest.mark.parametrize(
    ("opponents", "measure"),
    [
        ("all", "win_rate:besed"),
        ("all", "win_rate:self"),
        ("constant=1,based=0", "win_rate:based"),
        ("", "win_rate:nobody"),
    ],
)
def test_a_stage_that_measures_somebody_it_never_meets_is_refused(
    opponents: str, measure: str
) -> None:
    stages = [{**STAGES[0], "opponents": opponents, "measure": measure}, STAGES[1]]
    settings = from_table({"curriculum": {"stages": stages}})
    with pytest.raises(ConfigError, match=r"curriculum\.stages\.easy\.measure: .* never be judged"):
        StagePlan("brawl", settings, BOTS)
