"""The rollout gate on a toy game whose answers are known by hand: it is no territory's alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from understudy.core import chance
from understudy.core.clock import LogicalClock
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.gates.decision import NOTHING_TO_BLOCK, BatchGate, judge
from understudy.gates.lookahead import AT_ONCE, LookaheadGate, seeds_of

WAIT, GROW, BURN = 0, 1, 2


class Field(NamedTuple):
    tick: Any
    """int32 [B]"""
    seed: Any
    """uint32 [B]: the soil, which nobody sees"""
    crop: Any
    """float32 [B]"""
    growing: Any
    """bool [B]"""


class Farm:
    """GROW costs 1 now and brings the crop (0..1) each later tick; BURN brings 0.5 and ends the
    crop; every tick pays half the crop that stands. The soil adds noise. Over after `last`."""

    name, version, players, max_frames = "farm", 1, 1, 100
    features = ("crop", "tick")
    actions = Discrete(("wait", "grow", "burn"))

    def __init__(self, *, last: int = 100, noise: float = 0.0) -> None:
        self._last, self._noise = last, noise
        self.steps = 0

    def start(self, ops: Any, seeds: Any) -> Field:
        return self.imagine(ops, np.zeros((2, len(seeds)), np.float32), seeds)

    def imagine(self, ops: Any, features: Any, seeds: Any) -> Field:
        count = features.shape[1]
        assert features.shape == (2, count) and seeds.shape == (count,)
        assert features.dtype == np.float32 and seeds.dtype == np.uint32
        return Field(features[1].astype(np.int32), seeds, features[0], np.zeros(count, bool))

    def step(self, ops: Any, state: Field, actions: Any) -> Field:
        self.steps += 1
        assert actions.dtype == np.int32 and actions.shape == (1, 1, len(state.tick))
        crop = np.where(actions[0, 0] == BURN, np.float32(0), state.crop)
        growing = state.growing | (actions[0, 0] == GROW)
        return Field(state.tick + 1, state.seed, crop, growing)

    def observe(self, ops: Any, state: Field) -> Any:
        return np.stack([state.crop, state.tick.astype(np.float32)])[None]

    def legal(self, ops: Any, state: Field) -> Any:
        return np.ones((1, 3, len(state.tick)), bool)

    def reward(self, ops: Any, before: Field, after: Field) -> Any:
        planted = after.growing & ~before.growing
        burnt = (after.crop == 0) & (before.crop > 0)
        soil = chance.uniform(NUMPY, before.seed, np.zeros(1, np.uint32))[0] - np.float32(0.5)
        paid = after.crop / 2 - planted + before.growing * before.crop + burnt * np.float32(0.5)
        return (paid + np.float32(self._noise) * soil * planted)[None].astype(np.float32)

    def over(self, ops: Any, state: Field) -> Any:
        return state.tick >= self._last

    def score(self, ops: Any, state: Field) -> Any:
        return np.zeros((1, len(state.tick)), np.float32)

    def tags(self, state: Field, index: int) -> Mapping[str, str]:
        return {}


def gate(farm: Farm | None = None, **options: Any) -> LookaheadGate:
    chosen = {"threshold": 0.0, "budget_ms": 1e6, "gamma": 1.0, "ticks": 3, **options}
    farm = farm or Farm()
    return LookaheadGate(farm, farm.imagine, **chosen)


def seen(crop: float, tick: int = 0) -> Any:
    return np.array([crop, tick], np.float32)


def act(*chosen: int) -> Any:
    return np.array(chosen, np.int32)


def test_it_finds_by_simulation_what_is_known_by_hand() -> None:
    """GROW at crop 0.8 over 3 ticks: -1 + 2 * 0.8; BURN: 0.5 - 3 * 0.4."""
    grow = gate().evaluate(seen(0.8), act(GROW))
    assert grow.send
    assert grow.expected_reward == pytest.approx(0.4 - 1.0)  # what the next tick will tell
    assert grow.reasons == ("gains 0.600 over 3 ticks",)
    burn = gate().evaluate(seen(0.8), act(BURN))
    assert not burn.send  # it would pay 0.5 at once, and yet
    assert burn.expected_reward == pytest.approx(0.5)
    assert burn.reasons == ("loses 0.700 over 3 ticks",)


def test_how_far_it_looks_and_what_later_is_worth_change_its_mind() -> None:
    assert not gate(ticks=2).evaluate(seen(0.8), act(GROW)).send
    assert gate(ticks=3).evaluate(seen(0.8), act(GROW)).send
    assert not gate(ticks=3, gamma=0.5).evaluate(seen(0.8), act(GROW)).send


def test_the_threshold_is_on_the_gain() -> None:
    assert gate(threshold=0.59).evaluate(seen(0.8), act(GROW)).send
    assert not gate(threshold=0.61).evaluate(seen(0.8), act(GROW)).send


def test_doing_nothing_is_never_blocked() -> None:
    farm = Farm()
    verdict = gate(farm, threshold=99.0).evaluate(seen(0.8), act(WAIT))
    assert verdict == NOTHING_TO_BLOCK
    assert farm.steps == 0


def test_what_would_follow_the_end_of_a_match_counts_nothing() -> None:
    """With one tick left GROW is all cost."""
    verdict = gate(Farm(last=10)).evaluate(seen(0.8, tick=9), act(GROW))
    assert verdict.reasons == ("loses 1.000 over 3 ticks",)


def test_a_batch_says_what_its_members_say_alone() -> None:
    rng = np.random.default_rng(0)
    one = gate(Farm(noise=0.5))
    assert isinstance(one, BatchGate)
    observations = rng.random((3 * AT_ONCE + 5, 2), dtype=np.float32)
    actions = rng.integers(0, 3, (len(observations), 1)).astype(np.int32)
    together = judge(one, observations, actions)
    alone = [one.evaluate(o, a) for o, a in zip(observations, actions, strict=True)]
    assert together == alone
    assert {verdict.send for verdict in together} == {True, False}


def test_the_same_inputs_give_the_same_verdict_and_worlds_are_averaged() -> None:
    noisy = Farm(noise=2.0)
    few, many = gate(noisy, worlds=2), gate(noisy, worlds=4_096)
    assert few.evaluate(seen(0.8), act(GROW)) == few.evaluate(seen(0.8), act(GROW))
    expected = many.evaluate(seen(0.8), act(GROW)).expected_reward
    assert expected == pytest.approx(-0.6, abs=0.05)


def test_worlds_differ_between_observations_and_within_one() -> None:
    observations = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 1.0], [1.0, 0.1]], np.float32)
    seeds = seeds_of(observations, 8).reshape(4, 8)
    assert (seeds[0] == seeds[2]).all()
    assert len(np.unique(seeds[[0, 1, 3]])) == 24


def test_past_its_budget_it_waits_and_says_so() -> None:
    """The clock moves 1 ms at each reading: there is time for some of the batch, not for all."""
    farm = Farm()
    slow = gate(farm, budget_ms=5.0, clock=LogicalClock(tick_s=0.001))
    observations = np.tile(seen(0.8), (2 * AT_ONCE, 1))
    verdicts = slow.evaluate_all(observations, np.full((2 * AT_ONCE, 1), GROW, np.int32))
    judged, late = verdicts[:AT_ONCE], verdicts[AT_ONCE:]
    assert all(verdict.send for verdict in judged)
    assert {(verdict.send, verdict.reasons) for verdict in late} == {
        (False, ("past the time budget of 5 ms",))
    }
    assert all(math.isnan(verdict.expected_reward) for verdict in late), "it did not look"
    assert farm.steps == 3  # nothing was begun in vain


def test_time_is_looked_at_between_ticks() -> None:
    farm = Farm()
    slow = gate(farm, budget_ms=2.5, ticks=50, clock=LogicalClock(tick_s=0.001))
    verdict = slow.evaluate(seen(0.8), act(GROW))
    assert (verdict.send, verdict.reasons) == (False, ("past the time budget of 2.5 ms",))
    assert farm.steps < 3
